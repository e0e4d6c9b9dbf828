"""Derivation: chains of formulas, every line with its reason and how it was checked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lattend.counts.terms.notations import LATEX, MATHML, PLAIN, TermNotation
from lattend.counts.terms.term import Term
from lattend.errors import LattendError
from lattend.report.shown import Shown
from lattend.report.table import WIDTH
from lattend.study.derivations import documents
from lattend.study.derivations.terminal import terminal


@dataclass(frozen=True)
class DerivedLine(Shown):
    """One line: `left relation right`, why it holds and how that was checked; a definition is not checked.

    Without `left` it goes on from the line before. `domain` is where it holds, empty if that is everywhere.
    """

    left: Term | None
    relation: str
    right: Term
    reason: str
    checked: str = ""
    domain: str = ""

    def parts(self, notation: TermNotation) -> tuple[str, str, str]:
        """The left side, or nothing, the relation and the right side."""
        left = "" if self.left is None else notation.write(self.left)
        return left, notation.sign(self.relation), notation.write(self.right)

    @property
    def formula(self) -> str:
        """The line as text: `N = Σ_{i=1}^n i`."""
        return " ".join(filter(None, self.parts(PLAIN)))

    @property
    def latex(self) -> str:
        """The line as LaTeX, its relation behind an ampersand."""
        left, relation, right = self.parts(LATEX)
        return f"{left} &{relation} {right}".lstrip()

    @property
    def mathml(self) -> str:
        """The line as one `<math>` element."""
        return documents.math("".join(self.parts(MATHML)))

    def json(self) -> dict[str, str]:
        """The line as plain data."""
        return {
            "formula": self.formula,
            "latex": self.latex.replace("&", ""),
            "mathml": self.mathml,
            "reason": self.reason,
            "domain": self.domain,
            "checked": self.checked,
        }

    def __str__(self) -> str:
        return self.formula


@dataclass(frozen=True)
class Derivation(Shown):
    """A title, what the letters mean, definitions, and lines, each of them checked; drawn in notebooks."""

    name: str
    title: str
    given: str
    definitions: tuple[DerivedLine, ...]
    lines: tuple[DerivedLine, ...]
    remark: str = ""

    def text(self, width: int | None = WIDTH) -> str:
        """For a terminal so many columns wide."""
        return terminal(self, width or WIDTH)

    def latex(self) -> str:
        """An align environment, for a document that uses amsmath."""
        return documents.latex(self)

    def html(self) -> str:
        """One element that can stand in any page, the formulas as MathML."""
        return documents.html(self)

    def json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "name": self.name,
            "title": self.title,
            "given": self.given,
            "definitions": [line.json() for line in self.definitions],
            "lines": [line.json() for line in self.lines],
            "remark": self.remark,
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the form that the path's ending names: .html .tex .json .txt."""
        path = Path(path)
        forms: dict[str, Callable[[], str]] = {
            ".html": lambda: documents.page(self.title, self.html()),
            ".tex": self.latex,
            ".json": lambda: json.dumps(self.json(), indent=2) + "\n",
            ".txt": lambda: self.text() + "\n",
        }
        form = forms.get(path.suffix.lower())
        if form is None:
            raise LattendError(
                f'cannot save the derivation as "{path}": the ending is not one of {", ".join(forms)}'
            )
        if not path.parent.is_dir():
            raise LattendError(f'cannot save "{path}": there is no folder "{path.parent}"; make it first')
        path.write_text(form(), encoding="utf-8")
        return path

    def __iter__(self) -> Iterator[DerivedLine]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Derivation {self.name}: {len(self.lines)} lines, each checked>"

    def _repr_html_(self) -> str:
        return self.html()
