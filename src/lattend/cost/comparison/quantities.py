"""Quantities: what can be compared, as amounts in the layers' symbols."""

from __future__ import annotations

from lattend.cost.amount import ZERO, Amount
from lattend.cost.comparison.difference import settled
from lattend.cost.cost import QUANTITIES, Cost
from lattend.cost.statement import COLUMNS, KINDS
from lattend.errors import NamingError

MORE = ("products", "operations", "bytes", "path")
NAMES = (*QUANTITIES, *MORE)
WORDS = {
    "products": "multiplies in matrix products",
    "operations": "multiplies and adds",
    "bytes": "bytes read and written",
    "bytes_read": "bytes read",
    "bytes_written": "bytes written",
    "training_memory": "numbers kept for training",
    "cache": "numbers kept from token to token",
    "depth": "steps one after another",
    "path": "longest way between positions",
}


def words(quantity: str) -> str:
    """What a quantity is called where people read it."""
    return WORDS.get(quantity, quantity)


def amount_of(cost: Cost, quantity: str) -> Amount:
    """The quantity in the cost's column and way, with the numbers it was given.

    "products" are the multiplies whose results are summed up, without those of single numbers: an LSTM has
    8n² a step, and 3n beside them.
    """
    match quantity:
        case "products":
            found = _products(cost)
        case "operations":
            found = cost.amount("multiplies") + cost.amount("adds")
        case "bytes":
            found = cost.amount("bytes_read") + cost.amount("bytes_written")
        case "path":
            found = _path(cost)
        case _ if quantity in QUANTITIES:
            found = cost.amount(quantity)
        case _:
            raise NamingError(f"a comparison has no {quantity}; it has {', '.join(NAMES)}")
    return settled(found, cost.values)


def _products(cost: Cost) -> Amount:
    total = ZERO
    for times, layer in cost.parts:
        for statement in layer.statements:
            kind = KINDS[statement.kind]
            many = (kind.backward if cost.way == "backward" else kind.forward).get("multiplies", 0)
            if kind.sums and many:
                points = getattr(statement.points, cost.column)
                if points is None:
                    raise NamingError(
                        f"{COLUMNS[1]} products of {cost.name} are known when all sizes have numbers"
                    )
                total = total + points * times * many
    return total


def _path(cost: Cost) -> Amount:
    found = [layer.path_length() for _, layer in cost.parts if layer.across]
    if len(found) != 1 or found[0] is None:
        raise NamingError(f"the longest way between positions of {cost.name} is not known")
    return found[0]
