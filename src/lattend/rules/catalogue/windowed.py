"""Windowed attention: causal inside windows of w positions, nothing across them.

q % w + 1 keys a query, from 1 at the start of a window to w at its end. Llama 4 calls this chunked.

    #...        w = 2
    ##..
    ..#.
    ..##

Reference: Child et al. 2019, Generating Long Sequences with Sparse Transformers.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="windowed",
    meaning="causal inside windows of w positions, nothing across them",
    keys="q % w + 1",
    reference="Child et al. 2019, Generating Long Sequences with Sparse Transformers",
    aliases=("block_causal(w)",),
    elsewhere=(
        "Llama 4 and Hugging Face: chunked attention, attention_chunk_size = w",
        "block-causal elsewhere may let a block attend to all blocks before it: k // w <= q // w",
    ),
)


def windowed(w: int | None = None) -> Rule:
    """Causal inside windows: `k <= q and q // w == k // w`.

    >>> windowed(w=4).mask(n=6).sum()  # (1 + 2 + 3 + 4) + (1 + 2)
    np.int64(13)
    """
    return entry("k <= q and q // w == k // w", ABOUT, w=w)
