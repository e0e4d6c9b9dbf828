"""Games in plain floats, written apart from the library: what its orbits and eigenvalues are checked with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]


def method_map(name: str, H: Floats, players: int, h: float, k: float, **options: float | str) -> Map:
    """One step on f = ½x'Hx as a function of the whole state, from the methods' textbook equations."""
    S = np.diag([-h] * players + [k] * (len(H) - players))  # descent for p, ascent for q
    n = len(H)
    p, q = slice(0, players), slice(players, n)

    def in_turn(slope: Map, order: object) -> Map:
        def step(x: Floats) -> Floats:
            if order not in ("p", "q"):
                return x + S @ slope(x)
            for part in (q, p) if order == "q" else (p, q):
                x = x.copy()
                x[part] += (S @ slope(x))[part]
            return x

        return step

    order = options.get("first", "q" if name == "alternating" else None)
    if name in ("simultaneous", "alternating"):
        return in_turn(lambda x: H @ x, order)
    if name == "consensus":
        sign = np.diag([1.0] * players + [-1.0] * (n - players))  # both go down the length
        return in_turn(lambda x: H @ x + float(options["weight"]) * sign @ H @ H @ x, order)
    if name == "gradient_penalty":
        inner = np.zeros((n, n))
        inner[q, :] = H[q, p] @ H[p, :]
        return in_turn(lambda x: (H - float(options["weight"]) * inner) @ x, order)
    if name == "extragradient":
        return lambda x: x + S @ H @ (x + S @ H @ x)
    if name == "optimistic":
        return lambda s: np.concatenate([s[:n] + S @ (2 * H @ s[:n] - s[n:]), H @ s[:n]])

    def momentum(s: Floats) -> Floats:
        x, speed = s[:n].copy(), s[n:].copy()
        for part in {"p": (p, q), "q": (q, p)}.get(str(order), (slice(0, n),)):
            speed[part] = float(options["mass"]) * speed[part] + (H @ x)[part]
            x[part] += (S @ speed)[part]
        return np.concatenate([x, speed])

    assert name == "momentum"
    return momentum


def matrix(step: Map, size: int) -> Floats:
    """The matrix of a linear map."""
    return np.stack([step(np.eye(size)[k]) for k in range(size)], axis=1)
