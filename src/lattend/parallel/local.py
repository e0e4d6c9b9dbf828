"""A block's own rule and bias: those of the whole, with positions counted from where the block begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lattend.attend.bias import parts_of
from lattend.parallel.edges import PairBlock
from lattend.parallel.keyset import POSITIONS, ListedKeys
from lattend.rules.axes import CROSS, HEAD, HEADS, Axis
from lattend.rules.flat import flat_places, flattened
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Name, Num, Term
from lattend.rules.rule import Rule

Terms = Mapping[str, Term]


@dataclass(frozen=True)
class Heads:
    """The heads that a rank computes, of all there are."""

    first: int
    count: int
    whole: int


def local_axes(rule: Rule, block: PairBlock) -> tuple[Axis, ...]:
    """Those of an image where the block has as many rows and columns of queries as of keys; else a line's."""
    same = block.queries.sizes == block.keys.sizes
    return rule.axes if len(rule.axes) > 1 and same else CROSS


def local_rule(rule: Rule, block: PairBlock, heads: Heads | None = None) -> Rule:
    """The rule for a block: its own sizes, and positions counted from its own beginning.

    Sizes that the condition speaks of stay those of the whole.

    >>> from lattend.parallel.keyset import Box
    >>> from lattend.parallel.edges import BoxView
    >>> from lattend.rules.reader import rule
    >>> whole = rule("abs(qy - ky) <= 1 and qx == kx").at(rows=9, cols=4)
    >>> queries, row = Box.of([(3, 4), (0, 4)]), BoxView(0, (1, 4), ((0, 1), (0, 4)))
    >>> local_rule(whole, PairBlock(queries, row, Box.of([(2, 3), (0, 4)]), 0))  # row 3 with row 2
    <Rule abs(qy + 3 - (ky + 2)) <= 1 and qx == kx>
    >>> local_rule(whole, PairBlock(queries, row, Box.of([(2, 3), (1, 3)]), 0))  # with two columns of it
    <Rule abs(q // 4 + 3 - (k // 2 + 2)) <= 1 and q % 4 == k % 2 + 1>
    """
    at = {**_positions(rule, block), **_of_heads(heads)}
    whole = replace(rule.baked(), axes=local_axes(rule, block), values={})
    if isinstance(block.keys, ListedKeys):
        whole = replace(whole, data={**whole.data, POSITIONS: block.keys.listed})
    return replace(whole, condition=expr.substituted(whole.condition, at), where=expr.Truth(True))


def whole_bias(key: str, rule: Rule, *, on_line: bool) -> str:
    """The key of a bias with the numbers of the rule, whose image may be read row by row."""
    names, term = parts_of(key)
    at: dict[str, Term] = {name: Num(rule.values[name]) for name in rule.parameters}
    if on_line and len(rule.axes) > 1:
        at |= {axis.queries: Num(rule.values[axis.queries]) for axis in rule.axes}
        at |= flat_places(rule.axes, rule.values)
    return _key(names, term, at)


def local_bias(key: str, rule: Rule, block: PairBlock, heads: Heads | None = None) -> str:
    """The key of a bias for a block."""
    names, term = parts_of(key)
    return _key(names, term, {**_positions(rule, block), **_of_heads(heads)})


def local_table(key: str, rule: Rule, block: PairBlock) -> str:
    """The same of a table that has the rows of this rank's queries alone, and a column for every key."""
    names, term = parts_of(key)
    (_, queries), (_, keys) = _numbers(rule, block)
    rows = [moved(at, a) for at, (a, _) in zip(queries, block.part.inside, strict=True)]
    row = moved(flattened(rows, block.part.shape), block.part.start)
    whole = [rule.values[axis.keys] for axis in rule.axes]
    return _key(names, term, {"q": row, "k": flattened(block.keys.positions(keys), whole)})


def _positions(rule: Rule, block: PairBlock) -> Terms:
    """What positions and sizes of the whole are in a block."""
    found: dict[str, Term] = {}
    for axis in rule.axes:
        found |= {size: Num(rule.values[size]) for size in (axis.queries, axis.keys)}
    for box, (names, numbers) in zip((block.queries, block.keys), _numbers(rule, block), strict=True):
        found |= dict(zip(names, box.positions(numbers), strict=True))
    return found


def _numbers(rule: Rule, block: PairBlock) -> list[tuple[list[str], Sequence[Term]]]:
    """For queries and keys, the names of the whole's positions, and the numbers of rows and columns."""
    queries, keys = [axis.query for axis in rule.axes], [axis.key for axis in rule.axes]
    if local_axes(rule, block) == rule.axes:
        return [(queries, [*map(Name, queries)]), (keys, [*map(Name, keys)])]
    line = CROSS[0]
    return [(queries, block.queries.numbers(line.query)), (keys, block.keys.numbers(line.key))]


def _key(names: list[str], term: Term, at: Terms) -> str:
    """The key of a bias whose names stand for others."""
    return f"{' '.join(names)}\n{expr.term_text(expr.replaced(term, lambda name: at.get(name.name, name)))}"


def _of_heads(heads: Heads | None) -> Terms:
    """What `head` and `heads` stand for on a rank."""
    return {} if heads is None else {HEAD: moved(Name(HEAD), heads.first), HEADS: Num(heads.whole)}


def moved(at: Term, by: int) -> Term:
    """A position that is counted from another beginning."""
    return at if by == 0 else Arith("+", (at, Num(by)))
