"""What a layer reads of its arguments: its rule, on a line or an image, and its encoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lattend.errors import DomainError, NamingError, TensorError
from lattend.nn.attention.encodings import Absolute, Encoding, Quadratic, Relative, Sinusoidal, Tables
from lattend.rules.axes import HEAD, HEADS, IMAGE, LINE, RESERVED
from lattend.rules.language import expr
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule

ENCODINGS = ("absolute", "sinusoidal", "tables", "relative", "quadratic")


def rules_of(given: RuleLike, values: Mapping[str, int]) -> dict[int, Rule]:
    """The rule for inputs of 1 axis or of 2, with these values; one that names no position takes both."""
    rule = read_rule(given)
    if len(rule.axes) > 2:
        raise NamingError(f'rule "{rule.text}" is on a volume; a layer takes a line or an image')
    if not anywhere(rule):
        return {len(rule.axes): rule.at(**values)}
    axes = {1: LINE, 2: IMAGE}
    if any(name in values for name in ("n", "m")):
        axes = {1: LINE}
    if any(name in values for name in ("rows", "cols")):
        axes = {2: IMAGE}
    about = {1: rule.about, 2: None}  # what is known of a rule on a line is not said of an image
    return {many: replace(rule, axes=on, about=about[many]).at(**values) for many, on in axes.items()}


def anywhere(rule: Rule) -> bool:
    """Whether the rule speaks of no position, as "full" does, so that a line and an image fit it."""
    said = {*expr.names(rule.condition), *expr.names(rule.where)} & RESERVED - {HEAD, HEADS}
    return not said and not expr.arrays(rule.condition) and not rule.values.keys() & RESERVED


def encoding_of(
    given: Encoding | str | None,
    rules: Mapping[int, Rule],
    *,
    heads: int,
    d_in: int,
    d_hidden: int,
    d_keys: int,
    cross: bool,
    **kind: Any,
) -> Encoding:
    """The encoding a person means by its name, of the size that the layer has."""
    if given is None:
        return Encoding()
    if isinstance(given, Encoding):
        return given
    match given:
        case "absolute":
            sizes, others = _sizes(given, rules)
            return Absolute(d_in, sizes, d_keys=d_keys, key_sizes=others if cross else None, **kind)
        case "sinusoidal":
            return Sinusoidal()
        case "tables":
            sizes, others = _sizes(given, rules)
            return Tables(heads, [max(pair) - 1 for pair in zip(sizes, others, strict=True)], **kind)
        case "relative":
            return Relative(heads, d_hidden, -(-d_hidden // 4) * 4, **kind)
        case "quadratic":
            return Quadratic(heads, max(rules), **kind)
        case _:
            raise NamingError(
                f"encoding is None, one of {', '.join(ENCODINGS)}, or a module such as lt.nn.Quadratic(…), "
                f"not {given!r}"
            )


def sized(encoding: Absolute, rule: Rule, cross: bool, widths: Mapping[str, int]) -> Rule:
    """The rule with the sizes of an encoding's tables; raises where the layer has others."""
    if encoding.P_k is not None and not cross:
        raise NamingError(
            "Absolute has key_sizes, and keys of this layer come from the tokens of queries: "
            "leave out key_sizes, or give m=… or d_keys=… to the layer"
        )
    if encoding.P_k is None and cross:
        raise NamingError(
            "keys come from other tokens, whose positions have no vectors: give key_sizes=… to Absolute"
        )
    others = encoding.P if encoding.P_k is None else encoding.P_k
    for (name, width), table in zip(widths.items(), (encoding.P, others), strict=True):
        if table.shape[-1] != width:
            raise TensorError(f"Absolute has {name} = {table.shape[-1]} and the layer {width}")
    for along, axis in enumerate(rule.axes):
        for name, table in ((axis.queries, encoding.P), (axis.keys, others)):
            size = table.shape[along]
            if rule.values.get(name, size) != size:
                raise DomainError(
                    f"Absolute has {name} = {size}, and the layer was made for {rule.values[name]}"
                )
            rule = rule if name in rule.values else rule.at(**{name: size})
    return rule


def _sizes(name: str, rules: Mapping[int, Rule]) -> tuple[list[int], list[int]]:
    """How many positions queries and keys have, axis by axis."""
    for rule in rules.values():
        if all(size in rule.values for axis in rule.axes for size in (axis.queries, axis.keys)):
            return (
                [rule.values[axis.queries] for axis in rule.axes],
                [rule.values[axis.keys] for axis in rule.axes],
            )
    names = [[size for size in rule.sizes if size != HEADS] for rule in rules.values()]
    asked = " or ".join(", ".join(f"{size}=…" for size in each) for each in names)
    raise NamingError(f'encoding="{name}" has numbers for each position: give {asked}')
