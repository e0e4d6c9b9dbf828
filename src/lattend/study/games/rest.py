"""Rest: a game's equilibria as pictures need them, single points or a line, and how far orbits are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import LattendError
from lattend.study.games.equilibria import Equilibrium, confirmed
from lattend.study.games.game import Game
from lattend.study.games.orbit import Orbit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rest:
    """The equilibria at single points; `line` has the equations, each = 0, where they fill a line or more.

    Then the gradient is linear, and `points` has one of them.
    """

    points: tuple[Equilibrium, ...] = ()
    line: tuple[str, ...] = ()

    def nearest(self, orbit: Orbit) -> Equilibrium | None:
        """The equilibrium nearest to the orbit's start, of those that solve the game if any do."""
        good = [one for one in self.points if one.kind != "none"]
        return min(good or self.points, key=lambda one: math.dist(one.floats, orbit.floats[0]), default=None)

    def offsets(self, orbit: Orbit) -> Floats:
        """The way from the equilibrium nearest to the start to each place; square to a line of them.

        Of (p − q)², whose line is p = q, the place (1, 2) is (−1/2, 1/2) away from (3/2, 3/2).
        """
        found = self.nearest(orbit)
        if self.line and found is not None:
            field = orbit.game.field()
            back = np.linalg.pinv(np.array(field.hessian(found.floats), dtype=float))
            return np.array([back @ field.all(place) for place in orbit.floats])
        return orbit.floats - (found.floats if found else 0.0)

    def foot(self, orbit: Orbit) -> list[float]:
        """The equilibrium's place for this orbit: on a line, the one nearest to the start."""
        return (orbit.floats[0] - self.offsets(orbit)[0]).tolist()


def rest_of(game: Game, at: Any = None, name: str = "at") -> Rest:
    """The equilibrium that is named, else those that are known; none where they cannot be found."""
    if at is not None:
        return Rest((confirmed(game, game.point(at, name)),))
    try:
        found = game.equilibria()
    except LattendError:
        return Rest()
    return Rest(found.points, found.curve if found.points else ())
