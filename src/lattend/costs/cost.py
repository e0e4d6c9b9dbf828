"""Cost: the exact price of layers, as formulas; costs add, and repeat over layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lattend.costs.amount import ONE, ZERO, Amount, rank
from lattend.costs.layer import Layer
from lattend.costs.sizes import Size, read_size
from lattend.costs.statement import NOTHING, OPERATIONS, Columns, meeting
from lattend.counts.count import Count
from lattend.errors import NamingError

if TYPE_CHECKING:
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

    >>> from lattend.costs import rnn2d
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
        """The most numbers alive at once in a forward pass, without parameters; None while a size is open."""
        from lattend.costs.depths import number_of_amount

        try:
            return max(layer.alive(lambda amount: number_of_amount(amount, self)) for _, layer in self.parts)
        except ValueError:
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
        from lattend.costs.depths import scalar_depth

        try:
            return scalar_depth(self)
        except ValueError:
            return None

    @property
    def path(self) -> Any:
        """The longest way from one position to another, in steps; None where it is not known."""
        paths = [layer.path for _, layer in self.parts if layer.path is not None and layer.across]
        return self._count(paths[0], "path") if len(paths) == 1 else None

    @property
    def schedule(self) -> list[str]:
        """At which step each cell runs, layer by layer."""
        return [f"{layer.name}: {layer.depth.schedule}" for _, layer in self.parts]

    @property
    def across_tokens(self) -> dict[str, bool]:
        """Which layers look across tokens."""
        return {layer.name: layer.across for _, layer in self.parts}

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
        return replace(self, width=width)

    # Putting together

    def __add__(self, other: Cost) -> Cost:
        return Cost(f"{self.name} + {other.name}", self.parts + other.parts, width=self.width)

    def __mul__(self, times: Size) -> Cost:
        return self.repeat(times)

    __rmul__ = __mul__

    def repeat(self, times: Size) -> Cost:
        """So many of these, one after another, with parameters of their own."""
        factor = Amount.of(read_size("times", times))
        return replace(
            self, name=f"{times} × {self.name}", parts=tuple((factor * n, layer) for n, layer in self.parts)
        )

    def named(self, name: str) -> Cost:
        return replace(self, name=name)

    # Numbers

    @property
    def names(self) -> tuple[str, ...]:
        """The symbols it is a formula in."""
        found: dict[str, None] = {}
        for quantity in ("parameters", *OPERATIONS, "bytes_read", "cache", "depth"):
            found |= dict.fromkeys(self.amount(quantity).names)
        return tuple(sorted((name for name in found if name not in self.values), key=rank))

    def at(self, **values: int) -> Cost:
        """The cost with numbers for some of its symbols."""
        unknown = [name for name in values if name not in self.names]
        if unknown:
            raise NamingError(f"{self.name} has no {unknown[0]}; it has {', '.join(self.names)}")
        return replace(self, values={**self.values, **values})

    def _given(self, quantity: str) -> Any:
        return self._count(self.amount(quantity), quantity)

    def _count(self, amount: Amount, quantity: str) -> Any:
        found = amount.count(f"{self.name} ({quantity})")
        known = {name: value for name, value in self.values.items() if name in amount.names}
        return found.at(**known) if isinstance(found, Count) and known else found

    def amount(self, quantity: str) -> Amount:
        """A quantity before it is written: in this column, this way."""
        if quantity not in QUANTITIES:
            raise NamingError(f"a cost has no {quantity}; it has {', '.join(QUANTITIES)}")
        if quantity in OPERATIONS:
            found = getattr(self._operations[quantity], self.column)
            if found is None:
                raise NamingError(
                    "what is executed is known when every size and parameter has a number: give "
                    + ", ".join(f"{name}=…" for name in self.names_of("needed"))
                )
            return found
        return _total(self.parts, lambda layer: self._of_layer(layer, quantity))

    def is_nothing(self, quantity: str) -> bool:
        """Whether a quantity is 0 in every column."""
        found = self._operations[quantity]
        return found.needed.is_zero and found.dense.is_zero

    def names_of(self, column: str) -> tuple[str, ...]:
        return replace(self, column=column).names

    def _of_layer(self, layer: Layer, quantity: str) -> Amount:
        match quantity:
            case "parameters":
                return _sum(array.size.dense for array in layer.parameters)
            case "bytes_read":
                return (
                    _sum(a.size.needed for s in layer.statements for a in s.reads if a.kind != "constant")
                    * self.width
                )
            case "bytes_written":
                return _sum(s.writes.size.needed for s in layer.statements) * self.width
            case "training_memory":
                return _sum(array.size.needed for array in layer.kept())
            case "cache":
                return layer.cache
            case _:
                return layer.depth.steps

    @cached_property
    def _operations(self) -> dict[str, Columns]:
        total = dict.fromkeys(OPERATIONS, NOTHING)
        for times, layer in self.parts:
            for op, points in _layer_operations(layer, self.way).items():
                total[op] = total[op] + points * times
        return total

    def order(self, quantity: str, *variables: str) -> Order:
        """The big-O of a quantity as these grow and the rest stay fixed; all of them by default."""
        return self._formula(quantity).order(*variables)

    def claim(self, quantity: str, formula: str, **options: Any) -> Verdict:
        """Whether a formula, or O(…), is this quantity: proved, or refuted with a counterexample.

        >>> from lattend.costs import rnn2d
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

    def text(self, width: int | None = None) -> str:
        """The cost as a table; columns stand below each other where they are wider than `width`."""
        from lattend.costs.table import as_text

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
        from lattend.costs.table import as_json

        return as_json(self)


def _layer_operations(layer: Layer, way: str) -> dict[str, Columns]:
    total = dict.fromkeys(OPERATIONS, NOTHING)
    for statement in layer.statements:
        for op, points in statement.operations(backward=way == "backward").items():
            total[op] = total[op] + points
    if way == "backward":
        total["adds"] = total["adds"] + meeting(layer.statements)
    return total


def _total(parts: tuple[tuple[Amount, Layer], ...], of: Callable[[Layer], Amount]) -> Amount:
    total = ZERO
    for times, layer in parts:
        total = total + of(layer) * times
    return total


def _sum(amounts: Any) -> Amount:
    total = ZERO
    for amount in amounts:
        total = total + amount
    return total


def single(layer: Layer) -> Cost:
    """The cost of one layer."""
    return Cost(layer.name, ((ONE, layer),))
