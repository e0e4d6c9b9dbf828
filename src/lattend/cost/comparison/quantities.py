"""Quantities: what can be compared, as amounts in the layers' symbols."""

from __future__ import annotations

from lattend.cost.amount import Amount
from lattend.cost.comparison.difference import settled
from lattend.cost.cost import QUANTITIES, Cost
from lattend.errors import NamingError

NAMES = (*QUANTITIES, "path")


def amount_of(cost: Cost, quantity: str) -> Amount:
    """The quantity in the cost's column and way, with the numbers it was given.

    An LSTM has 8n² multiply-adds a step, and 3n multiplies of single numbers beside them.
    """
    if quantity not in NAMES:
        raise NamingError(f"a comparison has no {quantity}; it has {', '.join(NAMES)}")
    if quantity != "path":
        return settled(cost.amount(quantity), cost.values)
    found = [layer.path_length() for _, layer in cost.parts if layer.mixes_tokens]
    if len(found) != 1 or found[0] is None:
        raise NamingError(f"the maximum path length of {cost.name} is not known")
    return settled(found[0], cost.values)
