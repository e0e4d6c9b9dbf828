"""The text of an explanation: what a plan and a kernel do, so that a person can read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.call.padding import real_keys
from lattend.attend.call.varlen import rule_within
from lattend.plans.order import Order
from lattend.plans.part import Part, PartAxis
from lattend.plans.plan import tile_text
from lattend.report.numbers import format_number, percent
from lattend.report.report import Report
from lattend.report.table import Facts, Table
from lattend.rules.language import expr

if TYPE_CHECKING:
    from lattend.attend.explain.explain import ExplainedPart, Explanation

LITTLE = 0.2  # of the executed pairs needed: worth a sentence
NEARLY = 0.75  # of the dense pairs executed
ALONG = {"q": "", "qz": "z", "qy": "y", "qx": "x"}


# Parts


def format_condition(part: Part) -> str:
    """`k <= q and q - k < l`."""
    return str(part) if part.branch else "all pairs"


def format_layout(part: Part, rows: Sequence[int]) -> str:
    """In which order the positions of a part are taken."""
    found = [text for axis in part.axes if (text := _order(axis))]
    if part.block_table is not None:
        sizes = {part.axes[0].outer: part.block_table.outer, part.axes[0].inner: part.block_table.inner}
        return f"blocks of {sizes['q']:,} queries, each with the blocks of {sizes['k']:,} keys that it lists"
    if len(part.axes) == 1:
        return found[0] if found else "in order"
    what = "pixels" if len(part.axes) == 2 else "voxels"
    return "; ".join([*found, f"boxes of {format_box(rows)} {what}"])


def _order(axis: PartAxis) -> str:
    """How one axis is taken, nothing where it is in order."""
    along = ALONG.get(axis.outer, axis.outer)
    along = f" in {along}" if along else ""
    outer, inner = axis.outer_order, axis.inner_order
    if outer == inner and outer.group == 1 and outer.period > 1 and len(axis.outer_bases) > 1:
        shift = int(axis.inner_bases[0] - axis.outer_bases[0]) % outer.period
        apart = f", keys {shift:,} residues further on" if shift else ""
        return (
            f"by residues of {outer.period:,}{along}: positions that differ by a multiple of "
            f"{outer.period:,} lie together{apart}"
        )
    sides = [_some(outer, "queries"), _some(inner, "keys")]
    found = " and ".join(text for text in sides if text)
    return f"{found}{along}" if found else ""


def _some(order: Order, what: str) -> str:
    return f"{order.group:,} of every {order.period:,} {what}" if order.period > 1 else ""


def format_span(part: Part) -> str:
    """`queries 4 to 4,095`, where not all have keys in the part."""
    found: list[str] = []
    for axis in part.axes:
        if axis.first > 0 or axis.last < axis.outer_size - 1:
            found.append(f"{axis.outer} from {max(0, axis.first):,} to {axis.last:,}")
    return ", ".join(found)


def format_rest(part: Part) -> str:
    """What the bounds leave to check for each pair."""
    return "" if part.exact else expr.text(part.rest)


# Numbers


def format_box(numbers: Sequence[int]) -> str:
    """`8 × 8`."""
    return " × ".join(f"{number:,}" for number in numbers)


def format_numbers(values: Mapping[str, int]) -> str:
    """`n = 65,536, t = 255`."""
    return ", ".join(f"{name} = {value:,}" for name, value in values.items())


# Why it may not be faster than dense


def why_slow(found: Explanation) -> str:
    """Why the plan does more than it must, or hardly less than dense; nothing where it is fine."""
    if found.executed is None or found.needed is None or not found.executed or found.kernel is None:
        return ""
    useful, rest = found.needed / found.executed, found.executed / max(1, found.dense)
    if found.kernel == "dense":
        return "the dense kernel computes every pair and throws away those that are not attended" * (
            useful < 0.9
        )
    if useful >= LITTLE and rest < NEARLY:
        return ""
    if found.needed >= 0.5 * found.dense:
        return f"the rule attends to {percent(found.needed, found.dense)} of all pairs: little to leave out"
    begun = (
        f"only {percent(found.needed, found.executed)} of the executed pairs are needed"
        if useful < LITTLE
        else f"{percent(found.executed, found.dense)} of the dense pairs are executed"
    )
    return f"{begun}: {_cause(found)}"


def _cause(found: Explanation) -> str:
    heavy = max(found.parts, key=lambda part: part.executed, default=None)
    if heavy is None:
        return "its tiles hold few attended pairs"
    keys = (found.needed or 0) / max(1, found.queries * found.grids)
    if "[" in heavy.checked:
        return f'"{heavy.checked}" looks up data, and the {found.kernel} kernel checks it for each pair'
    if heavy.checked:
        return f'no layout was found for "{heavy.checked}", so each pair of its tiles is checked'
    if found.queries < prod(heavy.rows):
        return f"{found.queries:,} queries fill little of a tile of {format_box(heavy.rows)}"
    if len(found.parts) >= 4:
        return f"there are {len(found.parts)} parts, each with tiles of its own that are partly filled"
    if len(heavy.rows) > 1:
        return (
            f"a query has {keys:,.1f} keys on average, and a box of {format_box(heavy.rows)} queries reads "
            "the keys of all of them"
        )
    step = f" by {heavy.step:,} keys" if heavy.step else ""
    return (
        f"a query has {keys:,.1f} keys on average, and tiles of {format_box(heavy.rows)} queries{step} "
        "are coarser than that"
    )


# What a call has beside its rule


def format_notes(call: AttentionCall, kernel: str | None, k: Tensor) -> tuple[str, ...]:
    """What padding, sequences, a softcap, sinks and dropout change, a sentence each."""
    notes: list[str] = []
    if call.key_range is not None:
        real = real_keys(call, k.shape[2])
        keys = 0 if real is None else int(real.sum())
        how = {
            "triton": "steps of keys that are all padding are left out",
            "native": "keys of padding are left out",
        }.get(kernel or "", "its keys are masked, and its tiles run all the same")
        notes.append(f"padding: {keys:,} of {k.shape[0] * k.shape[2]:,} keys are real; {how}")
    if rule_within(call.rule.key) is not None:
        notes.append(_sequences(call))
    if call.softcap is not None:
        notes.append(f"softcap {call.softcap:g}: a tanh for each executed pair")
    if call.sinks is not None:
        notes.append("sinks: a logit a head joins each softmax at its end; no pair more")
    if call.dropout:
        notes.append(f"dropout {call.dropout:g}: a hash for each executed pair; no mask is held")
    return tuple(notes)


def _sequences(call: AttentionCall) -> str:
    """`sequences: 3 of 0 to 130 positions, 200 in all; tiles are cut to them`."""
    found, count = list[str](), 0
    for name, what in (("cu", "positions"), ("cu_q", "queries"), ("cu_k", "keys")):
        if name in call.data:
            begins = call.data[name][0]
            begins = begins if begins[-1] > begins[-2] else begins[:-1]  # no positions past the last
            count, lengths = len(begins) - 1, begins.diff()
            ends = (int(lengths.min()), int(lengths.max())) if count else (0, 0)
            found.append(f"{ends[0]:,} to {ends[1]:,} {what}, {int(begins[-1]):,} in all")
    return f"sequences: {count:,} of {'; '.join(found)}; tiles are cut to them"


# The whole report


def explanation_report(found: Explanation) -> Report:
    """Pairs, parts, kernels and time, as they are printed."""
    parts: list[Table | Facts | str] = [found.subtitle, found.tensors, _pairs(found)]
    if found.not_counted:
        parts.append(f"needed: not counted: {found.not_counted}")
    elif found.needed == 0:
        parts.append("no pair is attended")
    elif found.executed:
        parts.append(found.useful_text)
    if found.tiled is not None:
        parts.append(f"in {tile_text()}, as lattend cost counts: {found.tiled:,} pairs")
    if found.why:
        parts.append(f"why: {found.why}")
    parts += found.notes
    if found.as_written:
        parts.append(f"planned as written: {found.as_written}")
    parts += [
        _part(part, f"part {place + 1} of {len(found.parts)}") for place, part in enumerate(found.parts)
    ]
    kernels = [("kernels", "")]
    for name, reason in found.kernels.items():
        kernels.append(
            (f"  {name}", f"no: {reason}" if reason else "yes" + ", chosen" * (name == found.kernel))
        )
    parts.append(Facts(kernels))
    if found.refused:
        anything = any(reason is None for reason in found.kernels.values())
        refused = found.refused if anything else "no kernel can run this"  # the reasons stand above
        parts.append(f"attention would raise: {refused}")
    else:
        parts.append(Facts(found.facts))
    return Report(found.title, parts, found.json())


def _pairs(found: Explanation) -> Table:
    """Needed, executed and dense beside each other."""
    needed, _, dense = values = (found.needed, found.executed, found.dense)
    rows = [(f"pairs {found.of}", *("-" if value is None else f"{value:,}" for value in values))]
    if needed:
        times = ["-" if value is None else format_number(value / needed) for value in values]
        rows.append(("times the needed", *times))
    if dense:
        shares = ["-" if value is None else share_text(value, dense) for value in values]
        rows.append(("of the dense", *shares))
    return Table(("", "needed", executed_label(found), "dense"), rows)


def executed_label(found: Explanation) -> str:
    """`executed by native`, or `executed by sdpa, at most` where that is not exact."""
    if found.kernel is None or found.executed is None:
        return "executed"
    return f"executed by {found.kernel}{f', {found.bound}' if found.bound and found.executed else ''}"


def share_text(value: int, of: int) -> str:
    """The share in percent; more than all where tiles reach past the ends."""
    return percent(value, of) if value <= of else f"{100 * value / of:,.0f}%"


def _part(part: ExplainedPart, name: str) -> Facts:
    rows = [
        (name, part.condition),
        ("  layout", part.layout),
        ("  checked", f"for each pair: {part.checked}"),
    ]
    rows += [("  tiles", part.tile_text), ("  steps", part.step_text)]
    rows.append(("  executed", f"{part.executed:,} pair{'s' * (part.executed != 1)}"))
    return Facts([row for row in rows if part.checked or row[0] != "  checked"])
