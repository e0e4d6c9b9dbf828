"""Plain code for attention: marked squares of a mask, encodings of positions, projections shared or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from lattend.cost.reference.numbers import Scalar, exp
from lattend.cost.reference.vectors import Matrix, Vector, Weights, dot, plus, times, total, zeros

Mask: TypeAlias = Sequence[Sequence[bool]]  # [query][key]
Score: TypeAlias = Callable[[int, int], Scalar]
Shifts: TypeAlias = Mapping[int, Sequence[Scalar]]  # r_δ for every δ = k - q there can be: constants
Entry: TypeAlias = Callable[[int, int], int]  # where a table is looked up for a query and a key


def attention(
    queries: Matrix,
    keys: Matrix,
    weights: Weights,
    masks: Sequence[Mask],
    *,
    scale: float | None = None,
    encoding: str | None = None,
    shifts: Shifts | None = None,
    naive: bool = False,
    content: bool = False,
    fixed: Sequence[Sequence[float]] = (),
    entry: Entry | None = None,
    valued: Matrix | None = None,
) -> Matrix:
    """Every head looks at the squares of its mask; the heads side by side go through W_out.

    Weights have one matrix a head, D_i × D_hid; keys and values may have fewer, each for several heads.
    Sinusoids are `fixed` rows, one a position; values come from the keys' tokens unless `valued` is given.
    """
    asked, looked_at = queries, keys
    if encoding == "sinusoidal":
        asked = [plus(x, list(p)) for x, p in zip(queries, fixed, strict=True)]
        looked_at = asked
    if encoding == "absolute" and not naive:
        asked = [plus(x, p) for x, p in zip(queries, weights["p"], strict=True)]
        looked_at = asked
        if keys is not queries:
            looked_at = [plus(x, p) for x, p in zip(keys, weights["p_keys"], strict=True)]
    values = project(keys if valued is None else valued, weights, "v")
    group = len(masks) // len(values)
    if encoding == "quadratic" and not content:  # nothing to project
        scores = [quadratic_score(v, shifts or {}) for v in weights["v"]]
    elif naive:
        scores = [
            naive_score(queries, keys, weights, head, encoding, shifts or {}) for head in range(len(masks))
        ]
    else:
        q, k = project(asked, weights, "q"), project(looked_at, weights, "k")
        k = [k[head // group] for head in range(len(masks))]
        if encoding == "relative":
            scores = [
                relative_score(*each, weights, head, shifts or {})
                for head, each in enumerate(zip(q, k, strict=True))
            ]
        else:
            scores = [plain_score(*each) for each in zip(q, k, strict=True)]
        if encoding == "quadratic":
            forms = [quadratic_score(v, shifts or {}) for v in weights["v"]]
            scores = [both(*each) for each in zip(scores, forms, strict=True)]
        if entry is not None:
            tables = [table_score(table, entry) for table in weights["table"]]
            scores = [both(*each) for each in zip(scores, tables, strict=True)]
    heads = [attend(scores[i], values[i // group], mask, scale) for i, mask in enumerate(masks)]
    side_by_side = [[x for head in heads for x in head[q]] for q in range(len(queries))]
    rows = [times(columns(weights["W_out"]), row) for row in side_by_side]
    return [plus(row, weights["b_out"]) for row in rows] if "b_out" in weights else rows


def attend(score: Score, values: Matrix, mask: Mask, scale: float | None = None) -> Matrix:
    """Softmax over the marked squares of each row, and the values mixed; a row with none gives zeros."""
    width = len(values[0])
    rows: Matrix = []
    for q, marks in enumerate(mask):
        seen = [k for k, marked in enumerate(marks) if marked]
        if not seen:
            rows.append(zeros(values[0][0], width))
            continue
        powers = [exp(score(q, k) * scale if scale else score(q, k)) for k in seen]
        whole = total(powers)
        shares = [power / whole for power in powers]
        rows.append([dot(shares, [values[k][d] for k in seen]) for d in range(width)])
    return rows


def columns(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def project(tokens: Matrix, weights: Weights, name: str) -> list[Matrix]:
    """x W for every token, head by head, plus the bias where there is one."""
    heads = [[times(columns(w), x) for x in tokens] for w in weights[f"W_{name}"]]
    if f"b_{name}" not in weights:
        return heads
    return [[plus(row, b) for row in rows] for rows, b in zip(heads, weights[f"b_{name}"], strict=True)]


def plain_score(q: Matrix, k: Matrix) -> Score:
    return lambda i, j: dot(q[i], k[j])


def relative_score(q: Matrix, k: Matrix, weights: Weights, head: int, shifts: Shifts) -> Score:
    """q · k + q · W̃ r_δ + u · k + v · W̃ r_δ: the third term once a key, W̃ r_δ and the fourth once a shift."""
    far = {shift: times(columns(weights["W_r"][head]), r) for shift, r in shifts.items()}
    of_key = [dot(weights["u"][head], each) for each in k]
    of_shift = {shift: dot(weights["v"][head], r) for shift, r in far.items()}
    return lambda i, j: dot(q[i], k[j]) + dot(q[i], far[j - i]) + of_key[j] + of_shift[j - i]


def quadratic_score(v: Vector, shifts: Shifts) -> Score:
    """v · r_δ, with v = -α(1, -2Δ₁, -2Δ₂) of the head and r_δ = (‖δ‖², δ₁, δ₂); no queries, no keys."""
    return lambda i, j: dot(v, shifts[j - i])


def table_score(table: Vector, entry: Entry) -> Score:
    return lambda i, j: table[entry(i, j)]


def both(one: Score, other: Score) -> Score:
    return lambda i, j: one(i, j) + other(i, j)


def naive_score(
    queries: Matrix, keys: Matrix, weights: Weights, head: int, encoding: str | None, shifts: Shifts
) -> Score:
    """Every term of every square projects again what it multiplies."""

    def q(x: Vector) -> Vector:
        return times(columns(weights["W_q"][head]), x)

    def k(x: Vector) -> Vector:
        return times(columns(weights["W_k"][head]), x)

    def far(i: int, j: int) -> Vector:
        return times(columns(weights["W_r"][head]), shifts[j - i])

    def score(i: int, j: int) -> Scalar:
        if encoding == "absolute":
            lefts, rights = (queries[i], weights["p"][i]), (keys[j], weights["p"][j])
            return total(dot(q(left), k(right)) for left in lefts for right in rights)
        if encoding == "relative":
            u, v = weights["u"][head], weights["v"][head]
            terms = [dot(q(queries[i]), k(keys[j])), dot(q(queries[i]), far(i, j))]
            return total([*terms, dot(u, k(keys[j])), dot(v, far(i, j))])
        return dot(q(queries[i]), k(keys[j]))

    return score
