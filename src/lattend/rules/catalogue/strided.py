"""Strided attention: a query sees itself and at most t positions before it.

min(q, t) + 1 keys a query, so t + 1 away from the start. A sliding window of w keys, as in Hugging
Face, is t = w - 1; FlashAttention's window_size=(t, 0) and attention-gym's window of t are this t.
Sparse Transformers call another rule strided: see sparse_strided.

    #...        t = 1
    ##..
    .##.
    ..##

Reference: Child et al. 2019, Generating Long Sequences with Sparse Transformers.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import entry
from lattend.rules.rule import About, Rule

ABOUT = About(
    name="strided",
    meaning="a query sees itself and at most t positions before it",
    keys="min(q, t) + 1",
    reference="Child et al. 2019, Generating Long Sequences with Sparse Transformers",
)


def strided(t: int | None = None) -> Rule:
    """Itself and t before: `k <= q and q - k <= t`.

    >>> strided(t=2).mask(n=8).sum()  # 1 + 2 + 6*3
    np.int64(21)
    """
    return entry("k <= q and q - k <= t", ABOUT, where="t >= 0", t=t)
