"""Figures: charts beside what a report says."""

from __future__ import annotations

from lattend.draw.charts.chart import Chart
from lattend.draw.picture import Picture
from lattend.report.report import Report
from lattend.report.table import Facts, Table


def figure(report: Report, charts: tuple[Chart, ...] = (), caption: tuple[str, ...] = ()) -> Picture:
    """The report's title, sentences, facts and table as a picture with these charts."""
    sentences = tuple(part for part in report.parts if isinstance(part, str))
    facts = tuple(row for part in report.parts if isinstance(part, Facts) for row in part.rows)
    table = next(((part.head, *part.rows) for part in report.parts if isinstance(part, Table)), ())
    return Picture(
        report.title, (), caption, sentences, facts=facts, table=table, charts=charts, data=report.data
    )
