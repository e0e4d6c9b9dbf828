"""Pictures of games: phase portraits, distances over time, factors against steps, methods against steps."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.draw.charts.chart import Chart, Dots, Ends, Scale, curves
from lattend.draw.formats.palette import SIGNED, ink
from lattend.draw.grid.marks import Label
from lattend.draw.grid.panel import Panel, Side
from lattend.draw.picture import Below, Picture
from lattend.errors import DomainError, LattendError
from lattend.report.numbers import fixed_beside, format_number, significant
from lattend.study.exact.function import as_float
from lattend.study.exact.numbers import exact
from lattend.study.exact.writing import decimal, format_exact, number_text
from lattend.study.figures import figure
from lattend.study.games.analysis import Analysis, StepOutcome
from lattend.study.games.equilibria import Equilibria, Equilibrium, where
from lattend.study.games.game import Game
from lattend.study.games.methods import Method, momentum
from lattend.study.games.orbit import Orbit
from lattend.study.games.phase import Rest, phase_plane, rest_of
from lattend.study.games.reports import behaviour_text, factor_text, steps_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = 1e-16  # what a distance of 0 is drawn as, on a scale that has no 0, or lower if others are lower
MOST = 1e100  # where drawing ends
FACTORS = 120  # steps at which a factor is drawn


def portrait(
    *orbits: Orbit,
    game: Game | None = None,
    x: Ends | None = None,
    y: Ends | None = None,
    ax: Axes | None = None,
) -> Picture:
    """The plane of both players: where the field points, lines of equal f, equilibria and the orbits.

    Where every step keeps a quantity, the line of its value through the start is drawn too. `x` and `y` are
    the ends of the picture, which holds the orbits and the equilibria where none are given. A game of more
    than two numbers shows the first of each player, without field and lines, which depend on the others.
    """
    shown = _game(orbits, game)
    rest = rest_of(shown)
    phase, notes = phase_plane(shown, orbits, _names(orbits), rest, x, y)
    data = {
        "game": shown.text,
        "orbits": [orbit.json() for orbit in orbits],
        "equilibria": [one.json() for one in rest.points],
    }
    return Picture(str(shown), (), notes, _about(orbits), charts=(phase,), data=data).onto(ax)


def distances(*orbits: Orbit, to: Any = None, ax: Axes | None = None) -> Picture:
    """How far each orbit is from an equilibrium after every step, on a logarithmic scale.

    `to` is the equilibrium, by default the one nearest to each orbit's start; where equilibria fill a line,
    the distance to that line.
    """
    game = _game(orbits, None)
    rest = rest_of(game, to, "to")
    if not rest.points:
        raise DomainError(f"no equilibrium of {game} is known to measure distances to; give one: to=(0, 0)")
    curve, notes = _distances(orbits, rest)
    return Picture(str(game), (), notes, _about(orbits), charts=(curve,), data=_numbers(game, curve)).onto(ax)


def compare_orbits(*orbits: Orbit) -> Picture:
    """Several methods or steps: their phase portrait, their distances, and what is proved of each."""
    game = _game(orbits, None)
    rest = rest_of(game)
    phase, notes = phase_plane(game, orbits, _names(orbits), rest)
    facts: list[tuple[str, str]] = []
    over_time: tuple[Chart, ...] = ()
    if rest.points:
        curve, more = _distances(orbits, rest)
        over_time, notes = (curve,), (*notes, *more)
        for orbit, line in zip(orbits, curve.lines, strict=True):
            first, last = format_number(line.points[0][1]), format_number(line.points[-1][1])
            caption = f"distance {first} at the start, {last} after {len(line.points) - 1} steps"
            facts.append((line.name, "; ".join((*_outcome(orbit, rest), caption))))
    data = {"game": game.text, "orbits": [orbit.json() for orbit in orbits]}
    return Picture(
        str(game), (), notes, _about(orbits), facts=tuple(facts), charts=(phase, *over_time), data=data
    )


def with_pictures(orbit: Orbit, at: Any = None) -> Picture:
    """The orbit's facts with its phase portrait and its distances, to one equilibrium, as one figure."""
    game = _game([orbit], None)
    rest = rest_of(game, at)
    phase, notes = phase_plane(game, [orbit], _names([orbit]), rest_of(game))
    over_time: tuple[Chart, ...] = ()
    if rest.points and len(orbit.points) > 1:
        curve, more = _distances([orbit], rest)
        over_time, notes = (curve,), (*notes, *more)
    picture = figure(orbit.report(), (phase, *over_time), notes)
    facts = (*picture.facts, *(("this step", words) for words in _outcome(orbit, rest)))
    return replace(picture, facts=facts, table=())


def with_equilibria(equilibria: Equilibria) -> Picture:
    """The kinds of all equilibria, with the phase portrait."""
    phase, notes = phase_plane(equilibria.game, (), (), rest_of(equilibria.game))
    return figure(equilibria.report(), (phase,), notes)


def around(equilibrium: Equilibrium) -> Picture:
    """The kind of an equilibrium, with the phase portrait about it."""
    game = equilibrium.game
    phase, notes = phase_plane(game, (), (), Rest((equilibrium,)))
    facts, data = (
        ((where(game, equilibrium.point), str(equilibrium)),),
        {"game": game.text, **equilibrium.json()},
    )
    return Picture(str(game), (), notes, facts=facts, charts=(phase,), data=data)


def with_factors(analysis: Analysis) -> Picture:
    """The report of an analysis, with the factor a step against the step h, computed in floats.

    The picture goes half as far again as the last end of a range, or as the step that was asked for.
    """
    ends = [as_float(one.low) for one in analysis.ranges]
    steps = [] if analysis.step is None else [as_float(analysis.step)]
    far = 1.5 * max((end for end in (*ends, *steps) if 0 < end < MOST), default=1.0)
    best = _best(analysis)
    dots = [("best step", best)] if best else []
    if analysis.here is not None and steps[0] < MOST:
        dots.append((f"h = {number_text(analysis.step)}", (steps[0], as_float(analysis.here.factor))))
    places = {far * place / FACTORS for place in range(1, FACTORS + 1)} | {h for _, (h, _) in dots}
    line = [(h, factor) for h in sorted(places) if math.isfinite(factor := analysis.float_factor(h))]
    if not line:
        return figure(analysis.report())
    lines = curves([("factor", line), ("1: no nearer, no farther", [(h, 1.0) for h, _ in line])])
    marks = tuple(Dots([place], "", "#1c1f26", 3.0, "square", [name]) for name, place in dots)
    return figure(analysis.report(), (Chart("Factor a step", "step h", "factor", lines, marks),))


def _best(analysis: Analysis) -> tuple[float, float] | None:
    """The best step and its factor as floats, derived or searched for."""
    if analysis.best is None:
        return analysis.searched_best
    return as_float(analysis.best.step), as_float(analysis.best.factor)


def _game(orbits: Sequence[Orbit], game: Game | None) -> Game:
    if not orbits and game is None:
        raise DomainError("a picture needs orbits, as in portrait(game.orbit((1, 1))), or a game: game=...")
    shared_game = game or orbits[0].game
    for orbit in orbits:
        if str(orbit.game) != str(shared_game):
            raise DomainError(f"a picture shows one game: {shared_game}, not {orbit.game}; draw two")
        if math.hypot(*orbit.floats[0]) >= MOST:
            raise DomainError(f"a picture has room for numbers up to {MOST:g}, and the orbit starts beyond")
    return shared_game


def _names(orbits: Sequence[Orbit]) -> list[str]:
    """The names of the orbits: their methods, their steps, or both."""
    methods, steps = (
        [orbit.game.rule_text(orbit.method) for orbit in orbits],
        [orbit.step_text for orbit in orbits],
    )
    if len(orbits) == 1:
        return ["orbit"]
    if len(set(steps)) == 1:
        return methods
    if len(set(methods)) == 1:
        return steps
    return [f"{method}, {step}" for method, step in zip(methods, steps, strict=True)]


def _about(orbits: Sequence[Orbit]) -> tuple[str, ...]:
    """The method or steps that all orbits share."""
    common = {orbit.game.rule_text(orbit.method) for orbit in orbits}, {orbit.step_text for orbit in orbits}
    words = ", ".join(part for parts in common if len(parts) == 1 for part in parts)
    return (words,) if words else ()


def _outcome(orbit: Orbit, rest: Rest) -> tuple[str, ...]:
    """The proved outcome of the orbit's method at its step, near the nearest equilibrium."""
    equilibrium = rest.nearest(orbit)
    if equilibrium is None:
        return ()
    try:
        outcome = orbit.game.analyse(orbit.method, orbit.step, equilibrium.point).here
    except LattendError:
        return ()
    return (str(outcome) if orbit.game.quadratic else f"near the equilibrium {outcome}",)


def _distances(orbits: Sequence[Orbit], rest: Rest) -> tuple[Chart, tuple[str, ...]]:
    notes: list[str] = []
    lengths = [_lengths(orbit, rest) for orbit in orbits]
    shortest = min(map(len, lengths))
    lengths = [length[:shortest] for length in lengths]
    least = min([LEAST, *(d / 10 for length in lengths for d in length if d)])
    if any(0 in length for length in lengths):
        notes.append(f"a distance of 0 is drawn as {significant(least, 3)}")
    lines = [
        (name, [(float(step), d or least) for step, d in enumerate(length)])
        for name, length in zip(_names(orbits), lengths, strict=True)
    ]
    if any(len(orbit.points) > shortest for orbit in orbits):
        notes.append(f"distances up to step {shortest - 1}, where the shortest orbit ends or passes {MOST:g}")
    what = "Distance to the nearest equilibrium" if rest.line else "Distance to the equilibrium"
    return Chart(what, "step", "distance", curves(lines), log_y=10), tuple(notes)


def _lengths(orbit: Orbit, rest: Rest) -> list[float]:
    """The distances from the start on, as long as they are numbers of a usual size."""
    return list(takewhile(lambda d: d < MOST, (math.hypot(*way) for way in rest.offsets(orbit).tolist())))


def _numbers(game: Game, curve: Chart) -> dict[str, Any]:
    return {"game": game.text, "distances": {line.name: [d for _, d in line.points] for line in curve.lines}}


STEPS = ("1/10", "1/4", "1/2", "3/4", "1", "3/2", "2", "5/2")
ROWS: tuple[Method | str, ...] = (
    *("simultaneous", "alternating", "optimistic", "extragradient", "momentum"),
    momentum("-1/2", first="q"),
    *("consensus", "gradient_penalty"),
)


def compare_methods(
    game: Game,
    steps: Any = STEPS,
    methods: Method | str | Iterable[Method | str] = ROWS,
    at: Any = None,
) -> Picture:
    """Methods against steps near an equilibrium: converges, cycles or diverges, and by what factor a step.

    Below the table stand the exact ranges in which each method converges, and its best step. Blue shrinks
    distances, red grows them.
    """
    rows, columns = _several(methods), _several(steps)
    if not rows or not columns:
        raise DomainError("a table needs one step and one method, or more")
    numbers = [exact(step) for step in columns]
    analyses = [game.analyse(one, at=at) for one in rows]
    cells = [[one.at(step) for step in numbers] for one in analyses]
    names = [str(one.method) for one in analyses]
    panel, scale = _panel(cells, _short(names), [format_exact(step) for step in numbers])
    reading = _reading(cells)
    return Picture(
        str(game),
        (panel,),
        (reading,),
        ("methods against the step h of both players",),
        facts=tuple((name, _ranges(one)) for name, one in zip(names, analyses, strict=True)),
        scales=(scale,),
        labelled=Below((reading,), scales=(scale,)),
        bare=Below(scales=(scale,)),
        grid=44.0 * max(len(numbers), len(names)),
        data={
            "game": game.text,
            "steps": [format_exact(step) for step in numbers],
            "methods": {
                name: [{"kind": outcome.kind, "factor": float(outcome.factor)} for outcome in row]
                for name, row in zip(names, cells, strict=True)
            },
            "analyses": [one.json() for one in analyses],
        },
    )


def _several(value: Any) -> list[Any]:
    """A list of what may be one alone."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def _panel(
    cells: Sequence[Sequence[StepOutcome]], names: Sequence[str], steps: Sequence[str]
) -> tuple[Panel, Scale]:
    scale = Scale("factor a step", 0.0, 2.0, SIGNED, most="2 or more")
    filled = scale.cells(np.array([[float(outcome.factor) for outcome in row] for row in cells]))
    words = [[_word(outcome) for outcome in row] for row in cells]
    longest = max((word for row in words for word in row), key=len)
    labels = tuple(
        Label(row + 0.5, col + 0.5, word, ink(SIGNED[filled[row, col]].fill), like=longest)
        for row, line in enumerate(words)
        for col, word in enumerate(line)
    )
    sides = Side("method", len(names), _ticks(names)), Side("step h", len(steps), _ticks(steps))
    return Panel(filled, SIGNED, *sides, "", labels), scale


def _short(names: Sequence[str]) -> list[str]:
    """The names without their numbers, which the facts have, where they stay apart."""
    short = [re.sub(", (mass|weight) [^,]+", "", name) for name in names]
    return [one if short.count(one) == 1 else name for one, name in zip(short, names, strict=True)]


def _ticks(names: Sequence[str]) -> tuple[tuple[float, str], ...]:
    return tuple((index + 0.5, name) for index, name in enumerate(names))


def _word(outcome: StepOutcome) -> str:
    """The factor where it is not 1, else what happens."""
    if outcome.kind not in ("converges", "diverges"):
        return outcome.kind
    factor = float(outcome.factor)
    return fixed_beside(factor, 3, 0, 1) if factor < 9.9995 else significant(factor, 3)


def _reading(cells: Sequence[Sequence[StepOutcome]]) -> str:
    """The meaning of the words in the cells."""
    kinds = {outcome.kind for row in cells for outcome in row}
    sentences = ["a number below 1 converges, above 1 diverges"]
    sentences += ["cycles: distances stay within bounds for ever"] if "cycles" in kinds else []
    sentences += ["grows: like a power of the steps"] if "grows" in kinds else []
    sentences += ["settles: at one of the equilibria, which form a line"] if "settles" in kinds else []
    sentences += ["undecided: second derivatives do not decide"] if "undecided" in kinds else []
    return "; ".join(sentences)


def _ranges(one: Analysis) -> str:
    """The steps at which a method converges, and how fast at best; else what it does."""
    if one.matrix is None:
        return one.note
    kinds: dict[str, list[str]] = {}
    for part in one.ranges:
        steps = steps_text(part.low, part.high, part.low_in, part.high_in)
        kinds.setdefault(behaviour_text(part.behaviour), []).append(steps)
    best = (
        f"; best factor {_best_text(one.best.factor)} at h = {_best_text(one.best.step)}" if one.best else ""
    )
    if "converges" in kinds:
        return f"converges for {' and '.join(kinds['converges'])}{best}"
    return "; ".join(f"{kind} for {' and '.join(steps)}" for kind, steps in kinds.items())


def _best_text(number: Any) -> str:
    """An exact number with its decimals, the decimals alone where it has no short form."""
    text = factor_text(number)
    return text if text[0] == "s" or text.replace("/", "").isdigit() else decimal(number)
