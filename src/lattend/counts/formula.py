r"""Formulas as people write them: plain text, Unicode or LaTeX, read into a small tree.

    parse_formula("n(n + 1)/2") == parse_formula(r"\frac{n(n+1)}{2}")

is Apply("/", (Apply("*", (n, n + 1)), 2)) either way.
"""

from __future__ import annotations

from collections.abc import Collection

from lattend.counts.formula_parser import FormulaParser
from lattend.counts.formula_tree import Apply, BigO, Formula, Number, Sum, Symbol

__all__ = ["Apply", "BigO", "Formula", "Number", "Sum", "Symbol", "parse_formula"]


def parse_formula(text: str, known: Collection[str] = ()) -> Formula | BigO:
    """The formula a text stands for.

    Names side by side are a product: with `known={"n", "t"}` also `nt`, which is otherwise one name.

    >>> parse_formula("2n", known={"n"})
    Apply(op='*', args=(Number(value=Fraction(2, 1)), Symbol(name='n')))
    """
    return FormulaParser(text, known).whole()
