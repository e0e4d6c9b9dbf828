"""Quantities: what can be compared, as amounts in the layers' symbols."""

from __future__ import annotations

from lattend.cost.amount import Amount
from lattend.cost.comparison.difference import settled
from lattend.cost.cost import QUANTITIES, Cost
from lattend.errors import NamingError

NAMES = (*QUANTITIES, "operations", "bytes", "path")


def amount_of(cost: Cost, quantity: str) -> Amount:
    """The quantity in the cost's column and way, with the numbers it was given.

    An LSTM has 8n² multiply-adds a step, and 3n multiplies of single numbers beside them.
    """
    match quantity:
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


def _path(cost: Cost) -> Amount:
    found = [layer.path_length() for _, layer in cost.parts if layer.mixes_tokens]
    if len(found) != 1 or found[0] is None:
        raise NamingError(f"the maximum path length of {cost.name} is not known")
    return found[0]
