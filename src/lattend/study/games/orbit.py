"""Orbit: where both players go, step by step; a period is proved by the exact return of the state."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.errors import DomainError
from lattend.report.report import Printed, Report
from lattend.report.shown import Drawn
from lattend.study.exact.function import as_float
from lattend.study.exact.numbers import NumberField, number_field
from lattend.study.exact.writing import format_exact
from lattend.study.games.fields import StepMap, SymbolicField, step_map
from lattend.study.games.methods import Method, State
from lattend.study.games.reports import format_coordinate, orbit_report
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.study.games.game import Game

MOST_DIGITS = 1000  # of all numbers of a state together; an exact orbit stops there
LONGEST_FORMULAS = 300  # characters of all places of an orbit of formulas
LARGEST = 1e100  # a float beyond it has left for good


@dataclass(frozen=True, eq=False)
class Orbit(Drawn, Printed):
    """The places of both players: `points[t]` is a number for each name after t steps, exact or float.

    period   the state at `returns[1]` is that at `returns[0]`, so it repeats for ever; None if not seen
    note     why the orbit is shorter than asked for, or empty
    """

    game: Game
    method: Method
    step: tuple[Any, Any]
    points: tuple[tuple[Any, ...], ...]
    exact: bool
    returns: tuple[int, int] | None = None
    note: str = ""
    _values: tuple[Any, ...] = field(default=(), repr=False)
    _still: tuple[bool, ...] = field(default=(), repr=False)

    @property
    def period(self) -> int | None:
        """After how many steps a point comes back exactly; None where none does."""
        return self.returns[1] - self.returns[0] if self.returns else None

    @property
    def values(self) -> tuple[Any, ...]:
        """F at each point."""
        return self._values

    @property
    def letters(self) -> list[str]:
        """The letters of the start: where there are any, every place is a formula in them."""
        return [] if not self.exact else sorted({str(one) for x in self.points[0] for one in x.free_symbols})

    @cached_property
    def map(self) -> StepMap | None:
        """One step of this orbit as formulas; None where the game has none."""
        return None if self.game.formula is None else step_map(self.game, self.method, self.step)

    @cached_property
    def floats(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The points as floats, [steps + 1, names]."""
        if self.letters:
            raise DomainError(
                f"the start has {' and '.join(self.letters)} in it; to draw the orbit, start at numbers"
            )
        number = cache(as_float)  # a period brings the same numbers again and again
        return np.array([[number(x) for x in point] for point in self.points])

    @cached_property
    def stalls(self) -> tuple[int, ...]:
        """The steps t at which f stays equal, f(t+1) = f(t), though the gradient is not 0."""
        pairs = zip(self._values, self._values[1:], strict=False)
        return tuple(t for t, (now, then) in enumerate(pairs) if now == then and not self._still[t])

    @property
    def step_text(self) -> str:
        """`step 1/2`, or `steps 1/2 and 1`."""
        return _step_text(self.step)

    def draw(self) -> Picture:
        """The orbit's facts with its phase portrait and its distances to the equilibrium."""
        from lattend.study.games.pictures import with_pictures

        return with_pictures(self)

    def json(self) -> dict[str, Any]:
        """The orbit as plain data; exact numbers are texts."""
        plain = cache(format_exact) if self.exact else float
        return {
            "game": self.game.text,
            "minimise": list(self.game.minimise),
            "maximise": list(self.game.maximise),
            "method": str(self.method),
            "step": [format_exact(h) for h in self.step],
            "exact": self.exact,
            "map": self.map and self.map.texts,
            "points": [[plain(x) for x in point] for point in self.points],
            "values": [plain(x) for x in self.values],
            "period": self.period,
            "returns": list(self.returns) if self.returns else None,
            "stalls": list(self.stalls),
            "note": self.note,
        }

    def report(self) -> Report:
        """The orbit's facts and a table of its places."""
        return orbit_report(self)

    def __repr__(self) -> str:
        return (
            f"<Orbit of {self.game.text}: {self.method}, {len(self.points) - 1} steps, period {self.period}>"
        )


def orbit(
    game: Game, start: tuple[Any, ...], step: tuple[Any, Any], steps: int, method: Method, *, floats: bool
) -> Orbit:
    """The orbit from `start`, in exact numbers where there are such, else in floats."""
    if any(getattr(x, "free_symbols", None) for x in start):
        return _symbolic(game, start, step, steps, method)
    numbers = number_field([*start, *step]) if game.polynomial and not floats else None
    if numbers is None:
        return _floating(game, start, step, steps, method)
    return _exact(game, start, step, steps, method, numbers)


def _exact(
    game: Game,
    start: tuple[Any, ...],
    step: tuple[Any, Any],
    steps: int,
    method: Method,
    numbers: NumberField,
) -> Orbit:
    field = game.field(numbers.of)
    state = _begin(game, method, field, [numbers.of(x) for x in start], object)
    h = numbers.of(step[0]), numbers.of(step[1])
    seen, states, returns, note = {_key(state): 0}, [state], None, ""
    for t in range(1, steps + 1):
        state = method.step(field, state, h)
        if sum(numbers.digits(x) for part in state for x in part) > MOST_DIGITS:
            gone = f"stopped after {t - 1} of {many(steps, 'step')}"
            note = f"{gone}, before {MOST_DIGITS:,} digits; floats go on"
            break
        before = seen.setdefault(_key(state), t)
        if before < t:
            returns = before, t
            break
        states.append(state)
    places = [[*state[0], *state[1]] for state in states]
    points = [tuple(numbers.back(x) for x in place) for place in places]
    values = [numbers.back(field.value(place)) for place in places]
    still = [all(x == 0 for x in field.all(place)) for place in places]
    if returns:  # what was gone through once comes again and again
        first, second = returns
        turn = [t if t < second else first + (t - first) % (second - first) for t in range(steps + 1)]
        points, values, still = [points[t] for t in turn], [values[t] for t in turn], [still[t] for t in turn]
    return Orbit(game, method, step, tuple(points), True, returns, note, tuple(values), tuple(still))


def _symbolic(game: Game, start: tuple[Any, ...], step: tuple[Any, Any], steps: int, method: Method) -> Orbit:
    """The places as formulas in the letters of the start."""
    if game.formula is None:
        raise DomainError("the game is a function that takes no symbols; start at numbers")
    field = SymbolicField(game.formula, len(game.minimise))
    state = _begin(game, method, field, list(start), object)
    states, values = [state], [field.value(_formulas(state[:2])).factor()]
    seen, returns, note = {_formulas(state): 0}, None, ""
    for t in range(1, steps + 1):
        state = tuple(
            np.array([x.expand() for x in part], dtype=object) for part in method.step(field, state, step)
        )
        value = field.value(_formulas(state[:2])).factor()
        if sum(len(str(x)) for x in (*_formulas(state), value)) > LONGEST_FORMULAS:
            note = f"stopped after {t - 1} of {many(steps, 'step')}, before the formulas get longer"
            break
        states.append(state)
        values.append(value)
        before = seen.setdefault(_formulas(state), t)
        if before < t and returns is None:
            returns = before, t
    places = tuple(_formulas(state[:2]) for state in states)
    still = tuple(all(x == 0 for x in field.all(place)) for place in places)
    return Orbit(game, method, step, places, True, returns, note, tuple(values), still)


def _formulas(state: State) -> tuple[Any, ...]:
    return tuple(x for part in state for x in part)


def _floating(game: Game, start: tuple[Any, ...], step: tuple[Any, Any], steps: int, method: Method) -> Orbit:
    field, h = game.field(), (as_float(step[0]), as_float(step[1]))
    if not all(0 < one < math.inf for one in h):
        raise DomainError(f"{_step_text(step)} is beyond floats, which this orbit needs")
    with np.errstate(all="ignore"):
        state = _begin(game, method, field, [as_float(x) for x in start], float)
        value = float(field.value((*state[0], *state[1])))
        if not np.isfinite([*state[0], *state[1], value]).all():
            place = ", ".join(map(format_coordinate, start))
            raise DomainError(f"at the start, {place}, f is no finite number in floats; start elsewhere")
        points: list[tuple[float, ...]] = []
        values: list[float] = []
        note = ""
        for t in range(steps + 1):
            points.append(tuple(float(x) for x in (*state[0], *state[1])))
            values.append(value)
            if t == steps:
                break
            state = method.step(field, state, h)
            place = [*state[0], *state[1]]
            value = float(field.value(place))
            if np.abs(place).max() >= LARGEST or np.isinf(value):
                note = f"stopped after {t} of {many(steps, 'step')}: the next numbers are too large"
                break
            if np.isnan([*place, value]).any():
                note = f"stopped after {t} of {many(steps, 'step')}: f has no value at the next place"
                break
        still = tuple(not np.any(field.all(point)) for point in points)
    return Orbit(game, method, step, tuple(points), False, None, note, tuple(values), still)


def _begin(game: Game, method: Method, field: Any, numbers: list[Any], kind: type) -> State:
    place = np.empty(len(numbers), dtype=kind)
    place[:] = numbers
    first = len(game.minimise)
    return method.start(field, place[:first], place[first:])


def _step_text(step: tuple[Any, Any]) -> str:
    h, k = map(format_coordinate, step)
    return f"step {h}" if h == k else f"steps {h} and {k}"


def _key(state: State) -> tuple[Any, ...]:
    return tuple(x if isinstance(x, Fraction | int) else tuple(x.to_list()) for part in state for x in part)
