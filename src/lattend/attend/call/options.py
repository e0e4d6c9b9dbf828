"""AttentionOptions: the keyword arguments of attention, read once and passed on as one object.

A new option is a field here. This file also checks the numbers among the options, and knows the names that
other libraries have for them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from lattend.attend.bias import Bias
from lattend.attend.operators.tracing import constant
from lattend.errors import DomainError, NamingError

if TYPE_CHECKING:
    from lattend.attend.call.fp8 import ScalesLike
    from lattend.attend.call.varlen import CuSeqlens
    from lattend.attend.decode.kv_cache import KVCache

MOST_SCALE = 1e18


class KernelOptions(NamedTuple):
    """The options that kernels take as they are. Their meaning is in `AttentionCall`."""

    scale: float | None = None
    softcap: float | None = None
    dropout: float = 0.0
    kernel: str | None = None
    deterministic: bool = True

    def as_constants(self) -> KernelOptions:
        """Returns the same options with Python's own floats, which torch.compile holds as constants."""
        constants: list[Any] = [
            x if x is None or isinstance(x, (bool, str)) else float(x).__float__() for x in self
        ]
        return KernelOptions(*constants)


class AttentionOptions(NamedTuple):
    """The options of one call of attention, as its caller wrote them. Their meaning is in `attention`."""

    scale: float | None = None
    scales: ScalesLike | None = None
    bias: Bias | Tensor | None = None
    padding: Tensor | None = None
    cu_seqlens: CuSeqlens | None = None
    softcap: float | None = None
    sinks: Tensor | None = None
    dropout: float = 0
    cache: KVCache | None = None
    return_lse: bool = False
    return_max_logit: bool = False
    kernel: str | None = None
    deterministic: bool = True

    @property
    def in_signature(self) -> tuple[Any, ...] | None:
        """The options without tensors; None where a call is decided anew each time.

        Two calls that differ in one of them never share a prepared call.
        """
        if self.padding is not None or self.cu_seqlens is not None or self.dropout or self.return_max_logit:
            return None
        return _IN_SIGNATURE(self)

    @property
    def for_kernels(self) -> KernelOptions:
        """The options that kernels take."""
        return KernelOptions(*[getattr(self, name) for name in KernelOptions._fields])

    def as_keywords(self) -> dict[str, Any]:
        """The options that the caller set, by name."""
        written = {name: value for name, value in self._asdict().items() if value is not None}
        return {name: value for name, value in written.items() if value is not False} | {
            "deterministic": self.deterministic
        }


OPTIONS = ("v", "rule", *AttentionOptions._fields)  # of attention, without q and k
WITH_TENSORS = ("scales", "bias", "padding", "cu_seqlens", "sinks", "cache")


def other_options(names: Iterable[str]) -> Callable[[AttentionOptions], tuple[Any, ...]]:
    """Returns a function that gives the values of all options except these."""
    fields = enumerate(AttentionOptions._fields)
    return itemgetter(*[place for place, name in fields if name not in {*names}])


_IN_SIGNATURE = other_options(WITH_TENSORS)


def check_scoring(options: KernelOptions) -> None:
    """Raises unless scores and weights can be computed with these numbers."""
    numbers: dict[str, Any] = {name: getattr(options, name) for name in ("scale", "softcap", "dropout")}
    scale, softcap, dropout = numbers.values()
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            hint = "; multiply q by it instead" if name == "scale" else ""
            raise NamingError(f"{name} must be a number, got {type(value).__name__}{hint}")
    if isinstance(scale, (int, float)) and not abs(scale) <= MOST_SCALE:
        raise DomainError(f"scale must be a finite number of at most {MOST_SCALE:g}, got {scale}")
    if isinstance(softcap, (int, float)) and not 0 < softcap <= MOST_SCALE:
        raise DomainError(f"softcap bends scores to within ±softcap, a number above 0; got {softcap}")
    if not isinstance(dropout, (int, float)) or not 0 <= dropout < 1:
        raise DomainError(
            f"dropout is the share of weights that are dropped, from 0 to below 1; got {dropout}"
        )


# Names of other libraries, and what to write for them

_CAUSAL = 'it is a rule here: lt.attention(q, k, v, "causal")'
_MASK = (
    'a mask is the rule: "causal", a mask_mod, or a table as lt.rule("mask[q, k]", data={"mask": table}); '
    "numbers to add are bias=…"
)
_MASK_MOD = "it is the rule, as it stands: lt.attention(q, k, v, mask_mod)"
_SCALE, _SOFTCAP, _SINKS = "write scale=…", "write softcap=…", "write sinks=…, a logit for each head"
_LENGTHS = "write cu_seqlens=cu, or cu_seqlens=(cu_q, cu_k)"
_CACHE = "write cache=lt.KVCache(rule, …), which holds the keys and values of the past"
_IN_CACHE = (
    "lt.KVCache counts the lengths of its rows: "
    "cache=lt.KVCache(rule, batch=…, heads=…, head_dim=…, static=True, capacity=…)"
)
_PADDED = "write padding=…, lengths [batch] or a mask [batch, m], True where a key is real"
_PAGED = (
    "there are no pages here: lt.KVCache has a row of memory for each sequence, as long as the rule's window "
    "where it has one; static=True fixes its addresses"
)
_WEIGHTS = "no weights are kept; return_lse=True gives the log-sum-exp of every query"
_LARGEST = "write return_max_logit=True, or lt.max_logits(q, k, rule) for the largest scores alone"
_OTHER = {
    **dict.fromkeys(("is_causal", "causal"), _CAUSAL),
    **dict.fromkeys(("attn_mask", "mask"), _MASK),
    **dict.fromkeys(("block_mask", "mask_mod"), _MASK_MOD),
    **dict.fromkeys(("softmax_scale", "sm_scale", "scaling"), _SCALE),
    **dict.fromkeys(("logits_soft_cap", "logit_softcap", "attn_logit_softcapping"), _SOFTCAP),
    **dict.fromkeys(("q_descale", "k_descale", "v_descale"), "write scales=(q_scale, k_scale, v_scale)"),
    **dict.fromkeys(("s_aux", "attention_sinks"), _SINKS),
    **dict.fromkeys(("cu_seqlens_q", "cu_seqlens_k", "cu_seq_lens_q", "cu_seq_lens_k"), _LENGTHS),
    **dict.fromkeys(("max_seqlen", "max_seqlen_q", "max_seqlen_k"), "leave it out: cu_seqlens are enough"),
    **dict.fromkeys(("cache_seqlens", "cache_position", "cache_batch_idx", "k_cache", "v_cache"), _IN_CACHE),
    **dict.fromkeys(("block_table", "block_tables", "page_table", "slot_mapping", "kv_indptr"), _PAGED),
    **dict.fromkeys(("seqused_q", "seqused_k", "leftpad_k", "cache_leftpad"), _PADDED),
    **dict.fromkeys(("past_key_value", "past_key_values"), _CACHE),
    **dict.fromkeys(("need_weights", "output_attentions", "return_attn_probs"), _WEIGHTS),
    **dict.fromkeys(("max_logit", "max_logits", "return_max_logits"), _LARGEST),
    "dropout_p": "write dropout=…",
    "key_padding_mask": "write padding=~key_padding_mask: it is True where a key is real",
    "attention_mask": "write padding=attention_mask.bool(), [batch, m], True where a key is real",
    "window_size": 'a window is a rule here: "window_size(left, right)"',
    "sliding_window": 'a window is a rule here: "sliding_window(4096)"',
    "kernel_size": 'a neighbourhood is a rule here: "natten(7)"',
    "score_mod": 'what it adds is bias=lt.Bias("-slope[head]*(q - k)", slope=…); softcap=… bends scores',
    "attn_bias": "numbers to add are bias=…; a mask is the rule",
    "alibi_slopes": 'write bias=lt.Bias("-slope[head]*abs(q - k)", slope=…)',
    "enable_gqa": "leave it out: the heads of q may be a multiple of those of k and v",
}


@constant
def close_name(name: str, known: tuple[str, ...]) -> str:
    """Returns a hint at a known name with nearly this spelling."""
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


@constant
def meant_by(name: str, known: tuple[str, ...]) -> str:
    """Returns a hint at what an unknown argument may mean, a name of the rule or another argument."""
    if name in _OTHER:
        return f"; {_OTHER[name]}"
    if name in OPTIONS:
        return f"; {name} is an argument of lt.attention, and has no part here"
    return close_name(name, known) or close_name(name, OPTIONS)


def no_rule(arguments: Iterable[str]) -> NamingError:
    """Returns the error of a call without a rule; its arguments may be those of another library."""
    meant = next((f"; {name}: {_OTHER[name]}" for name in arguments if name in _OTHER), "")
    return NamingError(
        'attention(q, k, v, rule) needs a rule: "causal", "k <= q and q - k <= 255", a mask_mod, or '
        f'"full" for all pairs{meant}'
    )
