"""Longformer: a window of w to both sides, and the first g positions see all and are seen by all.

2w + 1 keys in the window, away from the ends: w counts one side. The paper's and Hugging Face's
attention_window is the two sides together, so attention_window = 2w. A global position has n keys;
any other has its window and the global keys outside it.

    #####        w = 1, g = 1
    ###..
    ####.
    #.###
    #..##

Reference: Beltagy et al. 2020, Longformer: The Long-Document Transformer.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import entry
from lattend.rules.rule import About, Rule

ABOUT = About(
    name="longformer",
    meaning="a window of w to both sides; the first g positions see all and are seen by all",
    keys="n when q < g; min(q, w) + 1 + min(n - 1 - q, w) + min(g, max(0, q - w)) otherwise",
    reference="Beltagy et al. 2020, Longformer: The Long-Document Transformer",
)


def longformer(w: int | None = None, g: int | None = None) -> Rule:
    """A window and global positions: `abs(q - k) <= w or q < g or k < g`.

    >>> longformer(w=1, g=1).mask(n=5).sum()  # 5 + 3 + 4 + 4 + 3
    np.int64(19)
    """
    return entry("abs(q - k) <= w or q < g or k < g", ABOUT, where="w >= 0 and g >= 0", w=w, g=g)
