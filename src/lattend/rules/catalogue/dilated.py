"""Dilated attention: a query attends to itself and t keys before it, every step-th one.

min(q // step, t) + 1 keys a query; the farthest is t*step back.

    #...        t = 1, step = 2
    .#..
    #.#.
    .#.#

Reference: Beltagy et al. 2020, Longformer (dilated sliding window, here its causal half).
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="dilated",
    meaning="a query attends to itself and t keys before it, every step-th one",
    keys="min(q // step, t) + 1",
    reference="Beltagy et al. 2020, Longformer (dilated sliding window, here its causal half)",
    elsewhere=("NATTEN in one dimension, causal: kernel_size = t + 1, dilation = step",),
)


def dilated(t: int | None = None, step: int | None = None) -> Rule:
    """Every step-th of the past: `k <= q and q - k <= t*step and (q - k) % step == 0`.

    >>> dilated(t=1, step=2).mask(n=4).sum()  # 1 + 1 + 2 + 2
    np.int64(6)
    """
    text = "k <= q and q - k <= t*step and (q - k) % step == 0"
    return entry(text, ABOUT, where="t >= 0", t=t, step=step)
