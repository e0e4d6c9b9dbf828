"""Cost: the exact price of layers, as formulas; costs add, and repeat over layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lattend.budget import Budget
from lattend.cost.amount import ONE, ZERO, Amount, rank
from lattend.cost.layer import Layer, Run
from lattend.cost.sizes import Size, read_size
from lattend.cost.statement import OPERATIONS, Array
from lattend.counts.count import Count
from lattend.errors import DomainError, NamingError
from lattend.rules.rule import check_integer

if TYPE_CHECKING:
    from lattend.cost.check import Check
    from lattend.cost.roofline import Floor
    from lattend.counts.order import Order
    from lattend.counts.verdict import Verdict

WIDTH = 4  # bytes of a number, unless said otherwise
QUANTITIES = (
    "parameters",
    *OPERATIONS,
    "bytes_read",
    "bytes_written",
    "training_memory",
    "cache",
    "depth",
)


@dataclass(frozen=True, eq=False)
class Cost:
    """Layers one after another, each so many times.

    >>> from lattend.cost import rnn2d
    >>> rnn2d().multiplies
    n*h(2n*h + n*c - 2h)
    >>> rnn2d(n=8, h=5, c=3).multiplies  # 64*5*3 + 2*8*7*25
    3760
    """

    name: str
    parts: tuple[tuple[Amount, Layer], ...]
    column: str = "needed"
    way: str = "forward"
    width: int = WIDTH
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    runs: tuple[tuple[Amount, Run], ...] = ()  # plain code for all of it, if there is any
    budget: Budget | None = None  # one for several questions, instead of that of the rule for each

    # Quantities

    @property
    def parameters(self) -> Any:
        """Numbers that are learned."""
        return self._given("parameters")

    @property
    def multiplies(self) -> Any:
        """Multiplications of two numbers."""
        return self._given("multiplies")

    @property
    def adds(self) -> Any:
        """Additions and subtractions."""
        return self._given("adds")

    @property
    def exponentials(self) -> Any:
        return self._given("exponentials")

    @property
    def divisions(self) -> Any:
        return self._given("divisions")

    @property
    def functions(self) -> Any:
        """Evaluations of an activation or a square root, one each."""
        return self._given("functions")

    @property
    def bytes_read(self) -> Any:
        """Each statement reads its arrays once."""
        return self._given("bytes_read")

    @property
    def bytes_written(self) -> Any:
        """Each statement writes its result once."""
        return self._given("bytes_written")

    @property
    def training_memory(self) -> Any:
        """Numbers made on the way that the backward pass needs again."""
        return self._given("training_memory")

    @property
    def memory_in_use(self) -> int | None:
        """The most numbers alive at once in the widest layer, without parameters; None while a size is open.

        What is held for a residual across that layer comes on top; a recurrent layer holds its states.
        """
        try:
            return max(layer.alive(self.number) for _, layer in self.parts)
        except NamingError:
            return None

    @property
    def cache(self) -> Any:
        """Numbers to keep from token to token when it runs one token at a time."""
        return self._given("cache")

    @property
    def depth(self) -> Any:
        """Cells or layers that must run one after another, a reduction counting one."""
        return self._given("depth")

    @property
    def scalar_depth(self) -> int | None:
        """The same in scalar operations, a sum of r terms being ⌈log₂ r⌉ deep; None while a size is open."""
        from lattend.cost.depths import scalar_depth

        try:
            return scalar_depth(self)
        except NamingError:
            return None

    @property
    def path(self) -> Any:
        """The longest path from one position to another, in steps; None where no formula for it is known."""
        found = (layer.path_length(self.budget) for _, layer in self.parts if layer.across)
        paths = [path for path in found if path is not None]
        try:
            return self._count(paths[0], "path") if len(paths) == 1 else None
        except DomainError:  # a band of t = 0 leads nowhere
            return None

    def time(self, machine: str = "H200") -> Floor:
        """The least time on a machine, "H200" or "cpu" (this one), by its arithmetic and its memory."""
        from lattend.cost.roofline import time_of

        return time_of(self, machine)

    @property
    def schedule(self) -> list[str]:
        """At which step each cell runs, layer by layer."""
        return [f"{layer.name}: {layer.depth.schedule}" for _, layer in self.parts]

    @property
    def across_tokens(self) -> dict[str, bool]:
        """Which layers look across tokens."""
        return {layer.name: layer.across for _, layer in self.parts}

    @property
    def statements(self) -> str:
        """What it does, statement by statement: the set, the kind of work, and how many points."""
        from lattend.cost.table import statements

        return statements(self)

    # Columns and ways

    @property
    def needed(self) -> Cost:
        return replace(self, column="needed")

    @property
    def executed(self) -> Cost:
        """The price in whole tiles of the plan, known once every size has a number."""
        return replace(self, column="executed")

    @property
    def dense(self) -> Cost:
        """What a tool that ignores the rule and the padding would report."""
        return replace(self, column="dense")

    @property
    def backward(self) -> Cost:
        """The backward pass, given the gradients of all outputs, for those of all inputs and parameters.

        Under a rule it is counted as if every query and every key had a square.
        """
        return replace(self, way="backward")

    @property
    def forward(self) -> Cost:
        return replace(self, way="forward")

    def with_width(self, width: int) -> Cost:
        """The same with numbers of so many bytes."""
        check_integer("width", width)
        if width < 1:
            raise DomainError(f"width must be at least 1 byte, got {width}")
        return replace(self, width=width)

    # Putting together

    def __radd__(self, other: object) -> Cost:
        if other == 0:  # what sum begins with
            return self
        return NotImplemented

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        mine, theirs = ((c.column, c.way, c.width, dict(c.values)) for c in (self, other))
        if mine != theirs:
            raise NamingError(
                "costs that are added have the same column, way, width and numbers: add first, then ask for "
                "backward or dense, or put numbers in with at"
            )
        runs = self.runs + other.runs if self.runs and other.runs else ()
        return replace(self, name=f"{self.name} + {other.name}", parts=self.parts + other.parts, runs=runs)

    def __mul__(self, times: Size) -> Cost:
        return self.repeat(times)

    __rmul__ = __mul__

    def repeat(self, times: Size) -> Cost:
        """So many of these, one after another, with parameters of their own."""
        factor = Amount.of(read_size("times", times))
        parts = tuple((factor * n, layer) for n, layer in self.parts)
        runs = tuple((factor * n, run) for n, run in self.runs)
        return replace(self, name=f"{times} × {self.name}", parts=parts, runs=runs)

    def named(self, name: str) -> Cost:
        """The same under another name, which a single layer takes too."""
        if len(self.parts) != 1:
            return replace(self, name=name)
        ((times, layer),) = self.parts
        return replace(self, name=name, parts=((times, replace(layer, name=name)),))

    # Numbers

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The symbols it is a formula in."""
        found: dict[str, None] = {}
        plain = replace(self, way="forward", column="needed")
        for quantity in ("parameters", *OPERATIONS, "bytes_read", "cache", "depth"):
            found |= dict.fromkeys(plain.amount(quantity).names)
        return tuple(sorted((name for name in found if name not in self.values), key=rank))

    def at(self, /, **values: int) -> Cost:
        """The cost with numbers for some of its symbols."""
        for name in values:
            if name in self.values:
                raise NamingError(f"{name} already has the value {self.values[name]}; give it once")
        unknown = [name for name in values if name not in self.names]
        if unknown:
            known = f"it has {', '.join(self.names)}" if self.names else "all its sizes are numbers"
            raise NamingError(f"{self.name} has no {unknown[0]}; {known}")
        return replace(self, values={**self.values, **values})

    def number_or_formula(self, amount: Amount) -> Any:
        """An amount at the cost's numbers."""
        return self._count(amount, "times")

    def number(self, amount: Amount) -> int:
        """The same, which must be a number."""
        missing = ", ".join(f"{name}=…" for name in amount.names if name not in self.values)
        if missing:
            raise NamingError(f"{self.name} needs a number for every size: give {missing}")
        return self.number_or_formula(amount)

    def _given(self, quantity: str) -> Any:
        return self._count(self.amount(quantity), quantity)

    def _count(self, amount: Amount, quantity: str) -> Any:
        return amount.count(f"{self.name} ({quantity})", self.values, self.budget)

    def amount(self, quantity: str) -> Amount:
        """A quantity before it is written: in this column, this way."""
        if quantity not in QUANTITIES:
            raise NamingError(f"a cost has no {quantity}; it has {', '.join(QUANTITIES)}")
        if quantity in OPERATIONS:
            return self._operation(quantity)
        if self.way == "backward" and quantity not in ("parameters", "cache"):
            raise NamingError(f"{quantity} is known of the forward pass: ask before backward")
        return sum((self._of_layer(layer, quantity) * times for times, layer in self.parts), ZERO)

    def is_nothing(self, quantity: str) -> bool:
        """Whether an operation does not occur, in any column."""
        return all(column.amount(quantity).is_zero for column in (self.needed, self.dense))

    def _of_layer(self, layer: Layer, quantity: str) -> Amount:
        match quantity:
            case "parameters":
                return sum((array.size.dense for array in layer.parameters), ZERO)
            case "bytes_read":
                read = (array for s in layer.statements for array in s.reads if array.kind != "constant")
                return sum(map(self._sized, read), ZERO) * self.width
            case "bytes_written":
                written = dict.fromkeys(s.writes for s in layer.statements)
                return sum(map(self._sized, written), ZERO) * self.width
            case "training_memory":
                return sum(map(self._sized, layer.kept()), ZERO)
            case "cache":
                return layer.cache
            case _:
                return layer.depth.steps

    def _sized(self, array: Array) -> Amount:
        return array.size.column(self.column, self.values) or array.size.needed

    def _operation(self, name: str) -> Amount:
        """How many of an operation there are, in this column and this way."""
        total = ZERO
        for times, layer in self.parts:
            for columns in layer.operations(self.way).get(name, ()):
                found = columns.column(self.column, self.values)
                if found is None:
                    raise NamingError(
                        "what is executed is known when every size and parameter has a number: give "
                        + ", ".join(f"{name}=…" for name in self.needed.names)
                    )
                total = total + found * times
        return total

    def order(self, quantity: str, *variables: str) -> Order:
        """The big-O of a quantity as these grow and the rest stay fixed; all of them by default."""
        return self._formula(quantity).order(*variables)

    def claim(self, quantity: str, formula: str, **options: Any) -> Verdict:
        """Whether a formula, or O(…), is this quantity: proved, or refuted with a counterexample.

        >>> from lattend.cost import rnn2d
        >>> rnn2d().claim("multiplies", "n^2 h c + 2n(n - 1)h^2")
        n^2 h c + 2n(n - 1)h^2: holds for n >= 1 and h >= 1 and c >= 1
        """
        return self._formula(quantity).claim(formula, **options)

    def _formula(self, quantity: str) -> Count:
        amount = self.amount("multiplies") + self.amount("adds")
        everything = amount + self.amount("parameters")
        if quantity != "operations":
            amount = self.amount(quantity)
        # A claim may speak of any symbol of the cost, also where this quantity has it not
        found = self._count(amount + everything * 0, quantity)
        if not isinstance(found, Count):
            raise NamingError(
                f"{quantity} of {self.name} is the number {found}; leave a size open to claim a formula"
            )
        return found

    def check(self, **values: int) -> Check:
        """Whether plain code that is run at these sizes, on numbers that count, does what is needed here.

        >>> from lattend.cost import rnn2d
        >>> bool(rnn2d().check(n=4, h=3, c=2))
        True
        """
        from lattend.cost.check import check

        return check(self, values)

    def text(self, width: int | None = None) -> str:
        """The cost as a table; columns stand below each other where they are wider than `width`."""
        from lattend.cost.table import as_text

        return as_text(self, width)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def latex(self, quantity: str = "multiplies") -> str:
        """One quantity as LaTeX."""
        found = self._given(quantity)
        return found.latex() if isinstance(found, Count) else f"{found:,}".replace(",", r"\,")

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def json(self) -> dict[str, Any]:
        """All quantities as plain data, in three columns."""
        from lattend.cost.table import as_json

        return as_json(self)


def single(layer: Layer, run: Run | None = None) -> Cost:
    """The cost of one layer, and the plain code that does the same."""
    return Cost(layer.name, ((ONE, layer),), runs=() if run is None else ((ONE, run),))
