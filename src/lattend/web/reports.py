"""A report of the library as the page shows it: facts, tables and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

if TYPE_CHECKING:
    from lattend.report.report import Report
    from lattend.report.table import Facts, Table


class Run(BaseModel):
    """Words, or a formula, which has LaTeX."""

    text: str
    latex: str = ""


Words = str | list[Run]
"""A text; where there are formulas in it, its runs one after another."""


class ReportPart(BaseModel):
    """A sentence, facts as rows of (name, words), or a table with its head; `right`: columns of numbers."""

    kind: Literal["text", "facts", "table"]
    text: Words = ""
    head: list[str] = []
    rows: list[list[Words]] = []
    right: list[bool] = []
    gap: bool = False  # whether something new begins with it


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
    parts: list[ReportPart] = []
    for before, part in zip(("x", *report.parts), report.parts, strict=False):
        if part:
            parts.append(part_view(part).model_copy(update={"gap": before == ""}))
    return ReportView(title=report.title, parts=parts)


def part_view(part: Table | Facts | str) -> ReportPart:
    """A sentence, facts or a table as typed data."""
    from lattend.report.table import Facts

    if isinstance(part, str):
        return ReportPart(kind="text", text=words(part))
    rows = [[words(cell) for cell in row] for row in part.rows]
    if isinstance(part, Facts):
        return ReportPart(kind="facts", rows=rows)
    return ReportPart(kind="table", head=list(part.head), rows=rows, right=part.numbers)


def words(text: str) -> Words:
    """A text with the LaTeX of its formulas, if it has some."""
    from lattend.report.maths import Maths, parts_of

    runs = [Run(text=part, latex=part.latex if isinstance(part, Maths) else "") for part in parts_of(text)]
    return runs if any(run.latex for run in runs) else text
