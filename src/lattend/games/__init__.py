"""Minimax games: one player makes f small, the other makes it large, and both follow their gradients.

Games     Game, dirac; ring, Ring
Methods   simultaneous, alternating, optimistic, extragradient, momentum, consensus, gradient_penalty
Results   Orbit, Analysis, Equilibrium
Pictures  portrait, distances, compare_orbits, compare_methods, draw_runs

`help(lt.games.Game)` tells the arguments of one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lattend.games.analysis import Analysis as Analysis
    from lattend.games.dirac import dirac as dirac
    from lattend.games.equilibria import Equilibrium as Equilibrium
    from lattend.games.game import Game as Game
    from lattend.games.gan import ring as ring
    from lattend.games.methods import alternating as alternating
    from lattend.games.methods import consensus as consensus
    from lattend.games.methods import extragradient as extragradient
    from lattend.games.methods import gradient_penalty as gradient_penalty
    from lattend.games.methods import momentum as momentum
    from lattend.games.methods import optimistic as optimistic
    from lattend.games.methods import simultaneous as simultaneous
    from lattend.games.orbit import Orbit as Orbit
    from lattend.games.pictures import compare_orbits as compare_orbits
    from lattend.games.pictures import distances as distances
    from lattend.games.pictures import portrait as portrait
    from lattend.games.ring import Ring as Ring
    from lattend.games.ring import draw_runs as draw_runs
    from lattend.games.table import compare_methods as compare_methods

# Where each name lives, loaded when it is first used
_HOME: dict[str, str] = {
    "Game": "lattend.games.game",
    "dirac": "lattend.games.dirac",
    "ring": "lattend.games.gan",
    "simultaneous": "lattend.games.methods",
    "alternating": "lattend.games.methods",
    "optimistic": "lattend.games.methods",
    "extragradient": "lattend.games.methods",
    "momentum": "lattend.games.methods",
    "consensus": "lattend.games.methods",
    "gradient_penalty": "lattend.games.methods",
    "Orbit": "lattend.games.orbit",
    "Analysis": "lattend.games.analysis",
    "Equilibrium": "lattend.games.equilibria",
    "portrait": "lattend.games.pictures",
    "distances": "lattend.games.pictures",
    "compare_orbits": "lattend.games.pictures",
    "compare_methods": "lattend.games.table",
    "Ring": "lattend.games.ring",
    "draw_runs": "lattend.games.ring",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"lt.games has no {name!r}; it has {', '.join(_HOME)}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(_HOME)
