"""game, game_field: the orbits of a game, and the field of its gradients."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lattend.cli.game import GameCommand
from lattend.errors import LattendError, NamingError
from lattend.web.panel import Answer, AnswerPart, Panel, Question, Snippets
from lattend.web.snippets import call, command, snippets
from lattend.web.views import ChartLine, ReportView, chart_line, report_view

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.games.analysis import Analysis
    from lattend.study.games.game import Game
    from lattend.study.games.methods import Method
    from lattend.study.games.orbit import Orbit


Number = Annotated[str, Field(max_length=120)]
"""A number as people type it: 1/2, 0.3, sqrt(2)."""
Half = Annotated[float, Field(gt=1e-6, le=1e6)]
Middle = Annotated[float, Field(ge=-1e6, le=1e6)]
View = tuple[Middle, Middle, Half]
"""The middle of the plane that is shown, and half of its side."""
CACHED_GAMES = 32  # games and analyses that a worker remembers


class GameQuestion(Question):
    """A formula, or dirac with its loss; `minimise` names who makes it small, where that must be said."""

    game: str = Field(max_length=400)
    minimise: str = Field(default="", max_length=100)
    loss: Literal["logistic", "linear"] = "logistic"


class MethodQuestion(GameQuestion):
    """A game and how both players step; `first`, `mass` and `weight` go to the methods that take them."""

    method: str = Field(default="alternating", max_length=40)
    first: Literal["", "p", "q"] = ""
    mass: Number = ""
    weight: Number = ""


class SteppedQuestion(MethodQuestion):
    """A method and others beside it, and the step of both players: a number, or two with a comma."""

    also: Annotated[list[str], Field(max_length=7)] = Field(default_factory=list)
    step: Number = "1"

    @property
    def methods(self) -> list[str]:
        """All methods, each once."""
        return list(dict.fromkeys((self.method, *self.also)))

    @property
    def pair(self) -> str | tuple[str, ...]:
        """The step as an argument of a game's methods."""
        parts = tuple(part.strip() for part in self.step.split(","))
        return parts[0] if len(parts) == 1 else parts


def view_ranges(view: View) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ranges of p and q in a view."""
    across, up, half = view
    return (across - half, across + half), (up - half, up + half)


def game_of(question: GameQuestion) -> Game:
    """The game of a question. It is kept with its results while the question stays the same."""
    return _cached_game(question.game, question.minimise, question.loss)


@lru_cache(maxsize=CACHED_GAMES)
def _cached_game(text: str, minimise: str, loss: str) -> Game:
    from lattend.study.games.game import RING, read_game

    if text.strip() == RING:
        raise NamingError("ring trains two nets, which takes a while: `lattend game ring` in a terminal")
    return read_game(text, minimise.strip() or None, None, loss)


def method_of(question: MethodQuestion, name: str) -> Method:
    """The method of this name with the options that it takes."""
    return game_of(question).method(name, **method_options(question, name))


def method_options(question: MethodQuestion, name: str) -> dict[str, str]:
    """The question's options that this method takes."""
    from lattend.study.games.methods import options_of

    texts = {"first": question.first, "mass": question.mass.strip(), "weight": question.weight.strip()}
    return {key: texts[key] for key in options_of(name) if texts[key]}


def analysis_of(
    question: MethodQuestion, name: str, at: str = "", steps: tuple[str, ...] | None = None
) -> Analysis:
    """The analysis of a method near an equilibrium, for all steps at once.

    `steps` are those of both players where they differ: the analysis is then for all steps of their ratio.
    """
    return _cached_analysis(game_of(question), method_of(question, name), steps, equilibrium_point(at))


def equilibrium_point(at: str) -> tuple[str, ...] | None:
    """Read an equilibrium such as `0, 1/2`; None for the only one."""
    return tuple(part.strip() for part in at.split(",")) if at.strip() else None


@lru_cache(maxsize=CACHED_GAMES)
def _cached_analysis(
    game: Game, rule: Method, steps: tuple[str, ...] | None, at: tuple[str, ...] | None
) -> Analysis:
    return game.analyse(rule, steps, at)


def game_call(question: GameQuestion) -> str:
    """The game as a line of Python."""
    if question.game.strip() == "dirac":
        return call("game = lt.study.games.dirac", question.loss)
    return call("game = lt.study.games.Game", question.game, minimise=question.minimise.strip())


def command_options(question: MethodQuestion, *names: str) -> dict[str, Any]:
    """The options of `lattend game` for these methods."""
    flags: dict[str, Any] = {"method": ",".join(names)}
    for name in names:
        flags |= method_options(question, name)
    return flags | game_options(question)


def game_options(question: GameQuestion) -> dict[str, Any]:
    """The options of `lattend game` that belong to the game itself."""
    if question.game.strip() == "dirac":
        return {"loss": question.loss}
    return {"minimise": ",".join(question.minimise.replace(",", " ").split())}


MOST_STEPS = 400
FARTHEST = 1e6  # coordinates beyond it are not drawn
START_VIEW: View = (0.0, 0.0, 3.0)


class OrbitQuestion(SteppedQuestion):
    """The start, a number for each name (1 if left out), the number of steps, and the view of the plane.

    A start may have letters in it, p0 and q0: the places are then formulas.
    """

    start: Annotated[list[Number], Field(max_length=8)] = Field(default_factory=list)
    steps: int = Field(default=12, ge=0, le=MOST_STEPS)
    view: View = START_VIEW


class Track(AnswerPart):
    """The orbit of one method: each player's first number after every step, and f there."""

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


def answer_game(question: OrbitQuestion) -> OrbitAnswer:
    """Every point of every orbit. The exact return of the state proves a period."""
    game = game_of(question)
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
        report=report_view(exact[0].report()),
        fit=_fit(drawn),
        copies=_copies(question, exact[0]),
    )


def _start(question: OrbitQuestion, game: Game) -> list[str]:
    numbers = [text.strip() or "1" for text in question.start]
    return (numbers + ["1"] * len(game.names))[: len(game.names)]


def _orbits(question: OrbitQuestion) -> list[Orbit]:
    game = game_of(question)
    start, step, steps = _start(question, game), question.pair, question.steps
    return [game.orbit(start, step, steps, method_of(question, name)) for name in question.methods]


def _drawable(orbit: Orbit, steps: int) -> Orbit:
    """The orbit; in floats if exact numbers became too long."""
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

    points = orbit.floats[:, [0, len(orbit.game.minimise)]].tolist()
    near = [(p, q) for p, q in takewhile(lambda point: max(map(abs, point)) <= FARTHEST, points)]
    values = [as_float(value) for value in orbit.values[: len(near)]]
    flat = len(orbit.game.names) == 2
    return Track(
        name=name,
        label=orbit.game.rule_text(orbit.method),
        points=near,
        values=[value if math.isfinite(value) else None for value in values],
        period=orbit.period,
        kept=[chart_line(one, shown[2]) for one in invariant_lines(orbit, *view_ranges(shown))]
        if flat
        else [],
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


def _copies(question: OrbitQuestion, orbit: Orbit) -> Snippets:
    step: Any = question.pair
    start = _start(question, orbit.game)
    orbits = [
        call("game.orbit", tuple(start), step, question.steps, name, **method_options(question, name))
        for name in question.methods
    ]
    shown, played = [orbits[0]], [question.methods[:1]]
    if len(orbits) > 1:
        shown.append(f"lt.study.games.compare_orbits({', '.join(orbits)})")
        played.append(question.methods)
    return snippets(
        game_call(question),
        *(f"print({one})" for one in shown),
        command="\n".join(
            command(
                GameCommand,
                game=question.game.strip(),
                step=question.step,
                start=start,
                steps=question.steps,
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


def game_picture(question: OrbitQuestion) -> Picture:
    """The phase portrait and the distances."""
    from lattend.study.games.pictures import compare_orbits

    orbits = _orbits(question)
    return orbits[0].draw() if len(orbits) == 1 else compare_orbits(*orbits)


GAME = Panel("game", "A game, step by step", answer_game, game_picture)


class GameFieldQuestion(GameQuestion):
    """A game, and the part of the plane that is shown."""

    view: View = (0.0, 0.0, 3.0)


class Rest(AnswerPart):
    """A point where both gradients are 0, and whether it is an equilibrium."""

    place: tuple[float, float]
    text: str
    solves: bool


class GameFieldAnswer(Answer):
    """The plane without orbits; `arrows` are (x, y, x, y) from tail to tip."""

    arrows: list[tuple[float, float, float, float]]
    levels: list[ChartLine]
    rests: list[Rest]
    summary: str


def answer_game_field(question: GameFieldQuestion) -> GameFieldAnswer:
    """The field and the lines of equal f, as the library draws them, and all equilibria that are known."""
    from lattend.study.games.equilibria import where
    from lattend.study.games.phase import phase_plane, rest_of

    game = game_of(question)
    equilibria = game.equilibria()
    rest = rest_of(game)
    chart, notes = phase_plane(game, (), (), rest, *view_ranges(question.view))
    axes = (0, len(game.minimise))
    return GameFieldAnswer(
        arrows=[(tail[0], tail[1], tip[0], tip[1]) for arrows in chart.arrows for tail, tip in arrows.pairs],
        levels=[chart_line(stroke, question.view[2]) for stroke in chart.lines],
        rests=[
            Rest(
                place=(one.floats[axes[0]], one.floats[axes[1]]),
                text=f"{where(game, one.point)}: {one}",
                solves=one.kind != "none",
            )
            for one in rest.points
        ],
        summary="; ".join((equilibria.summary(), *notes)),
        copies=snippets(
            game_call(question),
            "print(game.equilibria())",
            command=command(GameCommand, game=question.game.strip(), **game_options(question), field=True),
            latex=equilibria.report().latex(),
        ),
    )


def game_field_picture(question: GameFieldQuestion) -> Picture:
    """The phase portrait with all equilibria."""
    return game_of(question).equilibria().draw()


GAME_FIELD = Panel("game_field", "The field of a game", answer_game_field, game_field_picture)
