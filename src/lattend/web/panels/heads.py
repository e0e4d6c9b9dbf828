"""heads, heads_moment, heads_findings: attention heads while a network learns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from lattend.cli.heads import HeadsShowCommand
from lattend.errors import DomainError
from lattend.web.panel import Answer, AnswerPart, Panel, Question, Snippets
from lattend.web.snippets import call, command, python
from lattend.web.views import ChartLine, ReportPart, ReportView, chart_line, part_view, report_view

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.report.table import Table
    from lattend.study.heads.record import HeadMoment, HeadRun, Record


LONGEST_RECORD = 900_000  # characters of a record


class RecordQuestion(Question):
    """The text of record.json, as `lattend heads train` writes it; "" for the record of the package."""

    record: str = Field(default="", max_length=LONGEST_RECORD)


class MomentQuestion(RecordQuestion):
    """One moment of one of the runs: the first is 0, the last −1."""

    run: Literal["trained", "control"] = "trained"
    moment: int = Field(default=-1, ge=-1, le=1000)


def read_record(question: RecordQuestion) -> Record:
    """Read and check the record."""
    return _cached_record(question.record)


@lru_cache(maxsize=4)
def _cached_record(text: str) -> Record:
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
    return command(HeadsShowCommand, record="record.json" if question.record else "digits", **options)


class Moment(AnswerPart):
    """All heads after some epochs: the center (row, column) and the radius of each, by layer.

    Inside the radius lies half of the head's Gaussian.
    """

    epoch: float
    epoch_text: str
    centres: list[list[tuple[float, float]]]
    radii: list[list[float]]


class RunView(AnswerPart):
    """One network: its heads over time, and loss and share of right test images after every epoch."""

    name: str
    moments: list[Moment]
    epochs: list[int]
    loss: list[float]
    accuracy: list[float]


class HeadsAnswer(Answer):
    """The runs; a frame of `reach` positions to each side of the query holds all heads but the widest."""

    title: str
    reach: int
    kernel: int
    runs: list[RunView]


def answer_heads(question: RecordQuestion) -> HeadsAnswer:
    """All moments of the record."""
    from lattend.report.report import Report
    from lattend.study.heads.pictures import frame

    record = read_record(question)
    settings = record.settings
    title = (
        f"{settings.data[:80]}: {settings.layers} layers of {settings.kernel**2} heads, "
        f"{record.parameters:,} parameters, {settings.epochs} epochs"
    )
    return HeadsAnswer(
        title=title,
        reach=frame(record),
        kernel=settings.kernel,
        runs=[_run(name, run) for name, run in record.runs.items()],
        copies=Snippets(
            python=record_code(question, "print(record.draw_paths())"),
            command=record_command(question, view="paths"),
            latex=Report(title, [_epochs(record.runs)]).latex(),
        ),
    )


def _epochs(runs: Mapping[str, HeadRun]) -> Table:
    """Loss and share of right test images after every epoch."""
    from lattend.report.numbers import format_number
    from lattend.report.table import Table

    rows = [
        (name, str(one.epoch), format_number(one.loss), format_number(one.accuracy))
        for name, run in runs.items()
        for one in run.epochs
    ]
    return Table(("net", "epoch", "loss", "test accuracy"), rows)


def _run(name: str, run: HeadRun) -> RunView:
    from lattend.report.numbers import significant

    moments = [
        Moment.view_of(
            moment,
            epoch_text=significant(moment.epoch, 3),
            centres=moment.centres.tolist(),
            radii=moment.half_radii().round(4).tolist(),
        )
        for moment in run.moments
    ]
    return RunView(
        name=name,
        moments=moments,
        epochs=[one.epoch for one in run.epochs],
        loss=[one.loss for one in run.epochs],
        accuracy=[one.accuracy for one in run.epochs],
    )


def heads_picture(question: RecordQuestion) -> Picture:
    """The paths of the centres."""
    return read_record(question).draw_paths()


HEADS = Panel("heads", "Heads in training", answer_heads, heads_picture)


class MomentAnswer(Answer):
    """The epoch, and a table with a row for each layer."""

    title: str
    table: ReportPart


def answer_heads_moment(question: MomentQuestion) -> MomentAnswer:
    """How far the heads are from the query, how wide they are, and how near to a grid."""
    from lattend.report.report import Report
    from lattend.study.heads.findings import Measures
    from lattend.study.heads.pictures import moment_title

    record, moment = read_record(question), _moment(question)
    title, table = moment_title(record, moment, question.run), Measures.of(moment, record).table()
    return MomentAnswer(
        title=title,
        table=part_view(table),
        copies=Snippets(
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
    moments = read_record(question).run(question.run).moments
    if question.moment >= len(moments):
        raise DomainError(f"the run has {len(moments)} moments, numbered from 0, and no {question.moment}")
    return moments[question.moment]


def heads_moment_picture(question: MomentQuestion) -> Picture:
    """The heads around the query at this moment."""
    return read_record(question).draw(_moment(question).epoch, question.run)


HEADS_MOMENT = Panel("heads_moment", "Heads at one moment", answer_heads_moment, heads_moment_picture)


class Spread(AnswerPart):
    """A number of each layer over the epochs."""

    title: str
    unit: str
    lines: list[ChartLine]


class FindingsAnswer(Answer):
    """Three sentences first, then the curves, then the numbers as a report."""

    findings: list[str]
    spreads: list[Spread]
    report: ReportView


def answer_heads_findings(question: RecordQuestion) -> FindingsAnswer:
    """Whether low layers stay near the query, and whether heads come near the grid of a convolution."""
    record = read_record(question)
    report, numbers = record.report(), report_view(record.report())
    findings = list(report.data["findings"].values())
    charts = heads_findings_picture(question).charts
    return FindingsAnswer(
        findings=findings,
        spreads=[
            Spread(title=chart.title, unit=chart.up, lines=[chart_line(stroke) for stroke in chart.lines])
            for chart in charts
        ],
        report=numbers.model_copy(
            update={"parts": [part for part in numbers.parts if part.text not in findings]}
        ),
        copies=Snippets(
            python=record_code(question, "print(record.report().text())"),
            command=record_command(question),
            latex=report.latex(),
        ),
    )


def heads_findings_picture(question: RecordQuestion) -> Picture:
    """Distances and widths by layer over the epochs."""
    return read_record(question).draw_spread()


HEADS_FINDINGS = Panel("heads_findings", "What the heads did", answer_heads_findings, heads_findings_picture)
