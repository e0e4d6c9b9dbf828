"""Spans: which keys the queries of a layer attend to, as rules of the catalogue with a model's numbers.

Hugging Face's `sliding_window = w` is w keys, the query's own among them: `q - w < k <= q`, the rule
strided(t = w - 1). Llama 4's `attention_chunk_size = w` is causal inside chunks: windowed(w). A two-sided
window of Gemma 3 reaches w // 2 keys to each side: band. Swin's windows are swin(w, shift).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from lattend.rules import band, causal, full, strided, swin, windowed
from lattend.rules.rule import Rule

Kind = Literal["full", "causal", "window", "chunk", "band"]


@dataclass(frozen=True)
class AttentionSpan:
    """The attention mask along a sequence; `keys` is the window, the chunk, or the reach to each side.

    >>> AttentionSpan("window", 4).needed(10)  # 1 + 2 + 3 + 7*4
    34
    """

    kind: Kind
    keys: int = 0

    @property
    def is_causal(self) -> bool:
        return self.kind in ("causal", "window", "chunk")

    @property
    def rule(self) -> Rule:
        """The rule, with its numbers; sizes are still open."""
        if self.kind == "window":
            return strided(t=self.keys - 1)
        if self.kind == "chunk":
            return windowed(w=self.keys)
        if self.kind == "band":
            return band(before=self.keys, after=self.keys)
        return causal() if self.kind == "causal" else full()

    @property
    def words(self) -> str:
        """`causal, the last 4,096 keys`."""
        return {
            "full": "all keys",
            "causal": "causal",
            "window": f"causal, the last {self.keys:,} keys",
            "chunk": f"causal in chunks of {self.keys:,}",
            "band": f"{self.keys:,} keys to each side",
        }[self.kind]

    def needed(self, length: int) -> int:
        """Attended pairs of one head."""
        return _count(self, length)

    def executed(self, length: int, tile: int) -> int:
        """Pairs of all tile × tile boxes that hold an attended pair, each whole, at the edge too."""
        return _tiles(self, length, tile) * tile * tile

    def dense(self, length: int) -> int:
        """Pairs that a counter reports which ignores the rule."""
        return length * length

    def cached_keys(self, length: int) -> int:
        """Keys that later queries can still attend to: at most a window or a chunk of them."""
        return length if self.most_cached_keys is None else min(length, self.most_cached_keys)

    @property
    def most_cached_keys(self) -> int | None:
        """The most keys held however long the sequence is; None where they grow with it."""
        return self.keys if self.kind in ("window", "chunk") else None


@dataclass(frozen=True)
class Windows:
    """Swin's windows on an image of rows × cols tokens; the image is padded to whole windows when it runs.

    >>> Windows(4, 4, window=2, shift=0).needed(16)  # 4 windows of 4*4
    64
    """

    rows: int
    cols: int
    window: int
    shift: int

    @property
    def is_causal(self) -> bool:
        return False

    @property
    def rule(self) -> Rule:
        """The rule, with its numbers; sizes are still open."""
        return swin(w=self.window, shift=self.shift)

    @property
    def words(self) -> str:
        """`windows of 7 × 7, shifted by 3`."""
        shifted = f", shifted by {self.shift}" if self.shift else ""
        return f"windows of {self.window} × {self.window}{shifted}"

    @property
    def padded(self) -> int:
        """Tokens of the image padded to whole windows."""
        rows, cols = (-(-size // self.window) * self.window for size in (self.rows, self.cols))
        return rows * cols

    def needed(self, length: int) -> int:
        """Attended pairs of one head, of the image without padding."""
        return _swin_count(self)

    def executed(self, length: int, tile: int) -> int:
        """Pairs of whole windows: each is one dense product, tiles play no part."""
        return self.padded * self.window * self.window

    def dense(self, length: int) -> int:
        """What a counter reports: whole windows, of the padded image, unshifted or not."""
        return self.executed(length, self.window)

    def cached_keys(self, length: int) -> int:
        """None: nothing is generated."""
        return 0

    @property
    def most_cached_keys(self) -> int | None:
        """None are held: nothing is generated."""
        return 0


@lru_cache(maxsize=4096)
def _count(span: AttentionSpan, length: int) -> int:
    return int(span.rule.count(n=length))


@lru_cache(maxsize=1024)
def _swin_count(span: Windows) -> int:
    return int(span.rule.count(rows=span.rows, cols=span.cols))


@lru_cache(maxsize=4096)
def _tiles(span: AttentionSpan, length: int, tile: int) -> int:
    """How many tiles hold an attended pair: those tiles are attended by a rule of the same kind."""
    size = -(-length // tile)
    if span.kind == "window":
        return AttentionSpan("window", 1 - (1 - span.keys) // tile).needed(size)
    if span.kind == "band":
        return AttentionSpan("band", -(-span.keys // tile)).needed(size)
    if span.kind == "chunk" and span.keys % tile:  # tiles across the edge of a chunk reach back to its start
        return sum(place - (place * tile // span.keys * span.keys) // tile + 1 for place in range(size))
    return AttentionSpan(span.kind, span.keys // tile).needed(size)
