"""Rewritings of a condition that leave its set alone: another spelling, the same pairs."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from lattend.rules.axes import Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import And, Arith, Compare, Condition, Name, Not, Num, Or, Term, Truth

MOST_PARTS = 400  # a longer condition is not rewritten further
FLIPPED: dict[expr.CompareOp, expr.CompareOp] = {"<": ">", "<=": ">=", ">=": "<=", ">": "<"}
STRICT: dict[expr.CompareOp, tuple[expr.CompareOp, int]] = {
    "<=": ("<", 1),
    "<": ("<=", -1),
    ">=": (">", -1),
    ">": (">=", 1),
}
Pick = Callable[[int], int]  # a number from 0 up to this one


def rewritten(draw: st.DrawFn, condition: Condition, axes: tuple[Axis, ...]) -> Condition:
    """The condition after up to three passes over it, each of which may rewrite every part."""

    def pick(most: int) -> int:
        return draw(st.integers(0, most))

    found = condition
    for _ in range(1 + pick(2)):
        if sum(1 for _ in expr.walk(found)) < MOST_PARTS:
            found = _whole(_part(found, pick), axes, pick)
    return found


def _part(node: Condition, pick: Pick) -> Condition:
    match node:
        case Truth():
            return node
        case Not():
            return Not(_part(node.arg, pick))
        case And() | Or():
            return _joined(node, [_part(arg, pick) for arg in node.args], pick)
        case Compare():
            return _comparison(node, pick)


def _joined(node: And | Or, args: list[Condition], pick: Pick) -> Condition:
    kind, other = type(node), Or if isinstance(node, And) else And
    match pick(4):
        case 0:  # permuted
            return kind(tuple(reversed(args)))
        case 1:  # by De Morgan
            return Not(other(tuple(Not(arg) for arg in args)))
        case 2:  # distributed
            for place, arg in enumerate(args):
                if isinstance(arg, other):
                    rest = args[:place] + args[place + 1 :]
                    return other(tuple(kind((*rest, inner)) for inner in arg.args))
            return kind(tuple(args))
        case 3:  # absorbed: a and (a or b)
            return kind((*args, other((args[0], args[-1]))))
        case _:
            return kind(tuple(args))


def _comparison(node: Compare, pick: Pick) -> Condition:
    match node:
        case Compare("==" | "!=", Arith("%", (Arith("-", (a, b)), m)), Num(0)) if pick(1):  # equal remainders
            node = Compare(node.op, Arith("%", (a, m)), Arith("%", (b, m)))
        case _:
            pass
    left, right, op = _term(node.left, pick), _term(node.right, pick), node.op
    flipped = FLIPPED.get(op, op)
    match pick(2 if expr.arrays(node) else 7):
        case 0:
            return Compare(op, left, right)
        case 1:
            return Not(Compare(expr.NEGATED[op], left, right))
        case 2:
            return Compare(flipped, right, left)
        case 3:
            return Compare(op, Arith("-", (left, right)), Num(0))
        case 4 if op in STRICT:
            strict, one = STRICT[op]
            return Compare(strict, left, Arith("+", (right, Num(one))))
        case 5:
            return Compare(flipped, Arith("neg", (left,)), Arith("neg", (right,)))
        case 6:
            return Compare(op, Arith("*", (Num(3), left)), Arith("*", (Num(3), right)))
        case 7 if op == "==":
            return And((Compare("<=", left, right), Compare(">=", left, right)))
        case 7 if op == "!=":
            return Or((Compare("<", left, right), Compare(">", left, right)))
        case _:
            return Not(Not(Compare(op, left, right)))


def _term(node: Term, pick: Pick) -> Term:
    if not isinstance(node, Arith):
        return Arith("+", (node, Num(0))) if isinstance(node, Name) and not pick(5) else node
    args = tuple(_term(arg, pick) for arg in node.args)
    match node.op:
        case "%" if pick(1):
            return Arith("-", (args[0], Arith("*", (Arith("//", args), args[1]))))
        case "+" if pick(1):
            return Arith("+", (args[1], args[0]))
        case "-" if pick(1):
            return Arith("neg", (Arith("-", (args[1], args[0])),))
        case "abs" if pick(1):
            return Arith("max", (args[0], Arith("neg", (args[0],))))
        case _:
            return Arith(node.op, args)


def _whole(node: Condition, axes: tuple[Axis, ...], pick: Pick) -> Condition:
    axis = axes[pick(len(axes) - 1)]
    match pick(5):
        case 0:  # what always holds
            return And((Compare(">=", Name(axis.query), Num(0)), node))
        case 1:
            return And((node, Compare("<", Name(axis.key), Name(axis.keys))))
        case 2:  # overlapping pieces
            cut, name = pick(9), Name((axis.query, axis.key)[pick(1)])
            below = Compare("<", name, Num(cut + pick(3)))
            return Or((And((node, below)), And((node, Compare(">=", name, Num(cut))))))
        case 3:
            return Not(Not(node))
        case 4:  # a piece that is empty
            name = Name(axis.query)
            return Or((node, And((Compare("<", name, Num(3)), Compare(">", name, Num(5))))))
        case _:
            return node
