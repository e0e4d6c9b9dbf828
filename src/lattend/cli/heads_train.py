"""lattend heads train: a small network learns from images, and every head's centre and width are recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lattend.cli.arguments import Json, option
from lattend.cli.output import complain, say, say_json, tell, width

if TYPE_CHECKING:
    from lattend.study.heads.record import Progress, Record

EXAMPLES = (
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
    from lattend.study.images.image_set import read_images

    given = {"layers": layers, "width": channels, "epochs": epochs, "rate": rate, "centre_rate": centre_rate}
    chosen: dict[str, Any] = {
        name: value for name, value in (given | {"spread": spread}).items() if value is not None
    }
    folder = Path(out or f"out/heads-{data}")
    found = read_images(data, data_dir, fetch).first(images)
    done: list[Progress] = []
    try:
        record = train(
            found,
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
    files = write(record, folder)
    if json:
        say_json({**record.report().json(), "files": files})
        return
    say(record.text(width()))
    say("\n" + "\n".join(("wrote", *(f"  {file}" for file in files))))


def write(record: Record, folder: Path) -> list[str]:
    """The record, then pictures of it and a page; the record alone where there is nothing to draw with."""
    files = [record.save(folder / "record.json")]
    try:
        files += [record.animate(folder / "heads.html")]
        drawn = {"heads": record.draw(), "paths": record.draw_paths(), "spread": record.draw_spread()}
        files += [picture.save(folder / f"{name}.svg") for name, picture in drawn.items()]
    except ModuleNotFoundError as missing:
        complain(f"no pictures without {missing.name}; `lattend heads show {folder}` draws them elsewhere")
    return [str(file) for file in files]


def _progress(done: list[Progress]) -> Callable[[Progress], None]:
    """Prints about ten epochs of each run on standard error, away from the answer, and keeps all of them."""

    def report(epoch: Progress) -> None:
        done.append(epoch)
        every = max(1, epoch.epochs // 10)
        if epoch.result.epoch == 1 or epoch.result.epoch % every == 0:
            tell(epoch)

    return report
