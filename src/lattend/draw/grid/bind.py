"""Binding: the rules of a picture with every size and parameter a number, and the head they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lattend.errors import LattendError, NamingError
from lattend.rules.axes import HEAD, HEADS, Axis
from lattend.rules.combined import aligned
from lattend.rules.language import expr
from lattend.rules.language.expr import Name, Num
from lattend.rules.rule import Rule, check_integer

DEFAULT_SIZES = {"n": 12, "rows": 8, "cols": 8, "depth": 3, HEADS: 4}
MOST_HEADS = 8


def bound(rules: Sequence[Rule], values: Mapping[str, int]) -> list[Rule]:
    """The rules at these numbers, on the same axes; a size that nobody gives has a small default."""
    if len(rules) == 2:
        rules = aligned(*rules)
    if HEAD in values and any(rule.has_heads for rule in rules):
        rules = [_of_head(rule, values) for rule in rules]
        values = {name: value for name, value in values.items() if name not in (HEAD, HEADS)}
    if "m" in values:  # binding m is what gives the keys a number of their own
        rules = [rule.at(m=values["m"]) for rule in rules]
    for name in values:
        if name != "m" and not any(name in rule.free for rule in rules):
            rules[0].at(**{name: values[name]})  # raises: unknown, or given twice
    sizes = {**_shared_sizes(rules), **{name: value for name, value in values.items() if name != "m"}}
    for name in dict.fromkeys(size for rule in rules for size in rule.sizes):
        if name not in sizes:
            sizes[name] = sizes.get("n", DEFAULT_SIZES["n"]) if name == "m" else DEFAULT_SIZES[name]
    full = [rule.at(**{name: value for name, value in sizes.items() if name in rule.free}) for rule in rules]
    for rule in full:
        rule.complete()
    return full


def _of_head(rule: Rule, values: Mapping[str, int]) -> Rule:
    """The rule of the head that is drawn, of as many heads as are given, or of enough."""
    check_integer(HEAD, values[HEAD])
    if not rule.has_heads:
        return rule
    many = {HEADS: values.get(HEADS, max(DEFAULT_SIZES[HEADS], values[HEAD] + 1))}
    return rule.at(head=values[HEAD], **({} if HEADS in rule.values else many))


def bound_each(rules: Sequence[Rule], values: Mapping[str, int]) -> list[Rule]:
    """The rules at those of these numbers that they have, each on axes of its own."""
    for name in values:
        if name != "m" and not any(name in _names(rule) for rule in rules):
            known = dict.fromkeys(free for rule in rules for free in rule.free)
            raise NamingError(f"none of the rules has {name} free; they have {', '.join(known) or 'none'}")
    own = [{name: value for name, value in values.items() if name in (*_names(rule), "m")} for rule in rules]
    return [bound([rule], given)[0] for rule, given in zip(rules, own, strict=True)]


def _names(rule: Rule) -> list[str]:
    """The names that may have numbers, the head of a picture among them."""
    return [*rule.free, *([HEAD] if rule.has_heads else [])]


def _shared_sizes(rules: Sequence[Rule]) -> dict[str, int]:
    """The sizes already bound, which must agree."""
    sizes: dict[str, int] = {}
    for rule in rules:
        for name in rule.sizes:
            value = rule.values.get(name, sizes.get(name))
            if value is not None and sizes.setdefault(name, value) != value:
                raise LattendError(
                    f"two rules are compared at one size, but {name} = {sizes[name]} in A "
                    f"and {name} = {value} in B"
                )
    return sizes


def at_head(rule: Rule, head: int) -> Rule:
    """The rule of one head, which speaks of heads no more."""
    return rule.at(head=head) if rule.has_heads else rule


def keys_on_a_line(rule: Rule, query: Sequence[int], key_slice: int = 0) -> Rule:
    """The keys (ky, kx) of one pixel as the pairs (q, k) of a line, for a complete rule on an image.

    Of a volume, those in one slice. What is counted or drawn on a line is so of an image's keys.
    """
    *deeper, rows, cols = rule.axes
    names: dict[str, expr.Term] = {
        **{axis.query: Num(at) for axis, at in zip(rule.axes, query, strict=True)},
        **{axis.key: Num(key_slice) for axis in deeper},
        **{size: Num(rule.values[size]) for size in rule.sizes},
        **{rows.key: Name("q"), cols.key: Name("k")},
    }
    return Rule(
        expr.substituted(rule.baked().condition, names),
        (Axis("q", "k", "n", "m"),),
        values={"n": rule.values[rows.keys], "m": rule.values[cols.keys]},
        data=rule.data,
        budget=rule.budget,
    )


def per_head(rules: Sequence[Rule]) -> tuple[list[tuple[str, list[Rule]]], tuple[str, ...]]:
    """The rules of each head that is drawn, with its title, and a note on those that are not."""
    heads = next((rule.values[HEADS] for rule in rules if rule.has_heads), None)
    if heads is None:
        return [("", list(rules))], ()
    shown = range(min(heads, MOST_HEADS))
    drawn = [(f"head {head}", [at_head(rule, head) for rule in rules]) for head in shown]
    note = f"heads 0 to {MOST_HEADS - 1} of {heads:,} are drawn and counted"
    return drawn, (note,) if heads > MOST_HEADS else ()
