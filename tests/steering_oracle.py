"""What steering is checked with: softmax in 60 digits, faces and best fits by scipy."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
from scipy.optimize import linprog, minimize

EDGE = 1e-7


def softmax(keys: Any, query: Any, scale: float = 1.0) -> list[Any]:
    """softmax(scale·Kq) in 60 digits, every float taken as it is."""
    with mpmath.workdps(60):
        rows = [[mpmath.mpf(x) for x in row] for row in np.asarray(keys, float).tolist()]
        logits = [mpmath.mpf(scale) * mpmath.fdot(row, np.asarray(query, float).tolist()) for row in rows]
        most = max(logits)
        raised = [mpmath.exp(x - most) for x in logits]
        return [x / mpmath.fsum(raised) for x in raised]


def apart(reached: list[Any], wanted: Any) -> float:
    """The total-variation distance: half the sum of the differences."""
    with mpmath.workdps(60):
        return float(
            mpmath.fsum(abs(a - mpmath.mpf(float(b))) for a, b in zip(reached, wanted, strict=True)) / 2
        )


def smallest_face(keys: Any, support: Any) -> list[bool]:
    """The keys that no plane through those of the support can cut off, with all keys on one side of it."""
    keys, support = np.asarray(keys, float), np.asarray(support, bool)
    shifted = keys - keys[support][0]
    found = []
    for row, inside in zip(shifted, support, strict=True):
        solved = linprog(
            row,
            A_ub=shifted,
            b_ub=np.zeros(len(keys)),
            A_eq=shifted[support],
            b_eq=np.zeros(int(support.sum())),
            bounds=(-1, 1),
        )
        found.append(bool(inside or solved.fun > -EDGE))
    return found


def least_nats(keys: Any, wanted: Any) -> float:
    """The least KL(wanted ‖ softmax(Kq)) over all q, by a method that knows nothing of faces."""
    keys, wanted = np.asarray(keys, float), np.asarray(wanted, float)
    used = wanted > 0

    def nats(query: Any) -> float:
        logits = keys @ query
        logs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        return float((wanted[used] * (np.log(wanted[used]) - logs[used])).sum())

    return float(minimize(nats, np.zeros(keys.shape[1]), method="BFGS", options={"gtol": 1e-9}).fun)
