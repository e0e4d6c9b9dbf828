"""start, questions, ask: the menus of the page."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

from pydantic import Field

from lattend import __version__
from lattend.web.page_links import PageLink, page_link
from lattend.web.panel import AnswerPart, Panel, Question


class CatalogueRule(AnswerPart):
    """A rule that has a name."""

    name: str
    meaning: str
    text: str
    parameters: list[str]
    aliases: list[str]


class Example(AnswerPart):
    """A page and what is filled in there."""

    title: str
    page: str
    state: dict[str, Any]


class StartAnswer(AnswerPart):
    """The page's menus."""

    version: str
    catalogue: list[CatalogueRule]
    examples: list[Example]


@lru_cache(maxsize=1)
def examples() -> list[Example]:
    """The examples of examples.toml, the first of which answers on a first visit."""
    import tomllib

    text = files("lattend.web").joinpath("examples.toml").read_text(encoding="utf-8")
    return [Example.model_validate(example) for example in tomllib.loads(text)["example"]]


def answer_start(question: Question) -> StartAnswer:
    """The catalogue of rules, and the examples."""
    from lattend.draw.grid.samples import catalogue

    rules = [
        CatalogueRule(
            name=name,
            meaning=rule.about.meaning if rule.about else "",
            text=rule.text,
            parameters=[*rule.parameters],
            aliases=[*rule.about.alias_names] if rule.about else [],
        )
        for name, rule in catalogue().items()
    ]
    return StartAnswer(version=__version__, catalogue=rules, examples=examples())


START = Panel("start", "The page's menus", answer_start, first=True)


class AskedCommand(AnswerPart):
    """A command, what it prints, and the page that shows the same."""

    line: str
    printed: str
    place: PageLink | None


class AskedQuestion(AnswerPart):
    """A question, the answer of course notes, and the true answer."""

    number: int
    topic: str
    asks: str
    notes: str
    commands: list[AskedCommand]
    python: str
    remark: str
    other_names: list[str]  # by which it is found too


class QuestionsAnswer(AnswerPart):
    """All questions, by topic in the order of a course."""

    questions: list[AskedQuestion]


def answer_questions(question: Question) -> QuestionsAnswer:
    """The questions with their answers."""
    from lattend.ask.question import other_names, questions

    return QuestionsAnswer(
        questions=[
            AskedQuestion.view_of(
                one,
                commands=[
                    AskedCommand(line=line, printed=printed, place=page_link(line))
                    for line, printed in one.commands
                ],
                python=one.python.strip(),
                other_names=other_names(one),
            )
            for one in questions()
        ]
    )


class AskQuestion(Question):
    """Words to find, as they are typed."""

    words: str = Field(max_length=400)


class AskAnswer(AnswerPart):
    """The numbers of the questions that have all words, or most where `nearest`; words that may be meant."""

    numbers: list[int]
    nearest: bool
    close: list[str]


def answer_ask(question: AskQuestion) -> AskAnswer:
    """The questions that have these words, or other names for the same things."""
    from lattend.ask.question import close_words, nearest, search

    words = question.words.split()
    matches = search(words)
    others = [] if matches else nearest(words)
    return AskAnswer(
        numbers=[one.number for one in matches or others],
        nearest=not matches,
        close=[] if matches else close_words(words),
    )


QUESTIONS = Panel("questions", "The questions of course notes", answer_questions)
ASK = Panel("ask", "Questions that have these words", answer_ask)
