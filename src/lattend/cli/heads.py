"""lattend heads: the heads of a layer over an image, their training, and the record of a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lattend.cli.arguments import out_option, pixel_option, read_numbers_of, read_place, read_points
from lattend.cli.command import Answer, Command, argument, flag, option
from lattend.cli.output import complain, say, say_json, show, tell, width
from lattend.errors import NamingError
from lattend.nn.images.patch_grid import read_size
from lattend.wording import close_names

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.report.table import Table
    from lattend.study.heads.record import Progress, Record


OF_HEADS = ("kernel", "dilation", "covariance")
OF_SCORES = ("channels", "seed")
TRAINING = ("train", "show")  # commands of their own


@dataclass(frozen=True)
class HeadsCommand(Command):
    """The heads of a layer as centres and widths around a query pixel.

    Of a convolution's kernel, of centres given here, or of a saved layer with the quadratic encoding. With
    --scores, the four terms of an encoding's score as heat maps, their sum, and its softmax. `lattend
    heads train` trains a network and records where its heads go; `lattend heads show` shows that.

        lattend heads --kernel 3 --alpha 2
        lattend heads --centres "0,1;1,0;-2,2" --alpha "2,0.5,1"
        lattend heads --centres "0,0;2,3" --covariance "0.5,0.2,1;1,0,2" --out heads.svg
        lattend heads --scores quadratic --centres "1,2" --alpha 0.5
        lattend heads --scores relative --size 9x9 --pixel 2,2 --out scores.png
    """

    file: str | None = argument(
        "FILE", "Saved heads: a state dict (.pt), arrays (.npz), or a list (.json).", None
    )
    kernel: str | None = option("K", "The heads of a K by K convolution.")
    dilation: str | None = option("N", "Pixels from tap to tap of --kernel.")
    centres: str | None = option('"y,x;…"', "Shifts from the query, rows first.")
    alpha: str | None = option("A,…", "How narrow: one for all heads, or one each.")
    covariance: str | None = option('"yy,yx,xx;…"', "Widths by direction instead.")
    scores: str | None = option("ENCODING", "Heat maps instead: absolute, relative, quadratic or sinusoidal.")
    size: str | None = option("ROWSxCOLS", "The image; without edges if not given.")
    pixel: str | None = pixel_option()
    channels: int | None = option("N", "Numbers a pixel of --scores; 16.")
    seed: int | None = option("N", "Of the random numbers; 0.")
    out: str | None = out_option()

    def answer(self) -> Answer:
        where = read_points("--centres", self.centres, 2)
        widths = read_numbers_of("--alpha", self.alpha)
        image = None if self.size is None else read_size("--size", self.size)
        query = read_place(self.pixel)
        if self.scores is not None:
            self.refuse(("file", *OF_HEADS), "is not for --scores; leave it out")
            from lattend.nn.pictures.scores import draw_scores

            places = {"centres": where, "alpha": widths}
            chosen = self.options("seed", width="channels")
            chosen |= {name: value for name, value in places.items() if value is not None}
            return draw_scores(self.scores, size=image, pixel=query, **chosen)
        self.refuse(OF_SCORES, "is for --scores; leave it out")
        from lattend.nn.pictures.heads import draw_heads, make_heads

        if self.file is not None:
            self.refuse((*OF_HEADS, "centres", "alpha"), "is not for saved heads; leave it out")
            close = close_names(self.file, TRAINING)
            if close:
                raise NamingError(f'there is no file "{self.file}"; did you mean `lattend heads {close[0]}`?')
            return draw_heads(self.file, size=image, pixel=query)
        if self.kernel is None and self.centres is None:
            raise NamingError(
                "heads needs FILE, --kernel, --centres or --scores, such as --kernel 3; "
                "`lattend heads train` watches heads learn"
            )
        made = make_heads(
            kernel=None if self.kernel is None else read_size("--kernel", self.kernel),
            dilation=None if self.dilation is None else read_size("--dilation", self.dilation),
            centres=where,
            alpha=widths,
            covariance=read_points("--covariance", self.covariance, 3),
        )
        return draw_heads(made, size=image, pixel=query)


@dataclass(frozen=True)
class HeadsTrainCommand(Command):
    """Train a small network of attention layers, and watch its heads move.

    Its heads attend by a centre and a width alone (the quadratic encoding), which are recorded by layer and
    epoch, and within the first epoch; a control has random centres held fixed. The folder gets record.json,
    pictures and a page with a slider. Interrupted, the same command goes on from the last whole epoch to the
    very same numbers. The digits take a minute or two.

        lattend heads train
        lattend heads train --epochs 5 --layers 2 --out small
        lattend heads train --data fashion --fetch --images 6000
        lattend heads train --data cifar10 --data-dir cifar --device cuda
        lattend heads show out/heads-digits --at-epoch 3
    """

    data: str = option("digits|fashion|cifar10", "Which images; digits.", default="digits")
    data_dir: str | None = option("DIR", "Where fashion or cifar10 are.")
    fetch: bool = flag("Download their package if they are not.")
    images: int | None = option("N", "The first N images to train on; all.")
    kernel: int = option("K", "K by K heads a layer; 3.", default=3)
    layers: int | None = option("L", "Layers; digits and fashion 4, cifar10 6.")
    channels: int | None = option("N", "Numbers a position; digits 32, fashion 64, cifar10 128.")
    epochs: int | None = option("E", "Times each is seen; digits 25, fashion 10, cifar10 20.")
    rate: float | None = option("R", "Greatest learning rate; digits 0.003, fashion 0.002, cifar10 0.001.")
    centre_rate: float | None = option("F", "How many times as fast centres and widths learn; 1.")
    spread: float | None = option("S", "Of the first centres; an eighth of the image's side.")
    control: bool = flag("Train once more with centres held fixed.", "--control/--no-control", default=True)
    seed: int = option("S", "Of all that is random; 0.", default=0)
    device: str = option("cpu|cuda", "Where it runs; cpu.", default="cpu")
    out: str | None = option("DIR", "Folder for the results; out/heads-DATA.", "--out", "-o")

    def answer(self) -> Answer:
        from lattend.study.heads.training import train
        from lattend.study.image_sets import read_images

        folder = Path(self.out or f"out/heads-{self.data}")
        image_set = read_images(self.data, self.data_dir, self.fetch).first(self.images)
        done: list[Progress] = []
        try:
            record = train(
                image_set,
                **self.options("kernel layers epochs rate centre_rate spread control seed device"),
                **self.options("", width="channels"),
                checkpoint=folder,
                progress=_progress(done),
            )
        except KeyboardInterrupt:
            last = f"after epoch {done[-1].result.epoch} of {done[-1].run}" if done else "in the first epoch"
            complain(f"stopped {last}; the same command goes on from the last whole epoch")
            raise
        files = write_results(record, folder)
        if self.json:
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


VIEWS = ("heads", "paths", "spread")
DIGITS = "digits"  # the record that comes with the package
MOVING = (".gif", ".html")


@dataclass(frozen=True)
class HeadsShowCommand(Command):
    """What was recorded of heads in training.

    Distances and widths by layer, and how near heads came to a grid; with --view a picture, with --at-epoch
    that of one moment, and with --out FILE.gif or FILE.html all moments one after another. Several
    records that differ in their seeds are compared.

        lattend heads show digits
        lattend heads show out/heads-digits
        lattend heads show out/heads-digits --at-epoch 0.5
        lattend heads show out/heads-digits --view paths --out paths.svg
        lattend heads show out/heads-digits --out heads.gif
        lattend heads show seed-0 seed-1 seed-2
    """

    record: list[str] = argument(
        "RECORD", "The folder of `lattend heads train`, or its record.json; digits comes with the package."
    )
    view: str | None = option("|".join(VIEWS), "A picture instead of the numbers.")
    at_epoch: float | None = option("E", "The heads then; 0 is before training.")
    run: str | None = option("trained|control", "Whose heads; trained.")
    out: str | None = option(
        "FILE", "Draw: .svg, .png, .pdf, .tex or .txt; .gif or .html move.", "--out", "-o"
    )

    def answer(self) -> Answer:
        if self.view is not None and self.view not in VIEWS:
            raise NamingError(f"--view is one of {', '.join(VIEWS)}, not {self.view!r}")
        from lattend.study.heads.findings import compare_records
        from lattend.study.heads.record import TRAINED, Record, digits_record

        records = [digits_record() if path == DIGITS else Record.read(path) for path in self.record]
        if len(records) > 1:
            if any(option_name is not None for option_name in (self.view, self.at_epoch, self.run, self.out)):
                raise NamingError(
                    "several records are compared in numbers alone; give one RECORD for a picture"
                )
            return compare_records(records)
        shown = records[0]
        if self.view in ("paths", "spread") and (self.at_epoch is not None or self.run is not None):
            option_name = "--at-epoch" if self.at_epoch is not None else "--run"
            raise NamingError(f"{option_name} is for the heads of one moment; leave out --view {self.view}")
        if self.out is not None and self.out.lower().endswith(MOVING):
            if self.at_epoch is not None or self.view is not None:
                option_name = "--view" if self.at_epoch is None else "--at-epoch"
                raise NamingError(f".gif and .html show the heads at all moments; leave out {option_name}")
            file = str(shown.animate(self.out, self.run or TRAINED))
            say_json({"file": file}) if self.json else say(f"{file}: {shown.report().title}")
            return
        if self.view is None and self.at_epoch is None and self.run is None and self.out is None:
            return shown.report()
        show(_picture(shown, self.view, self.at_epoch, self.run or TRAINED), self.out, self.json)
        if self.view is None and self.out is None and not self.json:
            say("\n".join(["", *_layer_table(shown, self.at_epoch, self.run or TRAINED).lines()]))


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
