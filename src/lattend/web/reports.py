"""A report of the library as the page shows it: facts, tables and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

if TYPE_CHECKING:
    from lattend.report.report import Report


class Part(BaseModel):
    """A sentence, facts as rows of (name, words), or a table with its head; `right`: columns of numbers."""

    kind: Literal["text", "facts", "table"]
    text: str = ""
    head: list[str] = []
    rows: list[list[str]] = []
    right: list[bool] = []


class ReportView(BaseModel):
    """A title and its parts."""

    title: str
    parts: list[Part]


def view(report: Report) -> ReportView:
    """The same report as typed data.

    >>> from lattend.report.report import Report
    >>> view(Report("causal", ["36 pairs"])).parts[0].text
    '36 pairs'
    """
    from lattend.report.table import Facts

    parts: list[Part] = []
    for part in report.parts:
        if isinstance(part, str):
            parts += [Part(kind="text", text=part)] if part else []
        elif isinstance(part, Facts):
            parts.append(Part(kind="facts", rows=[list(row) for row in part.rows]))
        else:
            rows = [list(row) for row in part.rows]
            parts.append(Part(kind="table", head=list(part.head), rows=rows, right=part.numbers))
    return ReportView(title=report.title, parts=parts)
