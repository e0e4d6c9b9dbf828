"""The reference: attention written out, one attended pair at a time, in NumPy and float64.

Every other kernel is held against it. It visits each attended pair once forward and once backward, and
touches no other, so that a NaN or an infinity stays where the mathematics lets it go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.bias import ELEMENT
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.call.batch_arrays import arrays_of
from lattend.attend.call.dropout import kept, kept_share
from lattend.attend.call.padding import real_keys
from lattend.rules.language.expr import Arith, Lookup, Name, Num, Term

Floats = NDArray[np.float64]
MAX_PAIRS = 1 << 24  # of all heads and batch elements


def why_not(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None:
    """Why the reference cannot take the call, or None when it can."""
    pairs = prod(q.shape[:3]) * k.shape[2]
    if pairs > MAX_PAIRS:
        return f"it looks at all pairs, at most {MAX_PAIRS:,}: batch × heads × queries × keys is {pairs:,}"
    return None


@dataclass(frozen=True)
class QueryRow:
    """One query of one head of one batch element: its keys and the places of all tensors it meets."""

    at: tuple[int, int, int]
    shared: tuple[int, int]  # batch element and kv head
    keys: NDArray[np.intp]


def rows(call: AttentionCall, q: Tensor, k: Tensor) -> Iterator[QueryRow]:
    """All queries with the keys they attend to, from the rule itself."""
    batch, heads, queries, _ = q.shape
    share = heads // k.shape[1]
    real = real_keys(call, k.shape[2])
    for element in range(batch):
        rule = replace(call.rule, data=arrays_of(call, element), open=())
        differ = heads if rule.has_heads else 1
        mask = rule.mask().reshape(differ, queries, k.shape[2])
        mask = mask if real is None else mask & real[element].cpu().numpy()
        for head in range(heads):
            for query in range(queries):
                keys = np.flatnonzero(mask[head % differ, query])
                yield QueryRow((element, head, query), (element, head // share), keys)


def forward(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output, zeros where a query has no key, and the log-sum-exp, -inf there."""
    q_, k_, v_ = map(_exact, (q, k, v))
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    lse = np.full(q.shape[:-1], -np.inf)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities come from the caller
        for row in rows(call, q, k):
            scores, _ = _scores(call, q_, k_, row)
            lse[row.at] = _log_sum_exp(np.append(scores, _sink(call, row)))
            if lse[row.at] == -np.inf:  # no keys; or a bias is -inf, as if the pair were not attended
                continue
            weights = np.exp(scores - lse[row.at]) * _kept(call, row, q)
            for weight, key in zip(weights, row.keys, strict=True):
                out[row.at] += weight * v_[(*row.shared, key)]
    wide = torch.promote_types(q.dtype, torch.float32)
    return _like(out, q), torch.as_tensor(lse, dtype=wide, device=q.device)


def largest(call: AttentionCall, q: Tensor, k: Tensor) -> Tensor:
    """The largest score of each query, -inf where it has no key."""
    q_, k_ = _exact(q), _exact(k)
    found = np.full(q.shape[:-1], -np.inf)
    for row in rows(call, q, k):
        found[row.at] = max(_scores(call, q_, k_, row)[0], default=-np.inf)
    return torch.as_tensor(found, dtype=torch.promote_types(q.dtype, torch.float32), device=q.device)


def backward(call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k, v and the bias; from the inputs alone, not from the rounded output."""
    grad_out, grad_lse, q, k, v, *_ = given.without_unused_queries()
    q_, k_, v_, grad = map(_exact, (q, k, v, grad_out))
    grad_lse_ = np.zeros(q.shape[:-1]) if grad_lse is None else _exact(grad_lse)
    dq, dk, dv = np.zeros(q_.shape), np.zeros(k_.shape), np.zeros(v_.shape)
    biases = {name: np.zeros(tuple(tensor.shape)) for name, tensor in call.bias.items()}
    with np.errstate(invalid="ignore", over="ignore"):
        for row in rows(call, q, k):
            scores, softened = _scores(call, q_, k_, row)
            lse = _log_sum_exp(np.append(scores, _sink(call, row)))
            if lse == -np.inf:
                continue
            weights, kept = np.exp(scores - lse), _kept(call, row, q)
            reach = kept * np.array([grad[row.at] @ v_[(*row.shared, key)] for key in row.keys])
            slopes = weights * (reach - weights @ reach + grad_lse_[row.at])
            steps = zip(weights * kept, slopes, slopes * softened * call.scale, row.keys, strict=True)
            for weight, slope, through, key in steps:
                at = (*row.shared, key)
                dq[row.at] += through * k_[at]
                dk[at] += through * q_[row.at]
                dv[at] += weight * grad[row.at]
                if call.term is not None:
                    for (name, place), partial in _dual(call, row, key)[1].items():
                        biases[name][place] += slope * partial
    return _like(dq, q), _like(dk, k), _like(dv, v), [_like(biases[x], t) for x, t in call.bias.items()]


def _scores(call: AttentionCall, q: Floats, k: Floats, row: QueryRow) -> tuple[Floats, Floats]:
    """The scores of a row, and their derivatives by what the softcap is given."""
    scores = np.array([call.scale * (q[row.at] @ k[(*row.shared, key)]) for key in row.keys], np.float64)
    softened = np.ones(len(scores))
    if call.softcap is not None:
        bent = np.tanh(scores / call.softcap)
        scores, softened = call.softcap * bent, 1 - bent * bent
    added = [0.0 if call.term is None else _dual(call, row, key)[0] for key in row.keys]
    return scores + added, softened


def _sink(call: AttentionCall, row: QueryRow) -> float:
    return -np.inf if call.sinks is None else float(call.sinks[row.at[1]])


def _kept(call: AttentionCall, row: QueryRow, q: Tensor) -> Floats:
    """What dropout multiplies each weight of a row with."""
    if call.seed is None:
        return np.ones(len(row.keys))
    element, head, query = row.at
    place = torch.tensor([element * q.shape[1] + head, query])
    found = kept(call.seed.cpu(), call.dropout, place[0], place[1], torch.as_tensor(row.keys))
    return found.double().numpy() * kept_share(call.dropout)


Dual = tuple[Any, dict[tuple[str, tuple[int, ...]], float]]  # a number, and its derivative by each entry


def _dual(call: AttentionCall, row: QueryRow, key: int) -> Dual:
    """The bias of one pair and its derivatives."""
    if call.term is None:
        return 0.0, {}
    names: dict[str, int] = {**call.rule.values, "head": row.at[1], ELEMENT: row.at[0]}
    query = row.at[2]
    for axis in reversed(call.rule.axes):
        query, names[axis.query] = divmod(query, call.rule.values[axis.queries])
        key, names[axis.key] = divmod(int(key), call.rule.values[axis.keys])
    tensors = {name: _exact(tensor) for name, tensor in call.bias.items()}
    return _dual_of(call.term, names, tensors, arrays_of(call, row.at[0]))


def _dual_of(
    term: Term, names: dict[str, int], tensors: dict[str, Floats], data: dict[str, NDArray[Any]]
) -> Dual:
    match term:
        case Num():
            return term.value, {}
        case Name() if term.name not in tensors:
            return names[term.name], {}
        case Name():
            return float(tensors[term.name]), {(term.name, ()): 1.0}
        case Lookup():
            asked = [int(_dual_of(index, names, tensors, data)[0]) for index in term.indices]
            sizes = (tensors if term.array in tensors else data)[term.array].shape  # outside, the nearest end
            place = tuple(max(0, min(size - 1, at)) for at, size in zip(asked, sizes, strict=True))
            if term.array not in tensors:
                return int(data[term.array][place]), {}
            return float(tensors[term.array][place]), {(term.array, place): 1.0}
        case Arith():
            (a, da), *others = [_dual_of(arg, names, tensors, data) for arg in term.args]
            if term.op in ("neg", "abs"):
                return (-a, {at: -x for at, x in da.items()}) if term.op == "neg" else (abs(a), {})
            if term.op in ("min", "max"):
                return (min if term.op == "min" else max)(a, *(b for b, _ in others)), {}
            b, db = others[0]
            if term.op in ("//", "%"):
                return (a // b if term.op == "//" else a % b), {}
            left, right = (b, a) if term.op == "*" else (1.0, 1.0 if term.op == "+" else -1.0)
            total = {at: left * x for at, x in da.items()}
            for at, x in db.items():
                total[at] = total.get(at, 0.0) + right * x
            return {"+": a + b, "-": a - b, "*": a * b}[term.op], total


def _log_sum_exp(scores: Floats) -> np.float64:
    top = scores.max()
    return top + np.log(np.exp(scores - top).sum()) if np.isfinite(top) else top


def _exact(x: Tensor) -> Floats:
    return x.detach().cpu().double().numpy()


def _like(found: Floats, x: Tensor) -> Tensor:
    return torch.as_tensor(found, dtype=x.dtype, device=x.device)
