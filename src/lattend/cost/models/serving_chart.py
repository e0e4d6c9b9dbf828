"""Serving as charts: KV cache, tokens a second and prefill time over the context length."""

from __future__ import annotations

from collections.abc import Callable

from lattend.cost.models.lengths import chart_lengths
from lattend.cost.models.serving_price import Serving, ServingPrice
from lattend.draw.charts.chart import Chart, Stroke, curves
from lattend.draw.picture import Picture
from lattend.errors import LattendError

FIRST, LAST = 1 << 9, 1 << 17  # tokens of the chart, where the model takes so many
GIB = 1 << 30
LIMIT = "#7d8590"
FAR = 100  # times the greatest KV cache of the chart
SIZE = (310.0, 200.0)


def draw_serving(found: Serving) -> Picture:
    """Three charts, or prefill time alone of a model that makes no tokens."""
    if found.model.image:
        raise LattendError(f"an image of {found.model.family} has one length, so there is no chart over it")
    lengths = _lengths(found)
    points = [found.at(length) for length in lengths]
    charts = [_chart(points, "Prefill, seconds", lambda one: one.prefill.seconds)]
    if found.own.decode is not None:
        cache = _chart(
            points, "KV cache of a sequence, GiB", lambda one: one.cache_bytes / GIB, _limit(points)
        )
        rate = _chart(points, "Decoding, tokens a second", lambda one: one.tokens_per_s or 0.0)
        charts = [cache, rate, *charts]
    sequences = f"{found.batch:,} sequence{'s' if found.batch > 1 else ''}"
    return Picture(
        f"Serving {found.model.family} on {found.machine.name}",
        subtitle=(f"{sequences}, weights {found.weights}, KV cache {found.cache}; least times by roofline",),
        charts=tuple(charts),
        columns=len(charts),
        data=found.json(),
    )


def _lengths(found: Serving) -> list[int]:
    last = min(found.model.longest or max(LAST, found.length), max(LAST, found.length))
    return [size for size in chart_lengths(found.model, last) if min(FIRST, last // 2) <= size <= last]


def _chart(
    points: list[Serving], title: str, value: Callable[[ServingPrice], float], more: tuple[Stroke, ...] = ()
) -> Chart:
    names = [one.name for one in points[0].prices]
    lines = [
        (name, [(float(point.length), value(point.prices[place])) for point in points])
        for place, name in enumerate(names)
    ]
    return Chart(title, "context, tokens", "", (*curves(lines), *more), log_x=2, log_y=10, size=SIZE)


def _limit(points: list[Serving]) -> tuple[Stroke, ...]:
    """The memory that the weights leave to each sequence, as a line across; none where it is far above."""
    first, last = points[0], points[-1]
    room = None if last.room is None else last.room / last.batch
    if room is None or not 0 < room < FAR * last.own.cache_bytes:
        return ()
    ends = ((float(first.length), room / GIB), (float(last.length), room / GIB))
    return (Stroke(ends, "memory left a sequence", LIMIT, 1.0, under=True),)
