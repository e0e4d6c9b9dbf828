"""Attention on lists: the attended pairs of a mask, encodings of positions, projections shared or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from lattend.cost.reference.numbers import (
    Matrix,
    Scalar,
    Vector,
    Weights,
    dot,
    exp,
    plus,
    times,
    total,
    zeros,
)

Mask: TypeAlias = Sequence[Sequence[bool]]  # [query][key]
Score: TypeAlias = Callable[[int, int], Scalar]
Shift: TypeAlias = Callable[[int, int], Any]  # k - q of a query and a key
Shifts: TypeAlias = Mapping[Any, Sequence[Scalar]]  # r_δ for every δ = k - q there can be: constants
Entry: TypeAlias = Callable[[int, int], int]  # where a table is looked up for a query and a key


def attention(
    queries: Any,
    keys: Any,
    weights: Weights,
    masks: Sequence[Mask],
    *,
    scale: float | None = None,
    encoding: str | None = None,
    shifts: Shifts | None = None,
    shift: Shift = lambda q, k: k - q,
    naive: bool = False,
    content: bool = False,
    fixed: Sequence[Sequence[float]] = (),
    entry: Entry | None = None,
    valued: Any = None,
) -> Any:
    """Every head attends to the pairs of its mask; the heads side by side go through W_out.

    Weights have one matrix a head, D_i × D_hid; keys and values may have fewer, each for several heads.
    Without a matrix queries, keys and values are given, head by head; without W_out so are the outputs.
    Sinusoids are `fixed` rows, one a position; values come from the keys' tokens unless `valued` is given.
    """
    query_rows, keyed = _with_positions(queries, keys, weights, encoding, fixed, naive)
    values = project(keys if valued is None else valued, weights, "v")
    group, heads = len(masks) // len(values), range(len(masks))
    if naive:
        far = shifts or {}
        scores = [naive_score(queries, keys, weights, head, encoding, far, shift) for head in heads]
    elif encoding == "quadratic" and not content:  # nothing to project
        scores = [quadratic_score(v, shifts or {}, shift) for v in weights["v"]]
    else:
        q, k = project(query_rows, weights, "q"), project(keyed, weights, "k")
        each = [(q[head], k[head // group]) for head in heads]
        if encoding == "relative":
            far = shifts or {}
            scores = [relative_score(*qk, weights, head, far, shift) for head, qk in enumerate(each)]
        else:
            scores = [plain_score(*qk) for qk in each]
        if encoding == "quadratic":
            forms = [quadratic_score(v, shifts or {}, shift) for v in weights["v"]]
            scores = [both(*pair) for pair in zip(scores, forms, strict=True)]
        if entry is not None:
            tables = [table_score(table, entry) for table in weights["table"]]
            scores = [both(*pair) for pair in zip(scores, tables, strict=True)]
    mixed = [attend(scores[i], values[i // group], mask, scale) for i, mask in enumerate(masks)]
    if "W_out" not in weights:
        return mixed
    side_by_side = [[x for head in mixed for x in head[q]] for q in range(len(masks[0]))]
    rows = [times(columns(weights["W_out"]), row) for row in side_by_side]
    return [plus(row, weights["b_out"]) for row in rows] if "b_out" in weights else rows


def attend(score: Score, values: Matrix, mask: Mask, scale: float | None = None) -> Matrix:
    """Softmax over the attended pairs of each row, and the values mixed; a row with none gives zeros."""
    width = len(values[0])
    rows: Matrix = []
    for q, attended in enumerate(mask):
        seen = [k for k, pair in enumerate(attended) if pair]
        if not seen:
            rows.append(zeros(values[0][0], width))
            continue
        powers = [exp(score(q, k) * scale if scale else score(q, k)) for k in seen]
        denominator = total(powers)
        shares = [power / denominator for power in powers]
        rows.append([dot(shares, [values[k][d] for k in seen]) for d in range(width)])
    return rows


def columns(matrix: Matrix) -> Matrix:
    """The matrix with rows and columns exchanged."""
    return [list(column) for column in zip(*matrix, strict=True)]


def project(tokens: Any, weights: Weights, name: str) -> list[Matrix]:
    """X W for every token, head by head, plus the bias where there is one; as they are without a W."""
    if f"W_{name}" not in weights:
        return tokens
    heads = [[times(columns(w), x) for x in tokens] for w in weights[f"W_{name}"]]
    if f"b_{name}" not in weights:
        return heads
    return [[plus(row, b) for row in rows] for rows, b in zip(heads, weights[f"b_{name}"], strict=True)]


def _with_positions(
    queries: Any, keys: Any, weights: Weights, encoding: str | None, fixed: Any, naive: bool
) -> tuple[Any, Any]:
    """Tokens of queries and of keys with their positions added, where these are added to tokens."""
    if naive or encoding not in ("absolute", "sinusoidal"):
        return queries, keys
    table = list(map(list, fixed)) if encoding == "sinusoidal" else weights["p"]
    query_rows = [plus(x, p) for x, p in zip(queries, table[: len(queries)], strict=True)]
    if keys is queries:
        return query_rows, query_rows
    other = table if encoding == "sinusoidal" else weights["p_keys"]
    return query_rows, [plus(x, p) for x, p in zip(keys, other[: len(keys)], strict=True)]


def plain_score(q: Matrix, k: Matrix) -> Score:
    """Q · k."""
    return lambda i, j: dot(q[i], k[j])


def relative_score(
    q: Matrix, k: Matrix, weights: Weights, head: int, shifts: Shifts, shift: Shift = lambda q, k: k - q
) -> Score:
    """Q · k + q · W̃ r_δ + u · k + v · W̃ r_δ: the third term once a key, W̃ r_δ and the fourth once a shift."""
    far = {at: times(columns(weights["W_r"][head]), r) for at, r in shifts.items()}
    of_key = [dot(weights["u"][head], each) for each in k]
    of_shift = {at: dot(weights["v"][head], r) for at, r in far.items()}

    def score(i: int, j: int) -> Scalar:
        at = shift(i, j)
        return dot(q[i], k[j]) + dot(q[i], far[at]) + of_key[j] + of_shift[at]

    return score


def quadratic_score(v: Vector, shifts: Shifts, shift: Shift = lambda q, k: k - q) -> Score:
    """V · r_δ, with v = -α(1, -2Δ₁, -2Δ₂) of the head and r_δ = (‖δ‖², δ₁, δ₂); no queries, no keys."""
    return lambda i, j: dot(v, shifts[shift(i, j)])


def table_score(table: Vector, entry: Entry) -> Score:
    """The entry of a table."""
    return lambda i, j: table[entry(i, j)]


def both(one: Score, other: Score) -> Score:
    """Two scores added."""
    return lambda i, j: one(i, j) + other(i, j)


def naive_score(
    queries: Matrix,
    keys: Matrix,
    weights: Weights,
    head: int,
    encoding: str | None,
    shifts: Shifts | None = None,
    shift: Shift = lambda q, k: k - q,
) -> Score:
    """Every term of every pair projects again what it multiplies."""

    def projected(name: str, x: Sequence[Scalar]) -> Vector:
        return times(columns(weights[f"W_{name}"][head]), x)

    def score(i: int, j: int) -> Scalar:
        if encoding == "absolute":
            lefts, rights = (queries[i], weights["p"][i]), (keys[j], weights["p"][j])
            return total(
                dot(projected("q", left), projected("k", right)) for left in lefts for right in rights
            )
        if encoding == "relative":
            r = (shifts or {})[shift(i, j)]
            content = dot(projected("q", queries[i]), projected("k", keys[j]))
            content = content + dot(projected("q", queries[i]), projected("r", r))
            content = content + dot(weights["u"][head], projected("k", keys[j]))
            return content + dot(weights["v"][head], projected("r", r))
        return dot(projected("q", queries[i]), projected("k", keys[j]))

    return score
