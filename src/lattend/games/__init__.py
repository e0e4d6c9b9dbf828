"""Minimax games: one player makes f small, the other makes it large, and both follow their gradients.

Games     Game, dirac; a GAN, ring, on the data of a Ring
Methods   simultaneous, alternating, optimistic, extragradient, momentum, consensus, gradient_penalty
Results   Orbit, Analysis, Equilibria, Equilibrium, RingRun; each has .draw() and .json()
Pictures  portrait, distances, compare_orbits, compare_methods, draw_runs

`help(lt.games.Game)` tells the arguments of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import on_first_use

if TYPE_CHECKING:
    from lattend.games.analysis import Analysis as Analysis
    from lattend.games.equilibria import Equilibria as Equilibria
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
    from lattend.games.modes import Ring as Ring
    from lattend.games.modes import RingRun as RingRun
    from lattend.games.modes import draw_runs as draw_runs
    from lattend.games.orbit import Orbit as Orbit
    from lattend.games.pictures import compare_orbits as compare_orbits
    from lattend.games.pictures import distances as distances
    from lattend.games.pictures import portrait as portrait
    from lattend.games.smallest_gan import dirac as dirac
    from lattend.games.table import compare_methods as compare_methods

# Where each name lives, loaded when it is first used; no file has the name of what it gives, because
# importing the file would put the module in its place
_HOME: dict[str, str] = {
    "Game": "lattend.games.game",
    "dirac": "lattend.games.smallest_gan",
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
    "Equilibria": "lattend.games.equilibria",
    "Equilibrium": "lattend.games.equilibria",
    "RingRun": "lattend.games.modes",
    "portrait": "lattend.games.pictures",
    "distances": "lattend.games.pictures",
    "compare_orbits": "lattend.games.pictures",
    "compare_methods": "lattend.games.table",
    "Ring": "lattend.games.modes",
    "draw_runs": "lattend.games.modes",
}
__all__ = [  # noqa: RUF022  (in the order a reader meets them)
    "Game",
    "dirac",
    "ring",
    "simultaneous",
    "alternating",
    "optimistic",
    "extragradient",
    "momentum",
    "consensus",
    "gradient_penalty",
    "Orbit",
    "Analysis",
    "Equilibria",
    "Equilibrium",
    "RingRun",
    "portrait",
    "distances",
    "compare_orbits",
    "compare_methods",
    "Ring",
    "draw_runs",
]

__getattr__, __dir__ = on_first_use(globals(), "lt.games", _HOME)
