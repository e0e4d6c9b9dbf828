"""lattend patches: an image cut into patches: how many tokens, what is left over, what they cost."""

from __future__ import annotations

from typing import Annotated

import typer

from lattend.cli.arguments import Json, Out, argument, option
from lattend.cli.output import show
from lattend.errors import NamingError
from lattend.nn.images.patch_grid import read_size

EXAMPLES = (
    "lattend patches 224 16",
    "lattend patches 224 16 --channels 3 --width 768",
    "lattend patches 30x40 8 --stride 6 --padding zeros --out patches.svg",
)


def patches(
    image: Annotated[str, argument("IMAGE", "The image: 224, or 480x640.")],
    patch: Annotated[str, argument("PATCH", "The size of a patch: 16, or 8x16.")],
    stride: Annotated[str | None, option("N", "From one patch to the next; its size.")] = None,
    padding: Annotated[
        str, typer.Option(metavar="error|crop|zeros", help="What becomes of pixels that are left over.")
    ] = "error",
    channels: Annotated[int | None, option("C", "Channels of the image.")] = None,
    width: Annotated[int | None, option("D", "Numbers of a token, for its price.")] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """An image in patches, each a token.

    The grid of tokens, what patches share, what is left out or added, and with --channels and --width the
    price of the embedding.
    """
    if (channels is None) != (width is None):
        missing = "--channels" if channels is None else "--width"
        raise NamingError(f"the price of an embedding needs --channels and --width: give {missing} too")
    from lattend.nn.pictures.patches import draw_patches

    figure = draw_patches(
        read_size("IMAGE", image),
        read_size("PATCH", patch),
        None if stride is None else read_size("--stride", stride),
        padding,
        channels=channels,
        width=width,
    )
    show(figure, out, json)
