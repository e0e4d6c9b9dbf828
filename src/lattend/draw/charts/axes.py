"""Axes: a chart drawn by matplotlib, into anyone's axes or as items of a scene."""

# pyright: standard
# (the types of matplotlib are known in part)

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.path import Path as Outline
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Affine2D, Transform

from lattend.draw.charts.bars import Bars
from lattend.draw.charts.chart import Arrows, Chart, Dots, Series, Stroke, tick
from lattend.draw.formats.page import FONT, UNITS_PER_INCH
from lattend.draw.formats.palette import FAINT_TEXT, FRAME, PAPER, TEXT
from lattend.draw.formats.scene import POINTS_PER_UNIT, Item, Path, Text, moved

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL, TICK = 11 * POINTS_PER_UNIT, 9 * POINTS_PER_UNIT
STYLE: dict[Any, Any] = {
    **{"font.family": FONT, "font.size": LABEL, "text.color": TEXT, "text.parse_math": False},
    **{"axes.titlesize": LABEL, "axes.titleweight": "bold", "axes.titlelocation": "left"},
    **{"axes.labelsize": LABEL, "axes.labelcolor": TEXT, "axes.labelpad": 3, "axes.titlepad": 5},
    **{"axes.edgecolor": FRAME, "axes.linewidth": 0.6, "axes.unicode_minus": True},
    **{"axes.grid": True, "axes.axisbelow": True, "grid.color": "#e6e9ed", "grid.linewidth": 0.75},
    **{"xtick.labelsize": TICK, "ytick.labelsize": TICK, "xtick.color": FRAME, "ytick.color": FRAME},
    **{"xtick.labelcolor": FAINT_TEXT, "ytick.labelcolor": FAINT_TEXT},
    **{"xtick.major.size": 2, "ytick.major.size": 2, "xtick.major.width": 0.6, "ytick.major.width": 0.6},
    **{"legend.fontsize": LABEL, "legend.frameon": False, "legend.borderpad": 0, "legend.handlelength": 1.8},
    **{"legend.columnspacing": 1.4, "legend.handletextpad": 0.6, "legend.borderaxespad": 0},
}
MARKERS: dict[str, Any] = {
    **{"dot": (12, 0, 0), "ring": (24, 0, 0), "square": "s", "diamond": "D", "triangle": "^", "cross": "x"}
}


def draw(chart: Chart, ax: Axes) -> None:
    """Draws the chart into the axes, without a legend; its names are those of the lines and dots."""
    ax.set_title(chart.title)
    ax.set_xlabel(chart.across)
    ax.set_ylabel(chart.up)
    integral = all(float(point[0]).is_integer() for line in chart.lines for point in line.points)
    sides = zip((ax.xaxis, ax.yaxis), (chart.log_x, chart.log_y), chart.sides(), chart.ends(), strict=True)
    for axis, base, side, ends in sides:
        axis.axes.set(**{f"{axis.axis_name}lim": ends})
        ticks = max(2, round(side / 36))
        if base:
            axis.axes.set(**{f"{axis.axis_name}scale": "log"})
            few = base == 10 and ends[1] <= 10 * ends[0]  # a decade, so that more than its ends are named
            axis.set_major_locator(LogLocator(base, (1, 2, 5) if few else (1,), numticks=ticks + 1))
            axis.set_minor_locator(NullLocator())
        else:
            only_whole = axis is ax.xaxis and bool(chart.lines) and integral
            axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10], integer=only_whole))
        axis.set_major_formatter(FuncFormatter(_turned_tick if chart.down and axis is ax.yaxis else _tick))
    if chart.equal:
        ax.set_aspect("equal")
    else:
        ax.spines[["top", "right"]].set_visible(False)
    named: set[tuple[str, type[Series]]] = set()
    for layer, series in enumerate(chart.layers()):
        first = series.name and (series.name, type(series)) not in named
        named.add((series.name, type(series)))
        _draw_series(series, ax, series.name if first else "", 2 + layer / 100, away=chart.equal)


def _tick(place: float, _: object) -> str:
    return tick(place)


def _turned_tick(place: float, _: object) -> str:
    return tick(0.0 - place)


def _draw_series(series: Series, ax: Axes, label: str, order: float, away: bool) -> None:
    match series:
        case Stroke():
            x, y = np.asarray(series.points, dtype=float).T
            style = {"color": series.colour, "zorder": order}
            width = POINTS_PER_UNIT * series.width
            ax.plot(x, y, linewidth=width, label=label or "_", solid_capstyle="butt", **style)
            for a, b in itertools.pairwise(series.points) if series.headed else ():
                _head(ax, a, b, series)
        case Arrows():
            pairs = np.asarray(series.pairs, dtype=float).reshape(-1, 4)
            x, y, to_x, to_y = pairs.T
            exact = {"angles": "xy", "scale_units": "xy", "scale": 1, "units": "dots", "zorder": order}
            heads = {"headwidth": 5, "headlength": 5, "headaxislength": 4.5, "minlength": 1.5}
            ax.quiver(x, y, to_x - x, to_y - y, color=series.colour, width=series.width, **exact, **heads)
            swatch = {"marker": ">", "markersize": 4, "markeredgecolor": "none", "color": series.colour}
            ax.plot([], [], linewidth=POINTS_PER_UNIT * series.width, label=label or "_", **swatch)
        case Dots():
            if len(series.points):
                x, y = np.asarray(series.points, dtype=float).T
                ax.plot(x, y, label=label or "_", zorder=order, **_look(series))
                _write_labels(series, ax, away)


def _look(series: Dots) -> dict[str, Any]:
    """How matplotlib is asked for these dots."""
    cross, ring = series.shape == "cross", series.shape == "ring"
    edge = POINTS_PER_UNIT * (0.45 if cross else 0.4) * series.size if cross or ring else 0.0
    return {
        "linestyle": "",
        "marker": MARKERS[series.shape],
        "markersize": POINTS_PER_UNIT * (1.8 if series.shape == "square" else 2) * series.size,
        "markerfacecolor": "none" if cross else PAPER if ring else series.colour,
        "markeredgecolor": series.colour if edge else "none",
        "markeredgewidth": edge,
        "alpha": series.opacity if series.opacity < 1 else None,
    }


def _head(ax: Axes, a: Sequence[float], b: Sequence[float], series: Stroke) -> None:
    """A head a little past the middle of the stretch from a to b."""
    tail, tip = ((a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])) for t in (0.45, 0.56))
    size = POINTS_PER_UNIT * (9 + 4 * series.width)
    look = {"arrowstyle": "-|>", "color": series.colour, "mutation_scale": size, "linewidth": 0}
    ax.annotate("", xy=tip, xytext=tail, arrowprops={**look, "shrinkA": 0, "shrinkB": 0}, zorder=2.9)


def _write_labels(series: Dots, ax: Axes, away: bool) -> None:
    """The words beside their dots: away from the middle of all, or where the chart has room."""
    places = np.asarray(series.points, dtype=float)
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in ax.get_lines()]
    rises = sum(np.sign(y[-1] - y[0]) for y in drawn if len(y) > 1) > 0  # lines leave room below to the right
    for place, text in zip(places, series.labels, strict=bool(len(series.labels))):
        across, up = place - places.mean(axis=0)
        if not away:
            right = ax.transAxes.inverted().transform(ax.transData.transform(place))[0] < 0.6
            if len(places) > 1:  # away from each other
                right = place[0] >= places[:, 0].mean()
            across = 1.0 if right else -1.0
            up = -across if rises else across
        far = math.hypot(across, up)
        across, up = (across / far, up / far) if far > 1e-9 * (1 + np.abs(places).max()) else (0.7, 0.7)
        reach = series.size + 6
        beside = "left" if across > 0.4 else "right" if across < -0.4 else "center"
        offset = POINTS_PER_UNIT * reach * across, POINTS_PER_UNIT * reach * up
        style = {"ha": beside, "va": "center", "fontsize": TICK if away else LABEL, "zorder": 4}
        ax.annotate(text, place, offset, textcoords="offset points", annotation_clip=True, **style)


class DrawnChart:
    """A chart drawn before it is placed, as the panels of a picture are, with its legend or without."""

    def __init__(self, chart: Chart | Bars, legend: bool) -> None:
        wide, high = chart.sides()
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(STYLE)
            figure = Figure((4 * wide / UNITS_PER_INCH, 4 * high / UNITS_PER_INCH), dpi=UNITS_PER_INCH)
            figure.patch.set_visible(False)
            ax = figure.add_axes((0.375, 0.375, 0.25, 0.25))
            chart.draw(ax)
            reader = _Reader(4 * wide, 4 * high)
            if legend:
                _legend(ax, reader)
            figure.draw(reader)
            box = figure.get_tightbbox(reader)
        left, top = float(UNITS_PER_INCH * box.x0), float(4 * high - UNITS_PER_INCH * box.y1)
        self.width, self.height = (math.ceil(UNITS_PER_INCH * side) for side in (box.width, box.height))
        self.found = [moved(item, -left, -top) for item in reader.items]

    def items(self, x: float, y: float) -> Iterator[Item]:
        return (moved(item, x, y) for item in self.found)


def _legend(ax: Axes, reader: RendererBase) -> None:
    """The legend below the axes, in as many columns as there is room for."""
    named: dict[str, list[Any]] = {}
    for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
        named.setdefault(name, []).append(handle)
    below = ax.get_tightbbox(reader)
    assert below is not None
    place = 0, (below.y0 - 8 - ax.bbox.y0) / ax.bbox.height
    for columns in range(len(named), 0, -1):
        swatches = [tuple(series) for series in named.values()]
        made = ax.legend(swatches, list(named), loc="upper left", bbox_to_anchor=place, ncols=columns)
        if made.get_window_extent(reader).width <= 1.15 * ax.bbox.width:
            return


class _Reader(RendererBase):
    """Takes down what matplotlib draws as items of a scene, one unit a pixel."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__()
        self.width, self.height = width, height
        self.items: list[Path | Text] = []

    def get_canvas_width_height(self) -> tuple[float, float]:
        return self.width, self.height

    def points_to_pixels(self, points: Any) -> Any:
        return points / POINTS_PER_UNIT

    def draw_path(
        self, gc: GraphicsContextBase, path: Outline, transform: Transform, rgbFace: Any = None
    ) -> None:
        red, green, blue, seen = to_rgba(gc.get_rgb())
        width = gc.get_linewidth() / POINTS_PER_UNIT if seen else 0.0
        alpha = gc.get_alpha() if gc.get_forced_alpha() else 1.0 if rgbFace is None else (*rgbFace, 1.0)[3]
        fill = to_hex(rgbFace[:3]) if rgbFace is not None and alpha else ""
        if not fill and not width:
            return
        clip = gc.get_clip_rectangle()
        x, y, wide, high = clip.bounds if clip is not None else (0, 0, self.width, self.height)
        if fill:  # a dot is shown where its middle is
            box = path.get_extents(transform)
            if not (x <= (box.x0 + box.x1) / 2 <= x + wide and y <= (box.y0 + box.y1) / 2 <= y + high):
                return
            polygons = path.to_polygons(transform)
        else:  # matplotlib clips lines a pixel outside of the width and height it is given
            inside = transform + Affine2D().translate(-x - 1, -y - 1)
            polygons = path.to_polygons(inside, wide - 2, high - 2, closed_only=False)
            polygons = [np.add(polygon, (x + 1, y + 1)) for polygon in polygons]
        colour = to_hex((red, green, blue)) if width else ""
        for polygon in polygons:
            points = tuple((float(a), float(self.height - b)) for a, b in np.asarray(polygon))
            closed = len(points) > 2 and points[0] == points[-1]
            self.items.append(Path(points[:-1] if closed else points, colour, width, fill, alpha, closed))

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: Any,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        """The text from the point that stays where it is in a narrower font."""
        wide, _, _ = self.get_text_width_height_descent(s, prop, False)
        turned = angle == 90
        side = "center" if turned or mtext is None else mtext.get_horizontalalignment()
        anchor, before = {"left": ("start", 0), "center": ("middle", 0.5), "right": ("end", 1)}[side]
        x, y = (x, y - before * wide) if turned else (x + before * wide, y)
        size, bold = prop.get_size_in_points() / POINTS_PER_UNIT, prop.get_weight() in ("bold", 700)
        self.items.append(Text(float(x), float(y), s, size, to_hex(gc.get_rgb()[:3]), anchor, bold, turned))
