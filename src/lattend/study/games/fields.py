"""Fields: the gradients of a game and of its linear part at an equilibrium; and one step as formulas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.report.report import Printed, Report
from lattend.report.table import Facts
from lattend.study.exact.function import Function, most_digits, most_terms, symbols
from lattend.study.exact.matrix import H
from lattend.study.exact.numbers import exact
from lattend.study.exact.writing import LONGEST, factored_text, format_exact, polynomial_text
from lattend.study.games.methods import Method, Vector

if TYPE_CHECKING:
    from lattend.study.games.game import Game

Number = Callable[[Fraction], Any]


class PlainField(ABC):
    """Both penalties come from the gradient g and the Hessian H: ∇½‖g‖² = H g."""

    def __init__(self, first: int, number: Number) -> None:
        self.first = first  # how many numbers the minimiser has
        self.number = number

    @abstractmethod
    def all(self, values: Sequence[Any]) -> Vector:
        """The gradient over all numbers of both players."""

    @abstractmethod
    def hessian(self, values: Sequence[Any]) -> list[list[Any]]:
        """The second derivatives."""

    def gradient(self, p: Vector, q: Vector, movers: str = "pq") -> tuple[Vector, Vector]:
        return self._shared(self.all((*p, *q)), movers)

    def consensus(self, p: Vector, q: Vector, movers: str = "pq") -> tuple[Vector, Vector]:
        return self._shared(self._down_length((*p, *q), len(p) + len(q)), movers)

    def penalty(self, p: Vector, q: Vector) -> Vector:
        return self._down_length((*p, *q), self.first)[self.first :]

    def _shared(self, gradient: Vector, movers: str) -> tuple[Vector, Vector]:
        """Each player's part, 0 for a player that does not move."""
        return gradient[: self.first] if "p" in movers else 0, gradient[self.first :] if "q" in movers else 0

    def _down_length(self, values: Sequence[Any], many: int) -> Vector:
        """The gradient of half the squared length of the first entries of the gradient."""
        gradient, hessian = self.all(values), self.hessian(values)
        return _row([sum(row[k] * gradient[k] for k in range(many)) for row in hessian], self.number)


class FormulaField(PlainField):
    """The gradients of a formula; on floats, entries of p and q may be whole arrays of them."""

    def __init__(self, formula: Function, first: int, number: Number = float) -> None:
        super().__init__(first, number)
        self.formula = formula

    @cached_property
    def functions(self) -> list[Function]:
        return [self.formula.derivative(name) for name in self.formula.names]

    @cached_property
    def second(self) -> list[list[Function]]:
        return [[one.derivative(name) for name in self.formula.names] for one in self.functions]

    def value(self, values: Sequence[Any]) -> Any:
        return self.at(self.formula, values)

    def all(self, values: Sequence[Any]) -> Vector:
        return _row([self.at(one, values) for one in self.functions], self.number)

    def hessian(self, values: Sequence[Any]) -> list[list[Any]]:
        return [[self.at(one, values) for one in row] for row in self.second]

    def at(self, function: Function, values: Sequence[Any]) -> Any:
        """One of these functions at a place."""
        return function(values, self.number)


class SymbolicField(FormulaField):
    """The gradients of a formula where places are formulas too."""

    def __init__(self, formula: Function, first: int) -> None:
        super().__init__(formula, first, exact)

    def at(self, function: Function, values: Sequence[Any]) -> Any:
        # at once: what is put in for p may hold q, which is not to be replaced again
        return function.formula.xreplace(dict(zip(function.names, values, strict=True)))


class LinearField(PlainField):
    """The field g = H·(p, q): what a game is close to its equilibrium, moved to the origin."""

    def __init__(self, hessian: Sequence[Sequence[Any]], first: int, number: Number) -> None:
        super().__init__(first, number)
        self.rows = [list(row) for row in hessian]

    def all(self, values: Sequence[Any]) -> Vector:
        sums = [sum(a * x for a, x in zip(row, values, strict=True)) for row in self.rows]
        return _row(sums, self.number)

    def hessian(self, values: Sequence[Any]) -> list[list[Any]]:
        return self.rows


def step_rows(
    method: Method, hessian: Sequence[Sequence[Any]], first: int, h: tuple[Any, Any], number: Number
) -> list[list[Any]]:
    """The matrix of one step on the game's linear part: its columns are the steps from unit vectors.

    At an equilibrium g = 0, so the penalties' gradients H g have no other first-order part, and this is the
    derivative of the whole step, memory included.
    """
    field = LinearField(hessian, first, number)
    zero, one = number(Fraction(0)), number(Fraction(1))
    start = method.start(field, _objects([zero] * first), _objects([zero] * (len(hessian) - first)))
    ends = np.cumsum([len(part) for part in start])
    size = int(ends[-1])
    columns: list[list[Any]] = []
    for index in range(size):
        unit = _objects([one if k == index else zero for k in range(size)])
        after = method.step(field, tuple(np.split(unit, ends[:-1])), h)
        columns.append([entry for part in after for entry in part])
    return [[columns[j][i] for j in range(size)] for i in range(size)]


def _row(entries: Sequence[Any], number: Number) -> Vector:
    if number is float:
        return np.array(np.broadcast_arrays(*entries), dtype=float)
    return _objects(entries)


def _objects(entries: Sequence[Any]) -> Vector:
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


MOST_TERMS = 24  # of a formula that is multiplied out


@dataclass(frozen=True, eq=False)
class StepMap(Printed):
    """One step as formulas of the place where it begins.

    formulas  the new place of each name, and what the method remembers: {"p": -q, "q": p + q}
    value     f at the new place
    step      the steps of both players, numbers or formulas in h

    What a method remembers of p is called g_p: the last gradient of optimistic, the speed of momentum.
    """

    game: Game
    method: Method
    step: tuple[Any, Any]
    formulas: dict[str, Any]
    value: Any

    @cached_property
    def texts(self) -> dict[str, str]:
        """The formulas as people type them, f' after the others."""
        assert self.game.formula is not None
        names = symbols(list(self.formulas))
        written = {f"{name}'": _text(one, names) for name, one in self.formulas.items()}
        # Numbers of hundreds of digits take minutes to factor, and their text is too long anyway
        short = most_terms(self.value) <= MOST_TERMS and most_digits(self.value) <= LONGEST
        if short and len(text := factored_text(self.value)) <= LONGEST:
            return {**written, "f'": text}
        new = symbols([f"{name}'" for name in self.game.names])
        return {**written, "f'": format_exact(self.game.formula.at(new))}

    def __getitem__(self, name: str) -> Any:
        return self.formulas[name]

    def __str__(self) -> str:
        return ", ".join(f"{name} = {text}" for name, text in self.texts.items())

    def __repr__(self) -> str:
        return f"<StepMap {self}>"

    def json(self) -> dict[str, Any]:
        """The formulas as texts."""
        return {
            "game": self.game.text,
            "method": str(self.method),
            "step": [format_exact(h) for h in self.step],
            "map": self.texts,
        }

    def report(self) -> Report:
        """The formulas as facts."""
        return Report(
            str(self.game), [self.game.rule_text(self.method), Facts(list(self.texts.items()))], self.json()
        )


def _text(formula: Any, names: Sequence[Any]) -> str:
    short = formula.is_polynomial(*names) and most_terms(formula) <= MOST_TERMS
    return polynomial_text(formula, names) if short else format_exact(formula)


def step_map(game: Game, method: Method, step: tuple[Any, Any] | None = None) -> StepMap:
    """One step of the method as formulas; both steps are h where none is given."""
    assert game.formula is not None
    h = (H, H) if step is None else step
    first = len(game.minimise)
    field = SymbolicField(game.formula, first)
    remembered = [f"g_{name}" for name in game.names] if method.remembers else []
    names = [*game.names, *remembered]
    place = np.array(symbols(names), dtype=object)
    state = (
        tuple(np.split(place, [first, len(game.names), len(game.names) + first]))
        if remembered
        else (
            place[:first],
            place[first:],
        )
    )
    after = [entry for part in method.step(field, state, h) for entry in part]
    return StepMap(
        game, method, h, dict(zip(names, after, strict=True)), field.value(after[: len(game.names)])
    )
