"""Meters: what torch modules cost, counted as they run; needed, executed and dense apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import on_first_use

if TYPE_CHECKING:
    from lattend.cost.measure.counter import FlopCounter as FlopCounter
    from lattend.cost.measure.measure import of as of
    from lattend.cost.measure.profile import ModuleCost as ModuleCost
    from lattend.cost.measure.profile import Profile as Profile
    from lattend.cost.measure.tally import Tally as Tally

_HOME = {
    "of": "lattend.cost.measure.measure",
    "Profile": "lattend.cost.measure.profile",
    "ModuleCost": "lattend.cost.measure.profile",
    "FlopCounter": "lattend.cost.measure.counter",
    "Tally": "lattend.cost.measure.tally",
}

__getattr__, __dir__ = on_first_use(globals(), "lattend.cost.measure", _HOME)
