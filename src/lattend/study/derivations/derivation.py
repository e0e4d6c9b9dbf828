"""Derivation: chains of formulas, every line with its reason and how it was checked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any

from lattend.errors import LattendError
from lattend.report.table import LEAST_WORDS, WIDTH
from lattend.study.derivations.notations import Latex, MathML, Notation, Plain
from lattend.study.derivations.term import Term

PLAIN, LATEX, MATHML = Plain(), Latex(), MathML()
DEFINED = "by definition"
REASON_INDENT = 4  # columns that a reason below its formula stands to the right of it
_STYLE = (
    "<style>.derivation td { padding: 0.3em 0.4em; vertical-align: baseline; text-align: left }"
    ".derivation td:first-child { text-align: right } .derivation small { opacity: 0.65 }</style>"
)
_TEX = {"%": r"\%", "&": r"\&", "_": r"\_", "#": r"\#", "^": r"\^{}"}
_TEX |= {
    "<=": r"$\le$",
    ">=": r"$\ge$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "Δ": r"$\Delta$",
    "δ": r"$\delta$",
}
_TEX |= {
    "²": "$^2$",
    "×": r"$\times$",
    "−": "$-$",
    "→": r"$\to$",
    "∞": r"$\infty$",
    "‖": r"$\|$",
    "Σ": r"$\Sigma$",
}


@dataclass(frozen=True)
class DerivedLine:
    """One line: `left relation right`, why it holds and how that was checked.

    Without `left` it goes on from the line before. `domain` is where it holds, empty if that is everywhere.
    """

    left: Term | None
    relation: str
    right: Term
    reason: str
    checked: str
    domain: str = ""

    def parts(self, notation: Notation) -> tuple[str, str, str]:
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
        return _math("".join(self.parts(MATHML)))

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
class Derivation:
    """A title, what the letters mean, definitions, and lines, each of them checked; drawn in notebooks."""

    name: str
    title: str
    given: str
    definitions: tuple[DerivedLine, ...]
    lines: tuple[DerivedLine, ...]
    remark: str = ""

    def text(self, width: int | None = WIDTH) -> str:
        """For a terminal so many columns wide: under each formula why it holds and how it was checked."""
        wide = width or WIDTH
        found = [*wrap(self.title, wide), *_said(self.given, wide, 0)]
        found += [""] if self.definitions else []
        for line in self.definitions:
            found += _with_reason(line.formula, line.reason, wide, _column(self.definitions, wide), 2)
        at, column, alone = 0, _column(self.lines, wide), self._alone()
        place = 0
        for run in self._runs():
            for line in run:
                left = "" if line.left is None else PLAIN.write(line.left)
                found += [""] if left and not (place and alone[place] and alone[place - 1]) else []
                at = len(left) + 1 if left else at
                written = f"{'' if left else ' ' * at}{line.formula}"
                found += _with_reason(written, line.reason, wide, column, at + 2)
                place += 1
            lines = "" if len(run) == 1 else f", {len(run)} lines"
            found += _said(f"checked{lines}: {run[0].checked}", wide, at + 2)
        return "\n".join([*found, *(["", *_said(self.remark, wide, 0)] if self.remark else [])])

    def _alone(self) -> list[bool]:
        """Of each line, whether it is all of its chain: such lines stand together."""
        starts = [line.left is not None for line in self.lines] + [True]
        return [starts[place] and starts[place + 1] for place in range(len(self.lines))]

    def _runs(self) -> list[list[DerivedLine]]:
        """The lines, those after each other that were checked alike together."""
        return [list(run) for _, run in groupby(self.lines, lambda line: line.checked)]

    def latex(self) -> str:
        """An align environment, for a document that uses amsmath."""
        rows: list[str] = []
        for line in (*self.definitions, *self.lines):
            apart = r"\\[1ex]" if rows and line.left is not None else r"\\"
            rows += [apart] if rows else []
            said = _words(f"{line.reason}, for {line.domain}" if line.domain else line.reason)
            rows.append(rf"{line.latex} && \text{{{said}}}")
        inside = "\n".join(rows).replace("\n\\\\", " \\\\")
        head = f"% {self.title}: {self.given}\n% needs \\usepackage{{amsmath}}"
        return f"{head}\n\\begin{{align*}}\n{inside}\n\\end{{align*}}\n"

    def html(self) -> str:
        """One element that can stand in any page, the formulas as MathML."""
        parts = [f"<p><b>{escape(self.title)}</b><br>{escape(self.given)}</p>"]
        for lines in (self.definitions, self.lines):
            if lines:
                parts.append(f"<table>{''.join(map(_row, lines))}</table>")
        remark = f"<p>{escape(self.remark)}</p>" if self.remark else ""
        return f'<div class="derivation">{_STYLE}{"".join(parts)}{remark}</div>\n'

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
            ".html": lambda: _page(self.title, self.html()),
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


def _said(text: str, wide: int, indent: int) -> list[str]:
    """Words in lines, `n >= 0` in one of them."""
    space = " " * indent
    tied = re.sub(r" ([<>=]=?) ", "\xa0\\1\xa0", text)
    found = wrap(tied, max(wide, indent + LEAST_WORDS), initial_indent=space, subsequent_indent=space)
    return [line.replace("\xa0", " ") for line in found]


def _column(lines: tuple[DerivedLine, ...], wide: int) -> int:
    """Where the reasons of these lines begin: after all formulas that leave room for one."""
    from rich.cells import cell_len

    widths: list[int] = []
    at = 0
    for line in lines:
        at = at if line.left is None else cell_len(PLAIN.write(line.left)) + 1
        widths.append(cell_len(line.formula) + (at if line.left is None else 0))
    return max((one for one in widths if one <= wide // 2), default=0) + 3


def _with_reason(formula: str, reason: str, wide: int, column: int, indent: int) -> list[str]:
    """The formula with its reason beside it, or below where there is no room.

    A formula is broken between its parts where the terminal is too narrow.
    """
    from rich.cells import cell_len

    if cell_len(formula) < column and column + len(reason) <= wide:
        return [f"{formula}{' ' * (column - cell_len(formula))}{reason}"]
    start = len(formula) - len(formula.lstrip())
    indents = {"initial_indent": " " * start, "subsequent_indent": " " * (indent + 2)}
    limit = max(wide, indent + LEAST_WORDS)
    lines = wrap(formula.lstrip(), limit, break_long_words=False, break_on_hyphens=False, **indents)
    return [*lines, *_said(reason, wide, indent + REASON_INDENT)]


def _math(inside: str) -> str:
    return f'<math displaystyle="true"><mrow>{inside}</mrow></math>'


def _row(line: DerivedLine) -> str:
    left, relation, right = line.parts(MATHML)
    said = f"{escape(line.reason)}<br><small>checked: {escape(line.checked)}</small>"
    said = escape(line.reason) if line.checked == DEFINED else said
    return f"<tr><td>{_math(left) if left else ''}</td><td>{_math(relation + right)}</td><td>{said}</td></tr>"


def _words(text: str) -> str:
    """A sentence with the signs that LaTeX reads as its own."""
    for sign, written in _TEX.items():
        text = text.replace(sign, written)
    return text


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
