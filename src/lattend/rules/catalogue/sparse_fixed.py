"""Sparse Transformer, fixed: causal inside blocks of l, and the last c positions of every block before.

q % l + 1 + q // l*c keys a query: its own block up to itself, and c of each block before it.

    #.....        l = 3, c = 1
    ##....
    ###...
    ..##..
    ..###.
    ..####

Reference: Child et al. 2019, Generating Long Sequences with Sparse Transformers.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="sparse_fixed",
    meaning="causal inside blocks of l, and the last c positions of every block before",
    keys="q % l + 1 + q // l*c",
    reference="Child et al. 2019, Generating Long Sequences with Sparse Transformers",
    aliases=("fixed(l, c)",),
    elsewhere=("Sparse Transformers: fixed, of stride l and c summaries",),
)


def sparse_fixed(l: int | None = None, c: int | None = None) -> Rule:  # noqa: E741  (the paper's letter)
    """A block and summaries: `k <= q and (q // l == k // l or k % l >= l - c)`.

    >>> sparse_fixed(l=3, c=1).mask(n=6).sum()  # (1 + 2 + 3) + (2 + 3 + 4)
    np.int64(15)
    """
    text = "k <= q and (q // l == k // l or k % l >= l - c)"
    return entry(text, ABOUT, where="0 <= c and c <= l", l=l, c=c)
