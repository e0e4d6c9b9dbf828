"""measure: gradient size against distance for several networks, as they start and after training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lattend.draw.charts.chart import Chart, curves
from lattend.draw.picture import Picture
from lattend.errors import DomainError
from lattend.report.numbers import fixed, format_number, format_share
from lattend.report.report import Printed, Report
from lattend.report.shown import Drawn
from lattend.report.table import Facts, Table
from lattend.rules.rule import check_integer
from lattend.seeds import check_seed
from lattend.study.figures import figure
from lattend.study.gradients.claims import GROWING, MOST_SEEDS, VANISHING, ConfidenceInterval, factor
from lattend.study.gradients.networks import INITIAL, KINDS, SYMBOLS, TRAINED, Recall, named_kinds
from lattend.study.training import one_thread
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.study.gradients.claims import GradientVerdict

LENGTH, WIDTH, SEEDS, STEPS = 33, 32, 3, 150
LONGEST, WIDEST, MOST_STEPS = 513, 256, 100_000


@dataclass(frozen=True)
class Gradients:
    """‖∂y_T/∂x_{T−d}‖ of one network at one stage [seeds, distances], and its accuracy at recall [seeds]."""

    JSON = "network stage trend factor accuracy sizes"

    network: str
    stage: str
    sizes: NDArray[np.float64]
    accuracy: NDArray[np.float64]

    @property
    def factor(self) -> ConfidenceInterval | None:
        """By what the size is multiplied at every step of distance, with a 95% interval over seeds."""
        return factor(self.sizes)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The geometric mean over seeds at each distance; 0 where one of them is."""
        with np.errstate(divide="ignore"):
            return np.exp(np.log(self.sizes).mean(axis=0))

    @property
    def trend(self) -> str:
        """`vanishes`, `grows`, `stays`, or `undecided` where the interval leaves it open."""
        interval = self.factor
        if interval is None:
            return "undecided"
        if interval.high < VANISHING:
            return "vanishes"
        if interval.low > GROWING:
            return "grows"
        return "stays" if interval.low >= VANISHING and interval.high <= GROWING else "undecided"


def measure(
    networks: Sequence[str] = (),
    length: int = LENGTH,
    width: int = WIDTH,
    seeds: int = SEEDS,
    steps: int = STEPS,
    seed: int = 0,
    progress: Callable[[str], object] | None = None,
) -> GradientStudy:
    """How the last output's gradient depends on the distance of an input, for `networks` or all five.

    Each network reads `length` vectors of `width` numbers and gives y_T at the last one. The size of its
    Jacobian in the input d positions before is exact, by autograd in float64, its root mean square over eight
    random sequences; this for so many `seeds`, from `seed` on, as torch initialises the network, and after
    `steps` steps of Adam on recall: name the first symbol at the end. `progress` hears how far it is.

    >>> found = measure(["attention"], steps=0)
    >>> found["attention"].trend
    'stays'
    """
    kinds = named_kinds([networks] if isinstance(networks, str) else networks)
    for name, value, least, most in (
        ("length", length, 3, LONGEST),
        ("width", width, 1, WIDEST),
        ("seeds", seeds, 2, MOST_SEEDS),
        ("steps", steps, 0, MOST_STEPS),
    ):
        check_integer(name, value)
        if not least <= value <= most:
            raise DomainError(f"{name} is {value:,}; give a whole number from {least} to {most:,}")
    first = check_seed(seed)
    tell = progress or (lambda task_name: None)
    results: list[Gradients] = []
    with one_thread():
        for name, kind in kinds.items():
            stages: dict[str, list[Any]] = {INITIAL: [], **({TRAINED: []} if steps else {})}
            for at in range(seeds):
                net = Recall(kind, width, length, first + at)
                stages[INITIAL].append(net.measure())
                if steps:
                    task_name = f"{name}, seed {first + at}"
                    net.train_for(
                        steps,
                        lambda step, loss, task_name=task_name: tell(
                            f"{task_name}: step {step}, loss {fixed(loss, 3)}"
                        ),
                    )
                    stages[TRAINED].append(net.measure())
            results += [
                Gradients(
                    name,
                    stage,
                    np.array([one.sizes.numpy() for one in measured]),
                    np.array([one.accuracy for one in measured]),
                )
                for stage, measured in stages.items()
            ]
    return GradientStudy(tuple(results), length, width, seeds, steps, first)


@dataclass(frozen=True, eq=False, repr=False)
class GradientStudy(Drawn, Printed):
    """Gradients of several networks by distance; `[name]` as they start, `[name, "after training"]`."""

    JSON = "length width seeds steps seed networks=found"

    found: tuple[Gradients, ...]
    length: int
    width: int
    seeds: int
    steps: int
    seed: int

    def __getitem__(self, which: str | tuple[str, str]) -> Gradients:
        name, stage = (which, INITIAL) if isinstance(which, str) else which
        for one in self.found:
            if (one.network, one.stage) == (name, stage):
                return one
        raise KeyError(f"{name} {stage}")

    @property
    def distances(self) -> list[int]:
        """Those in the table: powers of 2, and the greatest."""
        greatest = self.length - 1
        powers = [2**power for power in range(greatest.bit_length()) if 2**power < greatest]
        return [*powers, greatest]

    def claim(self, text: str) -> GradientVerdict:
        """Whether a claim such as "rnn vanishes" or "rnn < attention at 32" holds.

        >>> bool(measure(["rnn"], length=9, steps=0).claim("rnn vanishes"))
        True
        """
        from lattend.study.gradients.claims import judge

        return judge(self, text)

    def report(self) -> Report:
        """How each network's gradient fades, what that shows and does not show, and the sizes in a table."""
        about = [(one.network, self._about(one)) for one in self.found if one.stage == INITIAL]
        return Report(
            "Gradient size against distance",
            [
                f"‖∂y_T/∂x_(T−d)‖ by distance d: {many(self.length, 'input')} of {self.width} numbers, "
                f"geometric mean over {many(self.seeds, 'seed')}.",
                Facts([*about, *self._words()]),
                Table(("network", *(f"d = {d}" for d in self.distances)), [*map(self._sizes, self.found)]),
            ],
            self.json(),
        )

    def _about(self, one: Gradients) -> str:
        """`an RNN with tanh: 0.478 (0.422 to 0.541) per step, vanishes; trained 0.460 …, recalls 25%`."""
        fades = "" if one.factor is None else f": {one.factor} per step, {one.trend}"
        if not self.steps:
            return f"{KINDS[one.network].about}{fades}"
        after = self[one.network, TRAINED]
        trained = "" if after.factor is None else f" {after.factor}, {after.trend},"
        return f"{KINDS[one.network].about}{fades}; trained{trained} recalls {_share(after)}"

    def _sizes(self, one: Gradients) -> tuple[str, ...]:
        name = one.network if one.stage == INITIAL else f"{one.network}, trained"
        return name, *(format_number(float(one.mean[d]), 2) for d in self.distances)

    def _words(self) -> list[tuple[str, str]]:
        """The meaning of the columns, and what they do not show."""
        facts = [
            ("per step", "factor from distance to distance, fitted to log size; 95% interval over seeds"),
            (
                "trend",
                f"vanishes: the whole interval below {VANISHING}; grows: above {GROWING}; stays: between",
            ),
        ]
        if self.steps:
            task = f"share of first symbols, of {SYMBOLS} kinds, named at the end"
            after = f"after {many(self.steps, 'step')} of Adam; chance is {format_share(1 / SYMBOLS, 0)}"
            facts.append(("recalls", f"{task} {after}"))
        reaches = "how strongly an error at the end reaches an input: how fast a link over d can be learnt"
        help_it = "that training must fail: a better start, gates, residual paths or more steps may help"
        return [*facts, ("shows", reaches), ("shows not", help_it)]

    def draw(self) -> Picture:
        """Size against distance on a logarithmic scale, a line a network; after training beside it."""
        return figure_of_gradients(self)

    __repr__ = Printed.__str__


def _share(one: Gradients) -> str:
    """The mean share of first symbols that are named."""
    return format_share(float(one.accuracy.mean()), 0)


def figure_of_gradients(study: GradientStudy) -> Picture:
    """The report with a chart for each stage, both between the same ends; sizes of 0 are left out."""
    lines = {
        stage: [
            (one.network, [(float(d), float(size)) for d, size in enumerate(one.mean) if size > 0])
            for one in study.found
            if one.stage == stage
        ]
        for stage in (INITIAL, TRAINED)
    }
    titles = {INITIAL: "At initialisation", TRAINED: f"After {many(study.steps, 'step')} of training"}
    every = [
        Chart(lines=curves(curves_shown), log_y=10).ends()[1]
        for curves_shown in lines.values()
        if curves_shown
    ]
    ends = min(low for low, _ in every), max(high for _, high in every)
    charts = tuple(
        Chart(
            titles[stage], "distance d", "size of the gradient", curves(curves_shown), log_y=10, y=ends,
            x=(0.0, study.length - 1.0),
        )
        for stage, curves_shown in lines.items()
        if curves_shown
    )  # fmt: skip
    return figure(study.report(), charts)
