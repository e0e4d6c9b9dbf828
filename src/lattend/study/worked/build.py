"""The steps of a piece of work: on decimals, on intervals to follow an answer, and on exact numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Any

from lattend.study.exact.numbers import exact
from lattend.study.exact.writing import format_exact
from lattend.study.worked.entry import (
    CONTEXT,
    MASKED,
    MatrixEntry,
    Rows,
    Step,
    decimal_of,
    exponential,
    length,
    mixture,
    number,
    total,
)
from lattend.study.worked.inputs import Exercise, Matrix, columns, transposed

Decimals = tuple[tuple[Any, ...], ...]  # or spans of them
Tables = tuple[Decimals, ...]  # one a head, or one for all
Have = Mapping[str, Tables]

ORDER = ("q", "k", "v", "scores", "masked", "exponentials", "sums", "weights", "mixed", "outputs")


def follow(name: str, have: Have, exercise: Exercise) -> Tables:
    """The step of this name from the earlier ones in `have`."""
    with localcontext(CONTEXT):
        return _RECIPES[name](have, exercise)


def decimal_product(rows: Decimals, matrix: Decimals) -> Decimals:
    """Rows times a matrix."""
    upright = tuple(columns(matrix))
    return tuple(
        tuple(sum((x * y for x, y in zip(row, column, strict=True)), Decimal(0)) for column in upright)
        for row in rows
    )


def decimals(matrix: Matrix) -> Decimals:
    """Exact numbers as decimals."""
    return tuple(tuple(decimal_of(number) for number in row) for row in matrix)


def _projected(rows: Matrix, weights: tuple[Matrix, ...]) -> Tables:
    return tuple(decimal_product(decimals(rows), decimals(matrix)) for matrix in weights)


def _scores(have: Have, exercise: Exercise) -> Tables:
    scale = decimal_of(exercise.scale)
    return tuple(
        tuple(tuple(scale * score for score in row) for row in decimal_product(q, tuple(columns(k))))
        for q, k in zip(have["q"], have["k"], strict=True)
    )


def _masked(have: Have, exercise: Exercise) -> Tables:
    return tuple(
        tuple(
            tuple(score if seen else MASKED for score, seen in zip(row, attended, strict=True))
            for row, attended in zip(table, mask, strict=True)
        )
        for table, mask in zip(have["scores"], exercise.mask, strict=True)
    )


def _exponentials(have: Have, exercise: Exercise) -> Tables:
    return tuple(tuple(tuple(score.exp() for score in row) for row in table) for table in have["masked"])


def _sums(have: Have, exercise: Exercise) -> Tables:
    return tuple(tuple((sum(row, Decimal(0)),) for row in table) for table in have["exponentials"])


def _decimal_weights(have: Have, exercise: Exercise) -> Tables:
    """The weights; all are 0 for a query that attends to no key."""
    return tuple(
        tuple(
            tuple(power / total if any(row) else Decimal(0) for power in row)
            for row, (total,) in zip(table, sums, strict=True)
        )
        for table, sums in zip(have["exponentials"], have["sums"], strict=True)
    )


def _mixed(have: Have, exercise: Exercise) -> Tables:
    return tuple(decimal_product(weights, v) for weights, v in zip(have["weights"], have["v"], strict=True))


def _decimal_outputs(have: Have, exercise: Exercise) -> Tables:
    head_rows = tuple(tuple(x for row in rows for x in row) for rows in zip(*have["mixed"], strict=True))
    return (head_rows if exercise.wo is None else decimal_product(head_rows, decimals(exercise.wo)),)


_RECIPES: dict[str, Callable[[Have, Exercise], Tables]] = {
    "q": lambda have, given: _projected(given.tokens, given.wq),
    "k": lambda have, given: _projected(given.memory, given.wk),
    "v": lambda have, given: _projected(given.memory, given.wv),
    "scores": _scores,
    "masked": _masked,
    "exponentials": _exponentials,
    "sums": _sums,
    "weights": _decimal_weights,
    "mixed": _mixed,
    "outputs": _decimal_outputs,
}


ZERO, ONE = exact(0), exact(1)
NOTHING = number(ZERO)


def steps(exercise: Exercise, have: Have) -> dict[str, Step]:
    """Every step by its name, in order; `have` holds the decimals."""
    heads = [_HeadTables(exercise, have, head) for head in range(exercise.heads)]
    memory = ", y the memory" if exercise.crosses and not exercise.direct else ""
    mixed = "Outputs of the heads" if exercise.heads > 1 else "Mixed values"
    words = (  # name, title, formula, what a row is, what a column is
        ("q", "Queries", f"q = {projection(exercise, 'q')}", "query", "component"),
        ("k", "Keys", f"k = {projection(exercise, 'k')}{memory}", "key", "component"),
        ("v", "Values", f"v = {projection(exercise, 'v')}{memory}", "key", "component"),
        ("scores", "Scores", _score(exercise), "query", "key"),
        ("masked", "Masked scores", f"s where {exercise.rule}, else -inf", "query", "key"),
        ("exponentials", "Exponentials", "e^s", "query", "key"),
        ("sums", "Row sums", "sum of e^s over the keys", "query", ""),
        ("weights", "Weights", "a = e^s / row sum", "query", "key"),
        ("mixed", mixed, "z = sum of a v", "query", "component"),
    )
    built = {
        name: Step(
            name,
            title,
            formula,
            tuple(getattr(head, name) for head in heads),
            exercise.heads > 1,
            down,
            across,
        )
        for name, title, formula, down, across in words
    }
    return {**built, "outputs": _outputs(exercise, have, built["mixed"])}


def projection(exercise: Exercise, name: str) -> str:
    """The formula of q, k or v: `x W_q`, with columns `W_q x`, and `x` where the matrix was left out."""
    if exercise.direct:
        return "given"
    source = "y" if exercise.crosses and name != "q" else "x"
    if f"w{name}" in exercise.left_out:
        return source if exercise.heads == 1 else f"part of {source}"
    return f"W_{name} {source}" if exercise.columns else f"{source} W_{name}"


def convention(exercise: Exercise) -> str:
    """On which side of a token the matrices stand, whether that matters, and which were left out.

    `tokens are rows: x W, not W x`.
    """
    if exercise.direct:
        return "q, k and v are given"
    if len(exercise.left_out) == 3 and exercise.wo is None:
        source = "queries are the tokens, keys and values the memory"
        return f"no matrices: {source if exercise.crosses else 'q = k = v = x'}"
    side, product, other = ("columns", "W x", "x W") if exercise.columns else ("rows", "x W", "W x")
    same = f"which is {other} too, as every matrix is symmetric" if exercise.symmetric else f"not {other}"
    names = " and ".join(f"W_{name[1]}" for name in exercise.left_out)
    return f"tokens are {side}: {product}, {same}" + (f"; without {names}, the identity" if names else "")


def exercise(inputs: Exercise) -> tuple[Step, ...]:
    """The exercise as tables: tokens, memory and matrices as they were given."""
    if inputs.direct:
        return (*_direct(inputs), *_matrices(inputs, "o"))
    first_steps = [Step("tokens", "Tokens", "x", (_numbers(inputs.tokens),), False, "token", "component")]
    if inputs.crosses:
        first_steps.append(
            Step("memory", "Memory", "y", (_numbers(inputs.memory),), False, "token", "component")
        )
    return (*first_steps, *_matrices(inputs, "qkvo"))


def _direct(exercise: Exercise) -> Iterator[Step]:
    """Queries, keys and values as they were given, heads side by side."""
    wide = len(exercise.tokens[0])
    rows = (
        exercise.tokens,
        *(tuple(row[part] for row in exercise.memory) for part in (slice(wide), slice(wide, None))),
    )
    words = (("q", "Queries", "query"), ("k", "Keys", "key"), ("v", "Values", "key"))
    for (name, title, down), matrix in zip(words, rows, strict=True):
        yield Step(name, title, name, (_numbers(matrix),), False, down, "component")


def _matrices(exercise: Exercise, names: str) -> Iterator[Step]:
    for name, title, matrices in (
        ("q", "Query matrix", exercise.wq),
        ("k", "Key matrix", exercise.wk),
        ("v", "Value matrix", exercise.wv),
        ("o", "Output matrix", () if exercise.wo is None else (exercise.wo,)),
    ):
        if name in names and matrices and f"w{name}" not in exercise.left_out:
            tables = tuple(_numbers(transposed(one) if exercise.columns else one) for one in matrices)
            several = exercise.heads > 1 and name != "o"
            yield Step(f"w{name}", title, f"W_{name}", tables, several, "row", "column")


def _numbers(matrix: Matrix) -> Rows:
    return tuple(tuple(map(number, row)) for row in matrix)


def _score(exercise: Exercise) -> str:
    """`s = q·k / sqrt(2)`."""
    if exercise.divisor is not None:
        return f"s = q·k / {format_exact(exercise.divisor)}"
    return "s = q·k" if exercise.scale == 1 else f"s = {format_exact(exercise.scale)} · q·k"


def product(rows: Matrix, matrix: Matrix) -> Matrix:
    """Rows times a matrix, exactly."""
    upright = tuple(columns(matrix))
    return tuple(tuple(dot(row, column) for column in upright) for row in rows)


def dot(left: Sequence[Any], right: Sequence[Any]) -> Any:
    """The sum of products, exactly."""
    return expanded(sum((x * y for x, y in zip(left, right, strict=True) if x != 0 and y != 0), ZERO))


def expanded(value: Any) -> Any:
    """The number multiplied out, so that equal ones are written alike."""
    _, rest = value.as_coeff_Mul()
    simple = rest.is_Atom or (rest.is_Pow and rest.as_base_exp()[0].is_Atom)  # 2, sqrt(2)/3: the usual ones
    return value if simple else value.expand()


def entries(matrix: Matrix, decimals: Decimals) -> Rows:
    """Exact numbers beside their decimals."""
    return tuple(
        tuple(number(one, value) for one, value in zip(row, values, strict=True))
        for row, values in zip(matrix, decimals, strict=True)
    )


class _HeadTables:
    """The tables of one head."""

    def __init__(self, exercise: Exercise, have: Have, head: int) -> None:
        mask = exercise.mask[head]
        q = product(exercise.tokens, exercise.wq[head])
        k, v = (product(exercise.memory, matrices[head]) for matrices in (exercise.wk, exercise.wv))
        self.q, self.k, self.v = (
            entries(matrix, have[name][head]) for name, matrix in (("q", q), ("k", k), ("v", v))
        )
        scores = tuple(
            tuple(expanded(exercise.scale * score) for score in row) for row in product(q, tuple(columns(k)))
        )
        powers, sums, weights, mixed = (
            have[name][head] for name in ("exponentials", "sums", "weights", "mixed")
        )
        self.scores = entries(scores, have["scores"][head])
        self.masked = tuple(
            tuple(one if attends else MatrixEntry(MASKED) for one, attends in zip(row, attended, strict=True))
            for row, attended in zip(self.scores, mask, strict=True)
        )
        self.exponentials = tuple(
            tuple(
                exponential(score, value) if attends else NOTHING
                for score, value, attends in zip(*rows, strict=True)
            )
            for rows in zip(scores, powers, mask, strict=True)
        )
        seen = [_chosen(row, attended) for row, attended in zip(scores, mask, strict=True)]
        self.sums = tuple((total(row, value),) for row, (value,) in zip(seen, sums, strict=True))
        self.weights = tuple(
            _weights(row, attended, values) for row, attended, values in zip(seen, mask, weights, strict=True)
        )
        self.mixed = tuple(
            tuple(
                mixture(row, _chosen(part, attended), value)
                for part, value in zip(columns(v), values, strict=True)
            )
            for row, attended, values in zip(seen, mask, mixed, strict=True)
        )


def _weights(
    scores: list[Any], attended: Sequence[bool], values: Sequence[Decimal]
) -> tuple[MatrixEntry, ...]:
    """The share of each attended key; keys of one score have one entry."""
    by_score: dict[Any, MatrixEntry] = {}
    seen = iter(scores)
    entries: list[MatrixEntry] = []
    for attends, value in zip(attended, values, strict=True):
        if not attends:
            entries.append(NOTHING)
            continue
        score = next(seen)
        if score not in by_score:
            place = scores.index(score)
            parts = [ONE if at == place else ZERO for at in range(len(scores))]
            by_score[score] = mixture(scores, parts, value)
        entries.append(by_score[score])
    return tuple(entries)


def _chosen(row: Sequence[Any], attended: Sequence[bool]) -> list[Any]:
    return [one for one, attends in zip(row, attended, strict=True) if attends]


def _outputs(exercise: Exercise, have: Have, mixed: Step) -> Step:
    if exercise.wo is None and exercise.heads == 1:
        return Step("outputs", "Outputs", mixed.formula, mixed.tables, across="component")
    rows_joined = tuple(tuple(one for row in rows for one in row) for rows in zip(*mixed.tables, strict=True))
    if exercise.wo is None:
        return Step("outputs", "Outputs", "the heads side by side", (rows_joined,), across="component")
    table = tuple(
        tuple(
            _combined(row, column, value) for column, value in zip(columns(exercise.wo), values, strict=True)
        )
        for row, values in zip(rows_joined, have["outputs"][0], strict=True)
    )
    formula_text = "W_o z" if exercise.columns else "z W_o"
    formula_text = formula_text if exercise.heads == 1 else f"{formula_text}, z the heads side by side"
    return Step("outputs", "Outputs", formula_text, (table,), across="component")


def _combined(row: Sequence[MatrixEntry], column: Sequence[Any], value: Decimal) -> MatrixEntry:
    """The product of the heads' numbers with a column of W_o: exact at once where all of them are."""
    used = [(one, factor) for one, factor in zip(row, column, strict=True) if factor != 0]
    if all(one.known is not None for one, _ in used):
        return number(dot([one.known for one, _ in used], [factor for _, factor in used]), value)
    long = sum(one.length + length(factor) + 3 for one, factor in used)
    return MatrixEntry(value, None, lambda: sum(factor * one.exact for one, factor in used), long)
