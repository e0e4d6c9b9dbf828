"""lattend heads show: what was recorded of heads in training, at one moment or over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from lattend.cli.arguments import Json, argument, option
from lattend.cli.output import say, say_json, show, show_report
from lattend.errors import NamingError

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.report.table import Table
    from lattend.study.heads.record import Record

EXAMPLES = (
    "lattend heads show digits",
    "lattend heads show out/heads-digits",
    "lattend heads show out/heads-digits --at-epoch 0.5",
    "lattend heads show out/heads-digits --view paths --out paths.svg",
    "lattend heads show out/heads-digits --out heads.gif",
    "lattend heads show seed-0 seed-1 seed-2",
)
VIEWS = ("heads", "paths", "spread")
DIGITS = "digits"  # the record that comes with the package
MOVING = (".gif", ".html")


def heads_show(
    record: Annotated[
        list[str],
        argument(
            "RECORD",
            "The folder of `lattend heads train`, or its record.json; digits comes with the package.",
        ),
    ],
    view: Annotated[str | None, option("|".join(VIEWS), "A picture instead of the numbers.")] = None,
    at_epoch: Annotated[
        float | None, option("E", "The heads then; 0 is before training.", "--at-epoch")
    ] = None,
    run: Annotated[str | None, option("trained|control", "Whose heads; trained.")] = None,
    out: Annotated[
        str | None,
        option("FILE", "Draw: .svg, .png, .pdf, .tex or .txt; .gif or .html move.", "--out", "-o"),
    ] = None,
    json: Json = False,
) -> None:
    """What was recorded of heads in training.

    Distances and widths by layer, and how near heads came to a grid; with --view a picture, with --at-epoch
    that of one moment, and with --out FILE.gif or FILE.html all moments one after another. Several
    records that differ in their seeds are compared.
    """
    if view is not None and view not in VIEWS:
        raise NamingError(f"--view is one of {', '.join(VIEWS)}, not {view!r}")
    from lattend.study.heads.findings import compare_records
    from lattend.study.heads.record import TRAINED, Record, digits_record

    records = [digits_record() if path == DIGITS else Record.read(path) for path in record]
    if len(records) > 1:
        if any(given is not None for given in (view, at_epoch, run, out)):
            raise NamingError("several records are compared in numbers alone; give one RECORD for a picture")
        show_report(compare_records(records), json)
        return
    found = records[0]
    if view in ("paths", "spread") and (at_epoch is not None or run is not None):
        given = "--at-epoch" if at_epoch is not None else "--run"
        raise NamingError(f"{given} is for the heads of one moment; leave out --view {view}")
    if out is not None and out.lower().endswith(MOVING):
        if at_epoch is not None or view is not None:
            given = "--view" if at_epoch is None else "--at-epoch"
            raise NamingError(f".gif and .html show the heads at all moments; leave out {given}")
        file = str(found.animate(out, run or TRAINED))
        say_json({"file": file}) if json else say(f"{file}: {found.report().title}")
        return
    if view is None and at_epoch is None and run is None and out is None:
        show_report(found.report(), json)
        return
    show(_picture(found, view, at_epoch, run or TRAINED), out, json)
    if view is None and out is None and not json:
        say("\n".join(["", *_moment(found, at_epoch, run or TRAINED).lines()]))


def _moment(record: Record, epoch: float | None, run: str) -> Table:
    """The numbers of each layer then."""
    from lattend.study.heads.findings import Measures

    moments = record.run(run)
    return Measures.of(moments.moments[-1] if epoch is None else moments.at(epoch), record).table()


def _picture(record: Record, view: str | None, epoch: float | None, run: str) -> Picture:
    if view == "paths":
        return record.draw_paths()
    if view == "spread":
        return record.draw_spread()
    return record.draw(epoch, run)
