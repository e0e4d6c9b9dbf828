"""lattend heads: the heads of a layer over an image, their training, and the record of a training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lattend.cli.arguments import (
    Json,
    Out,
    Pixel,
    argument,
    option,
    read_numbers_of,
    read_place,
    read_points,
    refuse,
)
from lattend.cli.output import complain, say, say_json, show, show_report, tell, width
from lattend.errors import NamingError
from lattend.nn.images.patch_grid import read_size
from lattend.wording import close_names

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.report.table import Table
    from lattend.study.heads.record import Progress, Record


EXAMPLES = (
    "lattend heads --kernel 3 --alpha 2",
    'lattend heads --centres "0,1;1,0;-2,2" --alpha "2,0.5,1"',
    'lattend heads --centres "0,0;2,3" --covariance "0.5,0.2,1;1,0,2" --out heads.svg',
    'lattend heads --scores quadratic --centres "1,2" --alpha 0.5',
    "lattend heads --scores relative --size 9x9 --pixel 2,2 --out scores.png",
)
OF_HEADS = ("--kernel", "--dilation", "--covariance")
OF_SCORES = ("--channels", "--seed")
TRAINING = ("train", "show")  # commands of their own


def heads(
    file: Annotated[
        str | None, argument("FILE", "Saved heads: a state dict (.pt), arrays (.npz), or a list (.json).")
    ] = None,
    kernel: Annotated[str | None, option("K", "The heads of a K by K convolution.")] = None,
    dilation: Annotated[str | None, option("N", "Pixels from tap to tap of --kernel.")] = None,
    centres: Annotated[str | None, option('"y,x;…"', "Shifts from the query, rows first.")] = None,
    alpha: Annotated[str | None, option("A,…", "How narrow: one for all heads, or one each.")] = None,
    covariance: Annotated[str | None, option('"yy,yx,xx;…"', "Widths by direction instead.")] = None,
    scores: Annotated[
        str | None, option("ENCODING", "Heat maps instead: absolute, relative, quadratic or sinusoidal.")
    ] = None,
    size: Annotated[str | None, option("ROWSxCOLS", "The image; without edges if not given.")] = None,
    pixel: Pixel = None,
    channels: Annotated[int | None, option("N", "Numbers a pixel of --scores; 16.")] = None,
    seed: Annotated[int | None, option("N", "Of the random numbers; 0.")] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """The heads of a layer as centres and widths around a query pixel.

    Of a convolution's kernel, of centres given here, or of a saved layer with the quadratic encoding. With
    --scores, the four terms of an encoding's score as heat maps, their sum, and its softmax. `lattend
    heads train` trains a network and records where its heads go; `lattend heads show` shows that.
    """
    flags = {"FILE": file, "--kernel": kernel, "--dilation": dilation, "--covariance": covariance}
    flags |= {"--centres": centres, "--alpha": alpha, "--channels": channels, "--seed": seed}
    where = read_points("--centres", centres, 2)
    widths = read_numbers_of("--alpha", alpha)
    image = None if size is None else read_size("--size", size)
    query = read_place(pixel)
    if scores is not None:
        refuse(flags, ("FILE", *OF_HEADS), "is not for --scores; leave it out")
        from lattend.nn.pictures.scores import draw_scores

        options: dict[str, Any] = {"width": channels, "seed": seed, "centres": where, "alpha": widths}
        chosen = {name: value for name, value in options.items() if value is not None}
        show(draw_scores(scores, size=image, pixel=query, **chosen), out, json)
        return
    refuse(flags, OF_SCORES, "is for --scores; leave it out")
    from lattend.nn.pictures.heads import draw_heads, make_heads

    if file is not None:
        refuse(flags, (*OF_HEADS, "--centres", "--alpha"), "is not for saved heads; leave it out")
        close = close_names(file, TRAINING)
        if close:
            raise NamingError(f'there is no file "{file}"; did you mean `lattend heads {close[0]}`?')
        show(draw_heads(file, size=image, pixel=query), out, json)
        return
    if kernel is None and centres is None:
        raise NamingError(
            "heads needs FILE, --kernel, --centres or --scores, such as --kernel 3; "
            "`lattend heads train` watches heads learn"
        )
    made = make_heads(
        kernel=None if kernel is None else read_size("--kernel", kernel),
        dilation=None if dilation is None else read_size("--dilation", dilation),
        centres=where,
        alpha=widths,
        covariance=read_points("--covariance", covariance, 3),
    )
    show(draw_heads(made, size=image, pixel=query), out, json)


TRAIN_EXAMPLES = (
    "lattend heads train",
    "lattend heads train --epochs 5 --layers 2 --out small",
    "lattend heads train --data fashion --fetch --images 6000",
    "lattend heads train --data cifar10 --data-dir cifar --device cuda",
    "lattend heads show out/heads-digits --at-epoch 3",
)


def heads_train(
    data: Annotated[str, option("digits|fashion|cifar10", "Which images; digits.")] = "digits",
    data_dir: Annotated[str | None, option("DIR", "Where fashion or cifar10 are.", "--data-dir")] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="Download their package if they are not.")] = False,
    images: Annotated[int | None, option("N", "The first N images to train on; all.")] = None,
    kernel: Annotated[int, option("K", "K by K heads a layer; 3.")] = 3,
    layers: Annotated[int | None, option("L", "Layers; digits and fashion 4, cifar10 6.")] = None,
    channels: Annotated[
        int | None, option("N", "Numbers a position; digits 32, fashion 64, cifar10 128.")
    ] = None,
    epochs: Annotated[
        int | None, option("E", "Times each is seen; digits 25, fashion 10, cifar10 20.")
    ] = None,
    rate: Annotated[
        float | None, option("R", "Greatest learning rate; digits 0.003, fashion 0.002, cifar10 0.001.")
    ] = None,
    centre_rate: Annotated[
        float | None, option("F", "How many times as fast centres and widths learn; 1.", "--centre-rate")
    ] = None,
    spread: Annotated[
        float | None, option("S", "Of the first centres; an eighth of the image's side.")
    ] = None,
    control: Annotated[
        bool, typer.Option("--control/--no-control", help="Train once more with centres held fixed.")
    ] = True,
    seed: Annotated[int, option("S", "Of all that is random; 0.")] = 0,
    device: Annotated[str, option("cpu|cuda", "Where it runs; cpu.")] = "cpu",
    out: Annotated[
        str | None, option("DIR", "Folder for the results; out/heads-DATA.", "--out", "-o")
    ] = None,
    json: Json = False,
) -> None:
    """Train a small network of attention layers, and watch its heads move.

    Its heads attend by a centre and a width alone (the quadratic encoding), which are recorded by layer and
    epoch, and within the first epoch; a control has random centres held fixed. The folder gets record.json,
    pictures and a page with a slider. Interrupted, the same command goes on from the last whole epoch to the
    very same numbers. The digits take a minute or two.
    """
    from lattend.study.heads.training import train
    from lattend.study.image_sets import read_images

    options = {
        "layers": layers,
        "width": channels,
        "epochs": epochs,
        "rate": rate,
        "centre_rate": centre_rate,
    }
    chosen: dict[str, Any] = {
        name: value for name, value in (options | {"spread": spread}).items() if value is not None
    }
    folder = Path(out or f"out/heads-{data}")
    image_set = read_images(data, data_dir, fetch).first(images)
    done: list[Progress] = []
    try:
        record = train(
            image_set,
            kernel=kernel,
            seed=seed,
            control=control,
            device=device,
            checkpoint=folder,
            progress=_progress(done),
            **chosen,
        )
    except KeyboardInterrupt:
        last = f"after epoch {done[-1].result.epoch} of {done[-1].run}" if done else "in the first epoch"
        complain(f"stopped {last}; the same command goes on from the last whole epoch")
        raise
    files = write_results(record, folder)
    if json:
        say_json({**record.report().json(), "files": files})
        return
    say(record.text(width()))
    say("\n" + "\n".join(("wrote", *(f"  {file}" for file in files))))


def write_results(record: Record, folder: Path) -> list[str]:
    """Write the record, its pictures and a page; only the record if matplotlib is missing."""
    files = [record.save(folder / "record.json")]
    try:
        files += [record.animate(folder / "heads.html")]
        drawn = {"heads": record.draw(), "paths": record.draw_paths(), "spread": record.draw_spread()}
        files += [picture.save(folder / f"{name}.svg") for name, picture in drawn.items()]
    except ModuleNotFoundError as missing:
        complain(f"no pictures without {missing.name}; `lattend heads show {folder}` draws them elsewhere")
    return [str(file) for file in files]


def _progress(done: list[Progress]) -> Callable[[Progress], None]:
    """Report about ten epochs of each run on standard error, and keep all of them."""

    def report(epoch: Progress) -> None:
        done.append(epoch)
        every = max(1, epoch.epochs // 10)
        if epoch.result.epoch == 1 or epoch.result.epoch % every == 0:
            tell(epoch)

    return report


SHOW_EXAMPLES = (
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
        str | None, option("FILE", "Draw: .svg, .png, .pdf, .tex or .txt; .gif or .html move.", "--out", "-o")
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
        if any(option_name is not None for option_name in (view, at_epoch, run, out)):
            raise NamingError("several records are compared in numbers alone; give one RECORD for a picture")
        show_report(compare_records(records), json)
        return
    shown = records[0]
    if view in ("paths", "spread") and (at_epoch is not None or run is not None):
        option_name = "--at-epoch" if at_epoch is not None else "--run"
        raise NamingError(f"{option_name} is for the heads of one moment; leave out --view {view}")
    if out is not None and out.lower().endswith(MOVING):
        if at_epoch is not None or view is not None:
            option_name = "--view" if at_epoch is None else "--at-epoch"
            raise NamingError(f".gif and .html show the heads at all moments; leave out {option_name}")
        file = str(shown.animate(out, run or TRAINED))
        say_json({"file": file}) if json else say(f"{file}: {shown.report().title}")
        return
    if view is None and at_epoch is None and run is None and out is None:
        show_report(shown.report(), json)
        return
    show(_picture(shown, view, at_epoch, run or TRAINED), out, json)
    if view is None and out is None and not json:
        say("\n".join(["", *_layer_table(shown, at_epoch, run or TRAINED).lines()]))


def _layer_table(record: Record, epoch: float | None, run: str) -> Table:
    """The table of all layers at one moment."""
    from lattend.study.heads.findings import Measures

    moments = record.run(run)
    return Measures.of(moments.moments[-1] if epoch is None else moments.at(epoch), record).table()


def _picture(record: Record, view: str | None, epoch: float | None, run: str) -> Picture:
    if view == "paths":
        return record.draw_paths()
    if view == "spread":
        return record.draw_spread()
    return record.draw(epoch, run)
