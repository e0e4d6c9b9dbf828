"""Comparison: several layers side by side as one size grows, with the places where they cross."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.cost.amount import Amount, rank
from lattend.cost.comparison.crossing_points import settled
from lattend.cost.comparison.crossover import Crossover, crossover, numbers
from lattend.cost.cost import Cost
from lattend.cost.result import label as label_of
from lattend.cost.result import quantity_named
from lattend.cost.sizes import stacked
from lattend.counts.count import Count
from lattend.errors import DomainError, NamingError
from lattend.report.numbers import format_value, rounded
from lattend.report.report import Printed, Report
from lattend.report.shown import Drawn
from lattend.report.table import Table
from lattend.rules.example_numbers import priced_number
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.rule import check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lattend.draw.picture import Picture

MOST_WIDTH = 2**40


@dataclass(frozen=True)
class Width:
    """A layer made as wide as the reference has parameters for."""

    label: str
    name: str
    width: int
    parameters: int
    reference: int

    def __str__(self) -> str:
        share = f"{self.parameters:,} of {self.reference:,} parameters"
        return f"{self.label} has {self.name} = {self.width:,} ({share})"


def equal_parameters(
    costs: Mapping[str, Cost], over: str, numbers: Mapping[str, int]
) -> tuple[dict[str, Cost], list[Width]]:
    """The costs with numbers put in, each after the first as wide as the first one's parameters allow.

    Its width is the one symbol left open in its parameters, or else the one it shares with the first.
    """
    labels = list(costs)
    first = costs[labels[0]]
    parameters = _parameters(first, labels[0]).at(numbers)
    if not parameters.is_constant:
        missing = ", ".join(f"{name}=…" for name in parameters.atoms)
        raise NamingError(f"equal parameters need those of {labels[0]} as a number: give {missing}")
    reference = int(parameters.value({}))
    scaled = {labels[0]: _at(first, numbers)}
    widths: list[Width] = []
    for label in labels[1:]:
        formula = _parameters(costs[label], label)
        name = _width(label, formula, over, numbers, set(first.names))
        rest = {key: value for key, value in numbers.items() if key != name}
        width, used = _widest(formula.at(rest), name, reference, label)
        scaled[label] = _at(costs[label], {**rest, name: width})
        widths.append(Width(label, name, width, used, reference))
    return scaled, widths


def _parameters(cost: Cost, label: str) -> Polynomial:
    plain = cost.amount("parameters").plain
    if plain is None:
        raise NamingError(f"the parameters of {label} are no one formula; compare it at numbers")
    return plain.at(cost.values)


def _at(cost: Cost, numbers: Mapping[str, int]) -> Cost:
    known = {name: value for name, value in numbers.items() if name in cost.names}
    return cost.at(**known) if known else cost


def _width(label: str, formula: Polynomial, over: str, numbers: Mapping[str, int], shared: set[str]) -> str:
    """The symbol that may change."""
    names = [str(name) for name in formula.atoms if name != over]
    if not names:
        value = (
            "0" if formula.is_zero else str(formula.value({})) if formula.is_constant else f"those of {over}"
        )
        raise NamingError(f"{label} has {value} parameters at any width; leave its width open as a name")
    open_ = [name for name in names if name not in numbers]
    options = open_ or [name for name in names if name in shared] or names
    if len(options) > 1:
        names_ = " and ".join(options)
        raise NamingError(f"the parameters of {label} depend on {names_}: leave open the one that may change")
    return options[0]


def _widest(formula: Polynomial, name: str, most: int, label: str) -> tuple[int, int]:
    """The largest width with at most so many parameters, found by doubling and halving, and how many."""

    def parameters(width: int) -> int:
        return int(formula.value({name: width}))

    low, high = 0, 1
    while parameters(high) <= most:
        low, high = high, 2 * high
        if high > MOST_WIDTH:
            raise NamingError(f"the parameters of {label} do not grow with {name}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if parameters(middle) <= most else (low, middle)
    if not low:
        raise NamingError(f"{label} has more than {most:,} parameters even at {name} = 1")
    return low, parameters(low)


At = Mapping[str, int | Sequence[int]] | Sequence[int] | None
MOST_ROWS = 8
LARGEST = 2**60


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Drawn, Printed):
    """Layers by label, one quantity of each as a formula, and what becomes of them as `over` grows.

    >>> from lattend.cost import attention, rnn
    >>> full = attention("full", n="t", heads=1, D_hid="n", projections=None)
    >>> found = compare({"rnn": rnn(steps="t", inputs="n", hidden="n"), "full": full}, over="t")
    >>> found.crossovers[0]  # 2nt² against 2n²t
    full passes rnn at t = n; equal there, costs more from t = n + 1 on
    """

    costs: Mapping[str, Cost]
    over: str
    quantity: str
    numbers: Mapping[str, int]  # of the other symbols, for the table and the chart
    chosen: tuple[str, ...]  # those of them that nobody gave
    given_sizes: tuple[int, ...] = ()
    widths: tuple[Width, ...] = ()

    def at(self, numbers: Mapping[str, int], sizes: Sequence[int] = ()) -> Comparison:
        """The same at other numbers and sizes; formulas and crossovers, which hold at all, are kept."""
        values = {name: numbers.get(name, value) for name, value in self.numbers.items()}
        chosen = tuple(name for name in self.chosen if name not in numbers)
        comparison = replace(self, numbers=values, chosen=chosen, given_sizes=_sizes(self.over, sizes))
        for name in ("amounts", "formulas", "orders", "crossovers"):
            vars(comparison)[name] = getattr(self, name)  # where a cached property keeps what it found
        return comparison

    @cached_property
    def amounts(self) -> dict[str, Amount]:
        return {label: settled(cost.amount(self.quantity), cost.values) for label, cost in self.costs.items()}

    @cached_property
    def formulas(self) -> dict[str, Count | int]:
        """The quantity of each layer, with the places where it holds."""
        return {label: amount.count(f"{label} ({self.quantity})") for label, amount in self.amounts.items()}

    @cached_property
    def orders(self) -> dict[str, str]:
        """How each grows when all its symbols do."""
        return {
            label: str(count.order()) if isinstance(count, Count) else "O(1)"
            for label, count in self.formulas.items()
        }

    @cached_property
    def crossovers(self) -> list[Crossover]:
        """For every two layers, where the later one in the list passes the earlier one."""
        crossovers: list[Crossover] = []
        for first, second in combinations(self.amounts, 2):
            pair = (self.amounts[second], self.amounts[first])
            crossovers.append(crossover((second, first), pair, self.over))
        return crossovers

    @cached_property
    def crossings(self) -> list[tuple[Crossover, float]]:
        """The places as numbers, at `numbers`."""
        crossings: list[tuple[Crossover, float]] = []
        for pair in self.crossovers:
            signs_and_places = pair.at(**self.numbers)
            crossings += [
                (pair, float(number)) for number in (signs_and_places[1] if signs_and_places else [])
            ]
        return crossings

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The rows of the table: those that were given, or powers of two around the crossovers."""
        if self.given_sizes:
            return self.given_sizes
        places = [place for _, place in self.crossings if place >= 1]
        low, high = (min(places) / 8, max(places) * 8) if places else (16, 4096)
        first, last = max(0, int(np.floor(np.log2(max(1, low))))), int(np.ceil(np.log2(high)))
        step = -(-(last - first) // (MOST_ROWS - 1))
        return tuple(2**power for power in range(first, last + 1, max(1, step)))

    def values(self, label: str, sizes: Sequence[int]) -> list[int | None]:
        """The quantity of one layer at these sizes; None where it is not defined."""
        amount = self.amounts[label]
        defined = [size for size in sizes if self._is_defined(amount, size)]
        kind = np.int64 if max((*defined, *self.numbers.values()), default=0) < 2**31 else object
        env: dict[str, Any] = {self.over: np.array(defined, kind)}
        env |= {name: np.full(len(defined), value, kind) for name, value in self.numbers.items()}
        value_at = dict(zip(defined, numbers(amount, env, len(defined)), strict=True))
        return [int(value_at[size]) if size in value_at else None for size in sizes]

    def _is_defined(self, amount: Amount, size: int) -> bool:
        known = {**self.numbers, self.over: size}
        return all(bool(evaluate(part, known, {})) for part in expr.conjuncts(amount.where))

    @cached_property
    def rows(self) -> list[tuple[int, dict[str, int | None]]]:
        """The table: every size with the quantity of each layer."""
        columns = {label: self.values(label, self.sizes) for label in self.costs}
        return [(size, {label: columns[label][i] for label in columns}) for i, size in enumerate(self.sizes)]

    @cached_property
    def positions(self) -> dict[str, str]:
        """How many positions each layer is given, where not all are given the same number; else nothing."""
        return _different({label: cost.positions for label, cost in self.costs.items()})

    @cached_property
    def layers(self) -> dict[str, str]:
        """How many layers are stacked in each, where not all have the same number; else nothing."""
        stacks = {label: (cost, stacked(cost)) for label, cost in self.costs.items()}
        return _different(
            {
                label: None if many is None else cost.number_or_formula(many)
                for label, (cost, many) in stacks.items()
            }
        )

    @property
    def warning(self) -> str:
        """`different numbers of positions: rnn2d has n^2, conv has n`; nothing where they are the same."""
        counts_of = {"positions": self.positions, "layers": self.layers}
        sentences = {
            what: ", ".join(f"{label} has {many}" for label, many in counts.items())
            for what, counts in counts_of.items()
        }
        return "; ".join(
            f"different numbers of {what}: {sentence}" for what, sentence in sentences.items() if sentence
        )

    @property
    def title(self) -> str:
        return f"{label_of(self.quantity)} as {self.over} grows"

    def report(self) -> Report:
        """Formulas and orders, the table of numbers, and where they cross; a warning comes first."""
        formulas = [
            (label, format_value(count), self.orders[label]) for label, count in self.formulas.items()
        ]
        rows = [
            (f"{size:,}", *(format_value(value) for value in values.values()), _least(values))
            for size, values in self.rows
        ]
        parts: list[Table | str] = [self.title] if self.warning else []
        parts += [Table(("", "formula", "order"), formulas), "", *self._at(), *map(str, self.widths)]
        parts += [Table((self.over, *self.costs, "least"), rows), "", "where they cross"]
        return Report(self.warning or self.title, [*parts, *self.crossing_lines])

    def _at(self) -> list[str]:
        """The numbers of the table, and which of them are examples."""
        if not self.numbers:
            return []
        numbers = ", ".join(f"{name} = {value:,}" for name, value in self.numbers.items())
        names = " and ".join(self.chosen)
        return [
            f"at {numbers}"
            + (f", with {names} as an example: give a number to choose another" if names else "")
        ]

    @cached_property
    def crossing_lines(self) -> list[str]:
        """The sentences, each pair's cases together, with the number at the numbers of the table."""
        lines: list[str] = []
        for pair in self.crossovers:
            lines += pair.sentences
            places = [place for crossed, place in self.crossings if crossed is pair]
            if places and pair.difference is not None and pair.difference.names:
                numbers = ", ".join(f"{name} = {self.numbers[name]:,}" for name in pair.difference.names)
                at = ", ".join(f"{self.over} = {rounded(place, 2)}" for place in places)
                lines.append(f"  at {numbers}: {at}")
        return lines

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.costs)}: {self.title}>"

    def json(self) -> dict[str, Any]:
        """Formulas with the places where they hold, numbers as numbers."""
        layers: list[dict[str, Any]] = []
        for label, count in self.formulas.items():
            pieces: Any = [{"when": "always", "count": str(count)}]
            if isinstance(count, Count):
                pieces = count.json()["pieces"]
            layers.append({"label": label, "formula": pieces, "order": self.orders[label]})
        return {
            **({"warning": self.warning} if self.warning else {}),
            **({"positions": self.positions} if self.positions else {}),
            "quantity": self.quantity,
            "over": self.over,
            "at": dict(self.numbers),
            "chosen": list(self.chosen),
            "widths": [asdict(width) for width in self.widths],
            "layers": layers,
            "rows": [{self.over: size, "values": values} for size, values in self.rows],
            "crossovers": [pair.json() for pair in self.crossovers],
            "crossings": [
                {"first": pair.first, "second": pair.second, self.over: place}
                for pair, place in self.crossings
            ],
        }

    def draw(self, ax: Axes | None = None) -> Picture:
        """Lines on logarithmic scales, a dot where two of them cross; into the axes if some are given."""
        from lattend.cost.comparison.chart import draw_lines

        return draw_lines(self).onto(ax)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the chart as the path's ending says, .svg .png .pdf .tex, or the tables, .md."""
        if Path(path).suffix.lower() != ".md":
            return self.draw().save(path)
        Path(path).write_text(self.markdown(), encoding="utf-8")
        return Path(path)


def _different(counts: Mapping[str, Count | int | None]) -> dict[str, str]:
    """The counts as texts, if they are not the same for all."""
    texts = {label: format_value(count) for label, count in counts.items() if count is not None}
    return texts if len(set(texts.values())) > 1 else {}


def _least(values: dict[str, int | None]) -> str:
    """Who needs the least."""
    known = {label: value for label, value in values.items() if value is not None}
    best = [label for label, value in known.items() if value == min(known.values())]
    return ", ".join(best) if len(best) < len(values) else "all the same"


def compare(
    costs: Sequence[Cost] | Mapping[str, Cost],
    over: str = "n",
    quantity: str = "multiplies",
    at: At = None,
    equal: str | None = None,
) -> Comparison:
    """Several layers as one size grows: formulas, orders, a table, and where they cross, in closed form.

    `at` gives numbers for other symbols and rows for the table: {"n": 512, "t": [64, 128]}, or [64, 128].
    With equal="parameters" every layer after the first is made as wide as the first one's parameters
    allow; nothing is scaled otherwise.
    """
    quantity, named = quantity_named(quantity), _labelled(costs)
    numbers_, sizes = _read_at(at, over)
    widths: list[Width] = []
    if equal is not None:
        if equal != "parameters":
            raise NamingError(f'equal is "parameters" or None, not {equal!r}')
        named, widths = equal_parameters(named, over, numbers_)
    names: dict[str, None] = {}
    for cost in named.values():
        names |= dict.fromkeys(settled(cost.amount(quantity), cost.values).names)
    known = dict.fromkeys(name for cost in named.values() for name in cost.names)
    if over not in {**names, **known}:
        raise NamingError(f"none of these has {over}: give over= one of {', '.join({**names, **known})}")
    given_names = {name for cost in named.values() for name in cost.values}
    unknown = [name for name in numbers_ if name not in {**names, **known} and name not in given_names]
    if unknown:
        raise NamingError(f"none of these has {unknown[0]}; they have {', '.join({**names, **known})}")
    others = sorted((name for name in names if name != over), key=rank)
    chosen = tuple(name for name in others if name not in numbers_)
    values = {name: numbers_.get(name, priced_number(name)) for name in others}
    return Comparison(named, over, quantity, values, chosen, sizes, tuple(widths))


def _labelled(costs: Sequence[Cost] | Mapping[str, Cost]) -> dict[str, Cost]:
    """The costs by label: their names, with a number where several have the same."""
    if isinstance(costs, Mapping):
        labelled = dict(costs.items())
    else:
        names = [cost.name for cost in costs]
        seen: dict[str, int] = {}
        labelled = {}
        for name, cost in zip(names, costs, strict=True):
            seen[name] = seen.get(name, 0) + 1
            labelled[f"{name} {seen[name]}" if names.count(name) > 1 else name] = cost
    if len(labelled) < 2:
        raise NamingError(f"compare needs two layers or more, got {len(labelled)}")
    return labelled


def _read_at(at: At, over: str) -> tuple[dict[str, int], tuple[int, ...]]:
    """Numbers for other symbols, and sizes to show."""
    if at is None:
        return {}, ()
    if not isinstance(at, Mapping):
        return {}, _sizes(over, at)
    numbers_: dict[str, int] = {}
    sizes: tuple[int, ...] = ()
    for name, value in at.items():
        if name == over:
            sizes = _sizes(over, [value] if isinstance(value, int) else value)
            continue
        if not isinstance(value, int):
            raise NamingError(f"{name} takes one number; only {over} grows")
        check_integer(name, value)
        numbers_[name] = value
    return numbers_, sizes


def powers_between(low: int, high: int) -> list[int]:
    """Both ends, and the powers of two between them: rows of a table from one size to another.

    >>> powers_between(3, 20)
    [3, 4, 8, 16, 20]
    """
    if not 1 <= low < high <= LARGEST:
        raise DomainError(f"sizes grow from 1 or more to at most 2^60, not from {low:,} to {high:,}")
    return [low, *(2**power for power in range(60) if low < 2**power < high), high]


def _sizes(over: str, sizes: Sequence[int]) -> tuple[int, ...]:
    for size in sizes:
        check_integer(over, size)
        if size < 0:
            raise DomainError(f"{over} must not be negative, got {size}")
    return tuple(sorted(set(sizes)))
