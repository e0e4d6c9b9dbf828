"""lattend patches: an image cut into patches: how many tokens, what is left over, what they cost."""

from __future__ import annotations

from dataclasses import dataclass

from lattend.cli.arguments import out_option
from lattend.cli.command import Answer, Command, argument, option, setting
from lattend.errors import NamingError
from lattend.nn.images.patch_grid import read_size


@dataclass(frozen=True)
class PatchesCommand(Command):
    """An image in patches, each a token.

    The grid of tokens, what patches share, what is left out or added, and with --channels and --width the
    price of the embedding.

        lattend patches 224 16
        lattend patches 224 16 --channels 3 --width 768
        lattend patches 30x40 8 --stride 6 --padding zeros --out patches.svg
    """

    image: str = argument("IMAGE", "The image: 224, or 480x640.")
    patch: str = argument("PATCH", "The size of a patch: 16, or 8x16.")
    stride: str | None = option("N", "From one patch to the next; its size.")
    padding: str = setting("error|crop|zeros", "What becomes of pixels that are left over.", "error")
    channels: int | None = option("C", "Channels of the image.")
    width: int | None = option("D", "Numbers of a token, for its price.")
    out: str | None = out_option()

    def answer(self) -> Answer:
        if (self.channels is None) != (self.width is None):
            missing = "--channels" if self.channels is None else "--width"
            raise NamingError(f"the price of an embedding needs --channels and --width: give {missing} too")
        from lattend.nn.pictures.patches import draw_patches

        return draw_patches(
            read_size("IMAGE", self.image),
            read_size("PATCH", self.patch),
            None if self.stride is None else read_size("--stride", self.stride),
            self.padding,
            **self.options("channels width"),
        )
