"""A condition as conjunctions that never hold together: each attended pair lies in exactly one.

`k <= q and (q - k < l or (q - k) % l == 0)` becomes `k <= q and q - k < l` and
`k <= q and q - k >= l and (q - k) % l == 0`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from lattend.plans.limits import minus
from lattend.rules.language import expr
from lattend.rules.language.expr import FLIPPED, And, Arith, Compare, Condition, Name, Num, Or, Truth

Branch = tuple[Condition, ...]
Empty = Callable[[Branch], bool]  # whether a conjunction surely holds nowhere
MAX_BRANCHES = 12


def branches(condition: Condition, empty: Empty, inner: frozenset[str] = frozenset()) -> list[Branch]:
    """Returns disjoint conjunctions of comparisons; an `or` with too many alternatives stays one condition.

    Those that are `empty` are left out where there are several. `k <= max(q, 9)` stays whole too where k is
    an `inner` position: it is a bound as it stands.
    """

    def opened(node: Compare) -> Condition:
        bound = isinstance(node.left, Name) and node.left.name in inner
        return node if bound else _opened(node)

    conjunctions = _split(expr.pushed(condition, opened), empty)
    return [branch for branch in conjunctions if len(conjunctions) == 1 or not empty(branch)]


def _negated(condition: Condition) -> Condition:
    return expr.pushed(condition, _opened, positive=False)


def _opened(node: Compare) -> Condition:
    """`max(a, b) <= x` as `a <= x and b <= x`, `abs(a) > x` as `a > x or a < -x`, and so on."""
    left, op, right = node.left, node.op, node.right
    if isinstance(right, Arith) and right.op in ("min", "max", "abs"):
        left, op, right = right, FLIPPED[op], left
    match left:
        case Arith(op="min" | "max") if op in ("<=", "<", ">=", ">"):
            parts = [_opened(Compare(op, arg, right)) for arg in left.args]
            together = (left.op == "max") is (op in ("<=", "<"))
            return expr.all_of(*parts) if together else expr.any_of(*parts)
        case Arith(op="abs", args=(arg,)) if op in (">=", ">"):
            below = Compare(FLIPPED[op], arg, minus(Num(0), right))
            return expr.any_of(Compare(op, arg, right), below)
        case _:
            return node


def _split(node: Condition, empty: Empty) -> list[Branch]:
    match node:
        case Truth():
            return [()] if node.value else []
        case And():
            conjunctions: list[Branch] = [()]
            for part in (_split(arg, empty) for arg in node.args):
                conjunctions = [_joined(a, b) for a, b in product(conjunctions, part)]
            return [branch for branch in conjunctions if len(conjunctions) == 1 or not empty(branch)]
        case Or():
            return _apart(node, empty)
        case _:
            return [(node,)]


def _apart(node: Or, empty: Empty) -> list[Branch]:
    """Returns the alternatives, each without the earlier ones; those that are easy to negate come first."""
    disjoint: list[Branch] = []
    for alternative in sorted(node.args, key=_difficulty):
        rest = _split(alternative, empty)
        for earlier in list(disjoint):
            rest = [piece for branch in rest for piece in _without(branch, earlier, empty)]
        disjoint += rest
        if len(disjoint) > MAX_BRANCHES:
            return [(node,)]
    return disjoint


def _without(branch: Branch, other: Branch, empty: Empty) -> list[Branch]:
    """`branch and not other`: the first condition of `other` fails, or it holds and the second fails."""
    pieces: list[Branch] = []
    held: Branch = branch
    for condition in other:
        if condition in branch:
            continue
        failing = _split(_negated(condition), empty)
        pieces += [_joined(held, piece) for piece in failing]
        held = _joined(held, (condition,))
    return [piece for piece in pieces if not _contradicts(piece) and not empty(piece)]


def _contradicts(branch: Branch) -> bool:
    return any(_negated(condition) in branch for condition in branch)


def _joined(a: Branch, b: Branch) -> Branch:
    return tuple(dict.fromkeys((*a, *b)))


def _difficulty(node: Condition) -> tuple[int, int, int]:
    """Returns a sort key: data last, before it remainders, before those conditions with many parts."""
    nodes = list(expr.walk(node))
    data = bool(expr.arrays(node))
    remainders = sum(isinstance(part, Arith) and part.op == "%" for part in nodes)
    compares = [part for part in nodes if isinstance(part, Compare)]
    doubled = sum(isinstance(part.left, Arith) and part.left.op == "abs" for part in compares)
    return (data, remainders, len(compares) + doubled)
