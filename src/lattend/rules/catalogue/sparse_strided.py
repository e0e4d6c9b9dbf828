"""Sparse Transformer, strided: the last l positions, and every l-th position before.

min(q + 1, l) + q // l keys a query: l of the window (itself among them), and one for each whole
stride further back.

    #....        l = 2
    ##...
    ###..
    .###.
    #.###

Reference: Child et al. 2019, Generating Long Sequences with Sparse Transformers.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="sparse_strided",
    meaning="the last l positions, and every l-th position before",
    keys="min(q + 1, l) + q // l",
    reference="Child et al. 2019, Generating Long Sequences with Sparse Transformers",
    elsewhere=("Sparse Transformers: strided, of stride l",),
)


def sparse_strided(l: int | None = None) -> Rule:  # noqa: E741  (the paper's letter)
    """A window and a stride: `k <= q and (q - k < l or (q - k) % l == 0)`.

    >>> sparse_strided(l=2).mask(n=5).sum()  # 1 + 2 + 3 + 3 + 4
    np.int64(13)
    """
    return entry("k <= q and (q - k < l or (q - k) % l == 0)", ABOUT, l=l)
