"""Arguments as other libraries call them, and what to write for them here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from lattend.attend.operators.tracing import constant
from lattend.errors import NamingError

OPTIONS = (  # of attention, without q and k
    *("v", "rule", "scale", "scales", "bias", "padding", "cu_seqlens", "softcap", "sinks", "dropout"),
    *("cache", "return_lse", "return_max_logit", "kernel", "deterministic"),
)

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
    """A name that is known and spelt almost so."""
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


@constant
def meant_by(name: str, known: tuple[str, ...]) -> str:
    """What an unknown argument may have been meant for: a name of the rule, or an argument of attention."""
    if name in _OTHER:
        return f"; {_OTHER[name]}"
    if name in OPTIONS:
        return f"; {name} is an argument of lt.attention, and has no part here"
    return close_name(name, known) or close_name(name, OPTIONS)


def no_rule(given: Iterable[str]) -> NamingError:
    """The error of a call without a rule, which may say it as another library would."""
    meant = next((f"; {name}: {_OTHER[name]}" for name in given if name in _OTHER), "")
    return NamingError(
        'attention(q, k, v, rule) needs a rule: "causal", "k <= q and q - k <= 255", a mask_mod, or '
        f'"full" for all pairs{meant}'
    )
