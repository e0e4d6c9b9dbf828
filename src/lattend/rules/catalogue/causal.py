"""Causal attention: a query attends to itself and all keys before it.

q + 1 keys a query: n(n + 1)/2 pairs when n = m.

    #...
    ##..
    ###.
    ####

When there are m keys and n queries, two conventions exist. `align="top-left"` counts both from the
start (PyTorch's is_causal); `align="bottom-right"` lets the last query attend to the last key, as when the
queries continue a cache (FlashAttention since 2.1): query q attends to q + 1 + m - n keys, none when that
is below 1. For n = m the two are equal. Here n = 2, m = 4:

    top-left   bottom-right
    #...       ###.
    ##..       ####

Reference: Vaswani et al. 2017, Attention Is All You Need.
"""

from __future__ import annotations

from typing import Literal

from lattend.errors import DomainError
from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

TOP_LEFT = RuleInfo(
    name="causal",
    meaning="a query attends to itself and all keys before it",
    keys="q + 1",
    reference="Vaswani et al. 2017, Attention Is All You Need",
    aliases=(
        "autoregressive",
        "lower_triangular",
    ),
    elsewhere=(
        "torch: is_causal=True, causal_upper_left",
        "xformers: LowerTriangularMask",
        "a decoder such as GPT",
    ),
)
BOTTOM_RIGHT = RuleInfo(
    name="causal",
    meaning="the last query attends to the last key, and each query before it one key fewer",
    keys="max(0, q + 1 + m - n)",
    reference="Dao 2023, FlashAttention 2.1 (change of the causal mask when n and m differ)",
    elsewhere=(
        "FlashAttention since 2.1: causal=True",
        "torch: causal_lower_right",
        "xformers: LowerTriangularFromBottomRightMask",
    ),
)


def causal(align: Literal["top-left", "bottom-right"] = "top-left") -> Rule:
    """Itself and everything before: `k <= q`, or `k - q <= m - n` aligned to the bottom right.

    >>> causal().mask(n=4).sum()  # 1 + 2 + 3 + 4
    np.int64(10)
    """
    if align == "top-left":
        return entry("k <= q", TOP_LEFT)
    if align == "bottom-right":
        return entry("k - q <= m - n", BOTTOM_RIGHT)
    raise DomainError(f'causal(align={align!r}): align is "top-left" or "bottom-right"')
