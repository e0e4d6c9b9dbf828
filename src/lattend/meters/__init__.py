"""Meters: what torch modules cost, counted as they run; needed, executed and dense apart."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lattend.meters.counter import FlopCounter as FlopCounter
    from lattend.meters.measure import of as of
    from lattend.meters.profile import Profile as Profile
    from lattend.meters.profile import Row as Row
    from lattend.meters.tally import Tally as Tally

# Loaded on first use
_HOME = {"of": "measure", "Profile": "profile", "Row": "profile", "FlopCounter": "counter", "Tally": "tally"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lattend.meters' has no attribute {name!r}; it has {', '.join(_HOME)}")
    return getattr(import_module(f"lattend.meters.{_HOME[name]}"), name)
