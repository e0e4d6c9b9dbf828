"""Strided attention: a query attends to itself and at most t positions before it.

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

from dataclasses import replace

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="strided",
    meaning="a query attends to itself and at most t positions before it",
    keys="min(q, t) + 1",
    reference="Child et al. 2019, Generating Long Sequences with Sparse Transformers",
    aliases=("sliding_window(window = t + 1)",),
    elsewhere=(
        "Hugging Face and Mistral: sliding_window = t + 1",
        "FlashAttention: window_size = (t, 0)",
        "attention-gym: generate_sliding_window(t)",
        "Sparse Transformers: their strided attention is sparse_strided, this is its first head",
    ),
    common="sliding window",
)


def strided(t: int | None = None) -> Rule:
    """Itself and t before: `k <= q and q - k <= t`.

    >>> strided(t=2).mask(n=8).sum()  # 1 + 2 + 6*3
    np.int64(21)
    """
    return entry("k <= q and q - k <= t", ABOUT, where="t >= 0", t=t)


def sliding_window(window: int | None = None) -> Rule:
    """A window of `window` keys including the query's own, as Hugging Face counts: t = window - 1.

    >>> sliding_window(window=3).mask(n=8).sum()  # 1 + 2 + 6*3
    np.int64(21)
    """
    about = replace(
        ABOUT,
        meaning="a query attends to `window` keys: itself and those just before",
        keys="min(q + 1, window)",
    )
    return entry("k <= q and q - k < window", about, where="window >= 1", window=window)
