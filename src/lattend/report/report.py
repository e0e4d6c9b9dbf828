"""Report: a title, facts, tables and sentences, and the same as data: what commands and notebooks print."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import wrap
from typing import Any

from lattend.report.data import Data
from lattend.report.latex import NEEDS, inline
from lattend.report.shown import Shown
from lattend.report.table import GAP, WIDTH, Facts, Table


@dataclass(frozen=True)
class Report:
    """A title, then parts; a blank line before each table, before facts, and for an empty sentence."""

    title: str
    parts: Sequence[Table | Facts | str]
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def text(self, width: int | None = None) -> str:
        """The report for a terminal of this width."""
        lines = wrap(self.title, width) if width else [self.title]
        for part in self.parts:
            if isinstance(part, str):
                lines += wrap(part, width or WIDTH, subsequent_indent=GAP) or [""]
            else:
                lines += ["", *part.lines(width)]
        return "\n".join(lines)

    def html(self) -> str:
        """For a notebook."""
        parts = [f"<div>{escape(p)}</div>" if isinstance(p, str) else p.html() for p in self.parts]
        return f"<div><b>{escape(self.title)}</b></div>{''.join(parts)}"

    def markdown(self) -> str:
        """As Markdown: tables as tables, sentences as paragraphs."""
        parts = [[p] if isinstance(p, str) else p.markdown() for p in self.parts]
        blocks = [[self.title], *(part for part in parts if any(part))]
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"

    def latex(self) -> str:
        """As LaTeX: tables as tabular environments, sentences as paragraphs, formulas as mathematics."""
        lines = [NEEDS, rf"\noindent\textbf{{{inline(self.title)}}}\par"]
        for part in filter(None, self.parts):
            lines.append(rf"\noindent {inline(part) if isinstance(part, str) else part.latex()}\par")
        return "\n".join(lines) + "\n"

    def json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {"title": self.title, **self.data}


class Printed(Shown, Data, ABC):
    """A result that prints as a report: as text in a terminal, as tables in a notebook."""

    @abstractmethod
    def report(self) -> Report:
        """The report of this result."""

    def text(self, width: int | None = WIDTH) -> str:
        """The report in lines of at most `width` characters; None for lines of any length."""
        return self.report().text(width)

    def markdown(self) -> str:
        """The report as Markdown."""
        return self.report().markdown()

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.report().html()
