"""The small language of rules: integer terms and conditions over positions, sizes and parameters.

A rule is a `Condition`. Its leaves are integers and names; `q - k <= t` is
`Compare("<=", Arith("-", (Name("q"), Name("k"))), Name("t"))`. Every node remembers the span of
text it was read from, which takes no part in equality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import Any, Literal, TypeVar, cast

from lattend.errors import LattendError

Span = tuple[int, int]
ArithOp = Literal["+", "-", "*", "//", "%", "neg", "abs", "min", "max", "/", "^", "floor", "ceil"]
CompareOp = Literal["<", "<=", "==", "!=", ">=", ">"]

MAX_PARTS, MAX_DEPTH = 5_000, 200
NEGATED: dict[CompareOp, CompareOp] = {"<": ">=", "<=": ">", "==": "!=", "!=": "==", ">=": "<", ">": "<="}
FLIPPED: dict[CompareOp, CompareOp] = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">=": "<=", ">": "<"}


@dataclass(frozen=True, slots=True)
class Num:
    value: int
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Lookup:
    """An entry of an array that is given as data: `doc[q]`, `chosen[q // b, k // b]`."""

    array: str
    indices: tuple[Term, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arith:
    op: ArithOp
    args: tuple[Term, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compare:
    op: CompareOp
    left: Term
    right: Term
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class And:
    args: tuple[Condition, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Or:
    args: tuple[Condition, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    arg: Condition
    span: Span | None = field(default=None, compare=False, repr=False)


Term = Num | Name | Lookup | Arith
Condition = Truth | Compare | And | Or | Not
Node = Term | Condition
N = TypeVar("N", Term, Condition)
V = TypeVar("V")


def children(node: Node) -> tuple[Node, ...]:
    """Returns the children of `node`."""
    match node:
        case Num() | Name() | Truth():
            return ()
        case Lookup(indices=args) | Arith(args=args):
            return args
        case Compare():
            return (node.left, node.right)
        case And(args=args) | Or(args=args):
            return args
        case Not():
            return (node.arg,)


def walk(node: Node) -> Iterator[Node]:
    """Yields `node` and all nodes under it, left to right, without recursion."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def fold(node: Node, step: Callable[[Node, Sequence[V]], V]) -> V:
    """Returns the result of `step(node, results of its children)`, computed from the leaves up."""
    order, stack, made = list[Node](), [node], list[V]()
    while stack:
        order.append(stack.pop())
        stack.extend(children(order[-1]))
    for top in reversed(order):  # left to right, and a node after those under it
        first = len(made) - len(children(top))
        made[first:] = [step(top, made[first:])]
    return made[0]


def rebuilt(node: Node, parts: Sequence[Any]) -> Node:
    """Returns `node` with other children and the same span."""
    match node:
        case Num() | Name() | Truth():
            return node
        case Lookup():
            return Lookup(node.array, tuple(parts), node.span)
        case Arith():
            return Arith(node.op, tuple(parts), node.span)
        case Compare():
            return Compare(node.op, parts[0], parts[1], node.span)
        case And() | Or():
            return type(node)(tuple(parts), node.span)
        case Not():
            return Not(parts[0], node.span)


def depth(node: Node) -> int:
    """The length of the longest path from `node` to a leaf."""
    return fold(node, lambda _, below: 1 + max(below, default=0))


def check_size(node: Node) -> None:
    """Raises when the node has too many parts or is nested too deep to be worked with."""
    parts, levels = sum(1 for _ in walk(node)), depth(node)
    if parts > MAX_PARTS:
        raise LattendError(
            f"this rule has {parts:,} parts, and at most {MAX_PARTS:,} are allowed; write fewer"
        )
    if levels > MAX_DEPTH:
        raise LattendError(f"this rule is nested {levels} deep, and at most {MAX_DEPTH} are allowed")


def names(node: Node) -> list[str]:
    """The names in `node`, each once, in the order they first occur."""
    return list(dict.fromkeys(n.name for n in walk(node) if isinstance(n, Name)))


def arrays(node: Node) -> list[str]:
    """The data arrays in `node`, each once, in the order they first occur."""
    return list(dict.fromkeys(n.array for n in walk(node) if isinstance(n, Lookup)))


def all_of(*conditions: Condition) -> Condition:
    """Returns the conjunction, flattened, without duplicates: `all_of(a, b & c, a)` has three arguments."""
    return _joined(And, True, conditions)


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """Returns the conditions joined by `and`; an empty tuple if the condition always holds."""
    if condition == Truth(True):
        return ()
    return condition.args if isinstance(condition, And) else (condition,)


def any_of(*conditions: Condition) -> Condition:
    """Returns the disjunction, flattened and without duplicates."""
    return _joined(Or, False, conditions)


def _joined(kind: type[And] | type[Or], unit: bool, conditions: tuple[Condition, ...]) -> Condition:
    flat: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, kind):
            flat.extend(condition.args)
        elif isinstance(condition, Truth):
            if condition.value is not unit:
                return condition
        else:
            flat.append(condition)
    distinct = tuple(dict.fromkeys(flat))
    if len(distinct) == 1:
        return distinct[0]
    return kind(distinct) if distinct else Truth(unit)


def flattened(
    kind: type[And] | type[Or], conditions: Sequence[Condition], span: Span | None = None
) -> Condition:
    """Joins conditions as they are written: only And within And and Or within Or is flattened."""
    flat: list[Condition] = []
    for condition in conditions:
        flat.extend(condition.args if isinstance(condition, kind) else (condition,))
    return kind(tuple(flat), span)


def negated(condition: Condition) -> Condition:
    """Returns `not condition` without double negation."""
    match condition:
        case Not(arg=arg):
            return arg
        case Truth(value=value):
            return Truth(not value)
        case _:
            return Not(condition)


def without_not(
    node: Condition,
    compare: Callable[[Compare, CompareOp], V],
    truth: Callable[[bool], V],
    both: Callable[[V, V], V],
    either: Callable[[V, V], V],
    *,
    positive: bool = True,
) -> V:
    """Folds a condition, or its negation if not `positive`, with `not` moved into the comparisons.

    `compare` gets each comparison as it was written, and the sign that is meant.
    """
    match node:
        case Truth():
            return truth(node.value is positive)
        case Not():
            return without_not(node.arg, compare, truth, both, either, positive=not positive)
        case And() | Or():
            parts = [without_not(arg, compare, truth, both, either, positive=positive) for arg in node.args]
            return reduce(both if isinstance(node, And) is positive else either, parts)
        case Compare():
            return compare(node, node.op if positive else NEGATED[node.op])


def pushed(
    node: Condition, compare: Callable[[Compare], Condition] = lambda node: node, *, positive: bool = True
) -> Condition:
    """The condition, or its negation, without `not`, its comparisons put through `compare`.

    >>> from lattend.rules.language.parser import parse
    >>> text(pushed(parse("not (k <= q and q - k <= t)")))
    'k > q or q - k > t'
    """

    def meant(node: Compare, op: CompareOp) -> Condition:
        return compare(node if node.op == op else replace(node, op=op))

    return without_not(node, meant, Truth, all_of, any_of, positive=positive)


def data_comparisons(node: Condition) -> list[Compare]:
    """The comparisons that look something up, each once."""
    return list(dict.fromkeys(n for n in walk(node) if isinstance(n, Compare) and arrays(n)))


def choices(
    node: Condition, unknowns: Sequence[Condition]
) -> Iterator[tuple[dict[Condition, bool], Condition]]:
    """Yields every choice of truth values for `unknowns`, with the rest of the condition."""
    for choice in product((True, False), repeat=len(unknowns)):
        chosen = dict(zip(unknowns, choice, strict=True))
        yield chosen, resolved(node, chosen)


def replaced(
    node: N, leaf: Callable[[Name], Term], number: Callable[[Num], Term] = lambda number: number
) -> N:
    """Returns `node` with every name replaced by `leaf(name)` and every number by `number(number)`."""

    def step(node: Node, parts: Sequence[Node]) -> Node:
        match node:
            case Name():
                return leaf(node)
            case Num():
                return number(node)
            case _:
                return rebuilt(node, parts)

    return cast(N, fold(node, step))


def exchanged(node: N, old: Term, new: Term) -> N:
    """Returns `node` with every `old` replaced by `new`."""
    return cast(N, fold(node, lambda part, parts: new if part == old else rebuilt(part, parts)))


def substituted(node: Condition, values: Mapping[str, Term]) -> Condition:
    """Returns `node` with the names in `values` replaced."""
    return replaced(node, lambda name: values.get(name.name, name))


def placed(node: Condition, span: Span) -> Condition:
    """Returns `node` with `span` as the span of all its nodes."""
    return cast(Condition, fold(node, lambda node, parts: replace(rebuilt(node, parts), span=span)))


def resolved(node: Condition, known: Mapping[Condition, bool]) -> Condition:
    """Returns `node`, simplified, with the conditions in `known` replaced by their truth values."""
    if node in known:
        return Truth(known[node])
    match node:
        case And():
            return all_of(*(resolved(arg, known) for arg in node.args))
        case Or():
            return any_of(*(resolved(arg, known) for arg in node.args))
        case Not():
            return negated(resolved(node.arg, known))
        case _:
            return node


_STRENGTH = {"+": 4, "-": 4, "*": 5, "//": 5, "%": 5, "neg": 6}


def term_text(node: Term, strength: int = 0) -> str:
    """Returns a term as rule text, in brackets if the context binds more tightly than it."""
    match node:
        case Num():
            return str(node.value) if node.value >= 0 or strength <= 4 else f"({node.value})"
        case Name():
            return node.name
        case Lookup():
            return f"{node.array}[{', '.join(map(term_text, node.indices))}]"
        case Arith(op="abs" | "min" | "max"):
            return f"{node.op}({', '.join(map(term_text, node.args))})"
        case Arith(op="neg", args=(Num(value=value),)) if value >= 0:
            text, own = f"-({value})", 6  # -3 reads back as a number
        case Arith(op="neg", args=(arg,)):
            text, own = f"-{term_text(arg, 6)}", 6
        case Arith(op=op, args=(left, right)):
            own = _STRENGTH[op]
            text = f"{term_text(left, own)} {op} {term_text(right, own + 1)}"
        case Arith():
            raise ValueError(f"{node.op} with {len(node.args)} arguments")
    return f"({text})" if own < strength else text


def text(node: Condition, strength: int = 0) -> str:
    """Returns a condition as rule text, which parses to an equal condition."""
    match node:
        case Truth():
            return "true" if node.value else "false"
        case Compare():
            shown, own = f"{term_text(node.left)} {node.op} {term_text(node.right)}", 3
        case Not():
            shown, own = f"not {text(node.arg, 3)}", 2
        case And():
            shown, own = " and ".join(text(a, 2) for a in node.args), 1
        case Or():
            shown, own = " or ".join(text(a, 1) for a in node.args), 0
    return f"({shown})" if own < strength else shown
