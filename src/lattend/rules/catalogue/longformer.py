"""Longformer: a query attends to t positions to each side; the first g attend to all, all to them.

2t + 1 keys in the window, away from the ends: t counts one side. The paper's and Hugging Face's
attention_window is the two sides together, so attention_window = 2t. A global position has n keys;
any other has its window and the global keys outside it.

    #####        t = 1, g = 1
    ###..
    ####.
    #.###
    #..##

Reference: Beltagy et al. 2020, Longformer: The Long-Document Transformer.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="longformer",
    meaning="a query attends to t positions to each side; the first g attend to all, and all to them",
    keys="n when q < g; min(q, t) + 1 + min(n - 1 - q, t) + min(g, max(0, q - t)) otherwise",
    reference="Beltagy et al. 2020, Longformer: The Long-Document Transformer",
    elsewhere=("Longformer: attention_window = 2*t, global tokens anywhere",),
)


def longformer(t: int | None = None, g: int | None = None) -> Rule:
    """A window and global positions: `abs(q - k) <= t or q < g or k < g`.

    >>> longformer(t=1, g=1).mask(n=5).sum()  # 5 + 3 + 4 + 4 + 3
    np.int64(19)
    """
    return entry("abs(q - k) <= t or q < g or k < g", ABOUT, where="t >= 0 and g >= 0", t=t, g=g)
