"""Modes: data on a ring of Gaussians, which of its modes a GAN's samples cover, and pictures of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.draw.charts.chart import Chart, Dots, Scale, Stroke, curves
from lattend.draw.formats.palette import AMOUNTS
from lattend.draw.grid.panel import Panel, Side, cell_side
from lattend.draw.picture import Picture
from lattend.errors import DomainError
from lattend.report.numbers import format_share, significant
from lattend.report.shown import Drawn
from lattend.study.exact.writing import format_exact

Samples = NDArray[np.floating[Any]]

NEAR = 3.0  # widths from a centre within which a sample belongs to its mode
SHARE = 0.25  # of the fair share of samples that a covered mode has at least
DRAWN = 400  # samples in a picture
MOMENTS = 5  # pictures of one run


@dataclass(frozen=True)
class Ring:
    """The data, `modes` Gaussians of this width around a circle, and the sizes of nets, noise and batches."""

    modes: int = 8
    radius: float = 1.0
    width: float = 0.1
    noise: int = 2
    hidden: int = 32
    layers: int = 2
    batch: int = 128
    step: float = 0.1

    def __post_init__(self) -> None:
        for name in ("modes", "noise", "hidden", "layers", "batch"):
            if not (isinstance(number := getattr(self, name), int) and number >= 1):
                raise DomainError(f"a ring's {name} must be a whole number from 1 on, got {number!r}")
        for name in ("radius", "width"):
            if not (isinstance(number := getattr(self, name), int | float) and 0 < number < math.inf):
                raise DomainError(f"a ring's {name} must be a number above 0, got {number!r}")

    def centres(self) -> list[tuple[float, float]]:
        """The centre of each mode, from the right anticlockwise."""
        turns = (2 * math.pi * mode / self.modes for mode in range(self.modes))
        return [(self.radius * math.cos(turn), self.radius * math.sin(turn)) for turn in turns]

    def judge(self, step: int, samples: Samples) -> Moment:
        """How the samples fall on the modes: each belongs to the nearest, if that is within 3 widths."""
        far = np.linalg.norm(samples[:, None] - np.array(self.centres()), axis=2)
        nearest, near = far.argmin(axis=1), far.min(axis=1) < NEAR * self.width
        counts = np.bincount(nearest[near], minlength=self.modes)
        shares = tuple(float(count) / len(samples) for count in counts)
        return Moment(step, shares, tuple(map(tuple, samples[:DRAWN].tolist())))


@dataclass(frozen=True)
class Moment:
    """After this step: which share of all samples each mode has, and some of the samples."""

    step: int
    shares: tuple[float, ...]
    samples: tuple[tuple[float, ...], ...]

    @property
    def covered(self) -> int:
        """Modes with a quarter of their fair share or more: of 8 modes, 1/32 of all samples."""
        return sum(share >= SHARE / len(self.shares) for share in self.shares)

    @property
    def near(self) -> float:
        """The share of samples that belong to a mode."""
        return sum(self.shares)

    def __repr__(self) -> str:
        near = format_share(self.near, 0)
        return f"<Moment step {self.step}: {self.covered} of {len(self.shares)} modes, {near} near>"


@dataclass(frozen=True, eq=False)
class RingRun(Drawn):
    """One training: what was seen at each look. `moments` end early where numbers left for infinity."""

    ring: Ring
    method: str
    step: tuple[Any, Any]
    steps: int
    seed: int
    moments: tuple[Moment, ...]
    seconds: float

    @property
    def covered_from(self) -> int | None:
        """The step from which on all modes stay covered, for a tenth of the run or more; else None."""
        first_step = None
        for moment in self.moments:
            if moment.covered < self.ring.modes:
                first_step = None
            elif first_step is None:
                first_step = moment.step
        stays = self.finished and first_step is not None and first_step <= 0.9 * self.steps
        return first_step if stays else None

    @property
    def finished(self) -> bool:
        """Whether training went on to its last step."""
        return bool(self.moments) and self.moments[-1].step == self.steps

    def sentence(self) -> str:
        """The outcome in words."""
        if not self.finished:
            last = self.moments[-1].step if self.moments else 0
            return f"left for infinity after step {last:,}"
        end = self.moments[-1]
        near = format_share(end.near, 0)
        coverage = f"{end.covered} of {self.ring.modes} modes at the end, {near} of samples on them"
        if self.covered_from is not None:
            return f"{coverage}; all from step {self.covered_from:,} on"
        return f"{coverage}; {min_max(self)}"

    def draw(self) -> Picture:
        """The samples over time, and the modes they cover."""
        return draw_runs([self])

    def json(self) -> dict[str, Any]:
        """The run as plain data, without the samples."""
        return {
            "method": self.method,
            "step": [format_exact(h) for h in self.step],
            "steps": self.steps,
            "seed": self.seed,
            "seconds": round(self.seconds, 2),
            "finished": self.finished,
            "covered": [[moment.step, moment.covered] for moment in self.moments],
            "near": [[moment.step, round(moment.near, 4)] for moment in self.moments],
            "shares": [round(share, 4) for share in self.moments[-1].shares] if self.moments else [],
            "covered_from": self.covered_from,
        }

    def __str__(self) -> str:
        return self.draw().terminal(colour=False)

    def __repr__(self) -> str:
        return f"<RingRun {self.method}, seed {self.seed}: {self.sentence()}>"


def min_max(run: RingRun) -> str:
    """How the number of covered modes went in the second half."""
    counts = [moment.covered for moment in run.moments if 2 * moment.step >= run.steps]
    return f"{min(counts)} to {max(counts)} in the second half"


def draw_runs(runs: Sequence[RingRun]) -> Picture:
    """The modes' shares over time, how many are covered, and samples of each method's first run."""
    if not runs or not all(run.moments for run in runs):
        raise DomainError("a picture of runs needs one or more that were looked at")
    methods: dict[str, list[RingRun]] = {}
    for run in runs:
        methods.setdefault(run.method, []).append(run)
    firsts = [of_method[0] for of_method in methods.values()]
    ring = runs[0].ring
    scale = Scale(
        "share of the samples", 0.0, 2.0 / ring.modes, most=f"{significant(2 / ring.modes, 3)} or more"
    )
    judged = (
        f"a sample within {NEAR:g} widths of a centre is on its mode; a mode is covered with {SHARE:.0%} of "
        f"its fair share, {SHARE / ring.modes:.1%} of all samples"
    )
    return Picture(
        f"A GAN on a ring of {ring.modes} Gaussians",
        tuple(_over_time(run, scale) for run in firsts),
        (judged,),
        (f"{runs[0].steps:,} steps; maps and samples of seed {firsts[0].seed}",),
        facts=tuple((name, _outcome(of_method)) for name, of_method in methods.items()),
        scales=(scale,),
        charts=(_coverage(methods), *(chart for run in firsts for chart in _snapshots(run))),
        columns=MOMENTS,
        grid=240.0,
        data={"ring": asdict(ring), "runs": [run.json() for run in runs]},
    )


def _outcome(runs: Sequence[RingRun]) -> str:
    """The outcome of one method, seed by seed."""
    if len(runs) == 1:
        return f"seed {runs[0].seed}: {runs[0].sentence()}"
    seeds = ", ".join(str(run.seed) for run in runs)
    ends = ", ".join(str(run.moments[-1].covered) if run.finished else "lost" for run in runs)
    near = ", ".join(format_share(run.moments[-1].near, 0) for run in runs)
    kept = [f"{run.covered_from:,}" for run in runs if run.covered_from is not None]
    since = f", from step {', '.join(kept)} on" if kept else ""
    return (
        f"seeds {seeds}: {ends} modes at the end, {near} of samples on them; "
        f"all stay covered in {len(kept)} of {len(runs)} runs{since}"
    )


def _over_time(run: RingRun, scale: Scale) -> Panel:
    """A row a mode, a column a look, coloured by the mode's share of the samples."""
    shares = np.array([moment.shares for moment in run.moments]).T
    cols = shares.shape[1]
    ticks = [
        (at + 0.5, f"{run.moments[at].step:,}")
        for at in sorted({round(part * (cols - 1) / 4) for part in range(5)})
    ]
    rows = cell_side("mode", run.ring.modes)
    return Panel(scale.cells(shares), AMOUNTS, rows, Side("step", cols, tuple(ticks)), _short(run))


def _snapshots(run: RingRun) -> list[Chart]:
    last = len(run.moments) - 1
    places = sorted({round(last * (part / (MOMENTS - 1)) ** 2) for part in range(MOMENTS)})
    return [_snapshot(run, run.moments[place]) for place in places]


def _snapshot(run: RingRun, moment: Moment) -> Chart:
    ring = run.ring
    ends = (-1.6 * ring.radius, 1.6 * ring.radius)
    circles = tuple(
        Stroke(_circle(centre, NEAR * ring.width), "a mode", "#7d8590", 1.0, under=True)
        for centre in ring.centres()
    )
    dots = Dots(moment.samples, "a sample", "#0072b2", 1.4, opacity=0.55)
    title = (
        f"step {moment.step:,}: {moment.covered} mode{'' if moment.covered == 1 else 's'}"
        if moment.step
        else _short(run)
    )
    return Chart(title, "", "", circles, (dots,), x=ends, y=ends, equal=True, size=(132.0, 132.0))


def _short(run: RingRun) -> str:
    return run.method.partition(",")[0]


def _circle(centre: tuple[float, float], radius: float) -> tuple[tuple[float, float], ...]:
    turns = [2 * math.pi * corner / 32 for corner in range(33)]
    return tuple((centre[0] + radius * math.cos(turn), centre[1] + radius * math.sin(turn)) for turn in turns)


def _coverage(methods: Mapping[str, Sequence[RingRun]]) -> Chart:
    """How many modes each method covers, the mean over its seeds."""
    steps = max((run.moments for runs in methods.values() for run in runs), key=len)
    lines = [
        (_short(runs[0]), [(float(moment.step), _mean(runs, at)) for at, moment in enumerate(steps)])
        for runs in methods.values()
    ]
    seeds = max(map(len, methods.values()))
    up = f"modes, mean of {seeds} seeds" if seeds > 1 else "modes"
    return Chart("Modes covered", "step", up, curves(lines))


def _mean(runs: Sequence[RingRun], at: int) -> float:
    """The mean of covered modes at this look; a run that is lost covers none."""
    return sum(run.moments[at].covered if at < len(run.moments) else 0 for run in runs) / len(runs)
