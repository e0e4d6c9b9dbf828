"""Chunked attention: chunks of w positions; a query attends to its whole chunk and t chunks before it.

Up to (t + 1)*w keys a query, the later ones of its own chunk among them: a model that streams
waits for the end of a chunk. Llama 4's "chunked" is causal inside a chunk: that is windowed.

    ##....        w = 2, t = 1
    ##....
    ####..
    ####..
    ..####
    ..####

Reference: Chen et al. 2021, Developing Real-time Streaming Transformer Transducer (chunk-wise masks).
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="chunked",
    meaning="chunks of w positions; a query attends to its whole chunk and t chunks before it",
    keys="min(n, (q // w + 1)*w) - max(0, q // w - t)*w",
    reference="Chen et al. 2021, Developing Real-time Streaming Transformer Transducer",
    elsewhere=(
        "streaming speech recognition: chunk-wise masks",
        "Llama 4's chunked attention is windowed(w)",
    ),
)


def chunked(w: int | None = None, t: int | None = None) -> Rule:
    """Its chunk and some before: `0 <= q // w - k // w <= t`.

    >>> chunked(w=2, t=1).mask(n=6).sum()  # 2*2 + 2*4 + 2*4
    np.int64(20)
    """
    return entry("0 <= q // w - k // w <= t", ABOUT, where="t >= 0", w=w, t=t)
