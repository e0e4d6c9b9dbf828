"""Attention sinks: the first s keys, and a window of itself and t positions before.

min(q, t) + 1 + min(s, max(0, q - t)) keys a query: at most s + t + 1, whatever n is. StreamingLLM's
cache of s sinks and a window of w keys is t = w - 1.

    #....        s = 1, t = 1
    ##...
    ###..
    #.##.
    #..##

Reference: Xiao et al. 2024, Efficient Streaming Language Models with Attention Sinks.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="sinks",
    meaning="the first s keys, and a window of itself and t positions before",
    keys="min(q, t) + 1 + min(s, max(0, q - t))",
    reference="Xiao et al. 2024, Efficient Streaming Language Models with Attention Sinks",
    aliases=("attention_sinks(s, t)",),
    elsewhere=(
        "StreamingLLM: start_size = s",
        "gpt-oss: sinks are learned logits there, not keys",
    ),
)


def sinks(s: int | None = None, t: int | None = None) -> Rule:
    """Sinks and a window: `k <= q and (k < s or q - k <= t)`.

    >>> sinks(s=1, t=1).mask(n=5).sum()  # 1 + 2 + 3 + 3 + 3
    np.int64(12)
    """
    return entry("k <= q and (k < s or q - k <= t)", ABOUT, where="s >= 0 and t >= 0", s=s, t=t)
