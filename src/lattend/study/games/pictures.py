"""Pictures of games: the phase portrait with orbits, distances over time, and factors against steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from lattend.draw.charts.chart import Chart, Dots, Ends, curves
from lattend.draw.picture import Picture
from lattend.errors import DomainError, LattendError
from lattend.report.numbers import format_number, significant
from lattend.study.exact.function import as_float
from lattend.study.exact.writing import number_text
from lattend.study.figures import figure
from lattend.study.games.analysis import Analysis
from lattend.study.games.equilibria import Equilibria, Equilibrium, where
from lattend.study.games.game import Game
from lattend.study.games.orbit import Orbit
from lattend.study.games.phase import Rest, phase_plane, rest_of

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
    """What each equilibrium is, with all of them in the phase portrait."""
    phase, notes = phase_plane(equilibria.game, (), (), rest_of(equilibria.game))
    return figure(equilibria.report(), (phase,), notes)


def around(equilibrium: Equilibrium) -> Picture:
    """What the equilibrium is, with the phase portrait about it."""
    game = equilibrium.game
    phase, notes = phase_plane(game, (), (), Rest((equilibrium,)))
    facts, data = (
        ((where(game, equilibrium.point), str(equilibrium)),),
        {"game": game.text, **equilibrium.json()},
    )
    return Picture(str(game), (), notes, facts=facts, charts=(phase,), data=data)


def with_factors(analysis: Analysis) -> Picture:
    """What is proved, with the factor a step against the step h, computed in floats.

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
    """What tells the orbits apart: the method, the steps, or both."""
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
    """What all orbits have in common, which their names do not say."""
    common = {orbit.game.rule_text(orbit.method) for orbit in orbits}, {orbit.step_text for orbit in orbits}
    words = ", ".join(part for parts in common if len(parts) == 1 for part in parts)
    return (words,) if words else ()


def _outcome(orbit: Orbit, rest: Rest) -> tuple[str, ...]:
    """What is proved of the orbit's method at its step, near the nearest equilibrium, where that can be."""
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
