"""Phase: the plane of both players, with the field, lines of equal f, what steps keep, and orbits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from contourpy import contour_generator
from numpy.typing import NDArray

from lattend.draw.charts.chart import (
    COLOURS,
    SHAPES,
    Arrows,
    Chart,
    Dots,
    Ends,
    Stroke,
    round_numbers,
)
from lattend.errors import LattendError
from lattend.study.exact.function import Function, symbols
from lattend.study.exact.matrix import H
from lattend.study.games.equilibria import Equilibrium, confirmed
from lattend.study.games.game import Game
from lattend.study.games.orbit import Orbit

Floats = NDArray[np.float64]
Places = Sequence[tuple[float, float]]

LOWER, EQUAL, HIGHER = "#9cc3e0", "#9aa3ad", "#efbf8f"  # where f is below, at and above its value
KEPT, STILL = "#7a4fb5", "#1c1f26"
SOLVED, UNSOLVED = "equilibrium", "stationary, not an equilibrium"
ARROWS = 12  # of the field along a side
FINE = 121  # places along a side where f is evaluated
LEVELS = 16
SPECK = 4  # places of a line that rounding may have made, where f hardly changes
REACH = 4.0  # an orbit is followed until it is this many times as far as it began
FARTHEST = 40.0  # times as far; a step beyond would leave no room for the others
MOST_LABELS = 24


def phase_plane(
    game: Game,
    orbits: Sequence[Orbit],
    names: Sequence[str],
    rest: Rest,
    x: Ends | None = None,
    y: Ends | None = None,
) -> tuple[Chart, tuple[str, ...]]:
    """The plane of each player's first number, and what it leaves out."""
    axes = _axes(game)
    tracks = [followed(orbit, rest) for orbit in orbits]
    flat = [track[:, axes] for track in tracks]
    solved, others = (
        [(one.floats[axes[0]], one.floats[axes[1]]) for one in rest.points if (one.kind != "none") is solves]
        for solves in (True, False)
    )
    still = rest.places(orbits, axes)
    around = window([*still, *(place for track in flat for place in track.tolist())])
    x, y = x or around[0], y or around[1]
    lines: list[Stroke] = []
    arrows: tuple[Arrows, ...] = ()
    if len(game.names) == 2:
        middle = SOLVED if solved else "stationary point"
        lines, arrows = _levels(game, x, y, still, f"f as at the {middle}"), (_field(game, x, y),)
        if rest.line:
            lines.append(_still_line(game, rest, SOLVED if solved else UNSOLVED, x, y))
        for orbit in orbits:
            lines += invariant_lines(orbit, x, y)
    dots: list[Dots] = []
    for place, (orbit, name, track) in enumerate(zip(orbits, names, flat, strict=True)):
        line, points = _drawn(orbit, track, name, place, alone=len(orbits) == 1)
        lines.append(line)
        dots.append(points)
    if not rest.line:
        dots.append(Dots(solved, SOLVED, STILL, 4.4, "ring"))
        dots.append(Dots(others, UNSOLVED, STILL, 3.2, "cross"))
    sides = f"{game.names[axes[0]]} (made small)", f"{game.names[axes[1]]} (made large)"
    marks = tuple(lines), tuple(dots), arrows
    chart = Chart("Phase portrait", *sides, *marks, x, y, equal=True, size=(300.0, 300.0))
    notes = [
        f"{name}: steps after {len(track) - 1} lie far outside"
        for orbit, name, track in zip(orbits, names, tracks, strict=True)
        if len(track) < len(orbit.points) and not orbit.returns
    ]
    if rest.line:
        notes.append(f"the gradient is 0 wherever {' and '.join(f'{one} = 0' for one in rest.line)}")
    if len(game.names) > 2:
        notes.append(f"of {', '.join(game.names)} the first of each player; the field depends on the others")
    return chart, tuple(notes)


def orbit_window(orbits: Sequence[Orbit]) -> tuple[Ends, Ends]:
    """The plane that a picture of these orbits shows: they while they are near, and where they may rest."""
    game = orbits[0].game
    rest, axes = rest_of(game), _axes(game)
    tracks = (followed(orbit, rest)[:, axes].tolist() for orbit in orbits)
    return window([*rest.places(orbits, axes), *(place for track in tracks for place in track)])


def _axes(game: Game) -> list[int]:
    """Which of the names the plane shows: each player's first."""
    return [0, len(game.minimise)]


def followed(orbit: Orbit, rest: Rest) -> Floats:
    """The orbit's places while they are near, and to its return where it repeats."""
    track = orbit.floats[: orbit.returns[1] + 1 if orbit.returns else None]
    length = [math.hypot(*place) for place in rest.offsets(orbit)[: len(track)].tolist()]
    began = max(length[0], 1e-9 * float(np.abs(track[0]).max())) or 1.0  # rounding is no distance
    far = np.flatnonzero(~(np.array(length) <= REACH * began))
    if not far.size:
        return track
    return track[: far[0] + 1 if length[far[0]] < FARTHEST * began else far[0]]


def _drawn(orbit: Orbit, track: Floats, name: str, place: int, *, alone: bool) -> tuple[Stroke, Dots]:
    """The orbit as arrows from dot to dot, each with its step's number where there is room for it."""
    colour, few = COLOURS[place % len(COLOURS)], len(track) <= MOST_LABELS
    places = track[:-1] if orbit.returns and len(track) > 1 else track
    labels = [str(step) for step in range(len(places))] if few and alone else []
    line = Stroke(track, name, colour, 1.8 if few else 1.2, headed=few)
    return line, Dots(places, name, colour, 3.0 if few else 2.0, SHAPES[place % 4], labels)


def window(points: Sequence[Sequence[float]]) -> tuple[Ends, Ends]:
    """A square about these points, with a margin."""
    places = np.array(points or [(0.0, 0.0)])
    low, high = places.min(axis=0), places.max(axis=0)
    half = 0.62 * float((high - low).max()) or 1.5
    across, up = ((low + high) / 2).tolist()
    return (across - half, across + half), (up - half, up + half)


def _field(game: Game, x: Ends, y: Ends) -> Arrows:
    """Arrows of −∂f/∂p and ∂f/∂q, longer where they are stronger."""
    gap = (x[1] - x[0]) / ARROWS, (y[1] - y[0]) / ARROWS
    places = [
        (x[0] + gap[0] * (col + 0.5), y[0] + gap[1] * (row + 0.5))
        for row in range(ARROWS)
        for col in range(ARROWS)
    ]
    pulls = [(-down / gap[0], up / gap[1]) for down, up in map(game.gradient, places)]
    strengths = [math.hypot(*pull) for pull in pulls]
    most = max(filter(math.isfinite, strengths), default=0.0) or 1.0
    pairs: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for (a, b), pull, strength in zip(places, pulls, strengths, strict=True):
        if math.isfinite(strength):
            # The root of the strength: near an equilibrium the way is still to be seen
            long = 0.42 * math.sqrt(strength / most) / (strength or 1.0)
            dx, dy = long * pull[0] * gap[0], long * pull[1] * gap[1]
            pairs.append(((a - dx, b - dy), (a + dx, b + dy)))
    return Arrows(pairs, "where the gradients pull")


def _levels(game: Game, x: Ends, y: Ends, still: Places, as_there: str) -> list[Stroke]:
    """Lines of equal f, in two colours below and above its value where the first of `still` is."""
    xs, ys = np.linspace(*x, FINE), np.linspace(*y, FINE)
    field = game.field()
    with np.errstate(all="ignore"):
        if game.formula is not None:
            values = np.array(np.broadcast_to(field.value(np.meshgrid(xs, ys)), (FINE, FINE)), dtype=float)
        else:
            values = np.array([[float(field.value((a, b))) for a in xs] for b in ys])
    fine = values[np.isfinite(values)]
    if not fine.size or fine.min() == fine.max():
        return []
    zero = game.value(still[0]) if still else float(np.median(fine))
    low, high = (np.quantile(fine, (0.01, 0.99)) - zero).tolist()
    lines: list[Stroke] = []
    for level in dict.fromkeys((*round_numbers(low, high, LEVELS), 0.0)):
        name, colour = ("f below", LOWER) if level < 0 else ("f above", HIGHER)
        name, colour = (name, colour) if level else (as_there, EQUAL)
        for line in _contours(xs, ys, values, zero + level):
            if len(line) > SPECK:
                lines.append(Stroke(line, name if still else "equal f", colour, 1.0, under=True))
    return lines


def _still_line(game: Game, rest: Rest, name: str, x: Ends, y: Ends) -> Stroke:
    """The line that equilibria fill, through the whole picture."""
    place = rest.points[0].floats
    *_, way = np.linalg.svd(np.array(game.field().hessian(place), dtype=float))[2]  # the gradient stays 0
    one = np.array(place)
    middle = one + way * ((np.mean([x, y], axis=1) - one) @ way)
    far = way * math.hypot(x[1] - x[0], y[1] - y[0])
    return Stroke(np.array([middle - far, middle + far]), name, STILL, 1.6)


def invariant_lines(orbit: Orbit, x: Ends, y: Ends) -> list[Stroke]:
    """The lines that the orbit cannot leave: where a quantity that every step keeps has its first value."""
    if not orbit.game.quadratic or orbit.method.remembers:
        return []
    try:
        forms = orbit.game.analyse(orbit.method, orbit.step).invariants
    except LattendError:
        return []
    xs, ys = np.linspace(*x, FINE), np.linspace(*y, FINE)
    h = float(orbit.step[0])
    lines: list[Stroke] = []
    for form in forms:
        kept = Function(form, (H, *symbols(orbit.game.names)))
        values = np.asarray(kept((h, *np.meshgrid(xs, ys))), dtype=float)
        first = float(kept((h, *orbit.floats[0])))
        lines += [Stroke(line, "kept by every step", KEPT, 1.2) for line in _contours(xs, ys, values, first)]
    return lines


def _contours(xs: Floats, ys: Floats, values: Floats, level: float) -> list[Floats]:
    """The lines on which the values have this level; none next to a value that is not finite."""
    contours = contour_generator(
        xs, ys, np.ma.masked_invalid(values), corner_mask=False, line_type="Separate"
    )
    return [np.asarray(line) for line in contours.lines(level)]


@dataclass(frozen=True)
class Rest:
    """The equilibria at single points; `line` has the equations, each = 0, where they fill a line or more.

    Then the gradient is linear, and `points` has one of them.
    """

    points: tuple[Equilibrium, ...] = ()
    line: tuple[str, ...] = ()

    def nearest(self, orbit: Orbit) -> Equilibrium | None:
        """The equilibrium nearest to the orbit's start, of those that solve the game if any do."""
        good = [one for one in self.points if one.kind != "none"]
        return min(good or self.points, key=lambda one: math.dist(one.floats, orbit.floats[0]), default=None)

    def offsets(self, orbit: Orbit) -> Floats:
        """The way from the equilibrium nearest to the start to each place; square to a line of them.

        Of (p − q)², whose line is p = q, the place (1, 2) is (−1/2, 1/2) away from (3/2, 3/2).
        """
        feet = self.nearest(orbit)
        if self.line and feet is not None:
            field = orbit.game.field()
            back = np.linalg.pinv(np.array(field.hessian(feet.floats), dtype=float))
            return np.array([back @ field.all(place) for place in orbit.floats])
        return orbit.floats - (feet.floats if feet else 0.0)

    def places(self, orbits: Sequence[Orbit], axes: Sequence[int]) -> Places:
        """The equilibria on a plane, those that solve the game first; on a line, one for each orbit."""
        positions = [one.floats for one in sorted(self.points, key=lambda one: one.kind == "none")]
        if self.line and orbits:
            positions = [self.foot(orbit) for orbit in orbits]
        return [(place[axes[0]], place[axes[1]]) for place in positions]

    def foot(self, orbit: Orbit) -> list[float]:
        """The equilibrium's place for this orbit: on a line, the one nearest to the start."""
        return (orbit.floats[0] - self.offsets(orbit)[0]).tolist()


def rest_of(game: Game, at: Any = None, name: str = "at") -> Rest:
    """The equilibrium that is named, else those that are known; none where they cannot be found."""
    if at is not None:
        return Rest((confirmed(game, game.point(at, name)),))
    try:
        known = game.equilibria()
    except LattendError:
        return Rest()
    return Rest(known.points, known.curve if known.points else ())
