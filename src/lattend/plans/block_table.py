"""BlockTable: an array that lists which blocks of keys each block of queries attends to.

`chosen[q // 64, k // 64]` is about whole blocks, so a part need not ask each pair: for each row of the
table it lists the attended columns, and takes the positions of those blocks in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lattend.errors import DomainError
from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.evaluation import COMPARE
from lattend.rules.language.expr import FLIPPED, Compare, CompareOp, Condition, Lookup, Name, Term
from lattend.rules.language.linear import Linear, Quotient, linear_of

LEAST_BLOCK = 4  # outer positions in a block: with fewer, tiles of one block are emptier than the table
MOST_VALUE = 127  # compared with entries of any type


@dataclass(frozen=True)
class BlockTable:
    """The entry at block `outer position // outer` and `inner position // inner` compares so with a value.

    `across` is whether the inner position comes first in the lookup; `by_head` whether the head does
    before both.
    """

    lookup: Lookup
    op: CompareOp
    value: int
    outer: int
    inner: int
    across: bool
    by_head: bool

    @property
    def array(self) -> str:
        return self.lookup.array

    def attended(self, table: Any, sizes: Sequence[int]) -> Any:
        """Which blocks are attended, [..., heads or 1, rows, columns], for sizes of these three.

        `table` is an array or a tensor, with further axes in front or not.
        """
        self.check(table.shape, sizes)
        table = table.swapaxes(-1, -2) if self.across else table
        table = table if self.by_head else table[..., None, :, :]
        heads, rows, columns = sizes
        return COMPARE[self.op](table[..., :heads, :rows, :columns], self.value)

    def check(self, shape: Sequence[int], sizes: Sequence[int]) -> None:
        """Raises unless a table of this shape has an entry for each block of these heads, rows, columns."""
        heads, *looked_up = sizes
        wanted = looked_up[::-1] if self.across else looked_up
        for axis, size in enumerate([heads, *wanted] if self.by_head else wanted, -3 if self.by_head else -2):
            if shape[axis] < size:
                raise DomainError(
                    f"{expr.term_text(self.lookup)} is read at "
                    f"{expr.term_text(self.lookup.indices[axis])} = {size - 1}, outside the "
                    f"{self.array} given (0 … {shape[axis] - 1})"
                )


def block_table(
    condition: Condition, outer: str, inner: str, numbers: Mapping[str, int]
) -> BlockTable | None:
    """Returns the table of blocks that a condition looks up; None unless a 0 in it means no attended pair.

    >>> from lattend.rules.language.parser import parse
    >>> found = block_table(parse("chosen[q // 8, k // w]"), "k", "q", {"w": 16})
    >>> found and (found.array, found.outer, found.inner, found.across)
    ('chosen', 16, 8, True)
    """
    if not isinstance(condition, Compare):
        return None
    left, op, right = condition.left, condition.op, condition.right
    if isinstance(right, Lookup):
        left, op, right = right, FLIPPED[op], left
    value = linear_of(right, numbers)
    if not isinstance(left, Lookup) or value is None or value.terms:
        return None
    if not 0 <= value.constant <= MOST_VALUE or COMPARE[op](0, value.constant):
        return None
    by_head = len(left.indices) == 3 and left.indices[0] == Name(HEAD)
    blocks = _blocks(left.indices[1:] if by_head else left.indices, numbers)
    if blocks is None or set(blocks) != {outer, inner} or blocks[outer] < LEAST_BLOCK:
        return None
    across = next(iter(blocks)) == inner
    return BlockTable(left, op, value.constant, blocks[outer], blocks[inner], across, by_head)


def _blocks(indices: Sequence[Term], numbers: Mapping[str, int]) -> dict[str, int] | None:
    """Returns the divisor of each position in the two indices `position // number`."""
    blocks: dict[str, int] = {}
    for index in indices:
        match linear_of(index, numbers):
            case Linear(((str(name), 1),), 0):
                blocks[name] = 1
            case Linear(((Quotient(Linear(((str(name), 1),), 0), int(by)), 1),), 0):
                blocks[name] = by
            case _:
                return None
    return blocks if len(indices) == 2 else None
