"""heads: where every head was while a network learned, moment by moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import BaseModel

from lattend.web.panel import Answer, Copies, Panel
from lattend.web.records import RecordQuestion, read, record_code, record_command

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.report.table import Table
    from lattend.study.heads.record import HeadRun


class Moment(BaseModel):
    """After so many epochs, of each layer and head: (row, column) of its centre, and its radius.

    Inside the radius lies half of the head's Gaussian.
    """

    epoch: float
    epoch_text: str
    centres: list[list[tuple[float, float]]]
    radii: list[list[float]]


class RunView(BaseModel):
    """One network: its heads over time, and loss and share of right test images after every epoch."""

    name: str
    moments: list[Moment]
    epochs: list[int]
    loss: list[float]
    accuracy: list[float]


class HeadsAnswer(Answer):
    """The runs; a frame of `reach` positions to each side of the query holds all heads but the widest."""

    title: str
    reach: int
    kernel: int
    runs: list[RunView]


def answer(question: RecordQuestion) -> HeadsAnswer:
    """All moments of the record."""
    from lattend.report.report import Report
    from lattend.study.heads.pictures import frame

    record = read(question)
    settings = record.settings
    title = (
        f"{settings.data[:80]}: {settings.layers} layers of {settings.kernel**2} heads, "
        f"{record.parameters:,} parameters, {settings.epochs} epochs"
    )
    return HeadsAnswer(
        title=title,
        reach=frame(record),
        kernel=settings.kernel,
        runs=[_run(name, run) for name, run in record.runs.items()],
        copies=Copies(
            python=record_code(question, "print(record.draw_paths())"),
            command=record_command(question, view="paths"),
            latex=Report(title, [_epochs(record.runs)]).latex(),
        ),
    )


def _epochs(runs: Mapping[str, HeadRun]) -> Table:
    """Loss and share of right test images after every epoch."""
    from lattend.report.numbers import format_number
    from lattend.report.table import Table

    rows = [
        (name, str(one.epoch), format_number(one.loss), format_number(one.accuracy))
        for name, run in runs.items()
        for one in run.epochs
    ]
    return Table(("net", "epoch", "loss", "test accuracy"), rows)


def _run(name: str, run: HeadRun) -> RunView:
    from lattend.report.numbers import significant

    moments = [
        Moment(
            epoch=moment.epoch,
            epoch_text=significant(moment.epoch, 3),
            centres=moment.centres.tolist(),
            radii=moment.half_radii().round(4).tolist(),
        )
        for moment in run.moments
    ]
    return RunView(
        name=name,
        moments=moments,
        epochs=[one.epoch for one in run.epochs],
        loss=[one.loss for one in run.epochs],
        accuracy=[one.accuracy for one in run.epochs],
    )


def picture(question: RecordQuestion) -> Picture:
    """The paths of the centres."""
    return read(question).draw_paths()


PANEL = Panel("heads", "Heads in training", answer, picture)
