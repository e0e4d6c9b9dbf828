"""Record: where every head was while a network learned, beside a control, and what that says."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field, fields
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.errors import DomainError, LattendError, NamingError
from lattend.nn.attention.gaussian_heads import Floats, Head, isotropic
from lattend.report.data import Data
from lattend.report.numbers import format_fixed, format_share, significant
from lattend.report.report import Printed, Report
from lattend.report.shown import Drawn
from lattend.study.heads.findings import grid_distance

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.study.heads.findings import Findings

KIND = "heads in training"
TRAINED, CONTROL = "trained", "control"
DIGITS = 6  # of a recorded number
MOST = 1000  # moments of a run, positions along a side, layers
KINDS: dict[str, Any] = {"int": int, "float": (int, float), "str": str}
FLATTEST = 1e-12  # α below which a head counts as flat, as wide as it is drawn at most


@dataclass(frozen=True)
class HeadSettings:
    """The data and settings of a training; positions are `patch` × `patch` pixels."""

    data: str
    train_images: int
    test_images: int
    channels: int
    classes: int
    rows: int
    cols: int
    patch: int
    kernel: int
    layers: int
    width: int
    epochs: int
    batch: int
    rate: float
    centre_rate: float
    decay: float
    spread: float
    seed: int
    device: str


@dataclass(frozen=True, eq=False)
class HeadMoment(Data):
    """All heads after so many epochs: centres [layers, heads, 2] as (dy, dx), and α [layers, heads]."""

    JSON = "epoch centres alpha"

    epoch: float
    centres: Floats
    alpha: Floats

    @staticmethod
    def of(epoch: float, centres: Any, alpha: Any) -> HeadMoment:
        """With six digits of each number, which are what a record keeps."""
        return HeadMoment(epoch, _short(centres), np.maximum(_short(alpha), FLATTEST))

    def heads(self) -> dict[str, list[Head]]:
        """By layer, the first nearest to the image."""
        return {
            name: [
                isotropic((y, x), alpha)
                for (y, x), alpha in zip(layer["centres"], layer["alpha"], strict=True)
            ]
            for name, layer in self.layers().items()
        }

    def centre_distances(self) -> Floats:
        """How far centres are from the query, the mean over the heads of each layer."""
        return np.hypot(self.centres[..., 0], self.centres[..., 1]).mean(-1)

    def half_radii(self) -> Floats:
        """The radius around each centre inside which half of the head's Gaussian lies, [layers, heads]."""
        return np.sqrt(math.log(2) / self.alpha)

    def widths(self) -> Floats:
        """The standard deviation 1/√(2α) of a head, the median of each layer: a few are all but flat."""
        return np.median(1 / np.sqrt(2 * self.alpha), -1)

    def attention_distances(self, rows: int, cols: int) -> Floats:
        """How far from its query a head attends on such an image, edges included: root mean square.

        Over keys by their weights, all queries and the heads of a layer. ‖δ‖² = dy² + dx², and the weights
        are a product too, so that each axis is summed alone.
        """
        return np.sqrt((self._squares(rows, 0) + self._squares(cols, 1)).mean(-1))

    def _squares(self, size: int, axis: int) -> Floats:
        """The mean of dy², or of dx², over keys and queries: [layers, heads]."""
        shift = np.arange(size) - np.arange(size)[:, None]
        scores = -self.alpha[..., None, None] * (shift - self.centres[..., axis, None, None]) ** 2
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return ((weights * shift**2).sum(-1) / weights.sum(-1)).mean(-1)

    def grid_distances(self) -> Floats:
        """How far the heads of each layer are from a K × K grid; see `grid_distance`."""
        return np.array([grid_distance(layer) for layer in self.centres])

    def layers(self) -> dict[str, Any]:
        """Centres and α by layer: what `lattend heads FILE` and `lt.nn.draw_heads` read."""
        pairs = zip(self.centres.tolist(), self.alpha.tolist(), strict=True)
        return {
            f"layer {at}": {"centres": centres, "alpha": alpha}
            for at, (centres, alpha) in enumerate(pairs, 1)
        }

    def pixel_distances(self) -> Floats:
        """How far centres are from the nearest position, mean over the heads: 0 where each is one pixel's."""
        off = self.centres - np.rint(self.centres)
        return np.hypot(off[..., 0], off[..., 1]).mean(-1)


@dataclass(frozen=True)
class EpochResult:
    """After an epoch: the mean loss of its steps, the share of test images that are right, seconds in all."""

    epoch: int
    loss: float
    accuracy: float
    seconds: float


@dataclass
class HeadRun(Data):
    """One network's heads over time, and how well it does."""

    JSON = "epochs moments"

    moments: list[HeadMoment] = field(default_factory=list[HeadMoment])
    epochs: list[EpochResult] = field(default_factory=list[EpochResult])

    def at(self, epoch: float) -> HeadMoment:
        """The moment of this epoch, which must have been recorded."""
        for moment in self.moments:
            if abs(moment.epoch - epoch) < 1e-9:
                return moment
        known = [significant(moment.epoch, 6) for moment in self.moments]
        listed = ", ".join(known if len(known) <= 8 else (*known[:6], "…", known[-1]))
        raise DomainError(f"nothing was recorded at epoch {significant(epoch, 6)}; there are {listed}")

    @staticmethod
    def of(data: Mapping[str, Any]) -> HeadRun:
        """From plain data."""
        moments = [HeadMoment.of(one["epoch"], one["centres"], one["alpha"]) for one in data["moments"]]
        return HeadRun(moments, [EpochResult(**one) for one in data["epochs"]])


@dataclass(frozen=True)
class Record(Drawn, Printed):
    """Settings, and the runs by name: "trained", and unless it was left out "control"."""

    settings: HeadSettings
    runs: Mapping[str, HeadRun]
    parameters: int

    @property
    def trained(self) -> HeadRun:
        """The run whose heads learn."""
        return self.runs[TRAINED]

    @property
    def control(self) -> HeadRun | None:
        """The run whose centres stay where they began, or None if it was left out."""
        return self.runs.get(CONTROL)

    def run(self, name: str) -> HeadRun:
        """One of the runs."""
        if name not in self.runs:
            raise NamingError(f"this record has {' and '.join(self.runs)}, not {name!r}")
        return self.runs[name]

    def draw(self, epoch: float | None = None, run: str = TRAINED) -> Picture:
        """The heads of every layer around a query at one moment, by default the last."""
        from lattend.study.heads.pictures import draw_moment

        return draw_moment(self, epoch, run)

    def draw_paths(self) -> Picture:
        """The paths of the centres, layer by layer."""
        from lattend.study.heads.pictures import draw_paths

        return draw_paths(self)

    def draw_spread(self) -> Picture:
        """Distances and widths by layer over time, closeness to a grid, and accuracy beside the control's."""
        from lattend.study.heads.pictures import draw_spread

        return draw_spread(self)

    def animate(self, path: str | os.PathLike[str], run: str = TRAINED) -> Path:
        """Writes the moments one after another: .gif, or .html with a slider."""
        from lattend.study.heads.pictures import animate

        return animate(self, path, run)

    @cached_property
    def findings(self) -> Findings:
        """The first and the last moment compared."""
        from lattend.study.heads.findings import Findings

        return Findings(self)

    def report(self) -> Report:
        """The findings as tables and sentences."""
        from lattend.study.heads.findings import report

        return report(self)

    def summary(self) -> dict[str, Any]:
        """The numbers of the report."""
        from lattend.study.heads.findings import summary

        return summary(self.findings)

    def json(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "settings": asdict(self.settings),
            "parameters": self.parameters,
            "layers": self.trained.moments[-1].layers(),
            "runs": {name: run.json() for name, run in self.runs.items()},
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the record as JSON, a moment a line."""
        data = self.json()
        runs = data.pop("runs")
        lines = [json.dumps(data)[:-1] + ', "runs": {']
        for at, (name, run) in enumerate(runs.items()):
            lines.append(
                f'{"," if at else ""}"{name}": {{"epochs": {json.dumps(run["epochs"])}, "moments": ['
            )
            lines.append(",\n".join(json.dumps(moment) for moment in run["moments"]) + "]}")
        path = Path(path)
        path.write_text("\n".join((*lines, "}}", "")), encoding="utf-8")
        return path

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Record:
        """The record in a file, or in record.json of a folder."""
        path = Path(path)
        path = path / "record.json" if path.is_dir() else path
        if not path.is_file():
            raise LattendError(f'there is no record "{path}"; `lattend heads train` writes one')
        try:
            return Record.of(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, DomainError):
            raise LattendError(
                f'"{path}" is no record of heads in training; `lattend heads train` writes one'
            ) from None

    @staticmethod
    def of(text: str) -> Record:
        """The record that a text holds, as `save` writes it; what it holds is checked."""
        try:
            data = json.loads(text)
            if data["kind"] != KIND:
                raise KeyError("kind")
            runs = {str(name): HeadRun.of(run) for name, run in data["runs"].items()}
            record = Record(HeadSettings(**data["settings"]), runs, int(data["parameters"]))
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
            raise DomainError(
                "this is no record of heads in training; `lattend heads train` writes one"
            ) from None
        check_record(record)
        return record


def check_record(record: Record) -> None:
    """Raises where a record does not hold what its settings say, or more than one can look at."""
    settings = record.settings
    for one in fields(settings):
        if not isinstance(value := getattr(settings, one.name), KINDS[str(one.type)]):
            raise DomainError(f"{one.name} of a record is {one.type}, got {value!r:.60}")
    sizes = (settings.rows, settings.cols, settings.patch, settings.kernel, settings.layers, settings.epochs)
    if not all(1 <= size <= MOST for size in sizes) or not settings.test_images >= 1:
        raise DomainError(f"the sizes of a record are from 1 to {MOST:,}")
    if TRAINED not in record.runs or not {*record.runs} <= {TRAINED, CONTROL}:
        raise DomainError(f"a record has the run {TRAINED}, and perhaps {CONTROL}")
    for name, run in record.runs.items():
        if not 1 <= len(run.moments) <= MOST or len(run.epochs) > MOST:
            raise DomainError(f"a run has 1 to {MOST:,} moments, and {name} has {len(run.moments):,}")
        for moment in run.moments:
            _check_moment(moment, (settings.layers, settings.kernel**2), name)
        for result in run.epochs:
            if not all(_finite(number) for number in astuple(result)) or not 0 <= result.accuracy <= 1:
                raise DomainError(f"a result of {name} is no number, or no share of the images")


def _check_moment(moment: HeadMoment, heads: tuple[int, int], run: str) -> None:
    if moment.alpha.shape != heads or moment.centres.shape != (*heads, 2):
        shapes = f"centres {moment.centres.shape} and widths {moment.alpha.shape}"
        raise DomainError(
            f"{heads[0]} layers of {heads[1]} heads are expected; a moment of {run} has {shapes}"
        )
    if not (_finite(moment.epoch) and np.isfinite(moment.centres).all() and np.isfinite(moment.alpha).all()):
        raise DomainError(f"a moment of {run} has a number that is not finite")


def _finite(number: object) -> bool:
    return isinstance(number, int | float) and math.isfinite(number)


@dataclass(frozen=True)
class Progress:
    """An epoch that has just ended."""

    run: str
    epochs: int
    result: EpochResult
    moment: HeadMoment

    def __str__(self) -> str:
        far = " ".join(format_fixed(distance, 1) for distance in self.moment.centre_distances())
        return (
            f"{self.run}   epoch {self.result.epoch:3} of {self.epochs}   "
            f"loss {format_fixed(self.result.loss, 3)}   test {format_share(self.result.accuracy):>6}   "
            f"centres {far} from the query   {format_fixed(self.result.seconds, 0)} s"
        )


def _short(numbers: Any) -> Floats:
    values = np.asarray(numbers, dtype=np.float64)
    return np.array([float(significant(x, DIGITS)) for x in values.ravel()]).reshape(values.shape)


@lru_cache(maxsize=1)
def digits_record() -> Record:
    """Four layers of nine heads over 25 epochs, beside a control whose centres are held fixed.

    >>> digits_record().settings.data
    'digits'
    """
    return Record.of(files("lattend.study.heads").joinpath("digits.json").read_text(encoding="utf-8"))
