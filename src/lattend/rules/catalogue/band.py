"""Band: a query sees itself, at most `before` positions before it and at most `after` after it.

before + 1 + after keys away from both ends. FlashAttention's window_size=(before, after).

    ##..        before = 2, after = 1
    ###.
    ####
    .###

Reference: Dao 2023, FlashAttention-2 (window_size).
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import entry
from lattend.rules.rule import About, Rule

ABOUT = About(
    name="band",
    meaning="a query sees itself, at most `before` positions before it and at most `after` after it",
    keys="min(q, before) + 1 + min(n - 1 - q, after)",
    reference="Dao 2023, FlashAttention-2 (window_size)",
)


def band(before: int | None = None, after: int | None = None) -> Rule:
    """Both sides: `q - k <= before and k - q <= after`.

    >>> band(before=1, after=1).mask(n=4).sum()  # 2 + 3 + 3 + 2
    np.int64(10)
    """
    where = "before >= 0 and after >= 0"
    return entry("q - k <= before and k - q <= after", ABOUT, where=where, before=before, after=after)
