"""Moduli: the names a rule divides by or multiplies with, in whose multiples positions are split."""

from __future__ import annotations

from lattend.rules.axes import RESERVED
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Condition, Name, Num, Term


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
    moduli = [divisor_of(node) or scale_of(node) for node in expr.walk(condition)]
    return list(dict.fromkeys(name for name in moduli if name is not None))


def with_modulus(condition: Condition, letter: str) -> tuple[Condition, int] | None:
    """Returns the condition with a letter in place of its only divisor, and that divisor; None without one.

    >>> from lattend.rules.language.parser import parse
    >>> found = with_modulus(parse("q // 64 == k // 64 and k % 64 != 63"), "w")
    >>> (expr.text(found[0]), found[1])
    ('q // w == k // w and k % w != w - 1', 64)
    """
    divided = (node for node in expr.walk(condition) if isinstance(node, Arith) and node.op in ("//", "%"))
    divisors = {node.args[1] for node in divided}
    number = next(iter(divisors), None)
    if len(divisors) != 1 or not isinstance(number, Num) or number.value < 2 or moduli_in(condition):
        return None
    modulus = Name(letter)
    letters: dict[Num, Term] = {number: modulus, Num(number.value - 1): Arith("-", (modulus, Num(1)))}
    symbolic = expr.replaced(condition, lambda name: name, lambda one: letters.get(one, one))
    return symbolic, number.value
