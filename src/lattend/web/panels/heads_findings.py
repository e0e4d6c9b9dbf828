"""heads_findings: what a record says, in words, tables and curves over the epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from lattend.web.chart_lines import ChartLine, chart_line
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.records import RecordQuestion, read, record_code, record_command
from lattend.web.reports import ReportView, view

if TYPE_CHECKING:
    from lattend.draw import Picture


class Spread(BaseModel):
    """A number of each layer over the epochs."""

    title: str
    unit: str
    lines: list[ChartLine]


class FindingsAnswer(Answer):
    """Three sentences first, then the curves, then the numbers as a report."""

    findings: list[str]
    spreads: list[Spread]
    report: ReportView


def answer(question: RecordQuestion) -> FindingsAnswer:
    """Whether low layers stay near the query, and whether heads come near the grid of a convolution."""
    record = read(question)
    report, numbers = record.report(), view(record.report())
    findings = list(report.data["findings"].values())
    charts = picture(question).charts
    return FindingsAnswer(
        findings=findings,
        spreads=[
            Spread(title=chart.title, unit=chart.up, lines=[chart_line(stroke) for stroke in chart.lines])
            for chart in charts
        ],
        report=numbers.model_copy(
            update={"parts": [part for part in numbers.parts if part.text not in findings]}
        ),
        copies=Copies(
            python=record_code(question, "print(record.report().text())"),
            command=record_command(question),
            latex=report.latex(),
        ),
    )


def picture(question: RecordQuestion) -> Picture:
    """Distances and widths by layer over the epochs."""
    return read(question).draw_spread()


PANEL = Panel("heads_findings", "What the heads did", answer, picture)
