"""Pictures of a plan of shards: the grid of pairs, what crosses, the load of each rank, all strategies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lattend.counts.tiles import tile_counts
from lattend.draw.charts.bars import Bars
from lattend.draw.charts.chart import COLOURS, SHAPES, Chart, Dots, Shape, Stroke
from lattend.draw.formats.palette import ATTENDED, EMPTY, OWN, Look
from lattend.draw.grid.panel import Panel, Side, nice_step
from lattend.draw.grid.titles import clipped, values
from lattend.draw.picture import Picture
from lattend.parallel.text import chosen_text, has_text
from lattend.report.numbers import compact, short_bytes
from lattend.rules.flat import on_line

if TYPE_CHECKING:
    from lattend.parallel.shard_plan import ShardPlan
    from lattend.parallel.strategies import Share, Strategy

CELLS = 64  # of a side of the grid
FEW = 16  # ranks whose bars are drawn; of more, a line through all
KEPT = Look("pairs of a rank's own keys", ATTENDED.fill, "▒", "#", 75, share=1.0)
CROSS = Look(
    "pairs whose keys come from another rank",
    "#e69f00",
    "\\",
    "\\",
    214,
    share=1.0,
    hatch="\\",
    ink="#4d3500",
)
MINE = Look("the rank's own positions", OWN.fill, "█", "@", 33, share=1.0)
HALO = Look("keys that it gets", "#e69f00", "\\", "\\", 214, share=1.0, hatch="\\", ink="#4d3500")
GRID_LOOKS, IMAGE_LOOKS = (EMPTY, KEPT, CROSS), (EMPTY, MINE, HALO)
OTHERS = "pairs with keys of others"
LOAD = {"own pairs": KEPT.fill, OTHERS: CROSS.fill}


def shards_picture(plan: ShardPlan) -> Picture:
    """The shards on the grid, or on the image, and the pairs of each rank."""
    share, rule = plan.share, plan.rule
    line, ranks = len(share.layout.sizes) == 1, share.layout.ranks
    three = sorted({0, ranks // 2, ranks - 1})
    panels = (_grid(plan),) if line else tuple(_image(plan, rank) for rank in three)
    most, name = int(max(share.pairs)), share.layout.name
    keys = int(share.halo.max(initial=0))
    caption = (
        f"{name}: the most pairs of a rank are {most:,}, {share.balance:.3f} of the mean",
        f"a rank gets at most {keys:,} keys, {short_bytes(keys * plan.tensors.row)}",
    )
    bars = (_bars(share),) if share.layout.ranks <= FEW else ()
    charts = () if bars else (_lines(plan),)
    return Picture(
        plan.title,
        panels,
        caption,
        subtitle=(clipped(rule.text), values(rule, [*rule.sizes, *rule.parameters])),
        legend=(KEPT, CROSS) if line else (MINE, HALO),
        bars=bars,
        charts=charts,
        data=plan.json(),
        columns=3,
    )


def _grid(plan: ShardPlan) -> Panel:
    """Pairs, or tiles of them, by whether their keys are on the rank of their queries."""
    share = plan.share
    n = share.layout.sizes[0]
    borders = sorted(
        {end for rank in range(share.layout.ranks) for box in share.layout.boxes(rank) for end in box[0]}
    )
    edges = _edges(borders, n)
    line = on_line(plan.rule)
    counts = tile_counts(line, edges, edges) if n else np.zeros((0, 0), object)
    owner = _owners(share, edges) if n else np.zeros(0, np.int64)
    same = owner[:, None] == owner[None, :]
    cells = np.where(counts == 0, 0, np.where(same, 1, 2)).astype(np.uint8)
    heavy = [edges.index(border) for border in borders if border in set(edges)][1:-1]
    shown = tuple(float(place) for place in heavy) if len(heavy) < CELLS // 2 else ()
    return Panel(cells, GRID_LOOKS, _side("query", edges, shown), _side("key", edges, shown), "Pairs")


def _edges(borders: Sequence[int], n: int) -> list[int]:
    """CELLS or so places, every border among them where there is room."""
    if n <= CELLS:
        return [*range(n + 1)]
    if len(borders) > CELLS + 1:
        return [n * i // CELLS for i in range(CELLS + 1)]
    edges: list[int] = []
    for a, b in pairwise(borders):
        steps = max(1, round(CELLS * (b - a) / n))
        edges += [a + (b - a) * i // steps for i in range(steps)]
    return [*dict.fromkeys([*edges, n])]


def _owners(share: Share, edges: Sequence[int]) -> NDArray[np.int64]:
    """The rank that has the positions between two edges; where several have, a number that nobody has."""
    ends = [(a, b, rank) for rank in range(share.layout.ranks) for ((a, b),) in share.layout.boxes(rank)]
    first, end, rank = np.array(sorted(ends), np.int64).reshape(-1, 3).T
    low, high = np.array(edges[:-1]), np.array(edges[1:])
    place = np.searchsorted(first, low, "right") - 1
    return np.where(high <= end[place], rank[place], -1 - low)


def _side(label: str, edges: Sequence[int], heavy: tuple[float, ...]) -> Side:
    n = edges[-1] if edges else 0
    step = nice_step(n, 8 if n <= CELLS else 6) if n else 1
    ticks = tuple(
        (float(np.interp(at, edges, range(len(edges)))), compact(at)) for at in range(0, n + 1, step)
    )
    return Side(label, max(0, len(edges) - 1), ticks, heavy)


def _image(plan: ShardPlan, rank: int) -> Panel:
    """The positions of one rank on the image, and the keys around them that it gets."""
    layout, sizes = plan.layout, plan.layout.sizes[-2:]
    volume = len(layout.sizes) - 2
    edges = [[n * i // min(n, CELLS) for i in range(min(n, CELLS) + 1)] for n in sizes]
    rows, cols = np.meshgrid(np.arange(len(edges[0]) - 1), np.arange(len(edges[1]) - 1), indexing="ij")
    ends: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for at, some in zip((rows, cols), edges, strict=True):
        table = np.array(some)
        ends.append((table[at.reshape(-1)], table[at.reshape(-1) + 1]))
    whole = [(np.zeros(rows.size, np.int64), np.full(rows.size, n)) for n in layout.sizes[:volume]]
    reached = plan.share.reached.count([[*whole, *ends]], [rank]).reshape(rows.shape)
    mine = np.zeros(rows.shape, bool)
    for box in layout.boxes(rank):
        inside = [(first < b) & (end > a) for (first, end), (a, b) in zip(ends, box[volume:], strict=True)]
        mine |= (inside[0] & inside[1]).reshape(rows.shape)
    cells = np.where(mine, 1, np.where(reached > 0, 2, 0)).astype(np.uint8)
    names = [axis.query for axis in plan.rule.axes][-2:]
    down, across = (_side(name, some, ()) for name, some in zip(names, edges, strict=True))
    return Panel(cells, IMAGE_LOOKS, down, across, f"Rank {rank}: {has_text(plan.share, rank)}")


def _bars(share: Share) -> Bars:
    """The pairs of each rank, those of its own keys apart."""
    rows = [
        (f"rank {rank}", {"own pairs": int(own), OTHERS: int(pairs - own)})
        for rank, (own, pairs) in enumerate(zip(share.own, share.pairs, strict=True))
    ]
    return Bars("Pairs of each rank", tuple(rows), LOAD)


def _lines(plan: ShardPlan) -> Chart:
    """The pairs of all ranks over their mean, a line a cut."""
    lines: list[Stroke] = []
    for (name, share), colour in zip(plan.shares.items(), COLOURS, strict=False):
        mean = int(sum(share.pairs)) / share.layout.ranks or 1
        step = max(1, ceil(share.layout.ranks / 512))
        points = [(rank, float(share.pairs[rank]) / mean) for rank in range(0, share.layout.ranks, step)]
        lines.append(Stroke(points, name, colour))
    top = max(point[1] for line in lines for point in line.points)
    return Chart(
        "Pairs of each rank over the mean",
        "rank",
        "pairs / mean",
        tuple(lines),
        y=(0.0, 1.1 * max(1.0, top)),
        size=(336, 200),
    )


def strategies_picture(plan: ShardPlan) -> Picture:
    """Bytes that a rank gets forward against the predicted time of a step: a dot a strategy."""
    best: dict[str, Strategy] = {plan.chosen.name: plan.chosen}
    for one in sorted(plan.strategies, key=lambda one: one.time):
        best.setdefault(one.name, one)
    least = max(
        1, plan.tensors.row
    )  # a logarithmic scale has no 0: a strategy that sends nothing stands here
    shapes: list[Shape] = [*SHAPES[:4], SHAPES[5]] * 2
    looks = zip(best.values(), COLOURS, shapes, strict=False)
    dots = [
        Dots([(max(least, one.forward) / (1 << 20), 1e3 * one.time)], one.label, colour, 3.0, shape)
        for one, colour, shape in looks
    ]
    chosen, *others = dots
    ring = Dots(chosen.points, "chosen", COLOURS[6], 7.0, "ring")  # it is filled, and lies below
    chart = Chart(
        "Bytes against time",
        "MiB that a rank gets, forward",
        "predicted ms, forward and backward",
        dots=(ring, *others, chosen),
        log_x=10,
        log_y=10,
        size=(420, 260),
    )
    caption = (chosen_text(plan).removeprefix("* "), f"predicted for {plan.cluster}")
    said = values(plan.rule, [*plan.rule.sizes, *plan.rule.parameters])
    return Picture(f"Strategies of {plan.title}", (), caption, (said,), charts=(chart,), data=plan.json())
