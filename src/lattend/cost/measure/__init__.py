"""Meters: what torch modules cost, counted as they run; needed, executed and dense apart."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lattend.cost.measure.counter import FlopCounter as FlopCounter
    from lattend.cost.measure.measure import of as of
    from lattend.cost.measure.profile import ModuleCost as ModuleCost
    from lattend.cost.measure.profile import Profile as Profile
    from lattend.cost.measure.tally import Tally as Tally

# Loaded on first use
_HOME = {
    "of": "measure",
    "Profile": "profile",
    "ModuleCost": "profile",
    "FlopCounter": "counter",
    "Tally": "tally",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(
            f"module 'lattend.cost.measure' has no attribute {name!r}; it has {', '.join(_HOME)}"
        )
    return getattr(import_module(f"lattend.cost.measure.{_HOME[name]}"), name)
