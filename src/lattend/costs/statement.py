"""Statement: the same work at every point of a set, what it reads and what it writes.

A layer is a few of these. How many operations it takes forward and backward follows from the number of
points, of the sums they go into, and of the numbers in the arrays it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from lattend.costs.amount import ONE, ZERO, Amount

OPERATIONS: tuple[str, ...] = ("multiplies", "adds", "exponentials", "divisions", "functions")
COLUMNS: tuple[str, ...] = ("needed", "executed", "dense")


@dataclass(frozen=True)
class Columns:
    """One amount three times: needed, executed (None where no plan is known), and dense."""

    needed: Amount
    executed: Amount | None
    dense: Amount

    @staticmethod
    def same(amount: Amount) -> Columns:
        """The same in all columns."""
        return Columns(amount, amount, amount)

    def __add__(self, other: Columns) -> Columns:
        return self._joined(other, Amount.__add__)

    def __sub__(self, other: Columns) -> Columns:
        return self._joined(other, Amount.__sub__)

    def __mul__(self, other: Columns | Amount | int) -> Columns:
        if isinstance(other, int):
            other = Amount.number(other)
        return self._joined(Columns.same(other) if isinstance(other, Amount) else other, Amount.__mul__)

    def _joined(self, other: Columns, join: Callable[[Amount, Amount], Amount]) -> Columns:
        known = self.executed is not None and other.executed is not None
        return Columns(
            join(self.needed, other.needed),
            join(self.executed, other.executed) if known else None,  # pyright: ignore[reportArgumentType]
            join(self.dense, other.dense),
        )


NOTHING = Columns.same(ZERO)


@dataclass(frozen=True, eq=False)
class Array:
    """Numbers that statements read and write: an input, a parameter, or made on the way."""

    name: str
    size: Columns
    kind: str = "made"  # or input, parameter, constant, again (numbers of another array)
    touched: Columns | None = None  # the numbers that get a gradient here first, if not all of them


@dataclass(frozen=True)
class Kind:
    """The operations at each point, forward and backward, and whether points are summed up."""

    forward: Mapping[str, int]
    backward: Mapping[str, int] = field(default_factory=dict[str, int])
    sums: bool = False
    keeps: str = ""  # what the backward pass needs: "reads", "writes" or nothing


KINDS = {
    "products": Kind({"multiplies": 1}, {"multiplies": 2}, sums=True, keeps="reads"),
    "constant products": Kind({"multiplies": 1}, {"multiplies": 1}, sums=True, keeps="reads"),
    "sums": Kind({}, sums=True),
    "copies": Kind({}),
    "adds": Kind({"adds": 1}),
    "multiplies": Kind({"multiplies": 1}, {"multiplies": 2}, keeps="reads"),
    "constant multiplies": Kind({"multiplies": 1}, {"multiplies": 1}),
    "exponentials": Kind({"exponentials": 1}, {"multiplies": 1}, keeps="writes"),
    "divisions": Kind({"divisions": 1}, {"divisions": 2, "multiplies": 1}, keeps="reads"),
    "constant divisions": Kind({"divisions": 1}, {"divisions": 1}),
    "reciprocals": Kind({"divisions": 1}, {"divisions": 1, "multiplies": 1}, keeps="reads"),
    "functions": Kind({"functions": 1}, {"functions": 1, "multiplies": 1}, keeps="writes"),
}


@dataclass(frozen=True, eq=False)
class Statement:
    """Work of one kind at `points`; `begins` of these begin a sum, the others are added to one."""

    name: str
    kind: str
    points: Columns
    reads: tuple[Array, ...]
    writes: Array
    begins: Columns = NOTHING
    over: str = ""  # the set, for reading
    longest: Amount = ONE  # terms of its longest sum
    keeps: str | None = None  # where it differs from its kind's
    again: bool = False  # the backward pass as it is executed runs it once more rather than keep its result

    def operations(self, *, backward: bool = False) -> dict[str, Columns]:
        """How many of each operation; backward without the sums of gradients that meet."""
        kind = KINDS[self.kind]
        found = {op: self.points * n for op, n in (kind.backward if backward else kind.forward).items()}
        if kind.sums and not backward:
            found["adds"] = self.points - self.begins
        if backward and self.again:
            for op, more in self.operations().items():
                found[op] = found.get(op, NOTHING) + Columns(ZERO, more.executed, ZERO)
        return found

    def kept(self) -> tuple[Array, ...]:
        """The arrays that the backward pass reads again."""
        keeps = KINDS[self.kind].keeps if self.keeps is None else self.keeps
        return self.reads if keeps == "reads" else (self.writes,) if keeps == "writes" else ()


def meeting(statements: Iterable[Statement]) -> Columns:
    """The adds of the backward pass: each reading gives a gradient, and all but the first are added."""
    total = NOTHING
    begun: list[Array] = []
    for statement in statements:
        for array in statement.reads:
            if array.kind == "constant":
                continue
            total = total + statement.points
            if not any(array is other for other in begun):
                begun.append(array)
                total = total - (array.size if array.touched is None else array.touched)
    return total
