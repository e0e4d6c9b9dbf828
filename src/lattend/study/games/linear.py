"""A method near an equilibrium: the matrix that one step multiplies by, exact, in the step h."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from lattend.study.exact.powers.matrix import H
from lattend.study.games.fields import LinearField
from lattend.study.games.methods import Method

Number = Callable[[Fraction], Any]


def step_rows(
    method: Method, hessian: Sequence[Sequence[Any]], first: int, h: tuple[Any, Any], number: Number
) -> list[list[Any]]:
    """The matrix of one step on the game's linear part: its columns are the steps from unit vectors.

    At an equilibrium g = 0, so the penalties' gradients H g have no other first-order part, and this is the
    derivative of the whole step, memory included.
    """
    field = LinearField(hessian, first, number)
    zero, one = number(Fraction(0)), number(Fraction(1))
    start = method.start(field, _vector([zero] * first), _vector([zero] * (len(hessian) - first)))
    ends = np.cumsum([len(part) for part in start])
    size = int(ends[-1])
    columns: list[list[Any]] = []
    for place in range(size):
        unit = _vector([one if k == place else zero for k in range(size)])
        after = method.step(field, tuple(np.split(unit, ends[:-1])), h)
        columns.append([entry for part in after for entry in part])
    return [[columns[j][i] for j in range(size)] for i in range(size)]


def both_steps(ratio: Any) -> tuple[Any, Any]:
    """H and ratio·h."""
    return H, ratio * H


def _vector(entries: Sequence[Any]) -> Any:
    found = np.empty(len(entries), dtype=object)
    found[:] = entries
    return found
