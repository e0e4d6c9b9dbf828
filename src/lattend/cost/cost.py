"""Cost: the exact price of layers, as formulas; costs add, and repeat over layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lattend.budget import Budget
from lattend.cost.amount import ONE, ZERO, Amount, rank
from lattend.cost.layer import MULTIPLY_ADDS, OPERATIONS, Array, Layer, ReferenceRun
from lattend.cost.result import AT_NUMBERS, QUANTITIES, SUMS, MultiplyAdds, Quantity, Result, quantity_named
from lattend.cost.sizes import Recipe, Size, check_letters, read_size, repeats
from lattend.counts.count import Count
from lattend.errors import DomainError, NamingError
from lattend.report.shown import Drawn
from lattend.rules.rule import check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lattend.cost.check import CostCheck
    from lattend.cost.parameter_table import ParameterTable
    from lattend.cost.per_point import PerPoint
    from lattend.cost.roofline import Floor
    from lattend.counts.growth import Growth
    from lattend.counts.verdict import Verdict
    from lattend.draw.picture import Picture
    from lattend.machines import Machine
    from lattend.report.report import Report

WIDTH = 4  # bytes of a number, unless said otherwise


@dataclass(frozen=True, eq=False, repr=False)
class Cost(Drawn, Result):
    """Layers in sequence, each so many times.

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
    runs: tuple[tuple[Amount, ReferenceRun], ...] = ()  # plain code for all of it, if there is any
    recipes: tuple[tuple[Amount, Recipe], ...] = ()  # how all of it was made, if that is known
    budget: Budget | None = None  # one for several questions, instead of that of the rule for each

    # Quantities

    @property
    def parameters(self) -> Count | int:
        """Numbers that are learned."""
        return self.value("parameters")

    def parameters_by_matrix(self) -> ParameterTable:
        """The parameters matrix by matrix, of one head and of all.

        >>> from lattend.cost import attention
        >>> attention().parameters_by_matrix()["W_out"]
        heads*D_hid*D_i
        """
        from lattend.cost.parameter_table import parameter_table

        return parameter_table(self)

    multiplies = Quantity("Multiplications of two numbers.")
    adds = Quantity("Additions and subtractions.")
    operations = Quantity("Multiplies and adds together.")
    exponentials = Quantity("Powers of e, as of a softmax.")
    divisions = Quantity("Divisions of one number by another.")
    functions = Quantity("Evaluations of an activation or a square root, one each.")
    bytes_read = Quantity("Each statement reads its arrays once.")
    bytes_written = Quantity("Each statement writes its result once.")
    saved_activations = Quantity("Numbers made on the way that the backward pass needs again.")
    cache = Quantity("Numbers of the KV cache, or of a recurrent net's state, in a decoding step.")
    depth = Quantity(
        "Sequential depth: cells or layers that must follow each other, a reduction counting one."
    )

    @property
    def multiply_adds(self) -> MultiplyAdds[Count | int, Count | int | None]:
        """The multiplies whose results are summed up."""
        return MultiplyAdds(*self.columns(MULTIPLY_ADDS))

    def columns(self, quantity: str) -> tuple[Count | int, Count | int | None, Count | int]:
        """A quantity needed, executed (None while a size is open) and dense."""
        try:
            executed = self.executed.value(quantity)
        except NamingError:
            executed = None
        return self.needed.value(quantity), executed, self.dense.value(quantity)

    @property
    def peak_activations(self) -> int | None:
        """The most numbers held at once in the widest layer, without parameters; None while a size is open.

        What is held for a residual across that layer comes on top; a recurrent layer holds its states.
        """
        try:
            return max(layer.peak(self.number) for _, layer in self.parts)
        except NamingError:
            return None

    @property
    def scalar_depth(self) -> int | None:
        """The same in scalar operations, a sum of r terms being ⌈log₂ r⌉ deep; None while a size is open."""
        try:
            return sum(self.number(times) * layer.scalar_depth(self.number) for times, layer in self.parts)
        except NamingError:
            return None

    @property
    def path(self) -> Count | int | None:
        """The maximum path length from one position to another, in layers; None where it is not known."""
        try:
            return self.value("path")
        except (NamingError, DomainError):  # a band of t = 0 leads nowhere
            return None

    def time(self, machine: str | Machine = "H200 measured") -> Floor:
        """The least time on a machine, by its arithmetic and its memory; "cpu" is this one."""
        from lattend.cost.roofline import time_of

        return time_of(self, machine)

    @property
    def schedule(self) -> list[str]:
        """The step at which each cell runs, layer by layer."""
        return [f"{layer.name}: {layer.depth.schedule}" for _, layer in self.parts]

    @property
    def positions(self) -> Count | int | None:
        """How many tokens, steps or pixels it is given; None where no layer says."""
        positions = next((layer.positions for _, layer in self.parts if layer.positions is not None), None)
        return None if positions is None else self.number_or_formula(Amount.of(positions), "positions")

    @property
    def mixes_tokens(self) -> dict[str, bool]:
        """Which layers mix tokens."""
        return {layer.name: layer.mixes_tokens for _, layer in self.parts}

    @property
    def statements(self) -> str:
        """The statements: the set of each, its kind of work, and how many points."""
        from lattend.cost.summary import statements

        return statements(self)

    # Columns and ways

    def changed(self, **how: Any) -> Cost:
        """The same in another column, way or budget, with the symbols it is known to have."""
        cost = replace(self, **how)
        vars(cost).update({"names": self.names} if "names" in vars(self) else {})
        return cost

    @property
    def needed(self) -> Cost:
        """The price of the attended pairs and of all else: what any way of running it must do."""
        return self.changed(column="needed")

    @property
    def executed(self) -> Cost:
        """The price in whole tiles of the plan, known once every size has a number."""
        return self.changed(column="executed")

    @property
    def dense(self) -> Cost:
        """The cost that a tool reports which ignores the rule and the padding."""
        return self.changed(column="dense")

    @property
    def backward(self) -> Cost:
        """The backward pass, given the gradients of all outputs, for those of all inputs and parameters.

        Under a rule it is counted as if every query and every key were in an attended pair.
        """
        return self.changed(way="backward")

    @property
    def forward(self) -> Cost:
        """The forward pass, which a price is of unless it says otherwise."""
        return self.changed(way="forward")

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
        check_letters(size for _, recipe in self.recipes + other.recipes for size in recipe.sizes)
        runs = self.runs + other.runs if self.runs and other.runs else ()
        recipes = self.recipes + other.recipes if self.recipes and other.recipes else ()
        name, parts = f"{self.name} + {other.name}", self.parts + other.parts
        return replace(self, name=name, parts=parts, runs=runs, recipes=recipes)

    def __mul__(self, times: Size) -> Cost:
        return self.repeat(times)

    __rmul__ = __mul__

    def repeat(self, times: Size) -> Cost:
        """Repeats the layers in sequence, each time with parameters of their own."""
        check_letters([*repeats(times), *(size for _, recipe in self.recipes for size in recipe.sizes)])
        return replace(self.times(Amount.of(read_size("times", times))), name=f"{times} × {self.name}")

    def times(self, factor: Amount) -> Cost:
        """Multiplies the cost under the same name."""
        parts = tuple((factor * n, layer) for n, layer in self.parts)
        runs = tuple((factor * n, run) for n, run in self.runs)
        recipes = tuple((factor * n, recipe) for n, recipe in self.recipes)
        return replace(self, parts=parts, runs=runs, recipes=recipes)

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
        names: dict[str, None] = {}
        for quantity in ("parameters", *OPERATIONS, "bytes_read", "cache", "depth"):
            names |= dict.fromkeys(self.needed.forward.amount(quantity).names)
        return tuple(sorted((name for name in names if name not in self.values), key=rank))

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

    def number(self, amount: Amount, quantity: str = "times") -> int:
        """An amount at the cost's numbers, which must be a number."""
        missing = ", ".join(f"{name}=…" for name in amount.names if name not in self.values)
        value = None if missing else self.number_or_formula(amount, quantity)
        if not isinstance(value, int):
            raise NamingError(f"{self.name} needs a number for every size: give {missing}")
        return value

    def total(self, quantity: str = "multiplies") -> int:
        """A quantity as a number, once every size has one.

        >>> from lattend.cost import linear
        >>> linear(n=2, d_in=3, d_out=4).total("parameters")  # 3*4 + 4
        16
        """
        return self.number(self.amount(quantity), quantity)

    def value(self, quantity: str) -> Count | int:
        """A quantity by name, in this column and this way: a number, or a formula."""
        return self.number_or_formula(self.amount(quantity), quantity)

    def number_or_formula(self, amount: Amount, quantity: str = "times") -> Count | int:
        """An amount at the cost's numbers."""
        return amount.count(f"{self.name} ({quantity})", self.values, self.budget)

    def amount(self, quantity: str) -> Amount:
        """A quantity before it is written: in this column, this way; or the numbers of a matrix, W_out."""
        if quantity not in QUANTITIES:
            from lattend.cost.parameter_table import numbers_of

            numbers = numbers_of(self, quantity)
            if numbers is not None:
                return numbers
        quantity = quantity_named(quantity)
        if quantity in AT_NUMBERS:
            return Amount.number(self._at_numbers(quantity))
        if quantity in SUMS:
            return sum(map(self.amount, SUMS[quantity]), ZERO)
        if quantity in (MULTIPLY_ADDS, *OPERATIONS):
            return self._operation(quantity)
        if self.way == "backward" and quantity not in ("parameters", "cache"):
            raise NamingError(f"{quantity} is known of the forward pass: ask before backward")
        if quantity == "path":
            return self._path()
        total = sum((layer.numbers(quantity, self._sized) * times for times, layer in self.parts), ZERO)
        return total * self.width if quantity.startswith("bytes") else total

    def _at_numbers(self, quantity: str) -> int:
        number: int | None = getattr(self, quantity)
        if number is None:
            missing = ", ".join(f"{name}=…" for name in self.names)
            raise NamingError(f"{quantity} is known when every size has a number: give {missing}")
        return number

    def _path(self) -> Amount:
        """The maximum path length, which one layer has that mixes tokens."""
        lengths = [layer.path_length(self.budget) for _, layer in self.parts if layer.mixes_tokens]
        if len(lengths) != 1 or lengths[0] is None:
            raise NamingError(f"the maximum path length of {self.name} is not known")
        return lengths[0]

    def is_nothing(self, quantity: str) -> bool:
        """Whether an operation does not occur, in any column."""
        return all(column.amount(quantity).is_zero for column in (self.needed, self.dense))

    def _sized(self, array: Array) -> Amount:
        return array.size.column(self.column, self.values) or array.size.needed

    def _operation(self, name: str) -> Amount:
        """How many of an operation there are, in this column and this way."""
        total = ZERO
        for times, layer in self.parts:
            each = layer.products if name == MULTIPLY_ADDS else layer.operations
            for columns in each(self.way).get(name, ()):
                amount = columns.column(self.column, self.values)
                if amount is None:
                    raise NamingError(
                        "what is executed is known when every size and parameter has a number: give "
                        + ", ".join(f"{name}=…" for name in self.needed.names)
                    )
                total = total + amount * times
        return total

    def order(self, quantity: str, *variables: str) -> Growth:
        """The big-O of a quantity as these grow and the rest stay fixed; all of them by default."""
        counted = self.formula(quantity)
        if isinstance(counted, int):
            raise NamingError(f"{quantity} of {self.name} is the number {counted}; leave a size open")
        return counted.order(*variables)

    def claim(
        self,
        quantity: str,
        formula: str,
        *,
        assuming: str | None = None,
        rename: Mapping[str, str] | None = None,
        exact: bool = False,
    ) -> Verdict:
        """Whether a formula, or O(…), is this quantity: proved, or refuted with a counterexample.

        With `exact=True` an order fails. A formula that is another column of the table, or the other pass,
        is said to be that.

        >>> from lattend.cost import rnn2d
        >>> rnn2d().claim("multiplies", "n^2 h c + 2n(n - 1)h^2")
        n^2 h c + 2n(n - 1)h^2: holds for n >= 1 and h >= 1 and c >= 1
        """
        from lattend.cost.check import judge_cost

        return judge_cost(self, quantity, formula, assuming, rename, exact)

    def per(self, point: str) -> PerPoint:
        """The price of one point: a "score" of attention, a "cell" of a recurrent net, a decoding "step".

        >>> from lattend.cost import rnn2d
        >>> rnn2d().per("cell")["inner"].multiplies
        h(2h + c)
        """
        from lattend.cost.per_point import per_point

        return per_point(self, point)

    def formula(self, quantity: str) -> Count | int:
        """A quantity as a formula in all symbols of the cost, or a number where none is open."""
        # A claim may speak of any symbol of the cost, also where this quantity has it not
        everything = self.amount("operations") + self.amount("parameters")
        on_all_sizes = self.amount(quantity) + everything * 0
        return on_all_sizes.formula(f"{self.name} ({quantity})", self.values, self.budget)

    def check(self, **values: int) -> CostCheck:
        """Whether plain code that is run at these sizes, on numbers that count, does what is needed here.

        >>> from lattend.cost import rnn2d
        >>> bool(rnn2d().check(n=4, h=3, c=2))
        True
        """
        from lattend.cost.check import check

        return check(self, values)

    @property
    def heading(self) -> str:
        """`attention, backward pass in n, heads at D_i = 64`."""
        way = "" if self.way == "forward" else ", backward pass"
        numbers = ", ".join(f"{name} = {value:,}" for name, value in self.values.items())
        names = f" in {', '.join(self.names)}" if self.names else ""
        return f"{self.name}{way}{names}{' at ' + numbers if numbers else ''}"

    def report(self) -> Report:
        """The printed report."""
        from lattend.cost.summary import report_of

        return report_of(self)

    def latex(self, quantity: str = "multiplies") -> str:
        """One quantity as LaTeX."""
        value = self.value(quantity)
        return value.latex() if isinstance(value, Count) else f"{value:,}".replace(",", r"\,")

    def draw(self, ax: Axes | None = None) -> Picture:
        """Bars of the multiplies, layer by layer, needed beside executed and dense."""
        from lattend.cost.summary import draw_bars

        return draw_bars(self, ax)

    def json(self) -> dict[str, Any]:
        """All quantities as plain data, in three columns."""
        from lattend.cost.summary import as_json

        return as_json(self)


def single(layer: Layer, run: ReferenceRun | None = None) -> Cost:
    """The cost of one layer, and the plain code that does the same."""
    return Cost(layer.name, ((ONE, layer),), runs=() if run is None else ((ONE, run),))
