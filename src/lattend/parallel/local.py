"""A block's own rule and bias: those of the whole, with positions counted from where the block begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from lattend.attend.bias import parts_of
from lattend.attend.dropout import MOST_SEED
from lattend.parallel.edges import Block
from lattend.rules.axes import HEAD, HEADS, LINE, Axis, untied
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Name, Num, Term
from lattend.rules.rule import Rule

ONCE = MOST_SEED  # the size of a run that is all of one piece


@dataclass(frozen=True)
class Heads:
    """The heads that a rank computes, of all there are."""

    first: int
    count: int
    whole: int


def positions(axes: tuple[Axis, ...], values: Mapping[str, int], query: Term, key: Term) -> dict[str, Term]:
    """The positions on each axis, and the sizes, by the flat positions of a query and a key."""
    at: dict[str, Term] = {axis.queries: Num(values[axis.queries]) for axis in axes}
    at |= {axis.keys: Num(values[axis.keys]) for axis in axes}
    below = 1
    for axis in reversed(axes):
        first, size = axis is axes[0], values[axis.queries]
        for name, flat in ((axis.query, query), (axis.key, key)):
            place = flat if below == 1 else Arith("//", (flat, Num(below)))
            at[name] = place if first else Arith("%", (place, Num(size)))
        below *= size
    return at


def local_rule(rule: Rule, block: Block, heads: Heads | None = None) -> Rule:
    """The rule of a line for a block: its own sizes, and positions counted from its own beginning.

    Sizes that the condition speaks of stay those of the whole.
    """
    axis = rule.axes[0]
    at: dict[str, Term] = {
        axis.query: moved(axis.query, block.queries[0]),
        axis.key: block.keys.position(axis.key),
        axis.queries: Num(rule.values[axis.queries]),
        axis.keys: Num(rule.values[axis.keys]),
        **_of_heads(heads),
    }
    whole = replace(rule.baked(), axes=untied(rule.axes), values={})
    return replace(whole, condition=expr.substituted(whole.condition, at), where=expr.Truth(True))


def rows_of(rule: Rule, block: Block) -> int | None:
    """How many rows a block has, where as many whole rows of queries as of keys make it an image too."""
    area = prod(rule.values[axis.queries] for axis in rule.axes[1:])
    ends = (*block.queries, block.keys.start, block.keys.end)
    whole = len(rule.axes) > 1 and block.keys.count == 1 and area > 0 and all(end % area == 0 for end in ends)
    same = block.queries[1] - block.queries[0] == block.keys.total
    return block.keys.total // area if whole and same else None


def image_positions(rule: Rule, block: Block, heads: Heads | None = None) -> dict[str, Term]:
    """What the positions and sizes of such a block stand for in the whole."""
    first, area = rule.axes[0], prod(rule.values[axis.queries] for axis in rule.axes[1:])
    return {
        first.query: moved(first.query, block.queries[0] // area),
        first.key: moved(first.key, block.keys.start // area),
        **{axis.queries: Num(rule.values[axis.queries]) for axis in rule.axes},
        **_of_heads(heads),
    }


def image_rule(rule: Rule, block: Block, heads: Heads | None = None) -> Rule:
    """The rule of an image for a block of whole rows: one of images again, with their plans.

    >>> from lattend.parallel.runs import Run
    >>> from lattend.rules.reader import rule
    >>> whole = rule("abs(qy - ky) <= 1 and qx == kx").at(rows=9, cols=4)
    >>> image_rule(whole, Block((12, 16), 0, Run(8, 4), 0))  # row 3 with row 2
    <Rule abs(qy + 3 - (ky + 2)) <= 1 and qx == kx>
    """
    whole, at = replace(rule.baked(), values={}), image_positions(rule, block, heads)
    return replace(whole, condition=expr.substituted(whole.condition, at), where=expr.Truth(True))


def local_bias(
    key: str, rule: Rule, block: Block, heads: Heads | None = None, *, own_rows: bool = False
) -> str:
    """The key of a bias for a block; `rule` is that of the call.

    A table that has `own_rows`, those of this rank's queries alone, is read where its tensors hold them.
    """
    names, term = parts_of(key)
    if not own_rows and rows_of(rule, block) is not None:
        at = image_positions(rule, block, heads) | {name: Num(rule.values[name]) for name in rule.parameters}
        return _key(names, term, at)
    first = block.query_place if own_rows else block.queries[0]
    at = positions(rule.axes, rule.values, moved(LINE[0].query, first), block.keys.position(LINE[0].key))
    at |= {name: Num(rule.values[name]) for name in rule.parameters} | _of_heads(heads)
    return _key(names, term, at)


def _key(names: list[str], term: Term, at: Mapping[str, Term]) -> str:
    """The key of a bias whose names stand for others."""
    return f"{' '.join(names)}\n{expr.term_text(expr.replaced(term, lambda name: at.get(name.name, name)))}"


def _of_heads(heads: Heads | None) -> dict[str, Term]:
    """What `head` and `heads` stand for on a rank."""
    return {} if heads is None else {HEAD: moved(HEAD, heads.first), HEADS: Num(heads.whole)}


def moved(name: str, by: int) -> Term:
    """A position that is counted from another beginning."""
    return Name(name) if by == 0 else Arith("+", (Name(name), Num(by)))


def key_places(block: Block) -> tuple[int, int, int]:
    """Start, size and period of a block's keys, as a seed of dropout has them."""
    run = block.keys
    return run.start, run.size if run.count > 1 else ONCE, run.period
