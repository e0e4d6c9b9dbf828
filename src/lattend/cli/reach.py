"""lattend reach, lattend cache: the attention span of a rule, and the KV cache that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lattend.cli.arguments import at_option, pixel_option, read_numbers, read_place, read_rule, rule_argument
from lattend.cli.command import Answer, Command, flag, option
from lattend.cli.failures import NO, YES, in_options
from lattend.cli.output import say, say_json, width
from lattend.errors import DeadlineError, DomainError, LattendError, NamingError, NoClosedForm, NotAffineError
from lattend.report.table import GAP, fitted

if TYPE_CHECKING:
    from lattend.counts.reach import Reach
    from lattend.rules import Rule


@dataclass(frozen=True)
class ReachCommand(Command):
    """The attention span: how far back and ahead of a query its keys can be.

    As formulas, along each axis. The greatest q - k decides the size of a cache. With --layers: the span
    of a stack of layers, the keys that a query sees through it, and how many layers it takes to see all.
    With --map: the first layer that connects two positions, on a line or from one pixel of an image.

        lattend reach strided
        lattend reach sparse_strided --at l=64
        lattend reach strided --at t=4095,n=131072 --layers 32
        lattend reach strided --at n=12,t=3 --map
    """

    rule: str = rule_argument()
    at: list[str] | None = at_option()
    layers: int | None = option("L", "Of a stack of so many layers, with residual connections.")
    layer_map: bool = flag("Which layer first connects each query to each key.", "--map")
    pixel: str | None = pixel_option()

    def answer(self) -> Answer:
        chosen, values = read_rule(self.rule), read_numbers(self.at)
        bound = chosen.at(**values)
        if self.layer_map:
            _map(bound, self.layers, self.pixel, self.json)
            return
        if self.pixel is not None:
            raise NamingError("--pixel belongs to --map; give both, or leave it out")
        seen = bound if self.layers is None else bound.receptive_field(self.layers)
        span = seen.reach()
        if self.json:
            about = {"rule": chosen.text, "at": {**chosen.values, **values}, "axes": _axes(span)}
            say_json(about if self.layers is None else about | _field_data(bound, seen, self.layers))
            return
        lines = span.text(width()).splitlines()
        if self.layers is not None:
            lines = [*fitted(f"sees: {seen.text}", width()), *lines, *_field_lines(bound, seen)]
        say("\n".join(lines))


def _map(bound: Rule, layers: int | None, pixel: str | None, json: bool) -> None:
    """The layer that first connects two positions."""
    from lattend.counts.field_map import field_map

    if layers is not None:
        raise NamingError("--map is of as many layers as it takes; leave --layers out")
    if bound.free:
        names = ",".join(f"{name}=…" for name in bound.free)
        raise NamingError(f"--map has a number for each pair, so every letter needs one: give --at {names}")
    if pixel is not None and len(bound.axes) == 1:
        raise NamingError("--pixel is for rules of images; this one is of a line: leave it out")
    layer_map = field_map(bound, read_place(pixel))
    if json:
        say_json({"rule": bound.text, "at": bound.values, **layer_map.json()})
    else:
        say(layer_map.text(width()))


def _axes(span: Reach) -> dict[str, Any]:
    return {
        query: {"back": axis.back.json()["pieces"], "ahead": axis.ahead.json()["pieces"]}
        for query, axis in span.axes.items()
    }


def _field_lines(bound: Rule, seen: Rule) -> list[str]:
    keys = str(seen.count(per="query")).splitlines()
    lines = [f"keys a query sees: {keys[0]}"] if len(keys) == 1 else ["keys a query sees:"]
    lines += [part for line in keys if len(keys) > 1 for part in fitted(f"{GAP}{line}", width())]
    try:
        return [*lines, *str(bound.layers_to_reach_all()).splitlines()]
    except (NoClosedForm, NotAffineError) as reason:
        return [*lines, *fitted(f"layers until it grows no more: not known: {reason}", width())]


def _field_data(bound: Rule, seen: Rule, layers: int) -> dict[str, Any]:
    """`until` is null where it is not known after how many layers the field grows no more."""
    until: dict[str, Any] | None = None
    try:
        depth = bound.layers_to_reach_all()
        count = depth.layers
        until = {
            "layers": count if isinstance(count, int) else count.json()["pieces"],
            "sees": depth.extent,
            "apart": depth.apart,
        }
    except (NoClosedForm, NotAffineError):
        pass
    keys = seen.count(per="query").json()["pieces"]
    return {"layers": layers, "field": seen.text, "keys": keys, "until": until}


@dataclass(frozen=True)
class CacheCommand(Command):
    """How many keys a KV cache holds at most, decoding token by token.

    A key is dropped after the last query that reaches it: a sliding window needs a rolling buffer, a causal
    mask keeps every key. Parameters need numbers, the sequence length does not.
    The exit code is 1 where there is no cache, as when queries attend to keys that have not come yet.

        lattend cache strided --at t=3
        lattend cache "sinks(s=4, t=1023)"
        lattend cache causal
    """

    rule: str = rule_argument()
    at: list[str] | None = at_option()

    def answer(self) -> Answer:
        from lattend.plans.retention import retention
        from lattend.sets.guard import deadlines_missed

        chosen, values = read_rule(self.rule), read_numbers(self.at)
        missed = deadlines_missed()
        about = {"rule": chosen.text, "at": {**chosen.values, **values}}
        try:
            kept = retention(chosen.at(**values))
        except (DomainError, NamingError):
            raise
        except LattendError as reason:
            if deadlines_missed() > missed:  # it is not that there is no cache
                raise DeadlineError(reason.reason) from None
            why = in_options(str(reason))
            if self.json:
                say_json({**about, "cache": False, "most": None, "why": why})
            else:
                say("\n".join(fitted(f"no cache: {why}", width())))
            return NO
        if self.json:
            say_json({**about, "cache": True, "most": kept.most, "why": str(kept)})
        else:
            say("\n".join(fitted(str(kept), width())))
        return YES
