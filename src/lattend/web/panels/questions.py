"""questions: what course notes ask, with the answers and the pages that show them; ask finds some of them."""

from __future__ import annotations

from pydantic import BaseModel, Field

from lattend.web.panel import Panel, Question
from lattend.web.places import Place, place_of


class QuestionsQuestion(Question):
    """Nothing is asked: all questions come at once."""


class AskedCommand(BaseModel):
    """A command, what it prints, and the page that shows the same."""

    line: str
    printed: str
    place: Place | None


class AskedQuestion(BaseModel):
    """A question, what the notes answer, and what is so."""

    number: int
    topic: str
    asks: str
    notes: str
    commands: list[AskedCommand]
    python: str
    remark: str
    other_names: list[str]  # by which it is found too


class QuestionsAnswer(BaseModel):
    """All questions, by topic in the order of a course."""

    questions: list[AskedQuestion]


def answer(question: QuestionsQuestion) -> QuestionsAnswer:
    """The questions with their answers."""
    from lattend.ask.index import other_names
    from lattend.ask.question import questions

    return QuestionsAnswer(
        questions=[
            AskedQuestion(
                number=one.number,
                topic=one.topic,
                asks=one.asks,
                notes=one.notes,
                commands=[
                    AskedCommand(line=line, printed=printed, place=place_of(line))
                    for line, printed in one.commands
                ],
                python=one.python.strip(),
                remark=one.remark,
                other_names=other_names(one),
            )
            for one in questions()
        ]
    )


class AskQuestion(Question):
    """Words to find, as they are typed."""

    words: str = Field(max_length=400)


class AskAnswer(BaseModel):
    """The numbers of the questions that have all words, or most where `nearest`; words that may be meant."""

    numbers: list[int]
    nearest: bool
    close: list[str]


def find(question: AskQuestion) -> AskAnswer:
    """The questions that have these words, or other names for the same things."""
    from lattend.ask.index import close_words, nearest, search

    words = question.words.split()
    found = search(words)
    others = [] if found else nearest(words)
    return AskAnswer(
        numbers=[one.number for one in found or others],
        nearest=not found,
        close=[] if found else close_words(words),
    )


PANEL = Panel("questions", "The questions of course notes", answer)
ASK = Panel("ask", "Questions that have these words", find)
