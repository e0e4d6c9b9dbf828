"""Minimax games: one player makes f small, the other makes it large, and both follow their gradients.

Games     Game, dirac; a GAN, ring, on the data of a Ring
Methods   simultaneous, alternating, optimistic, extragradient, momentum, consensus, gradient_penalty
Results   Orbit, Analysis, Equilibria, Equilibrium, RingRun; each has .draw() and .json()
Pictures  portrait, distances, compare_orbits, compare_methods, draw_runs

`help(lt.study.games.Game)` tells the arguments of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import homes, on_first_use

if TYPE_CHECKING:
    from lattend.study.games.analysis import Analysis as Analysis
    from lattend.study.games.equilibria import Equilibria as Equilibria
    from lattend.study.games.equilibria import Equilibrium as Equilibrium
    from lattend.study.games.game import Game as Game
    from lattend.study.games.game import dirac as dirac
    from lattend.study.games.methods import alternating as alternating
    from lattend.study.games.methods import consensus as consensus
    from lattend.study.games.methods import extragradient as extragradient
    from lattend.study.games.methods import gradient_penalty as gradient_penalty
    from lattend.study.games.methods import momentum as momentum
    from lattend.study.games.methods import optimistic as optimistic
    from lattend.study.games.methods import simultaneous as simultaneous
    from lattend.study.games.modes import Ring as Ring
    from lattend.study.games.modes import RingRun as RingRun
    from lattend.study.games.modes import draw_runs as draw_runs
    from lattend.study.games.orbit import Orbit as Orbit
    from lattend.study.games.pictures import compare_methods as compare_methods
    from lattend.study.games.pictures import compare_orbits as compare_orbits
    from lattend.study.games.pictures import distances as distances
    from lattend.study.games.pictures import portrait as portrait
    from lattend.study.games.tensors import ring as ring

# Where each name lives, loaded when it is first used; no file has the name of what it gives, because
# importing the file would put the module in its place
_HOME = homes(
    "lattend.study.games",
    {
        "game": "Game dirac",
        "tensors": "ring",
        "methods": "simultaneous alternating optimistic extragradient momentum consensus gradient_penalty",
        "orbit": "Orbit",
        "analysis": "Analysis",
        "equilibria": "Equilibria Equilibrium",
        "pictures": "portrait distances compare_orbits compare_methods",
        "modes": "Ring RingRun draw_runs",
    },
)

__getattr__, __dir__ = on_first_use(globals(), "lt.study.games", _HOME)
