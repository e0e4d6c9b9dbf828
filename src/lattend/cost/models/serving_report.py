"""Reports and charts of serving: the machine, weights by format, a column for each kind of attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lattend.cost.models.formats import WEIGHT_FORMATS, cache_width, weight_format
from lattend.cost.models.model import chart_lengths
from lattend.cost.models.parts import FEED_FORWARD
from lattend.cost.models.serving_price import Serving, ServingPrice
from lattend.draw.charts.chart import Chart, Stroke, curves
from lattend.draw.picture import Picture
from lattend.errors import LattendError
from lattend.report.numbers import fixed, seconds, short_bytes, significant, with_prefix
from lattend.report.report import Report
from lattend.report.table import Facts, Table

UNKNOWN = "–"
INSET = "  "
BOUND = {"arithmetic": "compute", "memory": "memory"}


def serving_report(serving: Serving) -> Report:
    """The facts, the tables and the notes."""
    facts = Facts([*_facts(serving)])
    head = ("", *("\nin ".join(one.name.rsplit(" in ", 1)) for one in serving.prices))  # the layers below
    rows = Table(head, [(name, *(tell(one) for one in serving.prices)) for name, tell in _rows(serving)])
    return Report(serving.heading, [facts, _formats(serving), rows, "", *_notes(serving)], serving.json())


def _facts(serving: Serving) -> Iterator[tuple[str, str]]:
    model = serving.model
    about = f" ({serving.machine.about})" if serving.machine.about else ""
    yield "machine", f"{serving.machine}{about}"
    cache = f", KV cache {serving.cache}" if serving.own.decode else ""
    rate = serving.machine.rate_of(serving.weights)
    own = f", its products at {with_prefix(rate)}FLOP/s" if rate != serving.machine.rate else ""
    yield "formats", f"weights {serving.weights}{own}{cache}"
    yield "parameters", f"{model.parameters:,}"
    with_tables = model.parameters - model.idle
    also = f" ({with_tables:,} with its tables, as some count)" if model.is_mixture else ""
    yield "active", f"{model.active:,} multiply a token{also}"
    if serving.own.decode is not None:
        windows = any(
            layer.attention and layer.attention.span.cached_keys(1 << 20) < 1 << 20 for layer in model.layers
        )
        until = ", as long as no window or chunk is full" if windows else ""
        yield "KV cache", f"{model.cache(1, 1, cache_width(serving.cache)):,} bytes a token{until}"


def _formats(serving: Serving) -> Table:
    """The weights in each format, and the KV cache of a sequence in those that it may have."""
    caches = {name: f"{held:,}" for name, held in serving.cache_bytes.items()} if serving.own.decode else {}
    rows = [
        (name, f"{held:,}", short_bytes(held), *([caches.get(name, "")] if caches else []))
        for name, held in serving.weight_bytes.items()
    ]
    return Table(("", "weights, bytes", "", *(["KV cache, bytes"] if caches else [])), rows)


def _rows(serving: Serving) -> Iterator[tuple[str, Callable[[ServingPrice], str]]]:
    yield "prefill, FLOPs a token on average", lambda one: _flops(sum(one.prefill_flops.values()))
    for group in _groups(serving, lambda one: one.prefill_flops):
        yield f"{INSET}{_name(serving, group)}", lambda one, group=group: _flops(one.prefill_flops[group])
    if serving.own.decode_flops:
        yield (
            f"decoding, FLOPs of token {serving.length:,}",
            lambda one: _flops(sum(one.decode_flops.values())),
        )
        for group in _groups(serving, lambda one: one.decode_flops):
            yield (
                f"{INSET}{_name(serving, group)}",
                lambda one, group=group: _flops(one.decode_flops[group]),
            )
        yield "KV cache of a sequence", lambda one: short_bytes(one.cache_bytes)
        yield "sequences that fit", lambda one: UNKNOWN if one.fits is None else f"{one.fits:,}"
    yield (
        f"prefill of {serving.batch:,} × {serving.length:,} tokens",
        lambda one: seconds(one.prefill.seconds),
    )
    yield f"{INSET}bound by", lambda one: BOUND[one.prefill.binds]
    if serving.own.decode is not None:
        yield "decoding step", lambda one: "" if one.decode is None else seconds(one.decode.seconds)
        yield f"{INSET}bound by", lambda one: "" if one.decode is None else BOUND[one.decode.binds]
        yield "tokens a second", lambda one: _rate(one.tokens_per_s or 0.0)


def _groups(serving: Serving, of: Callable[[ServingPrice], dict[str, float] | dict[str, int]]) -> list[str]:
    """The kinds of parts that take anything."""
    return [group for group in serving.own.prefill_flops if any(of(one).get(group) for one in serving.prices)]


def _name(serving: Serving, group: str) -> str:
    return "experts and feed-forward" if group == FEED_FORWARD and serving.model.is_mixture else group


def _flops(value: float) -> str:
    return with_prefix(value).strip()


def _rate(value: float) -> str:
    return fixed(value, 0, grouped=True) if value >= 100 else significant(value, 3)


def _format_words(serving: Serving) -> str:
    """`fp8, int8: 1 byte, …; int4: …`."""
    names: dict[str, list[str]] = {}
    for one in WEIGHT_FORMATS.values():
        if not one.is_full:
            alone = " (experts alone)" if one.experts_only and serving.model.is_mixture else ""
            names.setdefault(one.words + alone, []).append(one.name)
    return "; ".join(f"{', '.join(alike)}: {words}" for words, alike in names.items())


def _notes(serving: Serving) -> Iterator[str]:
    model, memory, held = serving.model, serving.machine.memory, serving.model.weights(serving.weights)
    if memory is not None and held > memory:
        least = -(-held // int(memory / serving.machines))
        yield (
            f"The weights do not fit: {with_prefix(held)}B in {serving.weights}, the memory is "
            f"{with_prefix(memory)}B. {least:,} such machines hold them, or a smaller format may fit."
        )
    elif serving.own.fits is not None and serving.own.fits < serving.batch:
        yield f"{serving.batch:,} sequences do not fit, {serving.own.fits:,} do; the times are as if all did."
    moved = "weights and KV cache" if serving.own.decode else "weights"
    yield (
        f"Least times: all products at the machine's full rate, or {moved} moved once, whichever takes "
        "longer. Not counted: activations, softmax, norms, positions, sampling, launches of kernels."
    )
    formats = _format_words(serving)
    yield f"Weights: {formats}. Tables, output head, routers, norms, biases stay bf16 in these."
    if not weight_format(serving.weights).is_full:
        yield (
            "Products of fp8 weights run at the machine's fp8 rate, if it has one, those of int8, int4 and "
            "mxfp4 in bf16."
        )
    if model.is_mixture:
        yield (
            "Experts are read if a token of the step is sent to them, all being chosen equally often; with "
            "one sequence, exactly those of one token."
        )
    if any(layer.attention and layer.attention.latent for layer in model.layers):
        yield "Decoding scores the cached latents themselves; a prompt makes keys and values of them."
    if serving.machines > 1:
        yield (
            f"{serving.machines:,} machines as one: every matrix and the KV cache in equal parts. "
            "Not counted: what they send each other, and KV heads or latents that several of them must hold."
        )


FIRST, LAST = 1 << 9, 1 << 17  # tokens of the chart, where the model takes so many
GIB = 1 << 30
LIMIT = "#7d8590"
FAR = 100  # times the greatest KV cache of the chart
SIZE = (310.0, 200.0)


def draw_serving(serving: Serving) -> Picture:
    """Three charts, or prefill time alone of a model that makes no tokens."""
    if serving.model.image:
        raise LattendError(f"an image of {serving.model.family} has one length, so there is no chart over it")
    lengths = _lengths(serving)
    points = [serving.at(length) for length in lengths]
    charts = [_chart(points, "Prefill, seconds", lambda one: one.prefill.seconds)]
    if serving.own.decode is not None:
        cache = _chart(
            points, "KV cache of a sequence, GiB", lambda one: one.cache_bytes / GIB, _limit(points)
        )
        rate = _chart(points, "Decoding, tokens a second", lambda one: one.tokens_per_s or 0.0)
        charts = [cache, rate, *charts]
    sequences = f"{serving.batch:,} sequence{'s' if serving.batch > 1 else ''}"
    return Picture(
        f"Serving {serving.model.family} on {serving.machine.name}",
        subtitle=(
            f"{sequences}, weights {serving.weights}, KV cache {serving.cache}; least times by roofline",
        ),
        charts=tuple(charts),
        columns=len(charts),
        data=serving.json(),
    )


def _lengths(serving: Serving) -> list[int]:
    last = min(serving.model.longest or max(LAST, serving.length), max(LAST, serving.length))
    return [size for size in chart_lengths(serving.model, last) if min(FIRST, last // 2) <= size <= last]


def _chart(
    points: list[Serving], title: str, value: Callable[[ServingPrice], float], more: tuple[Stroke, ...] = ()
) -> Chart:
    names = [one.name for one in points[0].prices]
    lines = [
        (name, [(float(point.length), value(point.prices[index])) for point in points])
        for index, name in enumerate(names)
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
