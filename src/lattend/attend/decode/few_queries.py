"""A few queries against keys at hand: one step of decoding, or one piece of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, reduce
from math import inf, prod
from operator import add, and_, floordiv, mod, mul, neg, or_, pos, sub
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.backends.cuda import cudnn_sdp_enabled, enable_cudnn_sdp
from torch.nn.functional import scaled_dot_product_attention

from lattend.attend.bias import Bias, shape_text, value
from lattend.attend.form import form_of
from lattend.attend.inputs import term_given
from lattend.errors import DomainError, LattendError, TensorError
from lattend.plans.retention import row_by_row
from lattend.rules.axes import HEAD, HEADS
from lattend.rules.language import expr
from lattend.rules.language.evaluation import COMPARE, evaluate
from lattend.rules.language.expr import And, Arith, Compare, Condition, Name, Not, Num, Or, Term, Truth
from lattend.rules.language.parser import parse_term
from lattend.rules.rule import Rule

MAX_POSITION = 1 << 40


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    marked: Tensor | None,
    scale: float,
    return_lse: bool = False,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The output [batch, heads, s, Dv] of s queries, and their log-sum-exp [batch, heads, s] if asked for.

    `marked` is [s, m], or [heads, s, m]; None marks all squares. A row without marks gives zeros and -inf.
    `bias` is broadcast to [heads, s, m].
    """
    batch, heads, s, _ = q.shape
    key_heads, m = k.shape[1:3]
    if m == 0 or q.numel() == 0:
        lse = q.new_full((batch, heads, s), inf, dtype=_wide(q)).neg() if return_lse else None
        return q.new_zeros(batch, heads, s, v.shape[3]), lse
    if return_lse or bias is not None:  # a bias in bfloat16 would be too coarse for the library
        return _written_out(q, k, v, marked, scale, bias)
    group = heads // key_heads
    if marked is None:  # the queries that share a key head are rows of one matrix
        out = _library(q.reshape(batch, key_heads, group * s, -1), k, v, None, scale)
        return out.reshape(batch, heads, s, -1), None
    rows = q.reshape(batch * key_heads, group, s, -1)
    keys, values = (x.flatten(0, 1)[:, None].expand(-1, group, -1, -1) for x in (k, v))
    if marked.ndim == 3:
        marked = marked.reshape(key_heads, group, s, m).repeat(batch, 1, 1, 1)
    out = _library(rows, keys, values, marked, scale).masked_fill(~marked.any(-1, keepdim=True), 0)
    return out.reshape(batch, heads, s, -1), None


def _written_out(
    q: Tensor, k: Tensor, v: Tensor, marked: Tensor | None, scale: float, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp, in float32 at least."""
    wide = _wide(q)
    shared = q.to(wide).reshape(*k.shape[:2], -1, q.shape[3])  # the queries of a key head, one below another
    scores = (shared * scale @ k.to(wide).mT).view(*q.shape[:3], -1)  # [batch, heads, s, m]
    if bias is not None:
        scores = scores + bias
    if marked is not None:
        scores = scores.masked_fill(~marked, -inf)
    lse = scores.logsumexp(-1, keepdim=True)
    weights = (scores - lse.masked_fill(lse == -inf, 0)).exp()
    out = weights.view(*shared.shape[:3], -1) @ v.to(wide)
    return out.view(*q.shape[:3], -1).to(q.dtype), lse[..., 0]


def _library(q: Tensor, k: Tensor, v: Tensor, marked: Tensor | None, scale: float) -> Tensor:
    """PyTorch's attention without cuDNN, which takes 50 ms to prepare for each new number of keys."""
    if not q.is_cuda or not cudnn_sdp_enabled():
        return scaled_dot_product_attention(q, k, v, attn_mask=marked, scale=scale)
    enable_cudnn_sdp(False)
    try:
        return scaled_dot_product_attention(q, k, v, attn_mask=marked, scale=scale)
    finally:
        enable_cudnn_sdp(True)


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


class Marks:
    """Which squares at given positions are marked: by NumPy here, or by PyTorch where the keys are."""

    def __init__(self, condition: Condition, data: Mapping[str, NDArray[Any]], heads: int | None) -> None:
        self.condition, self.data, self.heads = condition, data, heads
        self.plain = not data and _fits(condition)

    def here(self, q: NDArray[np.int64] | int, k: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The squares of one query, or of a column of queries, and keys; heads first where they differ."""
        shape = np.broadcast_shapes(np.shape(q), np.shape(k))
        places: dict[str, Any] = {"q": q, "k": k}
        if self.heads is not None:
            places[HEAD] = np.arange(self.heads).reshape(-1, *(1 for _ in shape))
            shape = (self.heads, *shape)
        found = holds(self.condition, places) if self.plain else evaluate(self.condition, places, self.data)
        return np.asarray(found) if np.shape(found) == shape else np.broadcast_to(np.asarray(found), shape)

    def there(self, q: NDArray[np.int64], k: NDArray[np.int64], device: torch.device) -> Tensor:
        """The squares [s, m], or [heads, s, m], of positions q and k as a tensor on the device."""
        if not self.plain:
            return moved(np.array(self.here(q[:, None], k)), device)
        places: dict[str, Any] = {"q": moved(q, device)[:, None], "k": moved(k, device)}
        shape = [len(q), len(k)]
        if self.heads is not None:
            places[HEAD] = torch.arange(self.heads, device=device)[:, None, None]
            shape = [self.heads, *shape]
        found = holds(self.condition, places)
        return torch.full(shape, found, device=device) if isinstance(found, bool) else found.expand(shape)


def moved(array: NDArray[Any], device: torch.device) -> Tensor:
    """The array on the device; the host does not wait for it."""
    here = torch.from_numpy(array)
    return here if device.type == "cpu" else here.pin_memory().to(device, non_blocking=True)


def _fits(condition: Condition) -> bool:
    """Whether 64 bits hold all numbers on the way, at any position, and no divisor can be 0."""
    for node in expr.walk(condition):
        if isinstance(node, Num) and abs(node.value) > MAX_POSITION:
            return False
        if isinstance(node, Arith) and node.op in ("//", "%") and expr.names(node.args[1]):
            return False
    ends = np.array([0, MAX_POSITION])
    try:
        evaluate(condition, dict.fromkeys(("q", "k", HEAD), ends), {})
    except DomainError:
        return False
    return True


def holds(node: Condition, places: Mapping[str, Any]) -> Any:
    """Whether the condition holds where the names have these values: numbers, arrays, tensors; unchecked."""
    match node:
        case Truth():
            return node.value
        case Not():
            held = holds(node.arg, places)
            return not held if isinstance(held, bool) else ~held
        case And():
            return reduce(and_, (holds(arg, places) for arg in node.args))
        case Or():
            return reduce(or_, (holds(arg, places) for arg in node.args))
        case Compare():
            return COMPARE[node.op](_number(node.left, places), _number(node.right, places))


def _number(node: Term, places: Mapping[str, Any]) -> Any:
    match node:
        case Num():
            return node.value
        case Name():
            return places[node.name]
        case Arith():
            numbers = [_number(arg, places) for arg in node.args]
            return reduce(_JOIN[node.op], numbers) if len(numbers) > 1 else _ALONE[node.op](numbers[0])
        case _:
            raise ValueError(f"{expr.term_text(node)} is data")


def _least(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        a, b = (a, b) if isinstance(a, Tensor) else (b, a)
        return torch.minimum(a, b) if isinstance(b, Tensor) else a.clamp(max=b)
    return np.minimum(a, b)


_JOIN = {"+": add, "-": sub, "*": mul, "//": floordiv, "%": mod, "min": _least}
_JOIN["max"] = lambda a, b: -_least(-a, -b)
_ALONE = {"neg": neg, "abs": abs, "min": pos, "max": pos}


# A bias


def on_a_line(bias: Bias | Tensor, rule: Rule, length: int | None, seen: int, heads: int, q: Tensor) -> Bias:
    """The bias of positions on a line, the rule's numbers put in; raises unless it fits the first `seen`.

    `length` is the number of all positions, if it is known.
    """
    if isinstance(bias, Tensor) and length is None:
        raise LattendError(
            f"bias is a table of shape {shape_text(bias)} for all squares, and how many there will be is not "
            "known: make the cache with n=…, or write the bias with positions: "
            'Bias("table[head, k - q + 63]", table=…)'
        )
    outer, *inner = rule.axes
    sizes = {axis.queries: rule.values[axis.queries] for axis in inner}
    positions = seen if length is None else length
    sizes = {outer.queries: -(-positions // prod(sizes.values())), **sizes}
    sizes |= {HEADS: heads} if rule.has_heads else {}
    term_given(form_of(rule.key), rule.key, bias, sizes, q)
    line = Bias.table(bias) if isinstance(bias, Tensor) else bias
    for name, tensor in line.tensors.items():
        if tensor.requires_grad and torch.is_grad_enabled():
            raise keeps_no_gradient(f"bias: {name}")
    if isinstance(bias, Tensor):
        return line
    return Bias(_text_on_a_line(bias.text, tuple(bias.tensors), rule, length, heads), **bias.tensors)


def keeps_no_gradient(name: str) -> TensorError:
    """The error of a tensor that wants a gradient while decoding."""
    return TensorError(
        f"{name} requires a gradient, and a cache keeps none: use torch.no_grad() to decode, "
        "attention without a cache to train"
    )


@lru_cache(maxsize=256)
def _text_on_a_line(text: str, tensors: tuple[str, ...], rule: Rule, length: int | None, heads: int) -> str:
    """The text with q, k and head as its only positions.

    >>> from lattend.rules import raster
    >>> _text_on_a_line("slope*(qy - ky)", ("slope",), raster().at(cols=5), None, 1)
    'slope * (q // 5 - k // 5)'
    """
    numbers: dict[str, Term] = {name: Num(value) for name, value in rule.values.items()}
    numbers |= {HEAD: Name(HEAD), HEADS: Num(heads)} | {name: Name(name) for name in tensors}
    places, step = row_by_row(rule.axes, rule.values)
    numbers |= places
    if length is not None:
        outer = rule.axes[0]
        numbers |= dict.fromkeys((outer.queries, outer.keys), Num(length // step))

    def put(name: Name) -> Term:
        if name.name not in numbers:
            raise LattendError(
                f'bias "{text}" speaks of {name.name}, the size of the whole, which is not known before its '
                f"end; if you know it, make the cache with {name.name}=…"
            )
        return numbers[name.name]

    return expr.term_text(expr.replaced(parse_term(text), put))


def added(bias: Bias, q: NDArray[np.int64], k: NDArray[np.int64], like: Tensor) -> Tensor:
    """What a bias on a line adds at positions q and k, for the heads of `like`; up to broadcasting."""
    device, wide = like.device, _wide(like)
    places = {"q": moved(q, device)[:, None], "k": moved(k, device)}
    places[HEAD] = torch.arange(like.shape[1], device=device)[:, None, None]
    tensors = {name: tensor.detach().to(device, wide) for name, tensor in bias.tensors.items()}
    return torch.as_tensor(value(bias.term, places, tensors), dtype=wide, device=device)
