"""Equal parameters: the widest layer that has no more parameters than another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lattend.cost.cost import Cost
from lattend.errors import NamingError
from lattend.rules.language.polynomial import Polynomial

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
