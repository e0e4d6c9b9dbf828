"""game_outcome: what each method does at this step, in words, and what of it is proved."""

from __future__ import annotations

from pydantic import BaseModel, Field

from lattend.errors import DeadlineError, NoClosedForm, TooLarge
from lattend.web.copies import call, command, python
from lattend.web.games import (
    SteppedQuestion,
    analysis,
    at_words,
    command_options,
    game_call,
    method,
    options,
    place,
    read,
)
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.reports import Words, words


class OutcomeQuestion(SteppedQuestion):
    """A game, its methods and their step, near the equilibrium `at`; "" for the only one."""

    at: str = Field(default="", max_length=200)


class Outcome(BaseModel):
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


def answer(question: OutcomeQuestion) -> OutcomeAnswer:
    """The spectral radius of one step's matrix decides, exactly."""
    from lattend.report.report import Report
    from lattend.report.table import Facts

    game = read(question)
    found = [_outcome(question, name) for name in question.methods]
    outcomes = [one for one, _ in found]
    decided = [one.name for one in outcomes if one.kind != "undecided"]
    return OutcomeAnswer(
        outcomes=outcomes,
        reach="from every start: the gradient is linear" if game.quadratic else "close to the equilibrium",
        copies=Copies(
            python=python(game_call(question), *(_line(question, name) for name in decided))
            if decided
            else "",
            command="\n".join(_command(question, name) for name in decided),
            latex=Report(str(game), [Facts([(one.label, said) for one, said in found])]).latex(),
        ),
    )


def _line(question: OutcomeQuestion, name: str) -> str:
    """What prints the outcome of a method."""
    given = {"step": question.pair, "at": place(question.at), **options(question, name)}
    return f"print({call('game.analyse', name, **given)}.here)"


def _command(question: OutcomeQuestion, name: str) -> str:
    return command(
        "game",
        question.game.strip(),
        *at_words(question.at),
        step=question.step,
        **command_options(question, name),
    )


def _outcome(question: OutcomeQuestion, name: str) -> tuple[Outcome, str]:
    """What happens, and the words for it."""
    from lattend.study.games.reports import outcome_words

    label, step = read(question).rule_text(method(question, name)), question.pair
    try:
        if isinstance(step, str):
            here = analysis(question, name, question.at).at(step)
        else:
            here = analysis(question, name, question.at, step).at(step[0])
    except DeadlineError:
        raise
    except (NoClosedForm, TooLarge) as error:  # of this method; the others may be simpler
        said = error.reason
        return Outcome(name=name, label=label, kind="undecided", words=said, period=None), said
    said = outcome_words(here)
    return Outcome(name=name, label=label, kind=here.kind, words=words(said), period=here.period), said


PANEL = Panel("game_outcome", "What a method does at a step", answer)
