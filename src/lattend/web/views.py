"""Formulas, reports and lines of charts as the page shows them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from lattend.recent import Recent

if TYPE_CHECKING:
    from lattend.counts import Count
    from lattend.draw.charts.chart import Stroke
    from lattend.report.report import Report
    from lattend.report.table import Facts, Table


class Piece(BaseModel):
    """A formula and the places where it holds, "" for everywhere else."""

    latex: str
    when: str


class Formula(BaseModel):
    """One or more pieces, and all of it as text and as LaTeX.

    `head` says what the pieces are where they are those of one axis of an image, `where` what their short
    names stand for, and `more` how many pieces are not there.
    """

    head: str = ""
    pieces: list[Piece]
    where: str
    more: str = ""
    text: str
    latex: str


KNOWN_FORMULAS: Recent[object, tuple[object, Formula]] = Recent(
    512
)  # by what is counted, which is kept alive


def formula(count: Count | int) -> Formula:
    """The closed form of a count; a number is its own formula."""
    if isinstance(count, int):
        return Formula(
            pieces=[Piece(latex=f"{count:,}".replace(",", "{,}"), when="")],
            where="",
            text=f"{count:,}",
            latex=str(count),
        )
    names = (*count.rule.sizes, *count.rule.parameters)
    key = (id(count.closed), names, count.fixed, tuple(count.values.items()))
    return KNOWN_FORMULAS.find(key, lambda: (count.closed, _typeset(count)))[1]


def _typeset(count: Count) -> Formula:
    lines = count.typeset()
    return Formula(
        head=lines.head,
        pieces=[Piece(latex=line.formula, when=line.when) for line in lines.lines],
        where=lines.where,
        more=lines.more,
        text=lines.text,
        latex=lines.latex,
    )


class Run(BaseModel):
    """A part of a text: words, or a formula with its LaTeX."""

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


def report_view(report: Report) -> ReportView:
    """The report as typed data.

    >>> from lattend.report.report import Report
    >>> report_view(Report("causal", ["36 pairs"])).parts[0].text
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


class ChartLine(BaseModel):
    """A line through points (x, y)."""

    name: str
    points: list[tuple[float, float]]


def chart_line(stroke: Stroke, half: float | None = None) -> ChartLine:
    """A line of a chart, rounded to what can be seen on a plane with sides of 2·half."""
    if half is None:
        points = [(float(f"{float(x):.6g}"), float(f"{float(y):.6g}")) for x, y in stroke.points]
    else:
        decimals = 4 - math.floor(math.log10(half))
        points = [(round(float(x), decimals), round(float(y), decimals)) for x, y in stroke.points]
    return ChartLine(name=stroke.name, points=points)
