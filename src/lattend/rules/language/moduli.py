"""Moduli: the names a rule divides by or multiplies with, in whose multiples positions are split."""

from __future__ import annotations

from lattend.rules.axes import RESERVED
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Condition, Name


def divisor_of(node: expr.Node) -> str | None:
    """The parameter that `node` itself divides by: w in `q // w`."""
    if isinstance(node, Arith) and node.op in ("//", "%"):
        right = node.args[1]
        if isinstance(right, Name) and right.name not in RESERVED:
            return right.name
    return None


def scale_of(node: expr.Node) -> str | None:
    """The parameter that `node` multiplies another name with: step in `t*step`."""
    if isinstance(node, Arith) and node.op == "*":
        left, right = node.args
        if isinstance(right, Name) and right.name not in RESERVED and expr.names(left):
            return right.name
    return None


def moduli_in(condition: Condition) -> list[str]:
    """The moduli of a condition, each once, in order."""
    found = [divisor_of(node) or scale_of(node) for node in expr.walk(condition)]
    return list(dict.fromkeys(name for name in found if name is not None))
