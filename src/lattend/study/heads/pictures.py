"""Pictures of a record: heads at one moment, paths of their centers, numbers over time, and an animation."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from html import escape
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from string import Template

import numpy as np

from lattend.draw.charts.chart import Chart, Dots, Stroke, curves
from lattend.draw.picture import Picture
from lattend.nn.attention.gaussian_heads import Floats, kernel_heads
from lattend.nn.pictures.heads import COLOURS, crowded, draw_heads
from lattend.report.numbers import format_share, significant
from lattend.study.figures import checked_path
from lattend.study.heads.findings import summary
from lattend.study.heads.record import CONTROL, HeadMoment, HeadRun, Record

TAPS = "#8c96a3"
LEAST_REACH, MOST_REACH = 3, 12


def draw_moment(record: Record, epoch: float | None, run: str) -> Picture:
    """The heads of every layer around a query, on an image without edges, all moments in one frame."""
    moments = record.run(run).moments
    moment = moments[-1] if epoch is None else record.run(run).at(epoch)
    far = reach(record)
    filled = not any(crowded(layer) for each in moments for layer in each.heads().values())
    picture = draw_heads(moment.heads(), reach=far, title=moment_title(record, moment, run), filled=filled)
    counts = ", ".join(str(many) for many in wider(moment, far + 0.5))
    unseen = any(any(wider(each, far + 0.5)) for each in moments)  # at any moment: all pictures are as tall
    about = (*picture.subtitle, *[f"heads whose line lies outside the frame, by layer: {counts}"] * unseen)
    return replace(picture, subtitle=about, columns=columns(record.settings.layers))


def wider(moment: HeadMoment, side: float) -> list[int]:
    """How many heads of each layer have half of their Gaussian beyond the farthest corner of a frame."""
    corner = np.hypot(*(side + np.abs(moment.centres[..., axis]) for axis in (0, 1)))
    return (moment.half_radii() > corner).sum(-1).tolist()


def moment_title(record: Record, moment: HeadMoment, run: str) -> str:
    """The title of a moment: which run, and when."""
    held = ", centres held fixed" if run == CONTROL else ""
    when = (
        f"after {significant(moment.epoch, 6)} of {record.settings.epochs} epochs"
        if moment.epoch
        else "before training"
    )
    return f"Heads {when} on {record.settings.data}{held}"


def columns(layers: int) -> int:
    """The number of panels in a row: two for four layers, three for six."""
    return layers if layers <= 3 else 2 if layers == 4 else 3


def reach(record: Record) -> int:
    """Positions to each side of the query that hold every centre of every moment, within limits."""
    far = max(np.abs(moment.centres).max() for moment in record.trained.moments)
    return min(_most(record), max(LEAST_REACH, math.ceil(far) + 1))


def frame(record: Record) -> int:
    """Positions to each side of the query that hold the circles of all heads no wider than the image."""
    moments = [moment for run in record.runs.values() for moment in run.moments]
    ends = np.stack([np.abs(moment.centres).max(-1) + moment.half_radii() for moment in moments])
    inside = ends[ends <= _most(record) + 0.5]
    return max(reach(record), math.ceil(inside.max(initial=0.0) - 0.5))


def _most(record: Record) -> int:
    return max(LEAST_REACH, min(MOST_REACH, max(record.settings.rows, record.settings.cols) - 1))


def draw_paths(record: Record) -> Picture:
    """A chart for each layer: where each head's centre began, its way, and where it ended."""
    moments, settings = record.trained.moments, record.settings
    ways = np.stack([moment.centres for moment in moments])  # [moments, layers, heads, 2]
    side = float(reach(record)) + 0.5
    charts = tuple(
        _paths(f"layer {layer + 1}", ways[:, layer], settings.kernel, side)
        for layer in range(settings.layers)
    )
    results = record.findings
    facts = (("near and far", results.depth()), ("grid", results.nearness()))
    data = {"epochs": [moment.epoch for moment in moments], "centres": ways.tolist()}
    title = f"Paths of the heads' centres on {settings.data}, {settings.epochs} epochs"
    about = ("shifts from the query, which is at (0, 0): columns to the right, rows downwards",)
    return Picture(
        title, subtitle=about, facts=facts, charts=charts, data=data, columns=columns(settings.layers)
    )


def _paths(title: str, ways: Floats, kernel: int, side: float) -> Chart:
    """The chart of one layer's [moments, heads, (dy, dx)], with rows counted downwards as in images."""
    points = np.stack([ways[..., 1], -ways[..., 0]], -1)
    taps = [(head.centre[1], -head.centre[0]) for head in kernel_heads(kernel)]
    strokes = tuple(
        Stroke(points[:, head], "path", COLOURS[head % len(COLOURS)], 1.4) for head in range(points.shape[1])
    )
    ends = tuple(
        Dots(
            [points[-1, head]],
            "end",
            COLOURS[head % len(COLOURS)],
            3.4,
            labels=[str(head)],
            glyph=str(head)[-1],
        )
        for head in range(points.shape[1])
    )
    starts = tuple(
        Dots([points[0, head]], "start", COLOURS[head % len(COLOURS)], 2.6, "ring", glyph="o")
        for head in range(points.shape[1])
    )
    grid = Dots(taps, f"taps of a {kernel} × {kernel} kernel", TAPS, 3.0, "cross", glyph="+")
    both = (-side, side)
    return Chart(
        title,
        "column",
        "row",
        strokes,
        (grid, *starts, *ends),
        x=both,
        y=both,
        equal=True,
        size=(230.0, 230.0),
        down=True,
    )


def draw_spread(record: Record) -> Picture:
    """Charts over the epochs: a line for each layer, and of accuracy one for each run."""
    settings = record.settings

    def attends(moment: HeadMoment) -> Floats:
        return moment.attention_distances(settings.rows, settings.cols)

    grid = f"distance from a {settings.kernel} × {settings.kernel} grid"
    lines = [
        ("centres from the query", record.trained, HeadMoment.centre_distances),
        (grid, record.trained, HeadMoment.grid_distances),
        ("width (median)", record.trained, HeadMoment.widths),
        ("attention distance", record.trained, attends),
    ]
    if record.control is not None:
        lines.append(("attention distance of the control", record.control, attends))
    unit = "pixels" if settings.patch == 1 else "positions"
    charts = [_over_time(name, unit, run, of) for name, run, of in lines]
    right = [
        (name, [(one.epoch, 100 * one.accuracy) for one in run.epochs])
        for name, run in record.runs.items()
        if run.epochs
    ]
    if right:
        charts.append(Chart("test accuracy", "epoch", "percent right", curves(right)))
    results = record.findings
    beside = "; ".join(f"{name} {format_share(share)}" for name, share in results.accuracy.items())
    facts = (("near and far", results.depth()), ("grid", results.nearness()), ("test images right", beside))
    title = f"Heads in training on {settings.data}: spread by layer over {settings.epochs} epochs"
    return Picture(title, facts=facts, charts=tuple(charts), data=summary(results), columns=2)


def _over_time(name: str, unit: str, run: HeadRun, of: Callable[[HeadMoment], Floats]) -> Chart:
    """A line for each layer."""
    points = [(moment.epoch, of(moment)) for moment in run.moments]
    layers = [
        (f"layer {layer + 1}", [(epoch, float(values[layer])) for epoch, values in points])
        for layer in range(len(points[0][1]))
    ]
    return Chart(name, "epoch", unit, curves(layers))


ENDINGS = (".gif", ".html")
FRAME, LAST = 350, 2500  # milliseconds that a frame and the last one are seen
SCALE = 1.0  # pixels a unit of the picture


def animate(record: Record, path: str | os.PathLike[str], run: str) -> Path:
    """Writes the form that the ending names, and gives the path."""
    path = checked_path(path, "animate", ENDINGS)
    path.write_bytes(gif(record, run) if path.suffix.lower() == ".gif" else page(record, run).encode())
    return path


def gif(record: Record, run: str) -> bytes:
    """A frame for each moment, in one palette."""
    from PIL import Image

    pictures = [draw_moment(record, moment.epoch, run) for moment in record.run(run).moments]
    frames = [Image.open(BytesIO(picture.png(SCALE))).convert("RGB") for picture in pictures]
    last = frames[-1].quantize(128)
    first, *others = [frame.quantize(palette=last, dither=Image.Dither.NONE) for frame in frames]
    content = BytesIO()
    seen = [FRAME] * len(others) + [LAST]
    first.save(content, "GIF", save_all=True, append_images=others, duration=seen, loop=0, optimize=True)
    return content.getvalue()


def page(record: Record, run: str) -> str:
    """One HTML file that needs nothing else, with this run shown first."""
    record.run(run)
    names = sorted(record.runs, key=lambda name: name != run)
    moments = {name: [moment.json() for moment in record.runs[name].moments] for name in names}
    template = Template(files("lattend.study.heads").joinpath("animation.html").read_text(encoding="utf-8"))
    return template.safe_substitute(
        title=escape(f"Heads in training on {record.settings.data}"),
        record=json.dumps(moments).replace("</", "<\\/"),
        reach=reach(record),
        colours=json.dumps(COLOURS),
    )
