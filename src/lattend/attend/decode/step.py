"""One step of decoding, or one piece of a prefill: its queries against the keys in the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import inf, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.backends.cuda import cudnn_sdp_enabled, enable_cudnn_sdp
from torch.nn.functional import scaled_dot_product_attention

from lattend.attend.bias import Bias
from lattend.attend.call.options import AttentionOptions
from lattend.attend.call.tensor_terms import evaluate as evaluate_unchecked
from lattend.attend.decode.slots import SlotTable
from lattend.attend.kernels import gpu_crossovers
from lattend.attend.kernels.sdpa import CUDNN, FLASH, flash_takes
from lattend.errors import DomainError, TensorError
from lattend.plans.last_query import FOREVER
from lattend.rules.axes import HEAD
from lattend.rules.code import python_code
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Arith, Condition, Lookup, Name, Num
from lattend.rules.rule import Rule

MAX_POSITION = 1 << 40
MAX_CUDNN = 128  # the head dimension up to which cuDNN was measured
PIECE = 512  # queries of a prompt that are answered together
FEW_QUERIES = 16  # of a step of decoding or a draft; more are a prompt
FEW_ROWS = 1024  # of scores, of all heads and elements: a step of decoding or a draft; more are a prompt


class Scoring(NamedTuple):
    """How a step computes its scores, and whether it returns their log-sum-exp."""

    scale: float
    softcap: float | None = None
    bias: Bias | None = None
    return_lse: bool = False

    @staticmethod
    def of(q: Tensor, options: AttentionOptions) -> Scoring:
        """Returns the scoring of checked options, without their bias."""
        scale = 1 / sqrt(q.shape[3]) if options.scale is None else options.scale
        return Scoring(scale, options.softcap, None, options.return_lse)

    @property
    def is_plain(self) -> bool:
        """Whether torch's own attention computes such scores, the bias aside."""
        return self.softcap is None and self.scale > 0


class NewTokens(NamedTuple):
    """The next s tokens of each row, and the entries [batch, s] of arrays that grow.

    Where `sizes` [batch] are given, so many of them are real, the first ones. `known_sizes` are the same, on
    the host where a caller has them there.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    entries: Mapping[str, Tensor]
    sizes: Tensor | None = None
    known_sizes: Tensor | None = None


class Slots(NamedTuple):
    """Where keys lie, and what says which of them a query attends to; without a condition it is all of them.

    `positions` of the keys are [batch, slots], or [1, slots] where all rows have the same. A static cache has
    a `state` of tensors, its lengths, the greatest ever, and drafted tokens; and a `ring`: pinned slots,
    those of the ring, the reach, and the length. `whole`: each of its queries attends to its own key, and to
    all keys in slots. A dynamic cache has a `table` of them.
    """

    keys: Tensor
    values: Tensor
    positions: NDArray[np.int64] | Tensor | None = None
    condition: Condition | None = None
    data: Mapping[str, Tensor] = {}
    state: tuple[Tensor, ...] = ()
    ring: tuple[int, int, int, int] = (0, 0, 0, FOREVER)
    whole: bool = False
    table: SlotTable | None = None


def check_step(
    q: Tensor, k: Tensor, v: Tensor, held: tuple[Tensor, Tensor], heads: int, *, sized: bool = True
) -> None:
    """Raises unless a step fits a cache of so many query heads and the keys and values that it holds.

    `sized`: the cache is made with its number of kv heads, rather than given it by its first keys.
    """
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TensorError(f"{name} must be a tensor, got {type(x).__name__}")
    keys, values = held
    batch, kv_heads, _, head_dim = keys.shape
    s = k.shape[2] if k.dim() == 4 else 0
    expected = ((batch, kv_heads, s, head_dim), (batch, kv_heads, s, values.shape[3]))
    if (k.shape, v.shape) != expected or q.dim() != 4:
        other = sized and k.dim() == 4 and k.shape[1] != kv_heads
        raise TensorError(
            f"this cache takes k {_shape(batch, kv_heads, 's', head_dim)} and v "
            f"{_shape(batch, kv_heads, 's', values.shape[3])}, got q {_shape(*q.shape)}, "
            f"k {_shape(*k.shape)} and v {_shape(*v.shape)}"
            + (f"; make it with kv_heads={k.shape[1]}" if other else "")
        )
    given = q.shape[1]
    if q.shape != (batch, given, s, head_dim) or given % kv_heads:
        raise TensorError(
            f"q is {_shape(*q.shape)}, and beside k {_shape(*k.shape)} it must be "
            f"{_shape(batch, 'heads', s, head_dim)}, its heads a multiple of {kv_heads}"
        )
    if given != heads:
        raise TensorError(
            f"q has {given} heads, and the cache was made for {heads}; "
            f"make it with heads={given}" + (f", kv_heads={kv_heads}" if sized else "")
        )
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dtype != keys.dtype or x.device != keys.device:
            raise TensorError(
                f"{name} is {x.dtype} on {x.device}, and this cache {keys.dtype} on {keys.device}"
            )
        if x.requires_grad and torch.is_grad_enabled():
            raise keeps_no_gradient(name)


def check_length(seen: int, more: int, most: int | None) -> None:
    """Raises where so many more positions do not fit a cache that was made for a length."""
    if most is not None and seen + more > most:
        raise DomainError(
            f"{seen} positions and {more} more are beyond the {most} that this cache was made for"
        )


def _shape(*sizes: int | str) -> str:
    return f"({', '.join(map(str, sizes))})"


def empty_slots(
    slots: int, shape: tuple[int, int, int, int], growing: Sequence[str], kind: Mapping[str, Any]
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Keys and values [batch, kv_heads, slots, D], and entries [batch, slots] of arrays that grow.

    `shape` is batch, kv_heads, head_dim and value_dim; `kind` the dtype and the device.
    """
    batch, kv_heads, head_dim, value_dim = shape
    with torch.inference_mode(False):  # else they could not be written to outside of it
        keys = torch.zeros(batch, kv_heads, slots, head_dim, **kind)
        values = torch.zeros(batch, kv_heads, slots, value_dim, **kind)
        whole = {name: torch.zeros(batch, slots, dtype=torch.int64, device=keys.device) for name in growing}
    return keys, values, whole


def clear_slots(keys: Tensor, values: Tensor, free: Tensor) -> None:
    """Writes zeros into the slots without a key, `free` [batch or 1, slots].

    They may hold NaN or inf, which a weight of 0 does not remove.
    """
    for x in (keys, values):
        x.masked_fill_(free[:, None, :, None], 0)


def rounded_slots(count: int) -> int:
    """The number of slots to read of a buffer with `count` keys: cuDNN plans for 40 ms for each such number.

    >>> rounded_slots(10), rounded_slots(4096), rounded_slots(4097)  # 16 numbers up to twice as many keys
    (64, 4096, 4352)
    """
    step = max(64, 1 << max(0, count.bit_length() - 5))
    return -(-count // step) * step


def prefill(rule: Rule, new: NewTokens, how: Scoring) -> tuple[Tensor, Tensor]:
    """Attention itself, over tokens that have no past: the output and the log-sum-exp."""
    from lattend.attend.attention import attend as attend_whole

    options: dict[str, Any] = how._asdict() | {"padding": new.sizes, "return_lse": True}
    entries = {name: new.entries[name] for name in rule.open}
    return attend_whole(new.q, new.k, new.v, rule, AttentionOptions(**options), entries)


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, how: Scoring, bias: Tensor | None = None,
    fixed: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The output [batch, heads, s, Dv] of s queries, and their log-sum-exp [batch, heads, s] if asked for.

    `mask` is [s, m], [heads, s, m] or [batch, 1 or heads, s, m]; None is all pairs. A row without keys gives
    zeros and -inf.
    `bias` is broadcast to [batch, heads, s, m]. `fixed`: later calls have the same m, or one of a few.
    """
    batch, heads, s, _ = q.shape
    kv_heads, m = k.shape[1:3]
    if m == 0 or q.numel() == 0:
        lse = q.new_full((batch, heads, s), inf, dtype=wide(q)).neg() if how.return_lse else None
        return q.new_zeros(batch, heads, s, v.shape[3]), lse
    if fixed and mask is not None and bias is None and by_cudnn(q, k, v, mask, how):
        return _cudnn(q, k, v, mask, how.scale), None
    if _by_products(q, mask, how, bias):
        return _written_out(q, k, v, mask, how, bias)
    if mask is None and (heads == kv_heads or (s == 1 and _is_flash(q, v))):
        return _library(q, k, v, None, how.scale), None
    group = heads // kv_heads
    if mask is None:  # the queries that share a kv head are rows of one matrix
        out = _library(q.reshape(batch, kv_heads, group * s, -1), k, v, None, how.scale)
        return out.reshape(batch, heads, s, -1), None
    if mask.ndim == 4 and mask.shape[1] == 1:
        rows = mask.repeat(1, 1, group, 1)  # [batch, 1, group * s, m], as the queries of a kv head
        out = _library(q.reshape(batch, kv_heads, group * s, -1), k, v, rows, how.scale)
        return out.masked_fill(~rows.any(-1, keepdim=True), 0).reshape(batch, heads, s, -1), None
    rows = q.reshape(batch * kv_heads, group, s, -1)
    keys, values = (x.flatten(0, 1)[:, None].expand(-1, group, -1, -1) for x in (k, v))
    if mask.ndim >= 3:
        mask = mask.expand(batch, heads, s, m).reshape(batch * kv_heads, group, s, m)
    out = _library(rows, keys, values, mask, how.scale).masked_fill(~mask.any(-1, keepdim=True), 0)
    return out.reshape(batch, heads, s, -1), None


def by_cudnn(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, how: Scoring) -> bool:
    """Whether cuDNN is faster: for one query of long keys, and for drafts that are too large for products."""
    s, m = q.shape[2], k.shape[2]
    plain = how.is_plain and not how.return_lse and not torch.compiler.is_compiling()
    if not plain or not q.is_cuda or not flash_takes(q, v) or q.shape[3] > MAX_CUDNN or m % 8:
        return False
    if mask.ndim == 3 or (mask.ndim == 4 and mask.shape[1] > 1):  # heads differ
        return False
    if s == 1:
        return m >= gpu_crossovers.cached_keys("token", k)
    return (s <= FEW_QUERIES or s == PIECE) and prod(q.shape[:3]) > FEW_ROWS


def _cudnn(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The output of cuDNN with the mask as a bias; queries that share a kv head are rows of one matrix."""
    batch, heads, s, width = q.shape
    mask = mask.expand(-1, 1, -1, -1) if mask.ndim == 4 else mask[None, None]
    if s > 1:
        group = heads // k.shape[1]
        q, mask = q.reshape(batch, k.shape[1], group * s, width), mask.repeat(1, 1, group, 1)
    bias = q.new_zeros(mask.shape).masked_fill_(~mask, -inf)
    out = CUDNN(q if q.stride(-1) == 1 else q.contiguous(), k, v, bias, False, scale=scale)[0]
    return out.masked_fill(~mask.any(-1, keepdim=True), 0).reshape(batch, heads, s, -1)


def _by_products(q: Tensor, mask: Tensor | None, how: Scoring, bias: Tensor | None) -> bool:
    """Whether scores are written out, two products with a softmax between, rather than left to the library.

    They are where more is asked of them than a softmax: a bias in bfloat16 is too coarse for the library, and
    a negative scale makes its greatest score the least. A
    mask sends the library on a GPU to its memory-efficient kernel, which gives each head of a few queries one
    program: 32 heads on 4,096 keys take it 170 µs on an H200, the products 53. With 16 queries these are 200
    and 89, with 64 205 and 213; with 16 elements of one query 210 and 153, of four queries 222 and 280.
    """
    if how.return_lse or bias is not None or not how.is_plain:
        return True
    return q.is_cuda and mask is not None and prod(q.shape[:3]) <= FEW_ROWS


def _written_out(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, how: Scoring, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp, in float32 at least; keys and values are not copied for their heads."""
    shared = q.reshape(*k.shape[:2], -1, q.shape[3])  # the queries of a kv head, one below another
    scores = _product(shared, k.mT).view(*q.shape[:3], -1) * how.scale  # [batch, heads, s, m]
    if how.softcap is not None:
        scores = how.softcap * (scores / how.softcap).tanh()
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -inf)
    lse = scores.logsumexp(-1, keepdim=True)
    weights = (scores - lse.masked_fill(lse == -inf, 0)).exp()
    out = _product(weights.view(*shared.shape[:3], -1), v)
    return out.view(*q.shape[:3], -1).to(q.dtype), lse[..., 0]


def _product(a: Tensor, b: Tensor) -> Tensor:
    """The product of a and b, summed and given in float32 at least; on a GPU 16-bit numbers of b stay so."""
    if b.is_cuda and b.element_size() == 2:
        found = torch.bmm(a.to(b.dtype).flatten(0, 1), b.flatten(0, 1), out_dtype=torch.float32)
        return found.view(*a.shape[:-1], -1)
    return a.to(wide(b)) @ b.to(wide(b))


def _library(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """PyTorch's attention without cuDNN, which takes 50 ms to prepare for each new number of keys."""
    if not q.is_cuda or torch.compiler.is_compiling():
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    if mask is None and _is_flash(q, v):  # at once: it need not be chosen
        return FLASH(q, k, v, scale=scale)[0]
    if not cudnn_sdp_enabled():
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    enable_cudnn_sdp(False)
    try:
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    finally:
        enable_cudnn_sdp(True)


def _is_flash(q: Tensor, v: Tensor) -> bool:
    """Whether torch's FlashAttention runs, where heads may share keys."""
    return q.is_cuda and flash_takes(q, v) and not torch.compiler.is_compiling()


def wide(x: Tensor) -> torch.dtype:
    """The dtype that sums of such numbers are kept in."""
    return torch.promote_types(x.dtype, torch.float32)


class StepMask:
    """Which pairs at given positions are attended: by NumPy on the host, or by PyTorch where the keys are."""

    def __init__(
        self,
        condition: Condition,
        data: Mapping[str, NDArray[Any]],
        heads: int | None,
        entries: Sequence[str] = (),
    ) -> None:
        self.condition, self.data, self.heads = condition, data, heads
        self.fits = _fits(condition, entries, data)
        self.plain = not data and self.fits
        self._code = _code(condition) if self.plain else ""

    def on_host(
        self, q: NDArray[np.int64], k: NDArray[np.int64], entries: Mapping[str, Tensor] | None = None
    ) -> NDArray[np.bool_]:
        """The mask [s, m], or [heads, s, m], of positions q and k; [batch, …] where rows have their own."""
        places: dict[str, Any] = {"q": q[..., :, None], "k": k[..., None, :]}
        shape = (q.shape[-1], k.shape[-1])
        if entries:
            places |= {name: x.cpu().numpy() for name, x in entries.items()}
        if q.ndim > 1:
            places = {name: x[:, None] for name, x in places.items()}
            shape = (max(len(x) for x in places.values()), 1, *shape)
        if self.heads is not None:
            places[HEAD] = np.arange(self.heads)[:, None, None]
            shape = (*shape[:-3], self.heads, *shape[-2:]) if q.ndim > 1 else (self.heads, *shape)
        if self.plain:
            found = _on_arrays(self._code)(**places)
        else:
            found = evaluate(self.condition, places, self.data)
        whole = np.asarray(found)
        return whole if whole.shape == shape else np.broadcast_to(whole, shape)

    def on_device(
        self,
        q: NDArray[np.int64],
        k: NDArray[np.int64],
        device: torch.device,
        entries: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """The same as a tensor on the device; a k below 0 is a slot without a key.

        `entries` of arrays, [batch, s, 1] and [batch, 1, m], go with positions [batch, s] and [batch, m].
        """
        free = k < 0
        if not self.plain:
            found = self.on_host(q, np.maximum(k, 0), entries)
            return moved(np.array(found & ~free[..., None, None, :] if k.ndim > 1 else found & ~free), device)
        places: dict[str, Any] = {"q": moved(q, device)[..., :, None], "k": moved(k, device)[..., None, :]}
        places |= entries or {}
        if q.ndim > 1:
            places = {name: x[:, None] for name, x in places.items()}
        if self.heads is not None:
            places[HEAD] = torch.arange(self.heads, device=device)[:, None, None]
        shape = np.broadcast_shapes(*(tuple(x.shape) for x in places.values()))
        found = evaluate_unchecked(self.condition, places)
        found = torch.full(shape, found, device=device) if isinstance(found, bool) else found.expand(shape)
        return found & (places["k"] >= 0) if free.any() else found


def _code(condition: Condition) -> str:
    """A function of NumPy arrays, by name, which says where the condition holds."""
    names = dict.fromkeys(("q", "k", *expr.names(condition)))
    return f"lambda {', '.join(names)}, **others: {python_code(condition, (*names,), 'np')}"


@lru_cache(maxsize=256)
def _on_arrays(code: str) -> Callable[..., Any]:
    return eval(compile(code, f"<attended {code}>", "eval"), {"np": np, "__name__": __name__})


def moved(array: NDArray[Any], device: torch.device) -> Tensor:
    """The array on the device; the host does not wait for it."""
    here = torch.as_tensor(array, device="cpu")
    return here if device.type == "cpu" else here.pin_memory().to(device, non_blocking=True)


def _fits(condition: Condition, entries: Sequence[str], data: Mapping[str, NDArray[Any]]) -> bool:
    """Whether 64 bits hold all numbers on the way, at any position and entry, and no divisor can be 0."""
    if any(np.abs(array.astype(object)).max(initial=0) > MAX_POSITION for array in data.values()):
        return False
    read = {name: f"entry_of_{name}" for name in data}
    condition = expr.fold(  # pyright: ignore[reportAssignmentType]  (a condition stays one)
        condition,
        lambda node, parts: Name(read[node.array]) if isinstance(node, Lookup) else expr.rebuilt(node, parts),
    )
    for node in expr.walk(condition):
        if isinstance(node, Num) and abs(node.value) > MAX_POSITION:
            return False
        if isinstance(node, Arith) and node.op in ("//", "%") and expr.names(node.args[1]):
            return False
    ends = np.array([0, MAX_POSITION])
    try:
        evaluate(condition, dict.fromkeys(("q", "k", HEAD, *entries, *read.values()), ends), {})
    except DomainError:
        return False
    return True


def keeps_no_gradient(name: str) -> TensorError:
    """The error of a tensor that wants a gradient while decoding."""
    return TensorError(
        f"{name} requires a gradient, and a cache keeps none: use torch.no_grad() to decode, "
        "attention without a cache to train"
    )
