"""Full attention: every query attends to every key.

n keys a query (m, when the keys have a number of their own): n*n pairs.

    ####
    ####
    ####
    ####

Reference: Vaswani et al. 2017, Attention Is All You Need.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="full",
    meaning="every query attends to every key",
    keys="n",
    reference="Vaswani et al. 2017, Attention Is All You Need",
    aliases=("bidirectional",),
    elsewhere=("dense attention; FlexAttention's noop_mask; an encoder such as BERT",),
)


def full() -> Rule:
    """Every pair: `true`.

    >>> full().mask(n=3).sum()  # 3 * 3
    np.int64(9)
    """
    return entry("true", ABOUT)
