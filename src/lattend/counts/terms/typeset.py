"""Printed counts and conditions as HTML with their formulas as MathML."""

from __future__ import annotations

import re
from html import escape

from lattend.counts.terms.notations import MATHML
from lattend.counts.terms.term import read_term
from lattend.errors import TextError

# `F(rows) * F(cols) where F(n) =`, the head of a count that is a product of equal parts
_HEAD = re.compile(r"(.*) where (\w+\(.*\)) =")
_ROW = re.compile(r"(?P<formula>.*?)(?:  +(?P<when>when .*?|otherwise))?(?:(?:^|  )where (?P<where>.*))?")


def count(printed: str) -> str:
    """A printed count as a table: a row for each piece with when it holds, then what short names mean."""
    intro, rows = "", ""
    for line in printed.splitlines():
        head, row = _HEAD.fullmatch(line), _ROW.fullmatch(line.strip())
        if head is not None:
            intro = f"<p>{calls(head[1])} where {calls(head[2])} is</p>"
        elif row is not None:
            rows += _piece(row["formula"], row["when"] or "") if row["formula"] else ""
            rows += _meanings(row["where"]) if row["where"] else ""
    return f"{intro}<table class='pieces'>{rows}</table>"


def _piece(shown: str, when: str) -> str:
    if when.startswith("when "):
        when = f"when {condition(when.removeprefix('when '))}"
    return f"<tr><td>{formula(shown, large=True)}</td><td>{when}</td></tr>"


def _meanings(text: str) -> str:
    parts = re.split(r", (?=\w+ = )", text)
    return f"<tr><td class='where' colspan='2'>where {', '.join(map(formula, parts))}</td></tr>"


def condition(text: str) -> str:
    """A condition: each relation a `<math>` element, with the words between them.

    >>> condition("w divides n")
    '<math><mi>w</mi></math> divides <math><mi>n</mi></math>'
    """
    clauses = [" and ".join(map(_relation, _inside(clause).split(" and "))) for clause in _clauses(text)]
    return (", or " if any(" and " in clause for clause in clauses) else " or ").join(clauses)


def _relation(text: str) -> str:
    for words in (" does not divide ", " divides "):
        if words in text:
            return words.join(map(formula, text.split(words)))
    return formula(text)


def _clauses(text: str) -> list[str]:
    """What stands between the words "or" outside brackets."""
    clauses, depth = [""], 0
    for part in re.split(r"( or |[()])", text):
        depth += (part == "(") - (part == ")")
        if part == " or " and depth == 0:
            clauses.append("")
        else:
            clauses[-1] += part
    return clauses


def _inside(clause: str) -> str:
    """The clause without the brackets around all of it."""
    inner = clause[1:-1]
    bracketed = clause.startswith("(") and clause.endswith(")") and inner.find(")") >= inner.find("(")
    return inner if bracketed and " and " in inner else clause


_RELATION = re.compile(r" (<=|>=|==|!=|<|>|=) ")
_SIGNS = {"<=": "≤", ">=": "≥", "==": "="}


def formula(text: str, *, large: bool = False) -> str:
    """The formula, or the relation between formulas, as one `<math>` element.

    >>> formula("n/2")
    '<math><mfrac><mi>n</mi><mn>2</mn></mfrac></math>'
    """
    sides = _RELATION.split(text)
    try:
        parts = [_markup(side) for side in sides[::2]]
    except TextError:
        return f"<code>{escape(text)}</code>"
    for index, sign in enumerate(sides[1::2]):
        parts.insert(2 * index + 1, MATHML.sign(_SIGNS.get(sign, sign)))
    start = '<math displaystyle="true">' if large else "<math>"
    return f"{start}{parts[0] if len(parts) == 1 else MATHML.row(parts)}</math>"


def calls(text: str) -> str:
    """A product of functions, as a count that is one is headed: `F(rows, t) * F(cols, t)`."""
    functions: list[str] = []
    for name, arguments in re.findall(r"(\w+)\((.*?)\)", text):
        inside = MATHML.fenced(MATHML.listed([_markup(one) for one in arguments.split(", ")]))
        functions.append(MATHML.row([f"<mi>{name}</mi>", inside]))
    return f"<math><mrow>{'<mo>&#x2062;</mo>'.join(functions)}</mrow></math>"


def _markup(text: str) -> str:
    return MATHML.write(read_term(text))
