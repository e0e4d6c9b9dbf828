"""What runs attention in place of this process: under lt.parallel.sharded, several ranks.

attention() looks here first, and knows nothing of ranks itself.
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
        """What attention gives, with `how` its arguments by name, as far as they are not left out."""
        ...

    def refuse(self, error: LattendError) -> NoReturn:
        """Raises an error that one rank has found, once the others know."""
        ...


OVERRIDES: list[Override] = []
