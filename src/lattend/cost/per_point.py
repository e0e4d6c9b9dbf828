"""Per point: what one score, one cell or one decoding step costs, from the sets of whole layers.

A set is restricted to one point by counting it up to that point and up to those before: of an image's cells,
those of (r + 1) × (c + 1) without those of r × (c + 1) and (r + 1) × c leave the cell (r, c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lattend.cost.amount import ONE, Amount
from lattend.cost.cost import Cost, single
from lattend.cost.layer import Array, Statement
from lattend.cost.pairs import attends_ahead
from lattend.cost.result import WORK, label_and_name
from lattend.cost.sizes import Recipe, remade
from lattend.cost.summary import cache_label
from lattend.errors import NamingError
from lattend.report.numbers import format_value
from lattend.report.report import Printed, Report
from lattend.report.table import Table
from lattend.rules.language import expr
from lattend.rules.reader import read_rule

if TYPE_CHECKING:
    from lattend.counts.growth import Growth
    from lattend.counts.verdict import Verdict
    from lattend.rules.rule import Rule

MINUS = Amount.number(-1)
POINTS = ("score", "cell", "step")
RECURRENT = ("rnn", "lstm", "gru")
# What a layer is given one of at each decoding step
LENGTH = {
    **dict.fromkeys(("attention", "transformer_block", "encoder", "decoder"), "n"),
    **dict.fromkeys(("linear", "feed_forward", "norm", "embedding"), "n"),
    **dict.fromkeys(RECURRENT, "steps"),
}


@dataclass(frozen=True, eq=False, repr=False)
class PerPoint(Printed):
    """The price of one point, or of each kind of point, by name; every one is a Cost."""

    title: str
    costs: Mapping[str, Cost]
    notes: tuple[str, ...] = ()
    cache: Cost | None = None  # of a decoding step, what has been cached before it

    def __getitem__(self, name: str) -> Cost:
        if name not in self.costs:
            raise NamingError(f"there is no {name} here; there is {', '.join(self.costs)}")
        return self.costs[name]

    def of(self, quantity: str) -> tuple[Cost, str]:
        """Whose quantity is meant, and which: of `inner multiplies` those of an inner cell."""
        for name, cost in self.costs.items():
            if quantity.startswith(f"{name} "):
                return cost, quantity.removeprefix(name).strip()
        if self.main is None:
            raise NamingError(f"say of which, {' or '.join(f'{name} {quantity}' for name in self.costs)}")
        return self.costs[self.main], quantity

    @property
    def main(self) -> str | None:
        """The default kind of point; None where several are alike."""
        first = next(iter(self.costs))
        return first if len(self.costs) == 1 or first in POINTS else None

    def claim(
        self,
        quantity: str,
        formula: str,
        *,
        assuming: str | None = None,
        rename: Mapping[str, str] | None = None,
        exact: bool = False,
    ) -> Verdict:
        """Whether a formula is the price of one point: `claim("inner multiplies", "h c + 2h^2")`."""
        cost, which = self.of(quantity)
        return cost.claim(which, formula, assuming=assuming, rename=rename, exact=exact)

    def order(self, quantity: str) -> Growth:
        """The big-O of a quantity."""
        cost, which = self.of(quantity)
        return cost.order(which)

    def latex(self, quantity: str) -> str:
        """A quantity as LaTeX."""
        cost, which = self.of(quantity)
        return cost.latex(which)

    def at(self, /, **values: int) -> PerPoint:
        """The same at numbers for some symbols."""
        known = {name for cost in self._all() for name in cost.names}
        for name in values:
            if name not in known:
                raise NamingError(f"{self.title} has no {name}; it has {', '.join(sorted(known))}")

        def put(cost: Cost) -> Cost:
            return cost.at(**{name: value for name, value in values.items() if name in cost.names})

        cache = None if self.cache is None else put(self.cache)
        return replace(self, costs={name: put(cost) for name, cost in self.costs.items()}, cache=cache)

    def _all(self) -> Iterator[Cost]:
        yield from self.costs.values()
        if self.cache is not None:
            yield self.cache

    def report(self) -> Report:
        """The printed table: a row for each operation, a column for each kind of point."""
        shown = [name for name in WORK if not all(cost.is_nothing(name) for cost in self.costs.values())]
        rows = [
            (label_and_name(name), *(format_value(cost.value(name)) for cost in self.costs.values()))
            for name in shown
        ]
        if self.cache is not None and self.cache.cache != 0:
            rows.append((label_and_name("cache", cache_label(self.cache)), format_value(self.cache.cache)))
        head = ("", *self.costs) if len(self.costs) > 1 else ("", "")
        return Report(self.title, [Table(head, rows), *([""] if self.notes else []), *self.notes])

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        points = {
            name: {quantity: _data(cost.value(quantity)) for quantity in WORK}
            for name, cost in self.costs.items()
        }
        cache = {} if self.cache is None else {"cache": _data(self.cache.cache)}
        return {"title": self.title, "points": points, "notes": list(self.notes), **cache}

    def __repr__(self) -> str:
        return f"<PerPoint: {self.title}; {', '.join(self.costs)}>"


def _data(value: Any) -> int | str:
    return value if isinstance(value, int) else str(value)


def per_point(cost: Cost, point: str) -> PerPoint:
    """The price of a "score", a "cell" or a "step" of a cost."""
    kinds: dict[str, Callable[[Cost], PerPoint]] = {"score": _score, "cell": _cells, "step": _step}
    if point not in kinds:
        raise NamingError(f"a price is per {', '.join(POINTS[:-1])} or {POINTS[-1]}, not per {point}")
    if not cost.recipes:
        raise NamingError(f"{cost.name} is not made of layers that lt.cost names, so it has no {point}")
    return kinds[point](cost)


def _one_layer(cost: Cost, point: str, names: tuple[str, ...]) -> Recipe:
    times, recipe = cost.recipes[0]
    if len(cost.recipes) > 1 or times.value() != 1 or recipe.name not in names:
        raise NamingError(f"a {point} is of one layer, {', '.join(names)}, not of {cost.name}")
    return recipe


def _score(cost: Cost) -> PerPoint:
    """One (query, key) pair of one head: the statements at this pair that its score is made of."""
    recipe = _one_layer(cost, "score", ("attention",))
    own = {name: value for name, value in recipe.arguments.items() if name not in _sizes_of(recipe)}
    own |= {"rule": "full", "n": 1, "heads": 1, "kv_heads": None}
    whole = recipe.make(**own, **({"m": 1} if "m" in recipe.arguments else {}))
    ((_, layer),) = whole.parts
    made = _makers(layer.statements, next(s for s in layer.statements if s.kind == "exponentials").reads[0])
    at_pair = tuple(s for s in made if s.over.startswith("attended"))
    shared = tuple(s for s in made if s not in at_pair)
    costs = {"score": _of_statements(cost, "score", at_pair)}
    notes = list[str]()
    if shared:
        costs["its query and key"] = _of_statements(cost, "query and key", shared)
        notes = ["a query and a key are made once and shared by all pairs that they are in"]
    return PerPoint(f"one score of {cost.name}, a (query, key) pair in one head", costs, tuple(notes))


def _sizes_of(recipe: Recipe) -> tuple[str, ...]:
    """The sizes and parameters of a layer's rule that it was given."""
    rule = read_rule(recipe.arguments["rule"])
    return (*rule.sizes, *rule.parameters, "m")


def _makers(statements: tuple[Statement, ...], wanted: Array) -> list[Statement]:
    """The statements that an array is made by, and those that what they read is made by."""
    arrays, makers = {wanted.base}, list[Statement]()
    for statement in reversed(statements):
        if statement.writes.base in arrays:
            makers.insert(0, statement)
            arrays |= {array.base for array in statement.reads}
    return makers


def _of_statements(cost: Cost, name: str, statements: tuple[Statement, ...]) -> Cost:
    """These statements as a cost, with the numbers of another."""
    ((_, layer),) = cost.parts
    bare = single(replace(layer, name=name, statements=statements, parameters=()))
    return replace(bare, values=cost.values, column=cost.column, way=cost.way)


def _cells(cost: Cost) -> PerPoint:
    """The cells of a recurrent net that differ: on an image inner, edge and corner."""
    recipe = _one_layer(cost, "cell", ("rnn2d", *RECURRENT))
    arguments = recipe.arguments
    if recipe.name == "rnn2d":
        if arguments["directions"] != 1:
            raise NamingError("a cell is of one direction; leave directions out")
        places = {"inner": (1, 1), "top edge": (0, 1), "left edge": (1, 0), "corner": (0, 0)}
        costs = {name: _cell(cost, ("rows", "cols"), place) for name, place in places.items()}
        if _alike(costs["top edge"], costs["left edge"]):
            costs = {"inner": costs["inner"], "edge": costs["top edge"], "corner": costs["corner"]}
        notes = ("an edge cell has one neighbour, the corner none",)
        return PerPoint(f"one cell of {cost.name}", costs, notes)
    places = {"first layer": (0, 1)}
    places |= {} if arguments["layers"] == 1 else {"upper layer": (1, 1)}
    places |= {} if arguments["initial"] else {"first step": (0, 0)}
    costs = {name: _cell(cost, ("layers", "steps"), place) for name, place in places.items()}
    return PerPoint(f"one cell of {cost.name}, a step in a layer", costs)


def _alike(one: Cost, other: Cost) -> bool:
    """Whether two cells take the same work."""
    return all((one.amount(name) - other.amount(name)).is_zero for name in WORK)


def _cell(cost: Cost, sides: tuple[str, str], place: tuple[int, int]) -> Cost:
    """The cell at a place: of boxes that end there and just before, the first and last without the others."""
    down, across = place[0] + 1, place[1] + 1
    boxes = [(ONE, down, across), (MINUS, down - 1, across), (MINUS, down, across - 1)]
    boxes.append((ONE, down - 1, across - 1))

    def box(down: int, across: int) -> Cost:
        sizes = {sides[0]: down, sides[1]: across}
        return remade(cost, lambda _: sizes)

    parts = [box(rows, cols).times(sign) for sign, rows, cols in boxes if rows and cols]
    return replace(parts[0], parts=tuple(part for one in parts for part in one.parts), runs=(), recipes=())


def _step(cost: Cost) -> PerPoint:
    """One more token after n others: all that n + 1 take, without what the n took, whose keys are cached."""
    for _, recipe in cost.recipes:
        if recipe.name not in LENGTH:
            raise NamingError(f"a decoding step is of {', '.join(LENGTH)}, not of {recipe.name}")
        if "rule" in recipe.arguments and "m" not in recipe.arguments:  # keys of other tokens are all there
            _check_decodes(read_rule(recipe.arguments["rule"]))
    longer = remade(cost, _one_more)
    parts = (*longer.parts, *cost.times(MINUS).parts)
    step = replace(cost, parts=parts, runs=(), recipes=())
    lengths = dict.fromkeys(format_value(_length(recipe)) for _, recipe in cost.recipes)
    before = " and ".join(lengths)
    title = f"one decoding step of {cost.name} at position {before}, with {before} tokens before it"
    attends = any("rule" in recipe.arguments for _, recipe in cost.recipes)
    notes = (f"the keys and values of {before} tokens are in the KV cache, those of the new one are made",)
    return PerPoint(title, {"step": step}, notes if attends else (), cost)


def _length(recipe: Recipe) -> Any:
    """How many tokens a layer is given."""
    return recipe.arguments.get(LENGTH[recipe.name], "n")


def _one_more(recipe: Recipe) -> dict[str, Any]:
    length = _length(recipe)
    return {LENGTH[recipe.name]: length + 1 if isinstance(length, int) else f"{length} + 1"}


def _check_decodes(rule: Rule) -> None:
    """Raises where tokens cannot be decoded one by one under a rule."""
    name = rule.text if rule.about is None else rule.about.name
    if len(rule.axes) != 1 or "m" in rule.sizes:
        raise NamingError(f'a decoding step is along a line of tokens, and the rule "{name}" is not on one')
    if attends_ahead(rule):
        raise NamingError(
            f'under the rule "{name}" queries attend to later keys, so that no token can be decoded before '
            "them; take the rule causal"
        )
    if "n" in expr.names(rule.condition):
        raise NamingError(f'the rule "{name}" depends on n, so that a new token changes those before it')
