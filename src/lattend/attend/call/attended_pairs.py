"""The attended pairs of a call, counted: with the arrays it is given, its padding and its sequences."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall, rule_of
from lattend.attend.call.batch_arrays import arrays_of
from lattend.attend.call.varlen import rule_within
from lattend.errors import LattendError
from lattend.recent import Recent
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Compare, Lookup, Name, Num, Term
from lattend.rules.rule import Rule

REAL = "real_keys"
_COUNTED: Recent[object, int] = Recent(4096)


def attended_pairs(call: AttentionCall, batch: int, rule: Rule | None = None) -> int:
    """The attended pairs of `batch` masks that differ; of all heads where the rule names `head`.

    Keys that are padding count for nobody. `rule` is the call's, with a budget of its own.
    """
    whole = call.rule if rule is None else rule
    if call.data and rule_within(whole.key) is not None:
        return sum(_of_sequences(call, element) for element in range(batch))
    if not call.data and call.key_range is None:
        return _counted(whole)
    return sum(_of_element(whole, call, element) for element in range(batch))


def _of_element(rule: Rule, call: AttentionCall, element: int) -> int:
    found = replace(rule, data=arrays_of(call, element), open=()) if call.data else rule
    if call.key_range is None:
        return found.total()
    first, end = map(int, _known(call.key_range)[element])
    at = _flat_key(rule)
    real = [Compare(">=", at, Num(first)), Compare("<", at, Num(end))]
    if call.key_mask is None:
        found = replace(found, condition=expr.all_of(found.condition, *real), about=None, source=None)
        return _counted(found) if not call.data else found.total()
    here = Compare("==", Lookup(REAL, (at,)), Num(1))
    mask = _known(call.key_mask)[element].cpu().int().numpy()
    condition = expr.all_of(found.condition, here)
    return replace(found, condition=condition, data={**found.data, REAL: mask}, about=None).total()


def _of_sequences(call: AttentionCall, element: int) -> int:
    """The pairs of each sequence, where positions past the last form one more, unless they are padding."""
    key, apart = rule_within(call.rule.key) or ("", False)
    rule, cut = rule_of(key), arrays_of(call, element)
    names = ("cu_q", "cu_k") if apart else ("cu", "cu")
    queries, keys = ([int(x) for x in cut[name][1:] - cut[name][:-1]] for name in names)
    numbers = {
        name: call.rule.values[name] for name in [*rule.parameters, "heads"] if name in call.rule.values
    }
    lengths = list(zip(queries, keys, strict=True))
    total = 0
    for n, m in lengths if call.key_range is None else lengths[:-1]:
        own = {"m": m} if apart or "m" in rule.sizes else {}
        total += _counted(rule.at(n=n, **own, **numbers)) if n and m else 0
    return total


def _flat_key(rule: Rule) -> Term:
    """The place of a key in memory, the last axis fastest."""
    flat: Term = Name(rule.axes[0].key)
    for axis in rule.axes[1:]:
        flat = Arith("+", (Arith("*", (flat, Num(rule.values[axis.keys]))), Name(axis.key)))
    return flat


def _known(padding: Tensor) -> Tensor:
    if padding.is_meta:
        raise LattendError("padding has no values here")
    return padding


def _counted(rule: Rule) -> int:
    """The pairs of a rule without arrays given now; remembered."""
    return _COUNTED.find((rule.key, tuple(rule.values.items())), rule.total)
