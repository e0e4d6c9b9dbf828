"""Spans: which keys the queries of a layer attend to, as rules of the catalogue with a model's numbers.

Hugging Face's `sliding_window = w` is w keys, the query's own among them: `q - w < k <= q`, the rule
strided(t = w - 1). Llama 4's `attention_chunk_size = w` is causal inside chunks: windowed(w). A two-sided
window of Gemma 3 reaches w // 2 keys to each side: band. Swin's windows are swin(w, shift).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lattend.cost.pairs import executed_pairs
from lattend.errors import LattendError, NamingError, TooLarge
from lattend.plans.retention import retention
from lattend.rules import band, causal, full, strided, swin, windowed
from lattend.rules.language import expr
from lattend.rules.reader import RuleLike, read_rule
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
        """The pairs that a counter reports: whole windows of the padded image."""
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
        return sum(index - (index * tile // span.keys * span.keys) // tile + 1 for index in range(size))
    return AttentionSpan(span.kind, span.keys // tile).needed(size)


MOST_KEYS = 1 << 22  # of a sequence whose keys in use are counted one by one


@dataclass(frozen=True)
class RuleSpan:
    """The attention mask along a sequence, as any rule on a line; `is_causal` where no key is ahead.

    >>> RuleSpan(sequence_rule("strided(3)"), True, "strided(3)").needed(10)  # 1 + 2 + 3 + 7*4
    34
    """

    rule: Rule
    is_causal: bool
    words: str

    def needed(self, length: int) -> int:
        """Attended pairs of one head."""
        return _count_rule_pairs(self.rule, length)

    def executed(self, length: int, tile: int) -> int:
        """Pairs of the tiles that the rule's plan runs, each whole."""
        return executed_pairs(self.rule.at(n=length), tile)

    def dense(self, length: int) -> int:
        """Pairs that a counter reports which ignores the rule."""
        return length * length

    def cached_keys(self, length: int) -> int:
        """The most keys in use at once while `length` tokens come one by one, the query's own among them."""
        if length > MOST_KEYS:
            raise TooLarge(
                f"the keys that {self.words} keeps of {length:,} tokens are not counted; at most "
                f"{MOST_KEYS:,} tokens are looked at"
            )
        return int(_in_use(self.rule, 1 << (length - 1).bit_length())[length - 1]) if self.is_causal else 0

    @property
    def most_cached_keys(self) -> int | None:
        """The most keys in use at once however long the sequence is; None where they grow with it.

        >>> RuleSpan(sequence_rule("sinks(2, 3)"), True, "").most_cached_keys  # 2 sinks and 4 of the window
        6
        """
        return retention(self.rule).most if self.is_causal else 0


Span = AttentionSpan | Windows | RuleSpan


def sequence_rule(rule: RuleLike) -> Rule:
    """The rule a person means, which must be one for sequences of any length.

    >>> sequence_rule("strided(3)").count(n=5)  # 1 + 2 + 3 + 4 + 4
    14
    """
    parsed = read_rule(rule)
    missing = [name for name in parsed.parameters if name not in parsed.values]
    if missing:
        named = f'"{parsed.about.name}(255)"' if parsed.about else f"rule.at({missing[0]}=…)"
        raise NamingError(f'rule "{parsed.text}" needs a value for {missing[0]}: give it, as in {named}')
    odd = [*parsed.open, *parsed.data, *(name for name in ("n", "m") if name in expr.names(parsed.condition))]
    if odd or len(parsed.axes) > 1 or parsed.has_heads:
        reason = (
            f"it names {odd[0]}" if odd else "it speaks of heads" if parsed.has_heads else "it is of images"
        )
        raise LattendError(f'rule "{parsed.text}" is not one of sequences that grow: {reason}')
    return parsed


def rule_span(rule: RuleLike, *, causal: bool) -> RuleSpan:
    """The span of a rule; where it must be `causal`, one that attends ahead is refused."""
    parsed = sequence_rule(rule)
    if causal:
        retention(parsed)  # raises with a pair ahead of its query
    return RuleSpan(parsed, causal, rule if isinstance(rule, str) else str(parsed))


@lru_cache(maxsize=4096)
def _count_rule_pairs(rule: Rule, length: int) -> int:
    return int(rule.count(n=length))


@lru_cache(maxsize=4)
def _in_use(rule: Rule, length: int) -> NDArray[np.int64]:
    """For each number of tokens up to `length`, the most keys that were in use at once so far."""
    keys = np.arange(length)
    last = np.minimum(retention(rule).last(keys), length - 1)
    used = last >= keys
    change = np.zeros(length + 1, np.int64)
    change[:-1] += used
    np.subtract.at(change, last[used] + 1, 1)
    return np.maximum.accumulate(np.cumsum(change[:-1]))
