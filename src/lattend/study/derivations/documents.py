"""A derivation as LaTeX and as HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from lattend.counts.terms.notations import MATHML
from lattend.report.signs import TEX

if TYPE_CHECKING:
    from lattend.study.derivations.derivation import Derivation, DerivedLine

STYLE = (
    "<style>.derivation table { margin: 0.6em 0 } "
    ".derivation td { padding: 0.3em 0.4em; vertical-align: baseline; text-align: left } "
    ".derivation td:first-child { text-align: right } .derivation small { opacity: 0.65 }</style>"
)
# Signs in words that LaTeX reads as its own or does not know, in this order
WORDS = {**{sign: f"\\{sign}" for sign in "%&_#"}, "^": r"\^{}", "W̃": r"$\tilde{W}$"}
WORDS |= {"<=": r"$\le$", ">=": r"$\ge$", "<": "$<$", ">": "$>$", "|": r"$\mid$", **TEX}


def latex(found: Derivation) -> str:
    """An align environment, a line for each definition and each line, with its reason."""
    rows = ""
    for line in (*found.definitions, *found.lines):
        if rows:
            rows += " \\\\[1ex]\n" if line.left is not None else " \\\\\n"
        said = f"{line.reason}, for {line.domain}" if line.domain else line.reason
        rows += rf"{line.latex} && \text{{{_words(said)}}}"
    head = f"% {found.title}: {found.given}\n% needs \\usepackage{{amsmath}}"
    return f"{head}\n\\begin{{align*}}\n{rows}\n\\end{{align*}}\n"


def html(found: Derivation) -> str:
    """One element: tables of the definitions and of the lines, formulas as MathML."""
    parts = [f"<p><b>{escape(found.title)}</b><br>{escape(found.given)}</p>"]
    for lines in filter(None, (found.definitions, found.lines)):
        parts.append(f"<table>{''.join(map(_row, lines))}</table>")
    remark = f"<p>{escape(found.remark)}</p>" if found.remark else ""
    return f'<div class="derivation">{STYLE}{"".join(parts)}{remark}</div>\n'


def page(title: str, body: str) -> str:
    """A whole page with this body."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def math(inside: str) -> str:
    """A formula's parts as one `<math>` element."""
    return f'<math displaystyle="true"><mrow>{inside}</mrow></math>'


def _row(line: DerivedLine) -> str:
    left, relation, right = line.parts(MATHML)
    said = escape(line.reason)
    if line.checked:
        said += f"<br><small>checked: {escape(line.checked)}</small>"
    return f"<tr><td>{math(left) if left else ''}</td><td>{math(relation + right)}</td><td>{said}</td></tr>"


def _words(text: str) -> str:
    """A sentence that LaTeX reads."""
    for sign, written in WORDS.items():
        text = text.replace(sign, written)
    return text
