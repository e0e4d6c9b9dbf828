"""Eight ranks for all tests of this folder: starting them takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gloo_ranks import Crew


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    """Eight processes; a test uses the first 2, 3, 4 or 8."""
    with Crew(8, timeout=240) as found:  # sixteen processes may share two cores
        yield found
