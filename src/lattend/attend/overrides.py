"""Overrides: under lt.parallel.sharded, several ranks run attention in place of this process.

attention() asks the last override first, and knows nothing of ranks itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from lattend.errors import LattendError


class Override(Protocol):
    """Runs attention elsewhere. The last of OVERRIDES does."""

    def attention(
        self, q: Any, k: Any, v: Any, rule: Any, how: Mapping[str, Any], values: Mapping[str, Any]
    ) -> Any:
        """Returns the results of attention; `how` are the options that the caller set, by name."""
        ...

    def refuse(self, error: LattendError) -> NoReturn:
        """Raises an error of one rank, once the others know."""
        ...


OVERRIDES: list[Override] = []
