"""Layer: its statements, the arrays they read and write, which cells wait for which; and a Builder of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lattend.budget import Budget
from lattend.cost.amount import ONE, ZERO, Amount
from lattend.cost.points import Sizes, at_least, points, substitute
from lattend.counts.closed import Closed
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition
from lattend.rules.language.parser import parse
from lattend.rules.language.polynomial import Polynomial
from lattend.sets.chains import Shift, schedule

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
        """Columns whose executed number is the dense one."""
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


MULTIPLY_ADDS = "multiply_adds"


@dataclass(frozen=True)
class LayerDepth:
    """The sequential depth, in cells, and at which step each cell runs."""

    steps: Amount
    schedule: str  # "cell (row, col) runs at step row + col"


@dataclass(frozen=True)
class ReferenceRun:
    """The plain code that does what a cost says: its name there, its sizes and its other arguments."""

    name: str
    sizes: Sizes
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


ONE_STEP = LayerDepth(ONE, "all of it runs at once")
NO_STEP = LayerDepth(ZERO, "nothing runs")


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer: its statements, parameters and the order of its cells."""

    name: str
    statements: tuple[Statement, ...]
    parameters: tuple[Array, ...] = ()
    depth: LayerDepth = ONE_STEP
    mixes_tokens: bool = False  # one token's numbers depend on others'
    path: Amount | Callable[[Budget | None], Amount | None] | None = None  # a function where it takes work
    cache: Amount = ZERO  # numbers of the KV cache, or of a recurrent state
    streams: bool = False  # it runs cell by cell, so that only its state is held
    positions: Polynomial | None = None  # the tokens, steps or pixels it is given

    def path_length(self, shared: Budget | None = None) -> Amount | None:
        """The longest path between two positions, in steps of this layer; None where it is not known."""
        return self.path(shared) if callable(self.path) else self.path

    def arrays(self) -> list[Array]:
        """All arrays, each once, in the order they are met."""
        met = (array.base for s in self.statements for array in (*s.reads, s.writes))
        return list(dict.fromkeys(met))

    def saved(self) -> list[Array]:
        """The activations that training saves for the backward pass."""
        saved = (array.base for s in self.statements for array in s.saved())
        return [array for array in dict.fromkeys(saved) if array.kind in ("input", "made")]

    def operations(self, way: str) -> dict[str, list[Columns]]:
        """How many of each, statement by statement; going back, gradients that meet are added."""
        columns_of: dict[str, list[Columns]] = {}
        for statement in self.statements:
            for op, columns_ in statement.operations(backward=way == "backward").items():
                columns_of.setdefault(op, []).append(columns_)
        if way == "backward":
            columns_of.setdefault("adds", []).append(meeting(self.statements))
        return columns_of

    def products(self, way: str) -> dict[str, list[Columns]]:
        """The multiplies of each statement whose results are summed up, as multiply-adds."""
        sums = (s for s in self.statements if KINDS[s.kind].sums)
        each = (s.operations(backward=way == "backward").get("multiplies") for s in sums)
        return {MULTIPLY_ADDS: [columns for columns in each if columns is not None]}

    def numbers(self, quantity: str, size: Callable[[Array], Amount]) -> Amount:
        """Numbers learned, read, written, saved or cached, or the depth; `size` is that of an array."""
        match quantity:
            case "parameters":
                return sum((array.size.dense for array in self.parameters), ZERO)
            case "bytes_read":
                read = (array for s in self.statements for array in s.reads if array.kind != "constant")
                return sum(map(size, read), ZERO)
            case "bytes_written":
                return sum(map(size, dict.fromkeys(s.writes for s in self.statements)), ZERO)
            case "saved_activations":
                return sum(map(size, self.saved()), ZERO)
            case "cache":
                return self.cache
            case _:
                return self.depth.steps

    def scalar_depth(self, number: Callable[[Amount], int]) -> int:
        """Its steps, each as deep as a cell's longest chain of operations: statements that read others'."""
        before: dict[Array, int] = {}
        for statement in self.statements:
            start = max((before.get(array.base, 0) for array in statement.reads), default=0)
            kind = KINDS[statement.kind]
            terms = max(map(number, statement.longest)) if kind.sums else 1
            done = start + bool(kind.forward) + (terms - 1).bit_length()
            before[statement.writes] = max(before.get(statement.writes, 0), done)
        return number(self.depth.steps) * max(before.values(), default=0)

    def peak(self, number: Callable[[Amount], int]) -> int:
        """The most numbers that are held at once, without parameters: statements in order, no gradients."""
        if self.streams:
            return number(self.cache)
        end = len(self.statements)
        last = {array.base: index for index, s in enumerate(self.statements) for array in s.reads}
        held = {array: number(array.size.needed) for array in self.arrays() if array.kind == "input"}
        most = sum(held.values())
        for index, statement in enumerate(self.statements):
            held[statement.writes] = number(statement.writes.size.needed)
            most = max(most, sum(held.values()))
            held = {array: size for array, size in held.items() if last.get(array, end) > index}
        return most


def depth_of(cells: str, waits: tuple[Shift, ...], sizes: Sizes) -> LayerDepth:
    """The depth of cells that wait for others: `depth_of("row < n and col < n", ((0, -1), (-1, 0)), …)`."""
    condition = parse(cells)
    indices = tuple(name for name in expr.names(condition) if name not in sizes)
    used = tuple(name for name in expr.names(condition) if name in sizes)
    closed, step = _scheduled(condition, indices, used, waits)
    words = f"cell ({', '.join(indices)}) runs at step {step}"
    return LayerDepth(substitute(closed, {name: sizes[name] for name in used}, at_least(used, 1)), words)


@lru_cache(maxsize=64)
def _scheduled(
    condition: Condition, indices: tuple[str, ...], sizes: tuple[str, ...], waits: tuple[Shift, ...]
) -> tuple[Closed, str]:
    closed = schedule(condition, indices, sizes, waits)
    return Closed(closed.domain.space, closed.domain, closed.steps), str(closed.step)


def columns(over: str, sizes: Sizes, onto: tuple[str, ...] | None = None) -> Columns:
    """How many points a set has, or values its indices `onto` take: the same in all three columns."""
    return Columns.same(points(over, sizes, onto))


class Builder:
    """A layer on its way: sets are texts over its sizes."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.statements: list[Statement] = []
        self.parameters: list[Array] = []

    def columns(self, over: str, onto: tuple[str, ...] | None = None) -> Columns:
        """How many points a set has, or values its indices `onto` take."""
        return columns(over, self.sizes, onto)

    def given(self, name: str, over: str, touched: Columns | None = None) -> Array:
        """An input, one number for each point."""
        return Array(name, columns(over, self.sizes), "input", touched)

    def parameter(
        self, name: str, over: str, touched: Columns | None = None, of_head: Amount | None = None
    ) -> Array:
        """Numbers that are learned, one for each point."""
        made = Array(name, columns(over, self.sizes), "parameter", touched, of_head=of_head)
        self.parameters.append(made)
        return made

    def part(self, array: Array, over: str, kind: str = "again") -> Array:
        """Numbers of an array that are read here and nowhere else: one gate out of several."""
        return Array(array.name, self.columns(over), kind, of=array)

    def take(self, name: str, kind: str, over: str, *reads: Array, saved: bool = True) -> Array:
        """One operation at every point of a set; what is not `saved` is made again in the backward pass."""
        made = Array(name, self.columns(over), "made" if saved else "again")
        return self.write(name, kind, over, reads, made)

    def write(self, name: str, kind: str, over: str, reads: tuple[Array, ...], made: Array) -> Array:
        """The same into an array that is there already."""
        self.statements.append(Statement(name, kind, self.columns(over), reads, made, over=over))
        return made

    def product(
        self, inputs: Array, sizes: Sizes, name: str = "y", *, bias: bool = False, head: Amount | None = None
    ) -> Array:
        """Y = x W (+ b) for n tokens of d_in numbers, d_out in the result: all three in `sizes`.

        Of the d_out, each head makes as many as `head` says, if it is given.
        """
        inner = Builder(sizes)
        out = Array(name, inner.columns("token < n and o < d_out"))
        of_head = None if head is None else head * Amount.of(sizes["d_in"])
        weight = inner.parameter(f"W_{name}", "i < d_in and o < d_out", of_head=of_head)
        over, longest = "token < n and i < d_in and o < d_out", (Amount.of(sizes["d_in"]),)
        every = inner.columns(over)
        inner.statements.append(
            Statement(name, "products", every, (inputs, weight), out, out.size, over, longest)
        )
        if bias:
            offset = inner.parameter(f"b_{name}", "o < d_out", of_head=head)
            out = inner.take(f"{name} + b", "adds", "token < n and o < d_out", out, offset)
        self.statements += inner.statements
        self.parameters += inner.parameters
        return out

    def layer(self, name: str, **more: Any) -> Layer:
        """All of it as a layer."""
        return Layer(name, tuple(self.statements), tuple(self.parameters), **more)
