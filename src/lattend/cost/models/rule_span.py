"""RuleSpan: which keys the queries of a layer attend to under a rule that was given to a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lattend.cost.models.spans import AttentionSpan, Windows
from lattend.cost.pairs import executed_pairs
from lattend.errors import LattendError, NamingError, TooLarge
from lattend.plans.retention import retention
from lattend.rules.language import expr
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule

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
        return _count(self.rule, length)

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
    found = read_rule(rule)
    missing = [name for name in found.parameters if name not in found.values]
    if missing:
        named = f'"{found.about.name}(255)"' if found.about else f"rule.at({missing[0]}=…)"
        raise NamingError(f'rule "{found.text}" needs a value for {missing[0]}: give it, as in {named}')
    odd = [*found.open, *found.data, *(name for name in ("n", "m") if name in expr.names(found.condition))]
    if odd or len(found.axes) > 1 or found.has_heads:
        reason = (
            f"it names {odd[0]}" if odd else "it speaks of heads" if found.has_heads else "it is of images"
        )
        raise LattendError(f'rule "{found.text}" is not one of sequences that grow: {reason}')
    return found


def rule_span(rule: RuleLike, *, causal: bool) -> RuleSpan:
    """The span of a rule; where it must be `causal`, one that attends ahead is refused."""
    found = sequence_rule(rule)
    if causal:
        retention(found)  # raises with a pair ahead of its query
    return RuleSpan(found, causal, rule if isinstance(rule, str) else str(found))


@lru_cache(maxsize=4096)
def _count(rule: Rule, length: int) -> int:
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
