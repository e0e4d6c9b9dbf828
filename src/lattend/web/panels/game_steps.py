"""game_steps: for which steps a method converges, cycles or diverges, and what happens at this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from lattend.errors import DeadlineError, LattendError
from lattend.web.chart_lines import ChartLine, chart_line
from lattend.web.copies import command, python, show
from lattend.web.games import (
    MethodQuestion,
    analysis,
    at_words,
    command_options,
    game_call,
    options,
    place,
    read,
)
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.reports import ReportView, view

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.games.analysis import Analysis

PERIODS = (3, 4, 5, 6, 7, 8, 9, 10, 12)  # those of 11 lie in a field too large for exact orbits


class StepsQuestion(MethodQuestion):
    """A game, a method, and the equilibrium that is looked at, as 0,0; "" for the only one."""

    at: str = Field(default="", max_length=200)


class Period(BaseModel):
    """A step at which every start comes back after so many steps."""

    period: int
    step: str


class StepsAnswer(Answer):
    """What is proved of all steps h at once: ranges, eigenvalues, the best step, and steps with a period.

    `points` are the equilibria to choose from where there are several.
    """

    report: ReportView
    factors: list[ChartLine]
    best: str
    periods: list[Period]
    points: list[str]


def answer(question: StepsQuestion) -> StepsAnswer:
    """The analysis near an equilibrium; where several are known and none was chosen, their report."""
    game = read(question)
    given = {"at": place(question.at), **options(question, question.method)}
    copies = Copies(
        python=python(game_call(question), show("game.analyse", question.method, **given)),
        command=command(
            "game",
            question.game.strip(),
            *at_words(question.at),
            **command_options(question, question.method),
        ),
    )
    points = [", ".join(one.json()["point"]) for one in game.equilibria() if one.exact]
    try:
        found = analysis(question, question.method, question.at)
    except LattendError as error:
        if question.at.strip() or isinstance(error, DeadlineError):
            raise
        report = view(game.equilibria().report())
        return StepsAnswer(
            report=report.model_copy(update={"title": error.reason}),
            factors=[],
            best="",
            periods=[],
            points=points if len(points) > 1 else [],
            copies=copies,
        )
    return StepsAnswer(
        report=view(found.report()),
        factors=[chart_line(stroke) for chart in found.draw().charts for stroke in chart.lines],
        best=_typed(found.best.step) if found.best else "",
        periods=_periods(found),
        points=points if len(points) > 1 else [],
        copies=copies.model_copy(update={"latex": found.report().latex()}),
    )


def _periods(found: Analysis) -> list[Period]:
    """Of each period the smallest step that can be typed; there is none where no step cycles."""
    if not any(one.behaviour and one.behaviour.kind == "cycles" for one in found.ranges):
        return []
    try:
        steps = [(period, map(_typed, found.steps_of_period(period))) for period in PERIODS]
    except LattendError:
        return []
    typed = [(period, next(filter(None, several), "")) for period, several in steps]
    return [Period(period=period, step=step) for period, step in typed if step]


def _typed(step: object) -> str:
    """The step as it can be typed; "" where it has no formula of that kind."""
    from lattend.study.exact.numbers import exact
    from lattend.study.exact.writing import format_exact

    said = format_exact(step)
    try:
        return said if len(said) <= 60 and exact(said) == step else ""
    except LattendError:
        return ""


def picture(question: StepsQuestion) -> Picture:
    """The factor a step against the step, with what is proved."""
    return analysis(question, question.method, question.at).draw()


PANEL = Panel("game_steps", "For which steps a method converges", answer, picture)
