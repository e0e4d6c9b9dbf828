"""The steps of attention, each from the ones before it: on decimals, and on spans to follow an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from typing import Any

from lattend.study.worked.entry import CONTEXT, MASKED, decimal_of
from lattend.study.worked.inputs import Exercise, Matrix, columns

Decimals = tuple[tuple[Any, ...], ...]  # or spans of them
Tables = tuple[Decimals, ...]  # one a head, or one for all
Have = Mapping[str, Tables]

ORDER = ("q", "k", "v", "scores", "masked", "exponentials", "sums", "weights", "mixed", "outputs")


def follow(name: str, have: Have, exercise: Exercise) -> Tables:
    """The step of this name from the earlier ones in `have`."""
    with localcontext(CONTEXT):
        return _RECIPES[name](have, exercise)


def product(rows: Decimals, matrix: Decimals) -> Decimals:
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
    return tuple(product(decimals(rows), decimals(matrix)) for matrix in weights)


def _scores(have: Have, exercise: Exercise) -> Tables:
    scale = decimal_of(exercise.scale)
    return tuple(
        tuple(tuple(scale * score for score in row) for row in product(q, tuple(columns(k))))
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


def _weights(have: Have, exercise: Exercise) -> Tables:
    """Where a query attends to no key all its weights are 0."""
    return tuple(
        tuple(
            tuple(power / total if any(row) else Decimal(0) for power in row)
            for row, (total,) in zip(table, sums, strict=True)
        )
        for table, sums in zip(have["exponentials"], have["sums"], strict=True)
    )


def _mixed(have: Have, exercise: Exercise) -> Tables:
    return tuple(product(weights, v) for weights, v in zip(have["weights"], have["v"], strict=True))


def _outputs(have: Have, exercise: Exercise) -> Tables:
    head_rows = tuple(tuple(x for row in rows for x in row) for rows in zip(*have["mixed"], strict=True))
    return (head_rows if exercise.wo is None else product(head_rows, decimals(exercise.wo)),)


_RECIPES: dict[str, Callable[[Have, Exercise], Tables]] = {
    "q": lambda have, given: _projected(given.tokens, given.wq),
    "k": lambda have, given: _projected(given.memory, given.wk),
    "v": lambda have, given: _projected(given.memory, given.wv),
    "scores": _scores,
    "masked": _masked,
    "exponentials": _exponentials,
    "sums": _sums,
    "weights": _weights,
    "mixed": _mixed,
    "outputs": _outputs,
}
