"""game_steps, game_outcome: for which steps a method converges, and what it does at one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from lattend.cli.game import GameCommand
from lattend.errors import DeadlineError, LattendError, NoClosedForm, TooLarge
from lattend.web.panel import Answer, AnswerPart, Panel, Snippets
from lattend.web.panels.game import (
    MethodQuestion,
    SteppedQuestion,
    analysis_of,
    command_options,
    equilibrium_point,
    game_call,
    game_of,
    method_of,
    method_options,
)
from lattend.web.snippets import call, command, python, show, snippets
from lattend.web.views import ChartLine, ReportView, Words, chart_line, report_view, words

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.games.analysis import Analysis


class OutcomeQuestion(SteppedQuestion):
    """A game, its methods and their step, near the equilibrium `at`; "" for the only one."""

    at: str = Field(default="", max_length=200)


class Outcome(AnswerPart):
    """converges, settles, cycles, grows, diverges or undecided, and the words for it."""

    name: str
    label: str
    kind: str
    words: Words
    period: int | None


class OutcomeAnswer(Answer):
    """What happens for each method; `reach` says from which starts that holds."""

    outcomes: list[Outcome]
    reach: str


def answer_game_outcome(question: OutcomeQuestion) -> OutcomeAnswer:
    """The outcome of each method, decided exactly by the spectral radius of its step."""
    from lattend.report.report import Report
    from lattend.report.table import Facts

    game = game_of(question)
    pairs = [_outcome(question, name) for name in question.methods]
    outcomes = [one for one, _ in pairs]
    decided = [one.name for one in outcomes if one.kind != "undecided"]
    return OutcomeAnswer(
        outcomes=outcomes,
        reach="from every start: the gradient is linear" if game.quadratic else "close to the equilibrium",
        copies=Snippets(
            python=python(game_call(question), *(_outcome_python(question, name) for name in decided))
            if decided
            else "",
            command="\n".join(_outcome_command(question, name) for name in decided),
            latex=Report(str(game), [Facts([(one.label, words) for one, words in pairs])]).latex(),
        ),
    )


def _outcome_python(question: OutcomeQuestion, name: str) -> str:
    """The line of Python that prints the outcome of a method."""
    options = {"step": question.pair, "at": equilibrium_point(question.at), **method_options(question, name)}
    return f"print({call('game.analyse', name, **options)}.here)"


def _outcome_command(question: OutcomeQuestion, name: str) -> str:
    return command(
        GameCommand,
        game=question.game.strip(),
        at=question.at.strip(),
        step=question.step,
        **command_options(question, name),
    )


def _outcome(question: OutcomeQuestion, name: str) -> tuple[Outcome, str]:
    """The outcome of a method, and its sentence."""
    from lattend.study.games.reports import outcome_words

    label, step = game_of(question).rule_text(method_of(question, name)), question.pair
    try:
        if isinstance(step, str):
            at_step = analysis_of(question, name, question.at).at(step)
        else:
            at_step = analysis_of(question, name, question.at, step).at(step[0])
    except DeadlineError:
        raise
    except (NoClosedForm, TooLarge) as error:  # of this method; the others may be simpler
        sentence = error.reason
        return Outcome(name=name, label=label, kind="undecided", words=sentence, period=None), sentence
    sentence = outcome_words(at_step)
    return Outcome(
        name=name, label=label, kind=at_step.kind, words=words(sentence), period=at_step.period
    ), sentence


GAME_OUTCOME = Panel("game_outcome", "What a method does at a step", answer_game_outcome)


PERIODS = (3, 4, 5, 6, 7, 8, 9, 10, 12)  # those of 11 lie in a field too large for exact orbits


class StepsQuestion(MethodQuestion):
    """A game, a method, and the equilibrium that is looked at, as 0,0; "" for the only one."""

    at: str = Field(default="", max_length=200)


class Period(AnswerPart):
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


def answer_game_steps(question: StepsQuestion) -> StepsAnswer:
    """The analysis near an equilibrium, or a report of all equilibria where one must be chosen."""
    game = game_of(question)
    options = {"at": equilibrium_point(question.at), **method_options(question, question.method)}
    copies = snippets(
        game_call(question),
        show("game.analyse", question.method, **options),
        command=command(
            GameCommand,
            game=question.game.strip(),
            at=question.at.strip(),
            **command_options(question, question.method),
        ),
    )
    points = [", ".join(one.json()["point"]) for one in game.equilibria() if one.exact]
    try:
        analysis = analysis_of(question, question.method, question.at)
    except LattendError as error:
        if question.at.strip() or isinstance(error, DeadlineError):
            raise
        report = report_view(game.equilibria().report())
        return StepsAnswer(
            report=report.model_copy(update={"title": error.reason}),
            factors=[],
            best="",
            periods=[],
            points=points if len(points) > 1 else [],
            copies=copies,
        )
    return StepsAnswer(
        report=report_view(analysis.report()),
        factors=[chart_line(stroke) for chart in analysis.draw().charts for stroke in chart.lines],
        best=_typed_step(analysis.best.step) if analysis.best else "",
        periods=_periods(analysis),
        points=points if len(points) > 1 else [],
        copies=copies.model_copy(update={"latex": analysis.report().latex()}),
    )


def _periods(analysis: Analysis) -> list[Period]:
    """The smallest step of each period that can be typed; none where no step cycles."""
    if not any(one.behaviour and one.behaviour.kind == "cycles" for one in analysis.ranges):
        return []
    try:
        steps = [(period, map(_typed_step, analysis.steps_of_period(period))) for period in PERIODS]
    except LattendError:
        return []
    typed = [(period, next(filter(None, several), "")) for period, several in steps]
    return [Period(period=period, step=step) for period, step in typed if step]


def _typed_step(step: object) -> str:
    """The step as it can be typed; "" where it has no formula of that kind."""
    from lattend.study.exact.numbers import exact
    from lattend.study.exact.writing import format_exact

    text = format_exact(step)
    try:
        return text if len(text) <= 60 and exact(text) == step else ""
    except LattendError:
        return ""


def game_steps_picture(question: StepsQuestion) -> Picture:
    """The factor a step against the step, with what is proved."""
    return analysis_of(question, question.method, question.at).draw()


GAME_STEPS = Panel("game_steps", "For which steps a method converges", answer_game_steps, game_steps_picture)
