"""lattend grid: a 2-D RNN step by step, and a pixel's receptive field beside a convnet's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lattend.cli.arguments import out_option, pixel_option, read_numbers, read_place
from lattend.cli.command import Answer, Command, argument, flag, option, setting
from lattend.errors import NamingError
from lattend.nn.images.patch_grid import read_size


@dataclass(frozen=True)
class GridCommand(Command):
    """A 2-D RNN on an image, step by step.

    The step of each cell, the sequential depth and how many run at once, one pixel's receptive field,
    and a convnet's; prices are formulas in c and h until --at gives them. With --check, lt.nn.GridRNN is run
    against loops of its equation in float64; images of several sizes run in one batch.

        lattend grid 8
        lattend grid 8x12 --directions 2 --pixel 3,4 --at c=3,h=64
        lattend grid 6 --directions 4 --frames --out steps.svg
        lattend grid 4 --diagram --out planes.pdf
        lattend grid 4x6 3x3 --check
    """

    size: list[str] = argument("SIZE", "The image: 8, or 8x12; several for --check.")
    directions: int = setting("1|2|4", "Corners that the net begins at.", 1)
    cell: str = setting("rnn|lstm|gru", "What runs at each pixel.", "rnn")
    pixel: str | None = pixel_option()
    kernel: int = setting("K", "Of the convnet, K by K.", 3)
    layers: int = setting("L", "Of the convnet.", 3)
    frames: bool = flag("The image at every step.")
    diagram: bool = flag("Pixels, states, weights as arrows, and the equation.")
    check: bool = flag("The torch module against plain loops, gradients too.")
    activation: str | None = option("NAME", "σ of --check: sigmoid, tanh, relu or identity.")
    at: list[str] | None = option("h=64,c=3", "Numbers of a state, of a pixel.")
    out: str | None = out_option()

    def answer(self) -> Answer:
        numbers: dict[str, Any] = {**read_numbers(self.at)}
        unknown = [name for name in numbers if name not in ("c", "h")]
        if unknown:
            raise NamingError(
                f"grid has no {unknown[0]}; --at takes c, channels of a pixel, and h, of a state"
            )
        images = [read_size("SIZE", text) for text in self.size]
        if self.check:
            self.refuse(
                ("pixel", "frames", "diagram", "out"), "draws, and --check draws nothing; leave it out"
            )
            from lattend.nn.grid.check import check_grid

            return check_grid(*images, **self.options("cell activation directions"), **numbers)
        self.refuse(["activation"], "is for --check; leave it out")
        if len(images) > 1:
            raise NamingError(f"{len(images)} images are for --check; give one SIZE to draw")
        from lattend.nn.pictures.grid import draw_grid

        return draw_grid(
            images[0],
            **self.options("directions cell kernel layers frames diagram"),
            pixel=read_place(self.pixel),
            c=numbers.get("c", "c"),
            h=numbers.get("h", "h"),
        )
