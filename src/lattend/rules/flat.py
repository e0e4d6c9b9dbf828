"""A condition on flat positions: its numbers written in, and an image or a volume read row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from lattend.rules.axes import HEADS, LINE, POSITIONS, Axis
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Arith, Compare, Condition, Name, Num, Term
from lattend.rules.rule import Rule


def flat_condition(rule: Rule, condition: Condition | None = None) -> Condition:
    """Returns a condition on the rule's axes in flat q and k (and head), with the rule's numbers written in.

    >>> from lattend.rules.reader import rule
    >>> expr.text(flat_condition(rule("ky == qy and kx <= qx + t").at(rows=3, cols=5, t=1)))
    'k // 5 == q // 5 and k % 5 <= q % 5 + 1'
    """
    original = rule.condition if condition is None else condition
    numbers: dict[str, Term] = {name: Num(value) for name, value in rule.values.items()}
    written = expr.substituted(original, {**numbers, **flat_places(rule.axes, rule.values)})
    compared = [node for node in expr.walk(written) if isinstance(node, Compare)]
    plain = [node for node in compared if POSITIONS.isdisjoint(expr.names(node))]
    return expr.resolved(written, {node: bool(evaluate(node, {}, rule.data)) for node in plain})


def on_line(rule: Rule) -> Rule:
    """A complete rule without parameters, on a line: an image or a volume read row by row.

    >>> from lattend.rules.reader import rule
    >>> on_line(rule("ky == qy and kx <= qx + t").at(rows=3, cols=5, t=1))
    <Rule k // 5 == q // 5 and k % 5 <= q % 5 + 1 with n = 15>
    """
    if len(rule.axes) == 1:
        return rule.baked()
    size = {"n": prod(rule.values[axis.queries] for axis in rule.axes)}
    heads = {HEADS: rule.values[HEADS]} if rule.has_heads else {}
    return Rule(
        flat_condition(rule), LINE, values=size | heads, data=rule.data, open=rule.open, budget=rule.budget
    )


def flat_places(axes: Sequence[Axis], values: Mapping[str, int]) -> dict[str, Term]:
    """Returns the position along each axis as a term of the flat position; nothing on a line."""
    if len(axes) == 1:
        return {}
    sizes = [values[axis.queries] for axis in axes]
    positions: dict[str, Term] = dict(
        zip((axis.query for axis in axes), unflattened(Name("q"), sizes), strict=True)
    )
    return positions | dict(zip((axis.key for axis in axes), unflattened(Name("k"), sizes), strict=True))


def unflattened(flat: Term, sizes: Sequence[int]) -> list[Term]:
    """Returns the row and the column of a flat position in an image of these sizes.

    >>> [expr.term_text(term) for term in unflattened(Name("k"), (3, 7))]
    ['k // 7', 'k % 7']
    """
    coordinates: list[Term] = []
    for axis, size in enumerate(sizes):
        below = prod(sizes[axis + 1 :])
        at = flat if below == 1 else Arith("//", (flat, Num(max(1, below))))
        coordinates.append(at if axis == 0 else Arith("%", (at, Num(max(1, size)))))
    return coordinates


def flattened(numbers: Sequence[Term], sizes: Sequence[int]) -> Term:
    """Returns the flat position of a row and a column in an image of these sizes.

    >>> expr.term_text(flattened([Name("y"), Name("x")], (3, 7)))
    'y * 7 + x'
    """
    total, *rest = numbers
    for at, size in zip(rest, sizes[1:], strict=True):
        total = Arith("+", (Arith("*", (total, Num(size))), at))
    return total
