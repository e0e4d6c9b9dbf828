"""Factoring by axis: a rule on an image as a sum of products of rules on lines."""

from __future__ import annotations

from lattend.rules.axes import Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import And, Condition, Not, Or, Truth

MAX_ATOMS = 6


def by_axis(condition: Condition, axes: tuple[Axis, ...]) -> list[tuple[Condition, ...]] | None:
    """Returns disjoint products with one condition for each axis, whose union is `condition`, or None.

    `qy == ky or qx == kx` is [(qy == ky, true), (not qy == ky, qx == kx)].
    """
    if len(axes) == 1:
        return [(condition,)]
    axis, rest = axes[0], axes[1:]
    mine = {axis.query, axis.key}
    others = {name for other in rest for name in (other.query, other.key)}
    condition = _gathered(condition, mine, others)
    atoms = _atoms(condition, mine, others)
    if atoms is None or len(atoms) > MAX_ATOMS:
        return None
    by_residual: dict[Condition, list[Condition]] = {}
    for chosen, residual in expr.choices(condition, atoms):
        if residual == Truth(False):
            continue
        literals = [atom if value else expr.negated(atom) for atom, value in chosen.items()]
        by_residual.setdefault(residual, []).append(expr.all_of(*literals))
    products: list[tuple[Condition, ...]] = []
    for residual, choices in by_residual.items():
        tails = by_axis(residual, rest)
        if tails is None:
            return None
        products.extend((expr.any_of(*choices), *tail) for tail in tails)
    return products


def _touches(condition: Condition, names: set[str]) -> bool:
    return any(name in names for name in expr.names(condition))


def _gathered(node: Condition, mine: set[str], others: set[str]) -> Condition:
    """Returns the condition with conditions on one axis grouped together."""
    match node:
        case Not():
            return Not(_gathered(node.arg, mine, others))
        case And() | Or():
            join = expr.all_of if isinstance(node, And) else expr.any_of
            kind = type(node)
            own = tuple(arg for arg in node.args if not _touches(arg, others) and _touches(arg, mine))
            rest = tuple(_gathered(arg, mine, others) for arg in node.args if arg not in own)
            if len(own) < 2:
                return join(*own, *rest)
            return kind((kind(own), *rest)) if rest else kind(own)
        case _:
            return node


def _atoms(node: Condition, mine: set[str], others: set[str]) -> list[Condition] | None:
    """The largest parts that speak of this axis alone, each once; None if a part mixes axes."""
    if not _touches(node, mine):
        return []
    if not _touches(node, others):
        return [node]
    match node:
        case And() | Or():
            parts = [_atoms(arg, mine, others) for arg in node.args]
        case Not():
            parts = [_atoms(node.arg, mine, others)]
        case _:
            return None
    if any(part is None for part in parts):
        return None
    return list(dict.fromkeys(atom for part in parts for atom in part or ()))
