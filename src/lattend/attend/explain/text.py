"""The text of an explanation: what a plan and a kernel do, so that a person can read it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from lattend.plans.order import Order
from lattend.plans.part import Part, PartAxis
from lattend.report.numbers import percent
from lattend.rules.language import expr

if TYPE_CHECKING:
    from lattend.attend.explain.explain import ExplainedPart, Explanation

INDENT = 12
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


def ratio(value: float) -> str:
    """`1.25`, `257`."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 10 else f"{value:.2f}"


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


# The whole text


def format_explanation(found: Explanation, width: int) -> str:
    """The explanation in lines of at most `width` columns."""
    return "\n".join(_lines(found, max(20, width)))


def _lines(found: Explanation, width: int) -> Iterator[str]:
    yield from _wrapped(found.title, width)
    yield from _wrapped(found.subtitle, width)
    yield from _wrapped(found.tensors, width)
    yield ""
    yield from _pairs(found, width)
    if found.why:
        yield from _entry("why", found.why, width, indent=0)
    if found.as_written:
        yield from _entry("plan", f"planned as written: {found.as_written}", width, indent=0)
    for place, part in enumerate(found.parts):
        yield ""
        yield from _part(part, place, len(found.parts), width)
    yield ""
    yield "kernels"
    for name, reason in found.kernels.items():
        word = f"no: {reason}" if reason else "yes, chosen" if name == found.kernel else "yes"
        yield from _entry(name, word, width)
    if found.refused:
        anything = any(reason is None for reason in found.kernels.values())
        refused = found.refused if anything else "no kernel can run this"  # the reasons stand above
        yield from _wrapped(f"attention would raise: {refused}", width)
        return
    yield ""
    yield from _entry("backward", found.backward_text, width, indent=0)
    yield from _entry("TF32", found.tf32, width, indent=0)
    yield from _entry("time", found.time_text, width, indent=0)


def _pairs(found: Explanation, width: int) -> Iterator[str]:
    """Needed, executed and dense beside each other, or below each other where that is too wide."""
    values = (found.needed, found.executed, found.dense)
    bound = {"at most": "<= ", "about": "~ "}.get(found.bound, "")
    counts = ["-" if value is None else f"{value:,}" for value in values]
    counts[1] = bound + counts[1] if found.executed is not None else "-"
    of = found.dense
    table = [["needed", "executed", "dense"], counts]
    labels = ["pairs", found.of]
    if found.needed:
        each = [1.0, None if found.executed is None else found.executed / found.needed, of / found.needed]
        table.append(["-" if value is None else ratio(value) for value in each])
        labels.append("times the needed")
    if of:
        table.append(["-" if value is None else _part_of(value, of) for value in values])
        labels.append("of the dense")
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    lines = [
        "  ".join(f"{cell:>{size}}" for cell, size in zip(row, widths, strict=True)) + f"  {label}"
        for row, label in zip(table, labels, strict=True)
    ]
    if max(map(len, lines)) <= width:
        yield from lines
    else:
        for column, name in enumerate(table[0]):
            extra = ", ".join(
                f"{row[column]} {label}" for row, label in zip(table[2:], labels[2:], strict=True)
            )
            yield from _entry(name, f"{table[1][column]}, {extra}" if extra else table[1][column], width, 0)
        yield from _wrapped(f"pairs {found.of}", width)
    if found.not_counted:
        yield from _wrapped(f"needed: not counted: {found.not_counted}", width)
    elif found.needed == 0:
        yield "no pair is attended"
    elif found.executed:
        yield from _wrapped(found.useful_text, width)


def _part_of(value: int, of: int) -> str:
    """The share in percent; more than all where tiles reach past the ends."""
    return percent(value, of) if value <= of else f"{100 * value / of:,.0f}%"


def _part(part: ExplainedPart, place: int, parts: int, width: int) -> Iterator[str]:
    yield from _entry(f"part {place + 1} of {parts}", part.condition, width, indent=0)
    yield from _entry("layout", part.layout, width)
    if part.checked:
        yield from _entry("checked", f"for each pair: {part.checked}", width)
    yield from _entry("tiles", part.tile_text, width)
    yield from _entry("steps", part.step_text, width)
    yield from _entry("executed", f"{part.executed:,} pair{'s' * (part.executed != 1)}", width)


def _entry(name: str, words: str, width: int, indent: int = 2) -> Iterator[str]:
    start = f"{' ' * indent}{name} ".ljust(min(INDENT + 2, width // 3))
    yield from textwrap.wrap(
        words, width, initial_indent=start, subsequent_indent=" " * len(start), break_on_hyphens=False
    ) or [start.rstrip()]


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, width, break_on_hyphens=False)
