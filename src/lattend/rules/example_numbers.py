"""Example numbers of letters that nobody gave any: small to draw a rule, real to price a layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lattend.rules.language.expr import Node
    from lattend.rules.rule import Rule

DRAWN = {"n": 12, "m": 12, "rows": 6, "cols": 6, "depth": 3, "heads": 2}
PRICED = {
    **{"n": 4096, "m": 4096, "rows": 64, "cols": 64, "depth": 16, "heads": 8, "d": 512, "D_i": 512},
    **{"layers": 12, "l": 12, "k": 3, "c": 3, "vocabulary": 50257},
}
SMALL_WIDTH = 8  # up to which the usual length shows a window or a block
WIDTHS_DRAWN = 3  # lengths of so many windows or blocks show them
LONGEST_DRAWN = 8_192  # two windows of 4,096


def drawn_number(name: str) -> int:
    """Returns a number at which a small picture shows the structure of a rule.

    >>> drawn_number("n"), drawn_number("t")
    (12, 3)
    """
    return DRAWN.get(name, 3)


def drawn_length(rule: Rule) -> int:
    """The length of a line at which a picture shows the rule's own numbers: three windows or blocks.

    >>> from lattend.rules.reader import rule
    >>> drawn_length(rule("k <= q")), drawn_length(rule("q // 64 == k // 64"))
    (12, 192)
    """
    bound = (abs(rule.values[name]) for name in rule.parameters if name in rule.values)
    width = max((*_widths(rule.condition), *bound), default=0)
    if width <= SMALL_WIDTH:
        return DRAWN["n"]
    length = WIDTHS_DRAWN * (width + width % 2)  # q - k <= 255 is a window of 256
    return min(length, LONGEST_DRAWN)


def priced_number(name: str) -> int:
    """The number that a layer of a model might have.

    >>> priced_number("n"), priced_number("D_hid")
    (4096, 64)
    """
    return PRICED.get(name, 64)


def _widths(node: Node) -> Iterator[int]:
    """Yields the numbers of a condition that are lengths: no factors, and no bounds of products."""
    from lattend.rules.language import expr

    if isinstance(node, expr.Num):
        yield abs(node.value)
    elif not (isinstance(node, expr.Arith) and node.op == "*") and not _compares_product(node):
        for part in expr.children(node):
            yield from _widths(part)


def _compares_product(node: Node) -> bool:
    """Whether it compares a product of positions, as q * k < 40 does."""
    from lattend.rules.language import expr

    products = (part for part in expr.walk(node) if isinstance(part, expr.Arith) and part.op == "*")
    many = any(sum(not isinstance(arg, expr.Num) for arg in part.args) > 1 for part in products)
    return isinstance(node, expr.Compare) and many
