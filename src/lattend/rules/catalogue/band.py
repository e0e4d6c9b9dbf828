"""Band: a query attends to itself, at most `before` positions before it and at most `after` after it.

before + 1 + after keys away from both ends. FlashAttention's window_size=(before, after).

    ##..        before = 2, after = 1
    ###.
    ####
    .###

Reference: Dao 2023, FlashAttention-2 (window_size).
"""

from __future__ import annotations

from dataclasses import replace

from lattend.rules.catalogue.entry import entry
from lattend.rules.rule import About, Rule

ABOUT = About(
    name="band",
    meaning="a query attends to itself, at most `before` positions before it and at most `after` after it",
    keys="min(q, before) + 1 + min(n - 1 - q, after)",
    reference="Dao 2023, FlashAttention-2 (window_size)",
    aliases=(
        "banded(before, after)",
        "local(radius = before = after)",
    ),
    elsewhere=(
        "FlashAttention: window_size = (before, after)",
        "xformers: LocalAttentionFromBottomRightMask(before, after)",
        "LongT5: local_radius = before = after",
        "Hugging Face, bidirectional: sliding_window = before = after",
    ),
)


def band(before: int | None = None, after: int | None = None) -> Rule:
    """Both sides: `q - k <= before and k - q <= after`.

    >>> band(before=1, after=1).mask(n=4).sum()  # 2 + 3 + 3 + 2
    np.int64(10)
    """
    where = "before >= 0 and after >= 0"
    return entry("q - k <= before and k - q <= after", ABOUT, where=where, before=before, after=after)


def local(radius: int | None = None) -> Rule:
    """As far to both sides: band of before = after = radius, 2*radius + 1 keys.

    >>> local(radius=1).mask(n=4).sum()  # 2 + 3 + 3 + 2
    np.int64(10)
    """
    about = replace(
        ABOUT,
        meaning="a query attends to itself and at most `radius` positions to each side",
        keys="min(q, radius) + 1 + min(n - 1 - q, radius)",
    )
    return entry("abs(q - k) <= radius", about, where="radius >= 0", radius=radius)
