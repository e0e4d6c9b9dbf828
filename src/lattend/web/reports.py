"""A report of the library as the page shows it: facts, tables and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

if TYPE_CHECKING:
    from lattend.report.report import Report
    from lattend.report.table import Facts, Table


class ReportPart(BaseModel):
    """A sentence, facts as rows of (name, words), or a table with its head; `right`: columns of numbers."""

    kind: Literal["text", "facts", "table"]
    text: str = ""
    head: list[str] = []
    rows: list[list[str]] = []
    right: list[bool] = []


class ReportView(BaseModel):
    """A title and its parts."""

    title: str
    parts: list[ReportPart]


def view(report: Report) -> ReportView:
    """The same report as typed data.

    >>> from lattend.report.report import Report
    >>> view(Report("causal", ["36 pairs"])).parts[0].text
    '36 pairs'
    """
    return ReportView(title=report.title, parts=[part_view(part) for part in report.parts if part])


def part_view(part: Table | Facts | str) -> ReportPart:
    """A sentence, facts or a table as typed data."""
    from lattend.report.table import Facts

    if isinstance(part, str):
        return ReportPart(kind="text", text=part)
    rows = [list(row) for row in part.rows]
    if isinstance(part, Facts):
        return ReportPart(kind="facts", rows=rows)
    return ReportPart(kind="table", head=list(part.head), rows=rows, right=part.numbers)
