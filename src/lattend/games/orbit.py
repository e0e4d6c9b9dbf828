"""Orbit: where both players go, step by step; a period is proved by the exact return of the state."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.draw.figure import Figure
from lattend.exact.field import NumberField, number_field
from lattend.exact.writing import decimal
from lattend.exact.writing import text as written
from lattend.games.methods import Method, State

if TYPE_CHECKING:
    from lattend.games.game import Game

MOST_DIGITS = 1000  # of all numbers of a state together; an exact orbit stops there
LARGEST = 1e100  # a float beyond it has left for good
MOST_ROWS = 24  # of a printed table


@dataclass(frozen=True, eq=False)
class Orbit:
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
        return self.returns[1] - self.returns[0] if self.returns else None

    @property
    def values(self) -> tuple[Any, ...]:
        """F at each point."""
        return self._values

    @cached_property
    def floats(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The points as floats, [steps + 1, names]."""
        return np.array([[float(x) for x in point] for point in self.points])

    @cached_property
    def stalls(self) -> tuple[int, ...]:
        """The steps t at which f stays equal, f(t+1) = f(t), though the gradient is not 0."""
        pairs = zip(self._values, self._values[1:], strict=False)
        return tuple(t for t, (now, then) in enumerate(pairs) if now == then and not self._still[t])

    @cached_property
    def figure(self) -> Figure:
        """The orbit as a table with its facts, to be printed or drawn on."""
        h, k = map(written, self.step)
        about = (f"{self.method}, step {h}" if h == k else f"{self.method}, steps {h} and {k}",)
        return Figure(
            str(self.game), (), (), about, facts=self._facts(), table=self._table(), data=self.json()
        )

    def _facts(self) -> tuple[tuple[str, str], ...]:
        kind = "exact" if self.exact else "floats"
        facts = [("numbers", f"{kind}{', ' + self.note if self.note else ''}")]
        if self.returns:
            first, again = self.returns
            facts.append(
                ("period", f"{self.period}, proved: the state after {again} steps is that after {first}")
            )
        elif self.exact:
            facts.append(("period", f"none within {len(self.points) - 1} steps"))
        once = [t for t in self.stalls if not self.returns or t < self.returns[1]]
        if once:
            shown = ", ".join(f"{t} to {t + 1}" for t in once[:6]) + (", …" if once[6:] else "")
            facts.append(
                (
                    "f stays equal",
                    f"from step {shown}, though the gradient is not 0: no sign of an equilibrium",
                )
            )
        return tuple(facts)

    def _table(self) -> tuple[tuple[str, ...], ...]:
        last = len(self.points) - 1
        shown = [t for t in range(last + 1) if last < MOST_ROWS or t < MOST_ROWS - 1 or t == last]
        rows: list[tuple[str, ...]] = [("step", *self.game.names, "f")]
        for t in shown:
            if rows[1:] and t > int(rows[-1][0]) + 1:
                rows.append(tuple("…" for _ in rows[0]))
            rows.append((str(t), *map(_shown, (*self.points[t], self.values[t]))))
        return tuple(rows)

    def draw(self) -> Figure:
        """The orbit's facts with its phase portrait and its distances to the equilibrium."""
        from lattend.games.pictures import with_pictures

        return with_pictures(self)

    def json(self) -> dict[str, Any]:
        """The orbit as plain data; exact numbers are texts."""
        plain = written if self.exact else float
        return {
            "game": self.game.text,
            "minimise": list(self.game.minimise),
            "maximise": list(self.game.maximise),
            "method": str(self.method),
            "step": [written(h) for h in self.step],
            "exact": self.exact,
            "points": [[plain(x) for x in point] for point in self.points],
            "values": [plain(x) for x in self.values],
            "period": self.period,
            "returns": list(self.returns) if self.returns else None,
            "stalls": list(self.stalls),
            "note": self.note,
        }

    def __str__(self) -> str:
        return self.figure.terminal(colour=False)

    def __repr__(self) -> str:
        return (
            f"<Orbit of {self.game.text}: {self.method}, {len(self.points) - 1} steps, period {self.period}>"
        )


def orbit(
    game: Game, start: tuple[Any, ...], step: tuple[Any, Any], steps: int, method: Method, *, floats: bool
) -> Orbit:
    """The orbit from `start`, in exact numbers where there are such, else in floats."""
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
            note = (
                f"stopped after {t - 1} of {steps} steps, before {MOST_DIGITS:,} digits; floats=True goes on"
            )
            break
        states.append(state)
        if returns is None:
            before = seen.setdefault(_key(state), t)
            returns = (before, t) if before < t else None
    points = [[*state[0], *state[1]] for state in states]
    return Orbit(
        game, method, step,
        tuple(tuple(numbers.back(x) for x in point) for point in points),
        True, returns, note,
        tuple(numbers.back(field.value(point)) for point in points),
        tuple(all(x == 0 for x in field.all(point)) for point in points),
    )  # fmt: skip


def _floating(game: Game, start: tuple[Any, ...], step: tuple[Any, Any], steps: int, method: Method) -> Orbit:
    field = game.field()
    state = _begin(game, method, field, [float(x) for x in start], float)
    states, note = [state], ""
    with np.errstate(all="ignore"):
        for t in range(1, steps + 1):
            state = method.step(field, state, (float(step[0]), float(step[1])))
            if not all(np.all(np.abs(part) < LARGEST) for part in state):
                note = f"stopped after {t - 1} of {steps} steps: the next numbers are too large"
                break
            states.append(state)
        points = [tuple(float(x) for x in (*state[0], *state[1])) for state in states]
        values = tuple(float(field.value(point)) for point in points)
        still = tuple(not np.any(field.all(point)) for point in points)
    return Orbit(game, method, step, tuple(points), False, None, note, values, still)


def _begin(game: Game, method: Method, field: Any, numbers: list[Any], kind: type) -> State:
    place = np.empty(len(numbers), dtype=kind)
    place[:] = numbers
    first = len(game.minimise)
    return method.start(field, place[:first], place[first:])


def _key(state: State) -> tuple[Any, ...]:
    return tuple(x if isinstance(x, Fraction | int) else tuple(x.to_list()) for part in state for x in part)


def _shown(number: Any) -> str:
    if isinstance(number, float):
        return f"{number:.6g}"
    exactly = written(number)
    return exactly if len(exactly) <= 24 else f"{decimal(number, 6)}"
