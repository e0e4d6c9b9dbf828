"""Statement: the same work at every point of a set, what it reads and what it writes.

A layer is a few of these. How many operations it takes forward and backward follows from the number of
points, of the sums they go into, and of the numbers in the arrays it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from lattend.cost.amount import ONE, ZERO, Amount

OPERATIONS: tuple[str, ...] = ("multiplies", "adds", "exponentials", "divisions", "functions")
Values = Mapping[str, int]
COLUMNS: tuple[str, ...] = ("needed", "executed", "dense")


Executed = Callable[[Values], Amount | None]  # asked with numbers for symbols; None where one is missing


@dataclass(frozen=True, eq=False)
class Columns:
    """One amount three times: needed, dense, and executed, which is found only when it is asked for."""

    needed: Amount
    executed: Executed
    dense: Amount

    @staticmethod
    def same(amount: Amount) -> Columns:
        """The same in all columns."""
        return Columns(amount, lambda values: amount, amount)

    @staticmethod
    def of(needed: Amount, dense: Amount) -> Columns:
        """What runs is what is dense."""
        return Columns(needed, lambda values: dense, dense)

    def column(self, name: str, values: Values) -> Amount | None:
        """One of the three."""
        return self.executed(values) if name == "executed" else self.dense if name == "dense" else self.needed

    def __add__(self, other: Columns) -> Columns:
        return self._joined(other, Amount.__add__)

    def __sub__(self, other: Columns) -> Columns:
        return self._joined(other, Amount.__sub__)

    def __mul__(self, other: Columns | Amount | int) -> Columns:
        if isinstance(other, int):
            other = Amount.number(other)
        return self._joined(Columns.same(other) if isinstance(other, Amount) else other, Amount.__mul__)

    def _joined(self, other: Columns, join: Callable[[Amount, Amount], Amount]) -> Columns:
        def executed(values: Values) -> Amount | None:
            mine, theirs = self.executed(values), other.executed(values)
            return None if mine is None or theirs is None else join(mine, theirs)

        return Columns(join(self.needed, other.needed), executed, join(self.dense, other.dense))


NOTHING = Columns.same(ZERO)


@dataclass(frozen=True, eq=False)
class Array:
    """Numbers that statements read and write: an input, a parameter, or made on the way."""

    name: str
    size: Columns
    kind: str = "made"  # or input, parameter, constant, again (from another array, so that it is not saved)
    touched: Columns | None = None  # the numbers that get a gradient here first, if not all of them
    of: Array | None = None  # the array whose numbers these are
    of_head: Amount | None = None  # the numbers of one head, where each has its own

    @property
    def base(self) -> Array:
        """The array that was written."""
        return self if self.of is None else self.of.base


@dataclass(frozen=True)
class OperationKind:
    """The operations at each point, forward and backward, and whether points are summed up."""

    forward: Mapping[str, int]
    backward: Mapping[str, int] = field(default_factory=dict[str, int])
    sums: bool = False
    saves: str = ""  # what the backward pass needs: "reads", "writes" or nothing


KINDS = {
    "products": OperationKind({"multiplies": 1}, {"multiplies": 2}, sums=True, saves="reads"),
    "constant products": OperationKind({"multiplies": 1}, {"multiplies": 1}, sums=True, saves="reads"),
    "sums": OperationKind({}, sums=True),
    "copies": OperationKind({}),
    "adds": OperationKind({"adds": 1}),
    "multiplies": OperationKind({"multiplies": 1}, {"multiplies": 2}, saves="reads"),
    "constant multiplies": OperationKind({"multiplies": 1}, {"multiplies": 1}),
    "exponentials": OperationKind({"exponentials": 1}, {"multiplies": 1}, saves="writes"),
    "divisions": OperationKind({"divisions": 1}, {"divisions": 2, "multiplies": 1}, saves="reads"),
    "constant divisions": OperationKind({"divisions": 1}, {"divisions": 1}),
    "reciprocals": OperationKind({"divisions": 1}, {"divisions": 1, "multiplies": 1}, saves="reads"),
    "functions": OperationKind({"functions": 1}, {"functions": 1, "multiplies": 1}, saves="writes"),
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
    longest: tuple[Amount, ...] = (ONE,)  # terms of its longest sum, the most of these
    saves: str | None = None  # where it differs from its kind's
    recomputed: bool = False  # the executed backward pass runs it once more instead of saving its result

    def operations(self, *, backward: bool = False) -> dict[str, Columns]:
        """How many of each operation; backward without the sums of gradients that meet."""
        kind = KINDS[self.kind]
        columns = {op: self.points * n for op, n in (kind.backward if backward else kind.forward).items()}
        if kind.sums and not backward:
            columns["adds"] = self.points - self.begins
        if backward and self.recomputed:
            for op, more in self.operations().items():
                columns[op] = columns.get(op, NOTHING) + Columns(ZERO, more.executed, ZERO)
        return columns

    def saved(self) -> tuple[Array, ...]:
        """The arrays that the backward pass reads again."""
        saves = KINDS[self.kind].saves if self.saves is None else self.saves
        return self.reads if saves == "reads" else (self.writes,) if saves == "writes" else ()


def meeting(statements: Iterable[Statement]) -> Columns:
    """The adds of the backward pass: each reading gives a gradient, and all but the first are added."""
    total = NOTHING
    begun: set[Array] = set()
    for statement in statements:
        for array in statement.reads:
            if array.kind == "constant":
                continue
            total = total + statement.points
            if array not in begun:
                begun.add(array)
                total = total - (array.size if array.touched is None else array.touched)
    return total
