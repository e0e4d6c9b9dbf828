"""ExecutedWork: the tiles and pairs that each kernel goes through for a plan, and the time it should take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.call.batch_arrays import arrays_of, batch_of
from lattend.attend.kernels.cpu.equal_tiles import cut_to, rows_along
from lattend.attend.kernels.cpu.kernel import best_rows
from lattend.attend.kernels.diagonal_blocks import DiagonalBlocks, diagonal_blocks
from lattend.attend.kernels.native import tile_lists as native
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.kernels.triton.kernel import arrays, may_take_hopper, whole_16_bytes
from lattend.attend.kernels.triton.shapes import Arranged, arranged, choose, heads_apart, steps
from lattend.attend.kernels.triton.tables import is_wide, refined
from lattend.attend.replay.recorder import Recorder
from lattend.errors import TooLarge
from lattend.machines import MACHINES
from lattend.plans.part import Part, PartAxis
from lattend.plans.plan import Plan, plan
from lattend.plans.tables.chunks import in_chunks
from lattend.plans.tables.image_tables import image_table, steps_met
from lattend.plans.tables.part_passes import rows_of, sequence
from lattend.plans.tables.tile_costs import Choice, TileShape
from lattend.plans.tiles import PER_AXIS, Tiles, with_lists
from lattend.rules.axes import HEAD
from lattend.rules.language.expr import arrays as arrays_in
from lattend.rules.language.intervals import Interval, interval

Ints = NDArray[np.int64]
LIBRARY_TILE = 128  # libraries do not say how they cut causal blocks; theirs are about so large
FLOAT = 4  # bytes
# Nanoseconds of cuDNN on an H200 for a query and for a pair in those tiles, within 4% of causal rows and
# blocks in benchmarks/results/h200_d64.json and h200_d128.json
LIBRARY_COST = {
    **{("forward", 64): (0.0684, 0.545e-3), ("forward", 128): (0.0997, 0.766e-3)},
    **{("backward", 64): (0.518, 1.331e-3), ("backward", 128): (0.816, 2.023e-3)},
}
MEASURED = 128  # head dimensions up to this
# Pairs times (head_dim + value_dim) in a second: float32, one thread of an AMD EPYC, within some 25%
CPU_RATE = {
    "cpu": {"forward": 3.7e10, "backward": 1.3e10},
    "native": {"forward": 4.3e10, "backward": 1.7e10},
}
CPU_ROW = {"cpu": 96, "native": 24}  # what a query of a tile costs beside its pairs, in pairs


@dataclass(frozen=True)
class PartCut:
    """How a kernel takes a part: boxes of queries, and the keys of each box `step` at a time, or at once."""

    rows: tuple[int, ...]
    step: int | None
    shape: TileShape | None = None  # the choice of the Triton kernel
    joins: int | None = None  # the place of the part whose programs take its steps


@dataclass(frozen=True)
class PartWork:
    """The tiles of one part: how many, in how many steps, how many of these full, with how many pairs.

    `full` is None where it is not known; `block` says what a library takes in place of tiles.
    """

    part: Part = field(repr=False)
    cut: PartCut
    tiles: int
    steps: int
    full: int | None
    executed: int
    block: str = ""


@dataclass(frozen=True)
class ExecutedWork:
    """The work on all parts; `bound` is "at most" or "about" where the pairs are not known exactly."""

    parts: tuple[PartWork, ...]
    executed: int | None
    bound: str = ""


@dataclass(frozen=True)
class Masks:
    """How many masks are counted: one, or one for each head or batch element where they differ."""

    batch: int
    heads: int

    @property
    def count(self) -> int:
        return self.batch * self.heads


def masks_of(call: AttentionCall, q: Tensor) -> Masks:
    """The masks of a call that differ."""
    one = batch_of(call) is None and call.key_range is None
    return Masks(1 if one else q.shape[0], q.shape[1] if call.rule.has_heads else 1)


def executed_work(
    kernel: str | None, call: AttentionCall, q: Tensor, v: Tensor, needed: int | None
) -> ExecutedWork:
    """What the kernel goes through; pairs are those of all masks that differ."""
    found, many = plan(call.rule), masks_of(call, q)
    dense = prod(axis.outer_size * axis.inner_size for axis in found.axes) * many.count
    match kernel:
        case "triton" | "native" | "cpu":
            return _of_tiles(kernel, call, found, q, v, many)
        case "sdpa":
            return _of_blocks(found, diagonal_blocks(found) or DiagonalBlocks(False, None))
        case "dense":
            return ExecutedWork((), dense)
        case "reference":
            return ExecutedWork((), needed)
        case _:
            return ExecutedWork((), None)


def pairs_of_default_tiles(call: AttentionCall) -> int | None:
    """The pairs of whole tiles of the size that costs count in, whatever the kernel takes."""
    if call.key_range is not None or call.rule.open:
        return None
    try:
        return plan(call.rule).executed()
    except TooLarge:
        return None


def cuts_of(kernel: str, call: AttentionCall, found: Plan, q: Tensor, v: Tensor) -> list[PartCut]:
    """How the kernel takes each part of a plan."""
    if kernel != "triton":
        rows = native.best_rows if kernel == "native" else best_rows
        return [PartCut(rows(found, place), None) for place in range(len(found.parts))]
    made = _of_queries("forward", call, found, q, v)
    hosts = {guest: host for host, guest in made.joined.items()}
    return [
        PartCut(choice.shape.outer, choice.shape.step, choice.shape, hosts.get(place))
        for place, choice in enumerate(made.choices)
    ]


def _of_tiles(
    kernel: str, call: AttentionCall, found: Plan, q: Tensor, v: Tensor, many: Masks
) -> ExecutedWork:
    works: list[PartWork] = []
    bound = ""
    for place, (part, cut) in enumerate(zip(found.parts, cuts_of(kernel, call, found, q, v), strict=True)):
        table, known = table_of(kernel, call, part, found.tiles(place, cut.rows))
        table = table if call.key_range is None else np.repeat(table, many.batch // len(table), axis=0)
        batch, heads = table.shape[:2]
        each = many.batch // batch * (many.heads // heads)
        spans = [None] * batch if call.key_range is None else [_ends_of(row) for row in call.key_range]
        if cut.shape is not None and cut.shape.strips:
            numbers = [_counted_in_strips(found, place, cut.shape)]
        else:
            numbers = [
                _counted(part, cut, Tiles(cut.rows, element), span)
                for element, span in zip(table, spans, strict=True)
            ]
        count, taken, full, pairs = (sum(column) * each for column in zip(*numbers, strict=True))
        seen = part.knows_full and known if cut.shape is not None else part.block_table is None
        works.append(PartWork(part, cut, count, taken, full if seen else None, pairs))
        skipped = kernel == "native" and call.key_range is not None  # keys of padding
        if not known or skipped or (kernel in CPU_RATE and not part.exact):
            bound = "at most"
    return ExecutedWork(tuple(works), sum(work.executed for work in works), bound)


def table_of(kernel: str, call: AttentionCall, part: Part, tiles: Tiles) -> tuple[NDArray[np.int32], bool]:
    """The table [batch or 1, heads or 1, tiles, columns], cut to the data where the kernel does that.

    And whether it is known: False where the data are not.
    """
    table = tiles.table[None]
    if tiles.lists is not None or not (part.block_table or part.cut_by):
        return table, True
    if any(array.is_meta for array in call.data.values()):
        return table, False
    if kernel == "triton":
        given = arrays(Recorder(), replace(call, bias={}), torch.device("cpu"))
        return refined(part, torch.as_tensor(table, device="cpu"), prod(tiles.shape), given).numpy(), True
    batch = batch_of(call)
    elements = range(1 if batch is None else batch)
    known = [arrays_of(call, element) for element in elements]
    return np.stack([with_lists(part, cut_to(part, tiles, found), found).table for found in known]), True


def _counted(
    part: Part, cut: PartCut, tiles: Tiles, real: tuple[int, int] | None
) -> tuple[int, int, int, int]:
    """Tiles, steps, full ones of them, and pairs, of all heads of the table.

    `real` is the first key that is no padding, and the end of them.
    """
    heads, live = len(tiles.table), tiles.inner > 0
    if cut.shape is not None:
        split = replace(cut.shape, split=cut.joins is None)  # steps that join have masks
        partial, full = (round(x * heads) for x in steps(tiles, part, split))
        taken = full + partial
        if real is not None and part.block_table is None and [x.inner_order.period for x in part.axes] == [1]:
            taken, full = _steps_among(real, part, tiles, cut.shape.step)
        return int(live.sum()), taken, full, taken * cut.shape.step * prod(cut.rows)
    if not tiles.table.shape[1]:
        return 0, 0, 0, 0
    rows = rows_in(part, tiles)
    full = 0 if part.block_table else int((live & _full(part, tiles)).sum())
    return int(live.sum()), int(live.sum()), full, int((rows * tiles.inner).sum())


def _counted_in_strips(found: Plan, place: int, shape: TileShape) -> tuple[int, int, int, int]:
    """The same of an image whose tiles are two boxes, each with steps of its own."""
    met = int(steps_met(image_table(found, place, *shape.cut, transposed=False)).sum())
    live = int((found.tiles(place, shape.outer).inner > 0).sum())
    return live, met, 0, met * shape.step * shape.rows // 2


def _ends_of(row: Tensor) -> tuple[int, int]:
    return int(row[0]), int(row[1])


def _steps_among(real: tuple[int, int], part: Part, tiles: Tiles, step: int) -> tuple[int, int]:
    """How many steps have real keys, and how many of these are full: as in_padding of the Triton kernel."""
    base, begin = (tiles.column(name).astype(np.int64) for name in ("inner_base", "inner_first"))
    first, last = (np.maximum(end - base - begin, 0) for end in real)
    end = np.minimum(-(-tiles.inner // step), -(-last // step))
    first = np.minimum(first // step, end)
    taken = int((end - first).sum())
    if not part.knows_full:
        return taken, 0
    full_first = -(-(tiles.column("full_first") - begin) // step)
    full_end = (tiles.column("full_end") - begin) // step
    full_first = np.clip(full_first, first, end)
    return taken, int((np.clip(full_end, full_first, end) - full_first).sum())


def rows_in(part: Part, tiles: Tiles) -> Ints:
    """How many queries each tile has: fewer than its box at the ends."""
    counts = [_ends(axis, tiles, a)[1] for a, axis in enumerate(part.axes)]
    return prod(counts[1:], start=counts[0])


def _ends(axis: PartAxis, tiles: Tiles, a: int) -> tuple[Ints, Ints]:
    """The first slot of each tile along an axis, and how many there are."""
    slot, base = (tiles.column(name, a).astype(np.int64) for name in PER_AXIS[:2])
    return slot, rows_along(axis, tiles.shape[a], slot, base)


def _full(part: Part, tiles: Tiles) -> NDArray[np.bool_]:
    """Which tiles are surely attended all over: what the bounds say at the ends of each."""
    heads = np.arange(len(tiles.table))[:, None]
    names = {name: Interval(value, value) for name, value in part.numbers.items()}
    names[HEAD] = Interval(heads, heads)
    for a, axis in enumerate(part.axes):
        slot, count = _ends(axis, tiles, a)
        base = tiles.column("outer_base", a).astype(np.int64)
        first, last = (axis.outer_order.positions(s, base) for s in (slot, slot + count - 1))
        names[axis.outer] = Interval(first, last)
    known = part.exact and part.block_table is None and not part.cut_by
    found = np.full(tiles.table.shape[:2], known)
    for a, axis in enumerate(part.axes):
        base, begin, end = (tiles.column(name, a).astype(np.int64) for name in PER_AXIS[2:])
        first, last = (axis.inner_order.positions(s, base) for s in (begin, end - 1))
        lows, highs = ([x for x in terms if not arrays_in(x)] for terms in (axis.lows, axis.highs))
        for term in lows:
            found &= interval(term, names).high <= first
        for term in highs:
            found &= interval(term, names).low >= last
    return found


def _of_blocks(found: Plan, these: DiagonalBlocks) -> ExecutedWork:
    """Blocks of a library: all pairs of each, or of the tiles up to the diagonal."""
    queries = prod(axis.outer_size for axis in found.axes)
    keys = prod(axis.inner_size for axis in found.axes)
    side, other = these.window or queries, these.window or keys
    count = queries // side if these.window else 1
    name = f"{count:,} blocks of {side:,} × {other:,}" if count > 1 else f"one block of {side:,} × {other:,}"
    cut = PartCut((LIBRARY_TILE,), LIBRARY_TILE)
    rows, columns = (-(-size // LIBRARY_TILE) for size in (side, other))
    part = found.parts[0]
    if not these.causal:
        taken = count * rows * columns
        work = PartWork(part, cut, count * rows, taken, taken, count * side * other, f"{name}, whole")
        return ExecutedWork((work,), work.executed)
    ends = [min(side, (i + 1) * LIBRARY_TILE) for i in range(rows)]
    pairs = count * sum((end - i * LIBRARY_TILE) * end for i, end in enumerate(ends))
    taken, full = count * rows * (rows + 1) // 2, count * rows * (rows - 1) // 2
    work = PartWork(part, cut, count * rows, taken, full, pairs, f"{name}, up to the diagonal")
    return ExecutedWork((work,), pairs, "about")


# Time


@dataclass(frozen=True)
class PredictedTime:
    """Seconds that are expected, on what, and "at most" where they may be fewer."""

    seconds: float | None
    on: str
    bound: str = "about"


def choices(way: str, call: AttentionCall, q: Tensor, v: Tensor) -> dict[str, Arranged]:
    """What the Triton kernels of a pass, `way` forward or backward, choose for each part of their plan."""
    found = plan(call.rule)
    if way == "forward":
        return {"forward": _of_queries("forward", call, found, q, v)}
    keys = Arranged(tuple(_of_keys(call, found, q, v)), {})
    return {"backward_dq": _of_queries("backward_dq", call, found, q, v), "backward_dkdv": keys}


def _of_queries(name: str, call: AttentionCall, found: Plan, q: Tensor, v: Tensor) -> Arranged:
    """The choices for the parts of queries."""
    may, tma = may_take_hopper(call, q, v, name), all(map(whole_16_bytes, (q, v)))
    hopper = [may and not is_wide(part, call.data, q, v) for part in found.parts]
    return arranged(found, name, max(q.shape[-1], v.shape[-1]), q.dtype, hopper=hopper, tma=tma)


def _of_keys(call: AttentionCall, found: Plan, q: Tensor, v: Tensor) -> Iterator[Choice]:
    """The choices for the parts of keys, with their chunks."""
    apart, tma = heads_apart(found, q, v), all(map(whole_16_bytes, (q, v)))
    own = q.shape[:2] if apart else v.shape[:2]
    size, share = max(q.shape[-1], v.shape[-1]), q.shape[1] // max(1, own[1])
    may = not apart and may_take_hopper(call, q, v, "backward_dkdv")
    for place, part in enumerate(found.transposed):
        hopper = may and not is_wide(part, call.data, q, v)
        choice = choose(
            found, place, "backward_dkdv", size, q.dtype, hopper=hopper, tma=tma, shared=share != 1
        )
        tiles = found.tiles(place, choice.shape.outer, transposed=True)
        yield in_chunks(choice, part, tiles, own.numel(), share)


def format_gradients(call: AttentionCall, q: Tensor, v: Tensor) -> str:
    """Which gradients the kernels for Hopper make, and what is cut into chunks."""
    made, names = choices("backward", call, q, v), {"backward_dq": "queries", "backward_dkdv": "keys"}
    taken = [
        names[name] for name, each in made.items() if any(choice.shape.hopper for choice in each.choices)
    ]
    said = f", gradients of {' and '.join(taken)} by the kernels for Hopper" if taken else ""
    chunks = sum(choice.chunks for choice in made["backward_dkdv"].choices)
    return f"{said}; tiles of keys that meet many queries are cut into {chunks:,} chunks" if chunks else said


def predicted_time(
    kernel: str | None, way: str, call: AttentionCall, q: Tensor, v: Tensor, work: ExecutedWork
) -> PredictedTime:
    """The time of a pass, `way` forward or backward, by this kernel."""
    members = q.shape[0] * q.shape[1]
    if kernel == "triton":
        made = choices(way, call, q, v)
        chosen = [choice for each in made.values() for choice in each.choices]
        if not all(choice.measured for choice in chosen):
            return PredictedTime(None, "")
        sums = {
            "forward": v.shape[-1],
            "backward_dq": q.shape[-1],
            "backward_dkdv": q.shape[-1] + v.shape[-1],
        }
        found = plan(call.rule)
        carried, resumed = 0, 0.0
        for name, each in made.items():
            parts = found.transposed if name == "backward_dkdv" else found.parts
            for turn in sequence(parts, each.joined)[0]:
                have = v.shape[2] if name == "backward_dkdv" else q.shape[2]
                if turn.earlier:
                    have = int(rows_of(parts[place] for place in turn.earlier).sum())
                choice = each.choices[turn.place]
                carried += 2 * FLOAT * sums[name] * have * turn.continues
                resumed += choice.sums * have / choice.shape.rows * turn.continues
        total = sum(choice.nanoseconds for choice in chosen) + resumed
        total = total * 1e-9 + carried / MACHINES["H200 measured"].bandwidth
        fewer = any(part.cut_by for part in found.parts) or call.key_range is not None  # steps
        fewer = fewer or (q.dtype == torch.float32 and uses_tf32())  # one product in place of three
        more = call.has_elementwise_work
        bound = "about" if fewer == more else "at most" if fewer else "at least"
        return PredictedTime(total * members, "an H200, launches not counted", bound)
    measured = max(q.shape[-1], v.shape[-1]) <= MEASURED and q.dtype != torch.float32
    if kernel == "sdpa" and q.device.type == "cuda" and measured and work.executed is not None:
        row, pair = LIBRARY_COST[way, 64 if q.shape[-1] <= 64 else 128]
        return PredictedTime((row * q.shape[2] + pair * work.executed) * members * 1e-9, "an H200")
    if kernel in CPU_RATE and work.executed is not None:
        threads = torch.get_num_threads()
        each = masks_of(call, q).count
        begun = sum(CPU_ROW[kernel] * prod(part.cut.rows) * part.tiles for part in work.parts)
        products = (work.executed + begun) * members / each * (q.shape[-1] + v.shape[-1])
        on = f"{threads} threads of an EPYC" if threads > 1 else "one thread of an EPYC"
        bound = "at least" if call.has_elementwise_work else "about"
        return PredictedTime(products / (CPU_RATE[kernel][way] * threads), on, bound)
    return PredictedTime(None, "")
