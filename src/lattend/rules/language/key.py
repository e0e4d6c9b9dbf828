"""The key of a rule: a text with everything except its numbers, which can be parsed again.

    q k n n                    the axes: query, key, and the sizes that bound them
    doc[q] == doc[k]           the condition
    true                       where it is defined
    doc=5f70bf18a08b           the digest of an array, or ? for one that is given at call time

Rules with one key attend the same pairs at the same numbers, so a compiled program can hold the key
where it cannot hold the rule.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, ref

from numpy.typing import NDArray

from lattend.rules.axes import Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition
from lattend.rules.language.normal import normal_text
from lattend.rules.language.parser import parse

if TYPE_CHECKING:
    from lattend.rules.rule import Rule

OPEN = "?"
KNOWN: WeakValueDictionary[str, Rule] = WeakValueDictionary()  # a living rule of each key
_DIGESTS: dict[int, tuple[ref[NDArray[Any]], str]] = {}


def key_of(rule: Rule) -> str:
    """Returns the key of a rule."""
    axes = "; ".join(f"{axis.query} {axis.key} {axis.queries} {axis.keys}" for axis in rule.axes)
    arrays = {name: _digest(array) for name, array in rule.data.items()} | dict.fromkeys(rule.open, OPEN)
    data = " ".join(f"{name}={arrays[name]}" for name in sorted(arrays))
    return "\n".join((axes, expr.text(rule.condition), expr.text(rule.where), data))


def spelling_of(rule: Rule) -> str:
    """Returns a key, numbers included, that is equal for rules whose texts differ only in spelling."""
    axes, _, _, data = rule.key.split("\n")
    conditions = (normal_text(rule.condition), normal_text(rule.where))
    numbers = (f"{name}={rule.values.get(name, OPEN)}" for name in sorted({*rule.sizes, *rule.parameters}))
    return "\n".join((axes, *conditions, data, " ".join(numbers)))


def first_of(rule: Rule) -> Rule | None:
    """Returns the first rule with the same key, which this rule keeps alive; None if that is this rule."""
    first = KNOWN.setdefault(rule.key, rule)
    return None if first is rule else first


def parts_of(key: str) -> tuple[tuple[Axis, ...], Condition, Condition, dict[str, str]]:
    """Returns the axes, the condition, the domain and the digests of the arrays of a key."""
    axes_text, condition, where, data = key.split("\n")
    axes = tuple(Axis(*axis.split()) for axis in axes_text.split("; "))
    return axes, parse(condition), parse(where), dict(pair.split("=") for pair in data.split())


def unchanging(array: NDArray[Any]) -> NDArray[Any]:
    """Returns a read-only array, copied if necessary, so that its digest stays valid."""
    if array.base is None and not array.flags.writeable:
        return array
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _digest(array: NDArray[Any]) -> str:
    known = _DIGESTS.get(id(array))
    if known is not None and known[0]() is array:
        return known[1]
    content = blake2b(f"{array.dtype} {array.shape} ".encode() + array.tobytes(), digest_size=12)
    array_id, digest = id(array), content.hexdigest()
    _DIGESTS[array_id] = ref(array, lambda _: _DIGESTS.pop(array_id, None)), digest
    return digest
