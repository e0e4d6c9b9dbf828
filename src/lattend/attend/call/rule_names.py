"""RuleNames: the names in a rule, all that the front of attention asks of it.

Under torch.compile the front is traced. It reads the rule's key, a string that Dynamo guards on, and
its values; the names follow from the key and are held as a constant. Nothing of the rule's tree is traced.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from lattend.attend.call.attention_call import rule_of
from lattend.attend.operators.tracing import constant
from lattend.rules.axes import CROSS, LINE
from lattend.rules.language.expr import Lookup, Name, Truth, term_text, walk
from lattend.rules.rule import Rule


class OpenArray(NamedTuple):
    """An array left open: how it is first looked up, and the positions that index each of its axes."""

    name: str
    lookup: str
    positions: tuple[tuple[str, ...], ...]


class RuleNames(NamedTuple):
    """The text of a rule and its names: sizes as in Rule.sizes, the query and key of each axis."""

    text: str
    sizes: tuple[str, ...]
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    parameters: tuple[str, ...]
    arrays: tuple[OpenArray, ...]


@constant
def rule_names(key: str) -> RuleNames:
    """The names in the rule with this key."""
    return _names(key)


@lru_cache(maxsize=1024)
def _names(key: str) -> RuleNames:
    rule = rule_of(key)
    return RuleNames(
        rule.text,
        tuple(rule.sizes),
        tuple(axis.query for axis in rule.axes),
        tuple(axis.key for axis in rule.axes),
        tuple(rule.parameters),
        tuple(_array(name, key) for name in rule.open),
    )


@constant
def attends_all(key: str) -> bool:
    """Whether all pairs are attended, however many queries and keys there are: proved of the set."""
    return _attends_all(key)


@lru_cache(maxsize=256)
def _attends_all(key: str) -> bool:
    rule = rule_of(key)
    if rule.axes != LINE or rule.data or rule.open:
        return False
    return Rule(rule.condition, CROSS, rule.where).same_as(Rule(Truth(True), CROSS, Truth(True)))


def _array(name: str, key: str) -> OpenArray:
    rule = rule_of(key)
    lookups = [n for n in walk(rule.condition) if isinstance(n, Lookup) and n.array == name]
    if not lookups:
        return OpenArray(name, f"{name}[...]", ())
    places = zip(*(node.indices for node in lookups), strict=True)
    plain = ([p.name for p in at if isinstance(p, Name) and p.name in rule.positions] for at in places)
    return OpenArray(name, term_text(lookups[0]), tuple(tuple(dict.fromkeys(found)) for found in plain))


def axes_looked_up(key: str) -> list[int]:
    """How many axes each open array of a rule has, less that of the batch."""
    return [len(array.positions) for array in _names(key).arrays]


@constant
def array_names(key: str) -> tuple[str, ...]:
    """The arrays of the rule with this key, its own and those it leaves open."""
    rule = rule_of(key)
    return (*rule.data, *rule.open)
