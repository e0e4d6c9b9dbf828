"""What the benchmarks of attention share: the twelve rules, the machine, tables, JSON files and charts.

python benchmarks/report.py rows.json --chart rows.svg     # table and chart of an earlier run
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import lattend as lt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS = "lattend"
REFERENCE = "SDPA causal"  # other pairs than the rule's
PASSES = ("forward", "backward", "training step")


# The rules


@dataclass(frozen=True)
class Case:
    """One rule at one size: for lattend as a rule, for peers and checks as functions of arrays."""

    name: str
    title: str
    n: int
    rule: lt.Rule
    attended: Callable[[Any, Any], Any]  # (q, k) to bool; works on NumPy arrays and on tensors
    keys: Callable[[Any], Any]  # how many keys each of these queries has
    sizes: dict[str, int] = field(default_factory=dict)  # what the shape of q does not say
    t: int | None = None
    w: int | None = None

    @property
    def needed(self) -> int:
        """The attended pairs, summed row by row: integer sets are not at hand on every machine."""
        return int(self.keys(np.arange(self.n, dtype=np.int64)).sum())


NAMES = (
    *("causal", "strided-255", "strided-1023", "strided-4095", "windowed-256", "windowed-1024"),
    *("neighbourhood-7", "neighbourhood-13", "sparse-strided", "sparse-fixed", "sinks", "prefix"),
)


def case(name: str, n: int) -> Case:
    """One of NAMES at n positions; images are square, l is √n (rounded down to a power of 2), c is 8."""
    l, c = 1 << (n.bit_length() - 1) // 2, 8  # noqa: E741  (the paper's letter)
    match name.split("-"):
        case ["causal"]:
            return Case(name, name, n, lt.rules.causal(), lambda q, k: k <= q, lambda q: q + 1)
        case ["strided", number]:
            t = int(number)
            attended = lambda q, k: (k <= q) & (q - k <= t)  # noqa: E731
            return Case(
                *(name, f"strided t={t}", n, lt.rules.strided(t), attended),
                *(lambda q: np.minimum(q, t) + 1, {}, t),
            )
        case ["windowed", number]:
            w = int(number)
            attended = lambda q, k: (k <= q) & (q // w == k // w)  # noqa: E731
            return Case(
                *(name, f"windowed w={w}", n, lt.rules.windowed(w), attended),
                *(lambda q: q % w + 1, {}, None, w),
            )
        case ["neighbourhood", number]:
            return _neighbourhood(name, n, int(number) // 2)
        case ["sparse", "strided"]:
            attended = lambda q, k: (k <= q) & ((q - k < l) | ((q - k) % l == 0))  # noqa: E731
            return Case(
                *(name, f"Sparse strided l={l}", n, lt.rules.sparse_strided(l), attended),
                lambda q: np.minimum(q + 1, l) + q // l,
            )
        case ["sparse", "fixed"]:
            attended = lambda q, k: (k <= q) & ((q // l == k // l) | (k % l >= l - c))  # noqa: E731
            return Case(
                *(name, f"Sparse fixed l={l}, c={c}", n, lt.rules.sparse_fixed(l, c), attended),
                lambda q: q % l + 1 + q // l * c,
            )
        case ["sinks"]:
            attended = lambda q, k: (k <= q) & ((k < 4) | (q - k <= 1023))  # noqa: E731
            rule = lt.rules.sinks(s=4, t=1023)
            return Case(
                name, "4 sinks, window of 1,024", n, rule, attended, lambda q: np.minimum(q + 1, 1028)
            )
        case ["prefix"]:
            p = min(3000, 3 * n // 16)  # 3,000 of 16,384
            return Case(
                *(
                    name,
                    f"prefix of {p:,}",
                    n,
                    lt.rule(f"k <= q or k < {p}"),
                    lambda q, k: (k <= q) | (k < p),
                ),
                lambda q: np.maximum(q + 1, p),
            )
    raise SystemExit(f"no rule {name!r}; there are {', '.join(NAMES)}")


def _neighbourhood(name: str, n: int, r: int) -> Case:
    side = math.isqrt(n)
    if side * side != n:
        raise SystemExit(f"{name}: {n} pixels are no square image")

    def attended(q: Any, k: Any) -> Any:
        return (abs(q // side - k // side) <= r) & (abs(q % side - k % side) <= r)

    def along(x: Any) -> Any:
        return np.minimum(x, r) + 1 + np.minimum(side - 1 - x, r)

    title = f"{2 * r + 1} × {2 * r + 1} neighbourhood, {side} × {side}"
    sizes = {"rows": side, "cols": side}
    rule = lt.rules.neighbourhood(r)
    return Case(name, title, n, rule, attended, lambda q: along(q // side) * along(q % side), sizes)


def chosen(wanted: Sequence[str] | None) -> list[str]:
    """The names that begin like one of those wanted, in order; all when none are wanted."""
    for start in wanted or ():
        if not any(name.startswith(start) for name in NAMES):
            raise SystemExit(f"no rule {start!r}; there are {', '.join(NAMES)}")
    return [name for name in NAMES if not wanted or any(name.startswith(start) for start in wanted)]


# What was measured, and where


@dataclass
class Row:
    """One rule at one size and one pass. Times are milliseconds by contender, lattend the first."""

    case: str
    title: str
    n: int
    heads: int
    head_dim: int
    work: str  # one of PASSES
    needed: int
    floor: float
    times: dict[str, float] = field(default_factory=dict)
    aim: float | None = None
    predicted: float | None = None  # milliseconds that lt.explain expects of lattend, before any run
    first: dict[str, float] = field(default_factory=dict)  # seconds of the first call: plan or compile
    errors: dict[str, float] = field(default_factory=dict)  # relative, by what it is compared with
    host: dict[str, float] = field(default_factory=dict)  # milliseconds the call keeps Python busy
    peak: dict[str, float] = field(default_factory=dict)  # GiB of memory
    notes: list[str] = field(default_factory=list)
    dtype: str = ""  # of the numbers, where a file has several; "TF32" are float32 rounded in products


def machine() -> dict[str, Any]:
    """The machine and the versions, as far as they can be found out."""
    found: dict[str, Any] = {"date": time.strftime("%Y-%m-%d %H:%M"), "cpu": _cpu()}
    found["cores"] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found["load"] = round(os.getloadavg()[0], 2)
    found["python"] = platform.python_version()
    for package in ("torch", "triton", "lattend"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    torch = sys.modules.get("torch")
    if torch is not None:
        found["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return found


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def save(path: str | Path, about: dict[str, Any], rows: Sequence[Row]) -> None:
    text = json.dumps({"machine": about, "rows": [asdict(row) for row in rows]}, indent=1)
    Path(path).write_text(text + "\n")


def load(path: str | Path) -> tuple[dict[str, Any], list[Row]]:
    stored = json.loads(Path(path).read_text())
    return stored["machine"], [Row(**row) for row in stored["rows"]]


# Tables


def short(value: float) -> str:
    """Three digits, as in 0.262, 42.1, 571, 12,345."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(float(f"{value:.3g}")))))
    return f"{value:,.{digits}f}"


def contenders(rows: Sequence[Row]) -> list[str]:
    """All that were timed, lattend first, the reference line last."""
    names = dict.fromkeys(name for row in rows for name in row.times)
    return sorted(names, key=lambda name: (not name.startswith(OURS), name == REFERENCE))


def cell(row: Row, name: str) -> str:
    """A time and its ratio: to the floor for lattend (and where it was not run), to lattend for a peer."""
    if name not in row.times:
        return "–"
    ours, took = row.times.get(OURS), row.times[name]
    if name == OURS or ours is None:
        return f"{short(took)} ({short(took / row.floor)}× floor)"
    return f"{short(took)} ({short(took / ours)}×)"


def extras(row: Row) -> str:
    """What else a row has to say, in a few words each."""
    parts = [f"{name} first call {short(seconds)} s" for name, seconds in row.first.items()]
    parts += [f"{name} peak {short(size)} GiB" for name, size in row.peak.items()]
    parts += [f"{name} host {short(busy)} ms" for name, busy in row.host.items()]
    told = {name: worst for name, worst in row.errors.items() if name.startswith((OURS, "to "))}
    parts += [f"{name} error {worst:.1e}" for name, worst in told.items()]
    return "; ".join(parts + row.notes)


def size_of(row: Row) -> str:
    return f"n = {row.n:,}, D = {row.head_dim}" + (f", {row.dtype}" if row.dtype else "")


def line(row: Row) -> str:
    """The row on one line, for progress."""
    times = ", ".join(f"{name} {cell(row, name)}" for name in contenders([row]))
    aim = f", aim {short(row.aim)}" if row.aim else ""
    head = f"{row.title}, {size_of(row)}, {row.work}: floor {short(row.floor)}{aim}"
    return f"{head}, {times or 'nothing timed'} [ms]" + (f"; {extras(row)}" if extras(row) else "")


def table(about: dict[str, Any], rows: Sequence[Row], details: bool = True) -> None:
    """The machine, one table a pass, how to read it; then what else rows say, or only their notes."""
    print(", ".join(f"{key} {value}" for key, value in about.items() if value is not None))
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print("\n".join(line(row) for row in rows))
        return
    console = Console() if sys.stdout.isatty() else Console(width=170)
    for work in PASSES:
        some = [row for row in rows if row.work == work]
        if not some:
            continue
        names, aimed, told = (
            contenders(some),
            any(row.aim for row in some),
            any(row.predicted for row in some),
        )
        grid = Table(title=f"{work}, milliseconds", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
        grid.add_column("rule")
        for name in (
            "n",
            "D",
            "attended pairs",
            "floor",
            *(["aim"] if aimed else []),
            *(["predicted"] if told else []),
            *names,
        ):
            grid.add_column(name, justify="right")
        for row in some:
            aim = [short(row.aim) if row.aim else "–"] if aimed else []
            aim += [short(row.predicted) if row.predicted else "–"] if told else []
            sizes = (f"{row.n:,}", str(row.head_dim), f"{row.needed:,}", short(row.floor))
            grid.add_row(
                row.title + (f", {row.dtype}" if row.dtype else ""),
                *sizes,
                *aim,
                *(cell(row, name) for name in names),
            )
        console.print(grid)
    print(
        "In brackets: lattend's distance from the floor; a peer's time over lattend's (above 1, lattend is\n"
        "faster), or over the floor where lattend was not run."
    )
    for row in rows:
        words = extras(row) if details else "; ".join(row.notes)
        if words:
            print(f"  {row.title}, {size_of(row)}, {row.work}: {words}")


# Charts

COLOURS = ("#0072b2", "#56b4e9")  # lattend's, then those of its peers
PEER_COLOURS = ("#e69f00", "#009e73", "#cc79a7", "#d55e00")
REFERENCE_COLOUR = "#8c959f"
BAR, GAP = 0.16, 0.15  # inches: a bar, the space between rules
WIDTH, ABOVE, BELOW = 9.8, 1.0, 0.6  # inches: the chart, its title and legend, its axis
BLANK = {"facecolor": "white", "edgecolor": "none", "pad": 0.2}  # no grid line through a number
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "lattend", "font.size": 8.5}


def chart(rows: Sequence[Row], about: dict[str, Any], title: str) -> Figure:
    """A group of bars a row, lattend's first, on a logarithmic scale, a mark at the floor."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    names = contenders(rows)
    mine, peers = [n for n in names if n.startswith(OURS)], [n for n in names if not n.startswith(OURS)]
    colours = dict(zip(mine, COLOURS, strict=False)) | dict(zip(peers, PEER_COLOURS, strict=False))
    colours[REFERENCE] = REFERENCE_COLOUR
    plot = sum(BAR * len(row.times) + GAP for row in rows)
    height = plot + ABOVE + BELOW
    figure = Figure((WIDTH, height))
    ax = figure.add_axes((0.24, BELOW / height, 0.68, plot / height))
    y, middles, floors = GAP / 2, [], []
    for row in rows:
        low = y
        for name in (name for name in names if name in row.times):
            bars = ax.barh(y, row.times[name], 0.86 * BAR, align="edge", color=colours[name], label=name)
            ax.bar_label(bars, [short(row.times[name])], padding=3, fontsize=7.5, bbox=BLANK)
            y += BAR
        middles.append((low + y) / 2)
        floors.append(ax.vlines(row.floor, low - 0.03, y + 0.01, "#1f2328", linewidth=1.5, label="floor"))
        y += GAP
    labels = [f"{row.title}\n{size_of(row)}" for row in rows]
    ax.set(xscale="log", ylim=(plot, 0), xlabel="milliseconds, logarithmic")
    ax.set_xlim(min(v for row in rows for v in (row.floor, *row.times.values())) / 1.5)
    ax.set_yticks(middles, labels)
    ax.xaxis.set_major_formatter("{x:,g}")
    ax.xaxis.set_minor_formatter(NullFormatter())  # a short axis has 4 × 10⁻¹ there
    ax.grid(axis="x", color="#c4cad1")
    ax.set_axisbelow(True)
    ax.tick_params(left=False)
    ax.spines[["top", "right", "left"]].set_visible(False)
    one_each = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    order = [*names, "floor"]
    figure.legend([one_each[n] for n in order], order, loc="upper left", ncols=6, frameon=False)
    device = about.get("device") if about.get("device") != "cpu" else about.get("cpu")
    under = f"{device}, {about.get('cores')} cores, torch {about.get('torch')}; shorter is faster"
    figure.text(0.01, 1 - 0.25 / height, title, size=12, weight="bold")
    figure.text(0.01, 1 - 0.45 / height, under, color="#656d76")
    figure.legends[0].set_bbox_to_anchor((0, 1 - 0.5 / height))
    return figure


def draw(path: str | Path, about: dict[str, Any], rows: Sequence[Row], title: str) -> list[Path]:
    """Writes one chart a pass, as PNG or SVG by the file's ending; the forward pass has the plain name."""
    import matplotlib as mpl

    written: list[Path] = []
    for work in PASSES:
        some = _one_a_rule([row for row in rows if row.work == work and row.times])
        if not some:
            continue
        end = "" if work == "forward" else "-" + work.replace(" ", "-")
        file = Path(path).with_stem(Path(path).stem + end)
        head = f"{title}: {work}"
        about_file = {"Title": head, "Date": None} if file.suffix == ".svg" else {"Title": head}
        with mpl.rc_context(STYLE):
            chart(some, about, head).savefig(file, dpi=200, metadata=about_file)
        written.append(file)
    return written


def _one_a_rule(rows: Sequence[Row]) -> list[Row]:
    """For each rule, head dimension and dtype the row with the most contenders, the largest n among those."""
    best: dict[tuple[str, int, str], Row] = {}
    for row in rows:
        key = (row.case, row.head_dim, row.dtype)
        if key not in best or (len(row.times), row.n) >= (len(best[key].times), best[key].n):
            best[key] = row
    return list(best.values())


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="the table and the chart of an earlier run")
    parser.add_argument("file", help="what --json wrote")
    parser.add_argument("--chart", metavar="FILE", help="draw the chart here: .svg or .png")
    args = parser.parse_args(argv)
    about, rows = load(args.file)
    table(about, rows)
    if args.chart:
        print("drawn:", *draw(args.chart, about, rows, "Attention under a rule"))


if __name__ == "__main__":
    main()
