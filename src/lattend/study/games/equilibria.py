"""Equilibria: points where both gradients are 0, by algebra or by search, as each player sees them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.report.numbers import significant
from lattend.report.report import Printed, Report
from lattend.report.shown import Drawn
from lattend.study.exact.function import first_change
from lattend.study.exact.numbers import NumberField, exact, number_field
from lattend.study.exact.roots import solve
from lattend.study.exact.sign import Inertia, inertia
from lattend.study.exact.writing import format_exact, has_no_formula, number_text

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.study.games.game import Game

CLEAR = 1e-6  # a float further from 0 than this, or than this times the largest beside it, is not 0
KINK = "f has a kink here"
KINDS = {
    "strict Nash": "each player loses by any small move of its own",
    "Nash": "no player gains by a small move of its own",
    "minimax": "the minimiser is at its best if the maximiser answers each of its moves; not Nash",
    "maximin": "the maximiser is at its best if the minimiser answers each of its moves; not Nash",
    "undecided": "second derivatives do not decide",
}


@dataclass(frozen=True)
class Equilibrium(Drawn):
    """A point where the game's gradient is 0: a number for each name, its kind and the reason for it.

    strict Nash, Nash, minimax, maximin, none (a player gains by moving: stationary only), undecided.
    """

    game: Game
    point: tuple[Any, ...]
    kind: str
    reason: str
    exact: bool = True

    @property
    def kinked(self) -> bool:
        """Whether f has a kink there, so that it has no second derivatives."""
        return self.reason == KINK

    @property
    def floats(self) -> tuple[float, ...]:
        """The point as floating-point numbers."""
        return tuple(float(x) for x in self.point)

    def __str__(self) -> str:
        return f"{self._name}: {self.reason}"

    def __repr__(self) -> str:
        return f"<Equilibrium {where(self.game, self.point)}: {self._name}>"

    @property
    def _name(self) -> str:
        return "not an equilibrium" if self.kind == "none" else self.kind

    def draw(self) -> Picture:
        """The phase portrait about the point, and what it is."""
        from lattend.study.games.pictures import around

        return around(self)

    def json(self) -> dict[str, Any]:
        """The point exactly where that is known, as texts, and as floats; its kind and the reason."""
        plain = [format_exact(x) if self.exact else float(x) for x in self.point]
        return {"point": plain, "floats": list(self.floats), "kind": self.kind, "reason": self.reason}


@dataclass(frozen=True, eq=False)
class Equilibria(Drawn, Printed):
    """The equilibria of a game, all of them if `complete`; `curve` tells of those that fill a line."""

    JSON = "game=game.text equilibria=points complete curve note"

    game: Game
    points: tuple[Equilibrium, ...]
    complete: bool
    curve: tuple[str, ...] = ()
    note: str = ""

    def __iter__(self) -> Iterator[Equilibrium]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, place: int) -> Equilibrium:
        return self.points[place]

    def summary(self) -> str:
        """How many there are, and whether there are others."""
        if self.note:
            return self.note
        if self.curve:
            line = f"wherever {' and '.join(f'{one} = 0' for one in self.curve)}"
            if not self.points:  # what they are is not known
                return f"stationary points {line}"
            if self.points[0].kind == "none":  # f is quadratic there: all are as one of them is
                return f"stationary points {line}, none of them an equilibrium"
            return f"equilibria {line}"
        if not self.points:
            return "no equilibrium: the gradient is 0 nowhere"
        many, solved = len(self.points), sum(one.kind != "none" for one in self.points)
        if many == 1:
            return f"one {'equilibrium' if solved else 'stationary point'}, and no other"
        if solved == many:
            return f"{many} equilibria, no others"
        kind = "an equilibrium" if solved == 1 else "equilibria"
        return f"{many} stationary points, no others; {solved or 'none'} of them {kind}"

    def draw(self) -> Picture:
        """The phase portrait with all equilibria, and what each one is."""
        from lattend.study.games.pictures import with_equilibria

        return with_equilibria(self)

    def report(self) -> Report:
        """Each equilibrium and its kind."""
        from lattend.study.games.reports import equilibria_report

        return equilibria_report(self)

    def __repr__(self) -> str:
        return f"<Equilibria of {self.game.text}: {len(self.points)}>"


def where(game: Game, point: Sequence[Any]) -> str:
    """`p = 0, q = 1/2`."""
    numbers = (significant(x, 6) if isinstance(x, float) else number_text(x) for x in point)
    return ", ".join(f"{name} = {number}" for name, number in zip(game.names, numbers, strict=True))


def equilibria(game: Game) -> Equilibria:
    """All points where the gradient is 0 if f is a polynomial; else those that a search finds."""
    if not game.polynomial:
        return _searched(game, "")
    functions = game.formulas.functions
    solutions = solve([one.formula for one in functions], game.formulas.formula.names)
    if solutions.note:
        return _searched(game, f"{solutions.note}; ")
    points = [classified(game, one.formulas, one.field, one.numbers) for one in solutions.points]
    return Equilibria(
        game, tuple(points), solutions.complete, tuple(format_exact(one) for one in solutions.curve)
    )


def confirmed(game: Game, point: Sequence[Any]) -> Equilibrium:
    """The point as an equilibrium; an error where the gradient is not 0 there."""
    if game.formula is None:
        floats = tuple(float(x) for x in point)
        if np.abs(game.gradient(point)).max() > CLEAR:
            raise DomainError(f"{where(game, floats)} is no equilibrium: the gradient is not 0 there")
        return by_decimals(game, floats)
    if any(map(has_no_formula, point)):  # such numbers come from here: they need not be checked again
        for one in game.equilibria():
            if one.point == tuple(point):
                return one
    slopes = [one.vanishes(point) for one in game.formulas.functions]
    if not all(slopes):
        name = game.names[slopes.index(False)]
        raise DomainError(f"{where(game, point)} is no equilibrium: the gradient by {name} is not 0 there")
    numbers = number_field(point) if game.polynomial else None
    if numbers is None:
        return _classified_by_formula(game, tuple(point))
    return classified(game, tuple(point), numbers, tuple(numbers.of(x) for x in point))


def classified(
    game: Game, point: tuple[Any, ...], numbers: NumberField, values: Sequence[Any]
) -> Equilibrium:
    """The kind of a point, from the second derivatives in its own number field."""
    rows = game.field(numbers.of).hessian(values)
    exactly = [[numbers.element(x) for x in row] for row in rows]
    return Equilibrium(game, tuple(point), *_exact_kind(game, point, exactly, numbers.domain))


def hessian(game: Game, point: Sequence[Any]) -> list[list[Any]]:
    """The second derivatives at a point, as exact formulas."""
    assert game.formula is not None
    return [[one.at(point) for one in row] for row in game.formulas.second]


def _classified_by_formula(game: Game, point: tuple[Any, ...]) -> Equilibrium:
    assert game.formula is not None
    if game.formula.kinked(point):
        return Equilibrium(game, point, "undecided", KINK)
    rows = hessian(game, point)
    numbers = number_field([x for row in rows for x in row])
    if numbers is None:
        return Equilibrium(game, point, "undecided", "its second derivatives are in no small number field")
    exactly = [[numbers.domain.from_sympy(x) for x in row] for row in rows]
    return Equilibrium(game, point, *_exact_kind(game, point, exactly, numbers.domain))


def _exact_kind(game: Game, point: Sequence[Any], rows: list[list[Any]], domain: Any) -> tuple[str, str]:
    def tie(names: Sequence[str], way: int) -> str:
        if game.quadratic:
            return "yes"
        return _by_more_derivatives(game, point, names[0], way) if len(names) == 1 else "unknown"

    return _kind(game, rows, lambda part: inertia(part, domain), tie)


def _kind(
    game: Game,
    rows: list[list[Any]],
    count: Callable[[list[list[Any]]], Inertia],
    tie: Callable[[Sequence[str], int], str],
) -> tuple[str, str]:
    """The kind of a point by the signs of second derivatives; `tie` decides where some are 0.

    Against the maximiser's best answers the minimiser sees the curvature A - B C⁻¹ B'. With C below 0 that
    is above 0 if the whole matrix ((A, B), (B', C)) has an eigenvalue above 0 for each of the minimiser's
    numbers and the rest below 0; and likewise for the maximiser.
    """
    first = len(game.minimise)
    p = count([row[:first] for row in rows[:first]])
    q = count([[-x for x in row[first:]] for row in rows[first:]])  # both players minimise with this sign
    if p.positive and q.positive:
        return "strict Nash", KINDS["strict Nash"]
    holds = [
        "no" if own.below else "yes" if own.positive else tie(names, way)
        for own, names, way in ((p, game.minimise, 1), (q, game.maximise, -1))
    ]
    if holds == ["yes", "yes"]:
        return "Nash", KINDS["Nash"]
    curvature = count(rows)
    if (curvature.above, curvature.below) == (first, len(rows) - first) and (p.positive or q.positive):
        kind = "minimax" if q.positive else "maximin"
        return kind, KINDS[kind]
    gain = [
        name
        for names, held in ((game.minimise, holds[0]), (game.maximise, holds[1]))
        for name in names
        if held == "no"
    ]
    if gain:
        return "none", f"{', '.join(gain)} gain{'' if gain[1:] else 's'} by moving"
    return "undecided", KINDS["undecided"]


def _by_more_derivatives(game: Game, point: Sequence[Any], name: str, way: int) -> str:
    """Whether a player with one number cannot gain by a small move: yes, no, or unknown."""
    assert game.formula is not None
    change = first_change(game.formula, game.names.index(name), point)
    if change is None:
        return "unknown"
    order, sign = change
    return "yes" if order == 0 or (order % 2 == 0 and sign * way > 0) else "no"


def _searched(game: Game, before: str) -> Equilibria:
    roots, starts = search(game)
    points = tuple(_exactly(game, point) for point in roots)
    none = "" if points else "none "
    note = f"{before}{none}found by Newton's method from {starts} starts in -3 … 3; there may be others"
    return Equilibria(game, points, False, (), note)


def _exactly(game: Game, point: tuple[Any, ...]) -> Equilibrium:
    """The point exactly if the gradient is 0 there, else as the decimals that it is known by."""
    if game.formula is not None and all(one.vanishes(point) for one in game.formulas.functions):
        return confirmed(game, point)
    return by_decimals(game, tuple(float(x) for x in point))


def by_decimals(game: Game, point: tuple[float, ...]) -> Equilibrium:
    """The kind of a point that is known by decimals; a sign counts only well away from 0."""
    rows = np.array(game.field().hessian(point), dtype=float)
    doubt = CLEAR * max(1.0, float(np.abs(rows).max()))

    def count(part: Any) -> Inertia:
        values = np.linalg.eigvalsh(np.array(part))
        above, below = int((values > doubt).sum()), int((values < -doubt).sum())
        return Inertia(above, below, len(values) - above - below)

    return Equilibrium(game, point, *_kind(game, rows.tolist(), count, lambda *_: "unknown"), exact=False)


Floats = NDArray[np.float64]

if TYPE_CHECKING:
    from lattend.study.games.game import Game

REACH = 3.0  # starts lie in -3 … 3
MOST_STARTS = 343
FEWER_STARTS = 49  # of a function whose gradients take longer
TURNS = 40
CLOSE, SINGULAR = 1e-9, 1e-6
DENOMINATORS = range(1, 13)  # of fractions that a decimal is tried as


def search(game: Game) -> tuple[list[tuple[Any, ...]], int]:
    """Points where the gradient is 0 to nine places, as simple fractions where that fits; and the starts."""
    many = len(game.names)
    most = MOST_STARTS if game.formula is not None else FEWER_STARTS
    side = max(2, int(most ** (1 / many)))
    starts = np.array(
        list(itertools.islice(itertools.product(np.linspace(-REACH, REACH, side), repeat=many), most))
    )
    points: list[Floats] = []
    with np.errstate(all="ignore"):
        for point in _newton(game.field(), starts, together=game.formula is not None):
            if not any(np.allclose(point, other, atol=1e-6) for other in points):
                points.append(point)
    points.sort(key=lambda point: [round(float(x), 6) for x in point])
    return [tuple(_simple(float(x)) for x in point) for point in points], len(starts)


def least(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The minimum of a function of one number between two ends, as (x, value), to about six digits."""
    best = (low, float("inf"))
    for _ in range(6):  # each round looks at 63 places, then about the lowest of them
        gap = (high - low) / 64
        best = min(((low + k * gap, function(low + k * gap)) for k in range(1, 64)), key=lambda one: one[1])
        low, high = best[0] - gap, best[0] + gap
    return best


def _newton(field: Any, starts: Floats, *, together: bool) -> Floats:
    """The points in -3 … 3 where Newton's method ends, a row for each start from which it does.

    Far out a gradient may fade without ever being 0: a place counts only where curvature holds it.
    """
    points = starts
    for _ in range(TURNS):
        slope, curvature = _derivatives(field, points, together=together)
        fine = np.isfinite(slope).all(axis=1) & np.isfinite(curvature).all(axis=(1, 2))
        fine &= np.abs(points).max(axis=1) < 10 * REACH
        points, slope, curvature = points[fine], slope[fine], curvature[fine]
        points = points - (np.linalg.pinv(curvature) @ slope[:, :, None])[:, :, 0]
    slope, curvature = _derivatives(field, points, together=together)
    held = (np.abs(slope).max(axis=1) < CLOSE) & (np.abs(points).max(axis=1) <= REACH)
    held[held] = np.abs(np.linalg.det(curvature[held])) > SINGULAR
    return points[held]


def _derivatives(field: Any, points: Floats, *, together: bool) -> tuple[Floats, Floats]:
    """Gradients [points, names] and Hessians [points, names, names]; all at once where f is a formula."""
    many, names = points.shape
    if not together:
        slopes = [field.all(point) for point in points]
        seconds = [field.hessian(point) for point in points]
        return np.reshape(slopes, (many, names)), np.reshape(seconds, (many, names, names))
    second = [[np.broadcast_to(x, many) for x in row] for row in field.hessian(points.T)]
    slope = np.array([np.broadcast_to(x, many) for x in field.all(points.T)])
    return slope.T, np.moveaxis(np.array(second, dtype=float), 2, 0)


def _simple(number: float) -> Any:
    """A fraction with a small denominator within nine places, else the decimal itself."""
    for below in DENOMINATORS:
        above = round(number * below)
        if abs(number - above / below) < CLOSE:
            return exact(above) / below
    return exact(number)
