"""Findings: how far heads are from the query, how near to a grid, and what several records agree on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError, NamingError, TensorError
from lattend.nn.attention.gaussian_heads import Floats, kernel_heads
from lattend.report.numbers import fixed, format_fixed, format_share
from lattend.report.report import Report
from lattend.report.table import Facts, Table
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.study.heads.record import HeadMoment, HeadSettings, Record

DRAWS = 199  # of random directions


@dataclass(frozen=True)
class GridFit:
    """Each head's tap (dy, dx), no tap twice, so that the sum of squared distances is the least there is.

    `distance` is their root mean square, in positions. `chance` is that of heads as far from the query in
    random directions, the median of 199 draws, and `nearer` the share of draws that come at least as near.
    """

    taps: tuple[tuple[float, float], ...]
    distance: float
    chance: float
    nearer: float


def grid_distance(centres: Sequence[Any] | Floats, dilation: int = 1) -> float:
    """The root mean square distance from K² centres to the taps of a K × K kernel, each to one of its own.

    >>> from lattend.nn.attention.gaussian_heads import kernel_heads
    >>> taps = [head.centre for head in kernel_heads(2)]  # (0, 0), (0, 1), (1, 0), (1, 1)
    >>> grid_distance([(y + 0.3, x - 0.4) for y, x in reversed(taps)])  # each is √(0.3² + 0.4²) off
    0.5
    """
    places, taps = _places(centres, dilation)
    return _distance(places, taps)


def fit_grid(centres: Sequence[Any] | Floats, dilation: int = 1, seed: int = 0) -> GridFit:
    """The taps of a K × K kernel assigned to K² centres, how far these are, and how far by chance.

    >>> fit = fit_grid([(0.1, 0), (0, 1), (1, 0), (1, 1)])
    >>> fit.taps, fit.distance  # √(0.1²/4)
    (((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)), 0.05)
    """
    places, taps = _places(centres, dilation)
    own = assign(_squares(places, taps))
    distance = _distance(places, taps)
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, (DRAWS, len(places)))
    radii = np.hypot(*places.T)
    drawn = np.stack([radii * np.sin(angles), radii * np.cos(angles)], -1)
    chances = np.array([_distance(one, taps) for one in drawn])
    return GridFit(
        tuple((float(y), float(x)) for y, x in taps[own]),
        distance,
        float(np.median(chances)),
        float((chances <= distance).mean()),
    )


def assign(costs: Floats) -> NDArray[np.int64]:
    """The column of each row, no column twice, with the least sum of costs [n, n] (Kuhn and Munkres).

    Rows are added one by one; each takes the cheapest chain of changes, found as a shortest path in costs
    that the potentials of rows and columns keep from being negative.

    >>> assign(np.array([[1.0, 2.0], [0.0, 3.0]])).tolist()  # 2 + 0 beats 1 + 3
    [1, 0]
    """
    n = len(costs)
    row_of = np.full(n + 1, -1)  # of each column; the last column stands for the row that is added
    rows, columns = np.zeros(n), np.zeros(n + 1)  # potentials
    for added in range(n):
        row_of[n], column = added, n
        far, before, done = np.full(n, np.inf), np.full(n, n), np.zeros(n + 1, bool)
        while row_of[column] >= 0:
            done[column] = True
            row = row_of[column]
            reduced = costs[row] - rows[row] - columns[:n]
            closer = (reduced < far) & ~done[:n]
            far[closer], before[closer] = reduced[closer], column
            following = int(np.argmin(np.where(done[:n], np.inf, far)))
            step = far[following]
            rows[row_of[done]] += step
            columns[done] -= step
            far[~done[:n]] -= step
            column = following
        while column != n:
            row_of[column], column = row_of[before[column]], before[column]
    column_of = np.empty(n, np.int64)
    column_of[row_of[:n]] = np.arange(n)
    return column_of


def _places(centres: Sequence[Any] | Floats, dilation: int) -> tuple[Floats, Floats]:
    """The centres [K², 2] and the taps of the kernel that has as many."""
    places = np.asarray(centres, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != 2:
        raise TensorError(f"centres are [heads, 2], got {list(places.shape)}")
    if not np.isfinite(places).all():
        raise DomainError("centres must be finite")
    side = round(len(places) ** 0.5)
    if side * side != len(places) or not side:
        raise DomainError(f"a K × K grid has K² heads, as 4 or 9, not {len(places)}")
    return places, np.array([head.centre for head in kernel_heads(side, dilation)], dtype=np.float64)


def _squares(places: Floats, taps: Floats) -> Floats:
    return np.square(places[:, None] - taps).sum(-1)


def _distance(places: Floats, taps: Floats) -> float:
    squares = _squares(places, taps)
    return float(np.sqrt(squares[np.arange(len(places)), assign(squares)].mean()))


RARE = 0.05  # a share of draws below which it is no chance
OFF = (math.sqrt(2) + math.asinh(1)) / 6  # mean distance of a random place from the nearest pixel, 0.38
HEAD = ("layer", "centres", "moved", "width", "off pixel", "grid", "by chance")
CONTROL_HEAD = ("layer", "centres", "width", "grid", "attends at", "trained")


@dataclass(frozen=True)
class Measures:
    """Numbers of each layer at one moment."""

    centres: Floats
    width: Floats
    attends: Floats
    grid: Floats
    off: Floats

    @staticmethod
    def of(moment: HeadMoment, record: Record) -> Measures:
        settings = record.settings
        attends = moment.attention_distances(settings.rows, settings.cols)
        near = moment.grid_distances(), moment.pixel_distances()
        return Measures(moment.centre_distances(), moment.widths(), attends, *near)

    def table(self) -> Table:
        """A row for each layer."""
        columns = (self.centres, self.width, self.attends, self.grid, self.off)
        rows = [
            (str(layer + 1), *(format_fixed(float(column[layer])) for column in columns))
            for layer in range(len(self.centres))
        ]
        return Table(("layer", "centres", "width", "attends at", "grid", "off pixel"), rows)

    def json(self, layer: int) -> dict[str, float]:
        return {
            "centre_distance": float(self.centres[layer]),
            "width": float(self.width[layer]),
            "attention_distance": float(self.attends[layer]),
            "grid_distance": float(self.grid[layer]),
            "pixel_distance": float(self.off[layer]),
        }


class Findings:
    """The first and the last moment compared, layer by layer."""

    def __init__(self, record: Record) -> None:
        self.record = record
        moments = record.trained.moments
        self.start, self.end = (Measures.of(moment, record) for moment in (moments[0], moments[-1]))
        control = record.control
        self.control = None if control is None else Measures.of(control.moments[-1], record)
        steps = moments[-1].centres - moments[0].centres
        self.moved = np.hypot(steps[..., 0], steps[..., 1]).mean(-1)

    @cached_property
    def fits(self) -> list[GridFit]:
        return [fit_grid(layer) for layer in self.record.trained.moments[-1].centres]

    @property
    def accuracy(self) -> dict[str, float]:
        """The test accuracy of each run after its last epoch."""
        return {name: run.epochs[-1].accuracy for name, run in self.record.runs.items() if run.epochs}

    @property
    def gains(self) -> Floats:
        """How much farther from the query the centres of each layer end than they began."""
        return self.end.centres - self.start.centres

    def rises(self) -> bool:
        """Whether every layer gains more distance than the one before."""
        return bool((np.diff(self.gains) > 0).all())

    def depth(self) -> str:
        """Whether low layers stay near the query and high layers move away."""
        ends = [
            f"{_two(end)} from the query and began at {_two(start)}"
            for start, end in zip(self.start.centres, self.end.centres, strict=True)
        ]
        if len(ends) == 1:
            return f"Centres end {ends[0]}."
        sentence = f"Centres of layer 1 end {ends[0]}; those of layer {len(ends)} {ends[-1]}. "
        if self.rises():
            return f"{sentence}Every layer gains more than the one before."
        if self.gains[-1] > self.gains[0]:
            return (
                f"{sentence}The last gains more than the first, but not every layer more than the one before."
            )
        return f"{sentence}Later layers do not gain more."

    def nearness(self) -> str:
        """Whether heads come nearer to the grid of a convolution."""
        kernel = self.record.settings.kernel
        nearer = [
            at for at, (a, b) in enumerate(zip(self.start.grid, self.end.grid, strict=True), 1) if b < a
        ]
        beyond = [at for at, fit in enumerate(self.fits, 1) if fit.nearer < RARE]
        return (
            f"{_layers(nearer)} nearer to a {kernel} × {kernel} grid than at first. {_layers(beyond)} nearer "
            "than 19 of 20 draws of heads as far from the query in random directions."
        )

    def wholeness(self) -> str:
        """The layer whose heads come nearest to single pixels, in a sentence."""
        least = int(np.argmin(self.end.off))
        off = f"{_two(self.end.off[least])} off; they began at {_two(self.start.off[least])}"
        return f"Centres of layer {least + 1} end nearest to single pixels, {off}, and chance is {_two(OFF)}."


def summary(findings: Findings) -> dict[str, Any]:
    """The numbers of the report."""
    layers = [
        {
            "layer": at + 1,
            "start": findings.start.json(at),
            "end": findings.end.json(at),
            "control": None if findings.control is None else findings.control.json(at),
            "moved": float(findings.moved[at]),
            "grid_by_chance": fit.chance,
            "grid_nearer_by_chance": fit.nearer,
        }
        for at, fit in enumerate(findings.fits)
    ]
    seconds = {name: run.epochs[-1].seconds for name, run in findings.record.runs.items() if run.epochs}
    sentences = {"depth": findings.depth(), "grid": findings.nearness(), "pixels": findings.wholeness()}
    return {"layers": layers, "accuracy": findings.accuracy, "seconds": seconds, "findings": sentences}


def report(record: Record) -> Report:
    """Facts, a table with a row for each layer, the control's, and what follows."""
    results, settings = record.findings, record.settings
    rows = [
        (
            str(at + 1),
            _change(results.start.centres[at], results.end.centres[at]),
            _two(results.moved[at]),
            _change(results.start.width[at], results.end.width[at]),
            _change(results.start.off[at], results.end.off[at]),
            _change(results.start.grid[at], results.end.grid[at]),
            _two(fit.chance),
        )
        for at, fit in enumerate(results.fits)
    ]
    parts: list[Any] = [Facts(_facts(results)), Table(HEAD, rows)]
    if results.control is not None:
        control = [
            (
                str(at + 1),
                _two(results.control.centres[at]),
                _change(results.start.width[at], results.control.width[at]),
                _two(results.control.grid[at]),
                _change(results.start.attends[at], results.control.attends[at]),
                _change(results.start.attends[at], results.end.attends[at]),
            )
            for at in range(settings.layers)
        ]
        parts += ["", "Control, random centres held fixed, and how far the trained heads attend:"]
        parts += [Table(CONTROL_HEAD, control)]
    parts += ["", results.depth(), results.nearness(), results.wholeness(), Facts(words_of(settings))]
    title = f"Heads in training on {settings.data}, after {many(len(record.trained.epochs), 'epoch')}"
    return Report(title, parts, {"settings": asdict(settings), **summary(results)})


def _facts(findings: Findings) -> list[tuple[str, str]]:
    record, settings = findings.record, findings.record.settings
    images = f"{settings.train_images:,} images to train on, {settings.test_images:,} to test"
    net = f"{many(settings.layers, 'layer')} of {settings.kernel**2} heads, {record.parameters:,} parameters"
    facts = [
        ("images", f"{images}; {settings.rows} × {settings.cols} positions"),
        ("network", f"{net}, seed {settings.seed}"),
    ]
    for name, right in findings.accuracy.items():
        error = math.sqrt(right * (1 - right) / settings.test_images)
        held = ", centres held fixed" if name == "control" else ""
        facts.append(
            (name, f"{format_share(right)} ± {fixed(100 * error, 1)} right of the test images{held}")
        )
    seconds = sum(run.epochs[-1].seconds for run in record.runs.values() if run.epochs)
    facts.append(("time", f"{format_fixed(seconds, 0)} s on {settings.device}"))
    return facts


def words_of(settings: HeadSettings) -> list[tuple[str, str]]:
    """The meaning of each column."""
    patch, kernel = settings.patch, settings.kernel
    unit = "pixels" if patch == 1 else f"patches of {patch} × {patch} pixels"
    return [
        ("centres", f"how far from the query, mean over the heads, in {unit}"),
        ("moved", "how far a centre ends from where it began, mean"),
        ("width", "standard deviation of a head, median"),
        ("attends at", "distance of keys by their weights, root mean square, edges included"),
        ("off pixel", f"distance of a centre from the nearest position, mean; by chance {_two(OFF)}"),
        ("grid", f"distance from the taps of a {kernel} × {kernel} kernel, root mean square"),
        ("by chance", "the same for heads as far away in random directions, median"),
    ]


def _two(number: float) -> str:
    return format_fixed(float(number))


def _change(start: float, end: float) -> str:
    return f"{_two(start)} → {_two(end)}"


def _layers(numbers: Sequence[int]) -> str:
    """`No layer ends`, `Layer 2 ends`, `Layers 1 and 3 end`."""
    if not numbers:
        return "No layer ends"
    if len(numbers) == 1:
        return f"Layer {numbers[0]} ends"
    listed = ", ".join(map(str, numbers[:-1]))
    return f"Layers {listed} and {numbers[-1]} end"


# Each column of the table, and the numbers by layer that stand in it
COLUMNS: dict[str, Callable[[Findings], Floats]] = {
    "began": lambda findings: findings.start.centres,
    "centres": lambda findings: findings.end.centres,
    "moved": lambda findings: findings.moved,
    "width": lambda findings: findings.end.width,
    "off pixel": lambda findings: findings.end.off,
    "grid": lambda findings: findings.end.grid,
}


def compare_records(records: Sequence[Record]) -> Report:
    """From the least to the greatest of each number, and how many records say the same."""
    _check_alike(records)
    all_findings, settings = [record.findings for record in records], records[0].settings
    rows = [
        (
            str(layer + 1),
            *(_range([float(of(one)[layer]) for one in all_findings]) for of in COLUMNS.values()),
        )
        for layer in range(settings.layers)
    ]
    seeds = ", ".join(str(record.settings.seed) for record in records)
    facts = [("seeds", seeds)]
    for name in records[0].runs:
        shares = sorted(one.accuracy[name] for one in all_findings)
        held = ", centres held fixed" if name == "control" else ""
        facts.append((name, f"{format_share(shares[0])} to {format_share(shares[-1])} right{held}"))
    title = f"Heads in training on {settings.data}, {many(settings.epochs, 'epoch')}: {len(records)} records"
    sentences = _findings(all_findings)
    words = [(name, meaning) for name, meaning in words_of(settings) if name in COLUMNS]
    data = {
        "settings": [asdict(record.settings) for record in records],
        "records": [record.summary() for record in records],
        "findings": sentences,
    }
    parts = [Facts(facts), Table(("layer", *COLUMNS), rows), "", *sentences, Facts(words)]
    return Report(title, parts, data)


def _findings(all_findings: Sequence[Findings]) -> list[str]:
    total = len(all_findings)
    rising = sum(one.rises() for one in all_findings)
    farther = sum(bool(one.gains[-1] > one.gains[0]) for one in all_findings)
    layers = [
        (start, end) for one in all_findings for start, end in zip(one.start.grid, one.end.grid, strict=True)
    ]
    nearer = sum(bool(end < start) for start, end in layers)
    fits = [fit for one in all_findings for fit in one.fits]
    rare = sum(fit.nearer < RARE for fit in fits)
    return [
        f"The last layer's centres gain more distance from the query than the first's in {farther} of "
        f"{total} records, and every layer gains more than the one before in {rising}.",
        f"Of {len(layers)} layers {nearer} end nearer to the grid than they began, and {rare} nearer than "
        "19 of 20 draws of heads as far from the query in random directions.",
    ]


def _check_alike(records: Sequence[Record]) -> None:
    """Raises where records differ in more than their seeds."""
    first = asdict(records[0].settings)
    for record in records[1:]:
        for name, value in asdict(record.settings).items():
            if name not in ("seed", "device") and value != first[name]:
                raise NamingError(
                    f"records are compared where they differ in their seeds alone, and {name} is "
                    f"{first[name]} and {value}; show them one by one"
                )
        if record.runs.keys() != records[0].runs.keys():
            raise NamingError("some of these records have a control and some have none; show them one by one")


def _range(numbers: Sequence[float]) -> str:
    low, high = format_fixed(min(numbers)), format_fixed(max(numbers))
    return low if low == high else f"{low}–{high}"
