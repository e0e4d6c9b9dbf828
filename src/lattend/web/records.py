"""The record of heads in training that a question is about."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from lattend.web.copies import call, command, python
from lattend.web.panel import Question

if TYPE_CHECKING:
    from lattend.study.heads.record import Record

LONGEST = 900_000  # characters of a record


class RecordQuestion(Question):
    """The text of record.json, as `lattend heads train` writes it; "" for the record of the package."""

    record: str = Field(default="", max_length=LONGEST)


class MomentQuestion(RecordQuestion):
    """One moment of one of the runs: the first is 0, the last −1."""

    run: Literal["trained", "control"] = "trained"
    moment: int = Field(default=-1, ge=-1, le=1000)


def read(question: RecordQuestion) -> Record:
    """The record, checked."""
    return _read(question.record)


@lru_cache(maxsize=4)
def _read(text: str) -> Record:
    from lattend.study.heads.record import Record, digits_record

    return Record.of(text) if text else digits_record()


def record_code(question: RecordQuestion, *lines: str, imports: str = "") -> str:
    """Lines of Python that begin with the record."""
    if question.record:
        return python(call("record = lt.study.heads.Record.read", "record.json"), *lines, imports=imports)
    start = "from lattend.study.heads.record import digits_record"
    return "\n".join((*([imports] if imports else []), start, "", "record = digits_record()", *lines))


def record_command(question: RecordQuestion, **options: str) -> str:
    """The command that shows the record."""
    return command("heads", "show", "record.json" if question.record else "digits", at=None, **options)
