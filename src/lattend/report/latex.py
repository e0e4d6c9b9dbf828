r"""LaTeX of words, numbers and tables: ASCII alone, for a document that has `\usepackage{amsmath}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from unicodedata import normalize

from lattend.report.maths import Maths, parts_of
from lattend.report.signs import TEX

NEEDS = r"% needs \usepackage{amsmath}"
_ESCAPES = str.maketrans(
    {
        **{character: f"\\{character}" for character in "#$%&_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "-": "{-}",
        "–": "--",
        "’": "'",
        **TEX,
    }
)
_SCIENTIFIC = re.compile(r"(?<![\w.])([-−]?\d[\d.,]*e[-−+]?\d+)(?!\w)")
_POWER = re.compile(r"e[+]?([-−]?\d+)$")


def escape(text: str) -> str:
    r"""Escape words for LaTeX, so that no character is a command.

    >>> print(escape("3 × 3 & 50%"))
    3 \ensuremath{\times} 3 \& 50\%
    """
    plain = "".join(sign if sign.isascii() or ord(sign) in _ESCAPES else _spelt(sign) for sign in text)
    return plain.translate(_ESCAPES)


def _spelt(sign: str) -> str:
    """The usual form of a sign that TeX does not know, or its letters; a question mark if it has none."""
    usual = normalize("NFKC", sign)
    return usual if usual in TEX else normalize("NFKD", sign).encode("ascii", "ignore").decode() or "?"


def number(text: str) -> str:
    r"""A decimal number in LaTeX.

    >>> print(number("6.4e−10"), number("−1,024"))
    6.4 \times 10^{-10} -1{,}024
    """
    power = _POWER.search(text)
    digits = text[: power.start()] if power else text
    latex = digits.replace("−", "-").replace(",", "{,}")
    return rf"{latex} \times 10^{{{power[1].replace('−', '-')}}}" if power else latex


def inline(text: str) -> str:
    r"""A line of words in LaTeX, with its formulas in math mode.

    >>> print(inline("1.5e−3 where k <= q"))
    $1.5 \times 10^{-3}$ where k \ensuremath{\le} q
    """
    return "".join(f"${part.latex}$" if isinstance(part, Maths) else _words(part) for part in parts_of(text))


def _words(text: str) -> str:
    plain = text.replace("\n", "; ").replace("<=", "≤").replace(">=", "≥")
    latex = ""
    for index, part in enumerate(_SCIENTIFIC.split(plain)):
        latex += f"${number(part)}$" if index % 2 else escape(part)
    return latex


def tabular(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    r"""A tabular environment, with columns of numbers to the right.

    >>> print(tabular(("", "pairs"), [("causal", "36")], [False, True]))
    \begin{tabular}{lr}
     & pairs \\
    \hline
    causal & 36 \\
    \end{tabular}
    """
    sides = "".join("r" if numbers else "l" for numbers in right)
    lines = [rf"\begin{{tabular}}{{{sides}}}"]
    lines += [_row(head), r"\hline"] if any(head) else []
    return "\n".join([*lines, *map(_row, rows), r"\end{tabular}"])


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(inline, cells)) + r" \\"


def cases(pieces: Sequence[tuple[str, str]]) -> str:
    r"""Formulas with the places where they hold; one that holds everywhere is just itself.

    >>> print(cases([("n", r"t \le n"), ("t", "")]))
    \begin{cases} n & \text{if } t \le n \\ t & \text{otherwise} \end{cases}
    """
    if len(pieces) == 1 and not pieces[0][1]:
        return pieces[0][0]
    lines = [
        rf"{latex} & " + (rf"\text{{if }} {when}" if when else r"\text{otherwise}") for latex, when in pieces
    ]
    body = r" \\ ".join(lines)
    return rf"\begin{{cases}} {body} \end{{cases}}"


def named(rows: Iterable[tuple[str, str]]) -> str:
    r"""Quantities in words, each with its formula.

    >>> print(named([("depth", "2n - 1")]))
    \begin{aligned}
    \text{depth} &= 2n - 1
    \end{aligned}
    """
    return aligned(*(rf"\text{{{escape(name)}}} &= {latex}" for name, latex in rows))


def aligned(*lines: str) -> str:
    r"""Lines of mathematics, aligned where they have an ampersand.

    >>> print(aligned("a &= 1", "b &= 2"))
    \begin{aligned}
    a &= 1 \\
    b &= 2
    \end{aligned}
    """
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"
