"""Derivation: formulas line by line, each checked and with its reason, for terminals and documents."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap

from lattend.counts.terms.notations import LATEX, MATHML, PLAIN, TermNotation
from lattend.counts.terms.term import Term
from lattend.report.data import Data
from lattend.report.shown import Shown
from lattend.report.signs import TEX
from lattend.report.table import LEAST_WORDS, WIDTH
from lattend.study.figures import page, save_form


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
        return math("".join(self.parts(MATHML)))

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
class Derivation(Shown, Data):
    """A title, what the letters mean, definitions, and lines, each of them checked; drawn in notebooks."""

    JSON = "name title given definitions lines remark"

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
        return latex(self)

    def html(self) -> str:
        """One element that can stand in any page, the formulas as MathML."""
        return html(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the form that the path's ending names: .html .tex .json .txt."""
        forms: dict[str, Callable[[], str]] = {
            ".html": lambda: page(self.title, self.html()),
            ".tex": self.latex,
            ".json": lambda: json.dumps(self.json(), indent=2) + "\n",
            ".txt": lambda: self.text() + "\n",
        }
        return save_form(path, "save the derivation", forms)

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


STYLE = (
    "<style>.derivation table { margin: 0.6em 0 } "
    ".derivation td { padding: 0.3em 0.4em; vertical-align: baseline; text-align: left } "
    ".derivation td:first-child { text-align: right } .derivation small { opacity: 0.65 }</style>"
)
# Signs in words that LaTeX reads as its own or does not know, in this order
WORDS = {**{sign: f"\\{sign}" for sign in "%&_#"}, "^": r"\^{}", "W̃": r"$\tilde{W}$"}
WORDS |= {"<=": r"$\le$", ">=": r"$\ge$", "<": "$<$", ">": "$>$", "|": r"$\mid$", **TEX}


def latex(derivation: Derivation) -> str:
    """An align environment, a line for each definition and each line, with its reason."""
    rows = ""
    for line in (*derivation.definitions, *derivation.lines):
        if rows:
            rows += " \\\\[1ex]\n" if line.left is not None else " \\\\\n"
        said = f"{line.reason}, for {line.domain}" if line.domain else line.reason
        rows += rf"{line.latex} && \text{{{_words(said)}}}"
    head = f"% {derivation.title}: {derivation.given}\n% needs \\usepackage{{amsmath}}"
    return f"{head}\n\\begin{{align*}}\n{rows}\n\\end{{align*}}\n"


def html(derivation: Derivation) -> str:
    """One element: tables of the definitions and of the lines, formulas as MathML."""
    parts = [f"<p><b>{escape(derivation.title)}</b><br>{escape(derivation.given)}</p>"]
    for lines in filter(None, (derivation.definitions, derivation.lines)):
        parts.append(f"<table>{''.join(map(_row, lines))}</table>")
    remark = f"<p>{escape(derivation.remark)}</p>" if derivation.remark else ""
    return f'<div class="derivation">{STYLE}{"".join(parts)}{remark}</div>\n'


def math(inside: str) -> str:
    """A formula's parts as one `<math>` element."""
    return f'<math displaystyle="true"><mrow>{inside}</mrow></math>'


def _row(line: DerivedLine) -> str:
    left, relation, right = line.parts(MATHML)
    cell = escape(line.reason)
    if line.checked:
        cell += f"<br><small>checked: {escape(line.checked)}</small>"
    return f"<tr><td>{math(left) if left else ''}</td><td>{math(relation + right)}</td><td>{cell}</td></tr>"


def _words(text: str) -> str:
    """A sentence that LaTeX reads."""
    for sign, written in WORDS.items():
        text = text.replace(sign, written)
    return text


REASON_INDENT = 4  # columns that a reason below its formula stands to the right of it


def terminal(derivation: Derivation, wide: int) -> str:
    """In lines of so many columns; how lines were checked is said once, below the last of them."""
    lines = [*wrap(derivation.title, wide), *_said(derivation.given, wide, 0)]
    lines += [""] if derivation.definitions else []
    for line in derivation.definitions:
        lines += _with_reason(line.formula, line.reason, wide, _column(derivation.definitions, wide), 2)
    column, alone, alike = _column(derivation.lines, wide), _alone(derivation.lines), 0
    for index, (line, at) in enumerate(zip(derivation.lines, _relations(derivation.lines), strict=True)):
        together = index > 0 and alone[index] and alone[index - 1]
        lines += [""] if line.left is not None and not together else []
        indent = 0 if line.left is not None else at
        lines += _with_reason(" " * indent + line.formula, line.reason, wide, column, at + 2)
        alike += 1
        if index + 1 == len(derivation.lines) or derivation.lines[index + 1].checked != line.checked:
            several = "" if alike == 1 else f", {alike} lines"
            lines += _said(f"checked{several}: {line.checked}", wide, at + 2)
            alike = 0
    lines += ["", *_said(derivation.remark, wide, 0)] if derivation.remark else []
    return "\n".join(lines)


def _relations(lines: Sequence[DerivedLine]) -> list[int]:
    """The column of each line's relation: behind the left side of its chain."""
    places: list[int] = []
    for line in lines:
        places.append(places[-1] if line.left is None else _width(PLAIN.write(line.left)) + 1)
    return places


def _alone(lines: Sequence[DerivedLine]) -> list[bool]:
    """Whether each line is its whole chain; such lines stay together."""
    starts = [line.left is not None for line in lines] + [True]
    return [starts[index] and starts[index + 1] for index in range(len(lines))]


def _column(lines: Sequence[DerivedLine], wide: int) -> int:
    """The column where reasons begin: after all formulas that leave room for one."""
    indents = [0 if line.left is not None else at for line, at in zip(lines, _relations(lines), strict=True)]
    widths = [_width(line.formula) + indent for line, indent in zip(lines, indents, strict=True)]
    return max((one for one in widths if one <= wide // 2), default=0) + 3


def _with_reason(formula: str, reason: str, wide: int, column: int, indent: int) -> list[str]:
    """The formula with its reason beside it, or below where there is no room.

    A formula is broken between its parts where the terminal is too narrow.
    """
    if _width(formula) < column and column + len(reason) <= wide:
        return [f"{formula}{' ' * (column - _width(formula))}{reason}"]
    lines = wrap(
        formula.lstrip(),
        max(wide, indent + LEAST_WORDS),
        initial_indent=" " * (len(formula) - len(formula.lstrip())),
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [*lines, *_said(reason, wide, indent + REASON_INDENT)]


def _said(text: str, wide: int, indent: int) -> list[str]:
    """Words in lines, `n >= 0` in one of them."""
    space = " " * indent
    tied = re.sub(r" ([<>=]=?) ", "\xa0\\1\xa0", text)
    lines = wrap(tied, max(wide, indent + LEAST_WORDS), initial_indent=space, subsequent_indent=space)
    return [line.replace("\xa0", " ") for line in lines]


def _width(text: str) -> int:
    """The columns of a text: a tilde above a letter takes none."""
    from rich.cells import cell_len

    return cell_len(text)
