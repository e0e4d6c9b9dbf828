"""Seeds: whole numbers that torch's generators can start from."""

from __future__ import annotations

import operator
from typing import Any

from lattend.errors import DomainError

SEEDS = range(-(2**63), 2**64)


def check_seed(seed: Any) -> int:
    """The seed as a plain number; raises where no generator can start from it.

    >>> check_seed(0)
    0
    """
    try:
        found = None if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        found = None
    if found is None or found not in SEEDS:
        raise DomainError(f"seed must be a whole number from −2⁶³ to 2⁶⁴ − 1, got {seed!r}")
    return found
