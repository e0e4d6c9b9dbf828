"""Prefix language model: the first p positions are attended by all, the rest is causal.

max(q + 1, min(p, n)) keys a query.

    ##..        p = 2
    ##..
    ###.
    ####

Reference: Raffel et al. 2020, Exploring the Limits of Transfer Learning (T5), figure 3.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="prefix_lm",
    meaning="the first p positions are attended by all, the rest is causal",
    keys="max(q + 1, min(p, n))",
    reference="Raffel et al. 2020, Exploring the Limits of Transfer Learning (T5)",
    aliases=("prefix(p)",),
    elsewhere=(
        "attention-gym: generate_prefix_lm_mask(p)",
        "T5: prefix LM, non-causal decoder",
    ),
)


def prefix_lm(p: int | None = None) -> Rule:
    """A prefix attended by all: `k <= q or k < p`.

    >>> prefix_lm(p=2).mask(n=4).sum()  # 2 + 2 + 3 + 4
    np.int64(11)
    """
    return entry("k <= q or k < p", ABOUT, where="p >= 0", p=p)
