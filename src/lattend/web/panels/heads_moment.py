"""heads_moment: the heads of every layer at one moment, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.errors import DomainError
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.records import MomentQuestion, read, record_code, record_command
from lattend.web.reports import ReportPart, part_view

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.heads.record import HeadMoment


class MomentAnswer(Answer):
    """When it is, and a table with a row for each layer."""

    title: str
    table: ReportPart


def answer(question: MomentQuestion) -> MomentAnswer:
    """How far the heads are from the query, how wide they are, and how near to a grid."""
    from lattend.report.report import Report
    from lattend.study.heads.findings import Measures
    from lattend.study.heads.pictures import moment_title

    record, moment = read(question), _moment(question)
    title, table = moment_title(record, moment, question.run), Measures.of(moment, record).table()
    return MomentAnswer(
        title=title,
        table=part_view(table),
        copies=Copies(
            python=record_code(
                question,
                f"moment = record.run({question.run!r}).at({moment.epoch!r})",
                'print("\\n".join(Measures.of(moment, record).table().lines()))',
                imports="from lattend.study.heads.findings import Measures",
            ),
            command=record_command(question, at_epoch=f"{moment.epoch:g}", run=question.run),
            latex=Report(title, [table]).latex(),
        ),
    )


def _moment(question: MomentQuestion) -> HeadMoment:
    moments = read(question).run(question.run).moments
    if question.moment >= len(moments):
        raise DomainError(f"the run has {len(moments)} moments, numbered from 0, and no {question.moment}")
    return moments[question.moment]


def picture(question: MomentQuestion) -> Picture:
    """The heads around the query at this moment."""
    return read(question).draw(_moment(question).epoch, question.run)


PANEL = Panel("heads_moment", "Heads at one moment", answer, picture)
