"""A derivation for a terminal: formulas in a column, each with its reason beside or below it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from lattend.counts.terms.notations import PLAIN
from lattend.report.table import LEAST_WORDS

if TYPE_CHECKING:
    from lattend.study.derivations.derivation import Derivation, DerivedLine

REASON_INDENT = 4  # columns that a reason below its formula stands to the right of it


def terminal(found: Derivation, wide: int) -> str:
    """In lines of so many columns; how lines were checked is said once, below the last of them."""
    lines = [*wrap(found.title, wide), *_said(found.given, wide, 0)]
    lines += [""] if found.definitions else []
    for line in found.definitions:
        lines += _with_reason(line.formula, line.reason, wide, _column(found.definitions, wide), 2)
    column, alone, alike = _column(found.lines, wide), _alone(found.lines), 0
    for place, (line, at) in enumerate(zip(found.lines, _relations(found.lines), strict=True)):
        together = place > 0 and alone[place] and alone[place - 1]
        lines += [""] if line.left is not None and not together else []
        indent = 0 if line.left is not None else at
        lines += _with_reason(" " * indent + line.formula, line.reason, wide, column, at + 2)
        alike += 1
        if place + 1 == len(found.lines) or found.lines[place + 1].checked != line.checked:
            several = "" if alike == 1 else f", {alike} lines"
            lines += _said(f"checked{several}: {line.checked}", wide, at + 2)
            alike = 0
    lines += ["", *_said(found.remark, wide, 0)] if found.remark else []
    return "\n".join(lines)


def _relations(lines: Sequence[DerivedLine]) -> list[int]:
    """The column of each line's relation: behind the left side of its chain."""
    found: list[int] = []
    for line in lines:
        found.append(found[-1] if line.left is None else _width(PLAIN.write(line.left)) + 1)
    return found


def _alone(lines: Sequence[DerivedLine]) -> list[bool]:
    """Of each line, whether it is all of its chain: such lines stand together."""
    starts = [line.left is not None for line in lines] + [True]
    return [starts[place] and starts[place + 1] for place in range(len(lines))]


def _column(lines: Sequence[DerivedLine], wide: int) -> int:
    """Where the reasons of these lines begin: after all formulas that leave room for one."""
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
    found = wrap(tied, max(wide, indent + LEAST_WORDS), initial_indent=space, subsequent_indent=space)
    return [line.replace("\xa0", " ") for line in found]


def _width(text: str) -> int:
    """The columns of a text: a tilde above a letter takes none."""
    from rich.cells import cell_len

    return cell_len(text)
