"""lattend conv: a convolution as attention heads: what they take, how sharp they must be, both prices."""

from __future__ import annotations

from typing import Annotated

import typer

from lattend.cli.arguments import Json, Out, option
from lattend.cli.output import show
from lattend.errors import DomainError, TextError
from lattend.nn.images.size_text import read_size

EXAMPLES = (
    "lattend conv --kernel 3 --size 8x8 --channels 16 --out-channels 32 --alpha 2",
    "lattend conv --kernel 3 --dilation 2 --padding-mode replicate --error 1e-6",
    "lattend conv --kernel 2x3 --stride 2 --padding 1 --size 9x12 --out conv.svg",
)


def conv(
    kernel: Annotated[str, typer.Option(metavar="K", help="Taps: 3, or rows by columns: 3x5.")] = "3",
    stride: Annotated[str, typer.Option(metavar="N", help="From query to query.")] = "1",
    dilation: Annotated[str, typer.Option(metavar="N", help="From tap to tap.")] = "1",
    padding: Annotated[
        str | None, option("N|same|valid", "Around the image; half the kernel if not given.")
    ] = None,
    padding_mode: Annotated[
        str, typer.Option(metavar="zeros|replicate", help="What stands in the padding.")
    ] = "zeros",
    size: Annotated[str, typer.Option(metavar="ROWSxCOLS", help="The image.")] = "8x8",
    channels: Annotated[int | None, option("C", "Channels in, for the price.")] = None,
    out_channels: Annotated[int | None, option("C", "Channels out.")] = None,
    alpha: Annotated[float | None, option("A", "How sharp heads are: their leak.")] = None,
    error: Annotated[float | None, option("E", "A leak: how sharp heads must be.")] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """A convolution as attention heads, one for each tap of its kernel.

    The pixels they take for a query in the middle and at the corner, the weight that soft heads leak against
    their sharpness α, and the price: hard heads cost what the convolution needs.
    """
    from lattend.nn.pictures.conv import draw_conv

    for name, number in (("--channels", channels), ("--out-channels", out_channels)):
        if number is not None and number < 1:
            raise DomainError(f"{name} must be at least 1, got {number}")
    found = draw_conv(
        read_size("--kernel", kernel),
        stride=read_size("--stride", stride),
        dilation=read_size("--dilation", dilation),
        padding=_padding(padding),
        padding_mode=padding_mode,
        size=read_size("--size", size),
        c_in="c_in" if channels is None else channels,
        c_out="c_out" if out_channels is None else out_channels,
        alpha=alpha,
        error=error,
    )
    show(found, out, json)


def _padding(text: str | None) -> int | tuple[int, int] | str | None:
    if text in (None, "same", "valid"):
        return text
    try:
        return read_size("--padding", text)
    except TextError:
        said = "--padding is same, valid, a whole number, or rows by columns as in 1x2"
        raise TextError(said, text, 0, len(text)) from None
