"""game: where both players go, step by step, by one method or by several."""

from __future__ import annotations

import math
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from lattend.errors import LattendError
from lattend.web.chart_lines import ChartLine, chart_line
from lattend.web.copies import call, command, python
from lattend.web.games import (
    Number,
    SteppedQuestion,
    View,
    command_options,
    ends,
    game_call,
    method,
    options,
    read,
)
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.reports import ReportView, view

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.games.game import Game
    from lattend.study.games.orbit import Orbit

MOST_STEPS = 400
FARTHEST = 1e6  # coordinates beyond it are not drawn
START_VIEW: View = (0.0, 0.0, 3.0)


class OrbitQuestion(SteppedQuestion):
    """Where both begin, a number for each name, 1 if left out; how many steps, and what the plane shows.

    A start may have letters in it, p0 and q0: the places are then formulas.
    """

    start: Annotated[list[Number], Field(max_length=8)] = Field(default_factory=list)
    steps: int = Field(default=12, ge=0, le=MOST_STEPS)
    view: View = START_VIEW


class Track(BaseModel):
    """One method's orbit: each player's first number after every step, and f there."""

    name: str
    label: str
    points: list[tuple[float, float]]
    values: list[float | None]
    period: int | None
    kept: list[ChartLine]  # the lines that the orbit cannot leave


class OrbitAnswer(Answer):
    """The orbits, and a report of the first in exact numbers where there are such.

    `tracks` is empty where places are formulas; `fit` is a view that holds the orbits while they are near.
    """

    title: str
    names: list[str]
    axes: tuple[int, int]  # which of the names the plane shows
    start: list[str]
    step_value: float
    tracks: list[Track]
    distances: list[ChartLine]
    report: ReportView
    fit: View


def answer(question: OrbitQuestion) -> OrbitAnswer:
    """Every place of every orbit; a period is proved by the exact return of the state."""
    game = read(question)
    exact = _orbits(question)
    drawn = [] if exact[0].letters else [_drawable(one, question.steps) for one in exact]
    return OrbitAnswer(
        title=str(game),
        names=list(game.names),
        axes=(0, len(game.minimise)),
        start=_start(question, game),
        step_value=_decimal(exact[0].step[0]),
        tracks=[_track(one, name, question.view) for one, name in zip(drawn, question.methods, strict=False)],
        distances=_distances(drawn),
        report=view(exact[0].report()),
        fit=_fit(drawn),
        copies=_copies(question, exact[0]),
    )


def _start(question: OrbitQuestion, game: Game) -> list[str]:
    given = [text.strip() or "1" for text in question.start]
    return (given + ["1"] * len(game.names))[: len(game.names)]


def _orbits(question: OrbitQuestion) -> list[Orbit]:
    game = read(question)
    start, step, steps = _start(question, game), question.pair, question.steps
    return [game.orbit(start, step, steps, method(question, name)) for name in question.methods]


def _drawable(orbit: Orbit, steps: int) -> Orbit:
    """The orbit, in floats where it ended because exact numbers got too long."""
    if not (orbit.exact and orbit.note):
        return orbit
    return orbit.game.orbit(orbit.points[0], orbit.step, steps, orbit.method, floats=True)


def _decimal(number: object) -> float:
    """The number as a float that JSON holds."""
    from lattend.study.exact.function import as_float

    return min(as_float(number), FARTHEST)


def _track(orbit: Orbit, name: str, shown: View) -> Track:
    from lattend.study.exact.function import as_float
    from lattend.study.games.phase import invariant_lines

    places = orbit.floats[:, [0, len(orbit.game.minimise)]].tolist()
    near = [(p, q) for p, q in takewhile(lambda place: max(map(abs, place)) <= FARTHEST, places)]
    values = [as_float(value) for value in orbit.values[: len(near)]]
    flat = len(orbit.game.names) == 2
    return Track(
        name=name,
        label=orbit.game.rule_text(orbit.method),
        points=near,
        values=[value if math.isfinite(value) else None for value in values],
        period=orbit.period,
        kept=[chart_line(one, shown[2]) for one in invariant_lines(orbit, *ends(shown))] if flat else [],
    )


def _distances(orbits: list[Orbit]) -> list[ChartLine]:
    """How far each orbit is from the equilibrium; none where no equilibrium is known."""
    from lattend.study.games.pictures import distances

    try:
        return [chart_line(one) for one in distances(*orbits).charts[0].lines] if orbits else []
    except LattendError:
        return []


def _fit(orbits: list[Orbit]) -> View:
    from lattend.study.games.phase import orbit_window

    if not orbits:
        return START_VIEW
    x, y = orbit_window(orbits)
    return (x[0] + x[1]) / 2, (y[0] + y[1]) / 2, (x[1] - x[0]) / 2


def _copies(question: OrbitQuestion, orbit: Orbit) -> Copies:
    step: Any = question.pair
    start = _start(question, orbit.game)
    orbits = [
        call("game.orbit", tuple(start), step, question.steps, name, **options(question, name))
        for name in question.methods
    ]
    shown, played = [orbits[0]], [question.methods[:1]]
    if len(orbits) > 1:
        shown.append(f"lt.study.games.compare_orbits({', '.join(orbits)})")
        played.append(question.methods)
    return Copies(
        python=python(game_call(question), *(f"print({one})" for one in shown)),
        command="\n".join(
            command(
                "game",
                question.game.strip(),
                step=question.step,
                start=",".join(start),
                steps=str(question.steps),
                **command_options(question, *names),
            )
            for names in played
        ),
        latex=_latex(orbit),
    )


def _latex(orbit: Orbit) -> str:
    """One step as formulas."""
    from lattend.report.latex import aligned
    from lattend.study.exact.writing import latex

    if orbit.map is None:
        return ""
    return aligned(*(f"{name}' &= {latex(formula)}" for name, formula in orbit.map.formulas.items()))


def picture(question: OrbitQuestion) -> Picture:
    """The phase portrait and the distances."""
    from lattend.study.games.pictures import compare_orbits

    found = _orbits(question)
    return found[0].draw() if len(found) == 1 else compare_orbits(*found)


PANEL = Panel("game", "A game, step by step", answer, picture)
