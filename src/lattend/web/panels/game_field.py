"""game_field: where the gradients pull, lines of equal f, and the equilibria."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from lattend.web.chart_lines import ChartLine, chart_line
from lattend.web.copies import command, python
from lattend.web.games import GameQuestion, View, ends, game_call, game_options, read
from lattend.web.panel import Answer, Copies, Panel

if TYPE_CHECKING:
    from lattend.draw import Picture


class GameFieldQuestion(GameQuestion):
    """A game, and the part of the plane that is shown."""

    view: View = (0.0, 0.0, 3.0)


class Rest(BaseModel):
    """A place where both gradients are 0, and what it is to the players."""

    place: tuple[float, float]
    text: str
    solves: bool


class GameFieldAnswer(Answer):
    """The plane without orbits; `arrows` are (x, y, x, y) from tail to tip."""

    arrows: list[tuple[float, float, float, float]]
    levels: list[ChartLine]
    rests: list[Rest]
    summary: str


def answer(question: GameFieldQuestion) -> GameFieldAnswer:
    """The field and the lines of equal f, as the library draws them, and all equilibria that are known."""
    from lattend.study.games.equilibria import where
    from lattend.study.games.phase import phase_plane, rest_of

    game = read(question)
    found = game.equilibria()
    rest = rest_of(game)
    chart, notes = phase_plane(game, (), (), rest, *ends(question.view))
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
        summary="; ".join((found.summary(), *notes)),
        copies=Copies(
            python=python(game_call(question), "print(game.equilibria())"),
            command=command("game", question.game.strip(), **game_options(question), field=True),
            latex=found.report().latex(),
        ),
    )


def picture(question: GameFieldQuestion) -> Picture:
    """The phase portrait with all equilibria."""
    return read(question).equilibria().draw()


PANEL = Panel("game_field", "The field of a game", answer, picture)
