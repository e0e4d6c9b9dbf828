"""lattend grid: a 2-D RNN step by step, and a pixel's receptive field beside a convnet's."""

from __future__ import annotations

from typing import Annotated

import typer

from lattend.cli.arguments import Json, Out, Pixel, argument, option, read_numbers, read_place, refuse
from lattend.cli.failures import NO, YES
from lattend.cli.output import show, show_report
from lattend.errors import NamingError
from lattend.nn.images.patch_grid import read_size

EXAMPLES = (
    "lattend grid 8",
    "lattend grid 8x12 --directions 2 --pixel 3,4 --at c=3,h=64",
    "lattend grid 6 --directions 4 --frames --out steps.svg",
    "lattend grid 4 --diagram --out planes.pdf",
    "lattend grid 4x6 3x3 --check",
)


def grid(
    size: Annotated[list[str], argument("SIZE", "The image: 8, or 8x12; several for --check.")],
    directions: Annotated[int, typer.Option(metavar="1|2|4", help="Corners that the net begins at.")] = 1,
    cell: Annotated[str, typer.Option(metavar="rnn|lstm|gru", help="What runs at each pixel.")] = "rnn",
    pixel: Pixel = None,
    kernel: Annotated[int, typer.Option(metavar="K", help="Of the convnet, K by K.")] = 3,
    layers: Annotated[int, typer.Option(metavar="L", help="Of the convnet.")] = 3,
    frames: Annotated[bool, typer.Option("--frames", help="The image at every step.")] = False,
    diagram: Annotated[
        bool, typer.Option("--diagram", help="Pixels, states, weights as arrows, and the equation.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="The torch module against plain loops, gradients too.")
    ] = False,
    activation: Annotated[
        str | None, option("NAME", "σ of --check: sigmoid, tanh, relu or identity.")
    ] = None,
    at: Annotated[list[str] | None, option("h=64,c=3", "Numbers of a state, of a pixel.", "--at")] = None,
    out: Out = None,
    json: Json = False,
) -> int:
    """A 2-D RNN on an image, step by step.

    The step of each cell, the sequential depth and how many run at once, one pixel's receptive field,
    and a convnet's; prices are formulas in c and h until --at gives them. With --check, lt.nn.GridRNN is run
    against loops of its equation in float64; images of several sizes run in one batch.
    """
    numbers = read_numbers(at)
    unknown = [name for name in numbers if name not in ("c", "h")]
    if unknown:
        raise NamingError(f"grid has no {unknown[0]}; --at takes c, channels of a pixel, and h, of a state")
    images = [read_size("SIZE", text) for text in size]
    options = {"--pixel": pixel, "--frames": frames, "--diagram": diagram, "--out": out}
    if check:
        refuse(options, options, "draws, and --check draws nothing; leave it out")
        from lattend.nn.grid.check import check_grid

        run = check_grid(*images, cell=cell, activation=activation, directions=directions, **numbers)
        show_report(run, json)
        return YES if run else NO
    refuse({"--activation": activation}, ["--activation"], "is for --check; leave it out")
    if len(images) > 1:
        raise NamingError(f"{len(images)} images are for --check; give one SIZE to draw")
    from lattend.nn.pictures.grid import draw_grid

    figure = draw_grid(
        images[0],
        directions=directions,
        cell=cell,
        pixel=read_place(pixel),
        kernel=kernel,
        layers=layers,
        frames=frames,
        diagram=diagram,
        c=numbers.get("c", "c"),
        h=numbers.get("h", "h"),
    )
    show(figure, out, json)
    return YES
