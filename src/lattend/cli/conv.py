"""lattend conv: a convolution as attention heads: what they take, how sharp they must be, both prices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lattend.cli.arguments import Json, Out, option
from lattend.cli.output import show
from lattend.errors import DomainError, NamingError, TextError
from lattend.nn.images.patch_grid import read_size

if TYPE_CHECKING:
    from lattend.nn.convolution.geometry import Geometry

Facts = list[tuple[str, str]]

EXAMPLES = (
    "lattend conv --kernel 3 --size 8x8 --channels 16 --out-channels 32 --alpha 2",
    "lattend conv --kernel 3 --dilation 2 --padding-mode replicate --error 1e-6",
    "lattend conv --kernel 2x3 --stride 2 --padding 1 --size 9x12 --out conv.svg",
    "lattend conv --kernel 3 --alpha 2 --filter edges",
    "lattend conv --kernel 3 --channels 16 --out-channels 32 --prove",
)
MOST_KEYS, MOST_HEADS = 32, 64  # of an image on which heads are run: every query against every key


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
    filter: Annotated[
        str | None,
        option("NAME", "Run soft heads on an image: edges, average, sharpen or random; with --alpha."),
    ] = None,
    prove: Annotated[
        bool, typer.Option("--prove", help="Prove that hard heads cost the same, at all sizes.")
    ] = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """A convolution as attention heads, one for each tap of its kernel.

    The pixels they take for a query in the middle and at the corner, the weight that soft heads leak against
    their sharpness α, and the price: hard heads cost what the convolution needs. With --filter, how far soft
    heads are from the convolution on a small image; with --prove, the price for images of every size.
    """
    from lattend.nn.convolution.geometry import read_geometry
    from lattend.nn.images.patch_grid import pair
    from lattend.nn.pictures.conv import draw_conv

    for name, number in (("--channels", channels), ("--out-channels", out_channels)):
        if number is not None and number < 1:
            raise DomainError(f"{name} must be at least 1, got {number}")
    shape: dict[str, Any] = {
        "kernel": read_size("--kernel", kernel),
        "stride": read_size("--stride", stride),
        "dilation": read_size("--dilation", dilation),
        "padding": _padding(padding),
        "padding_mode": padding_mode,
    }
    image = pair("size", read_size("--size", size))
    figure = draw_conv(
        **shape,
        size=image,
        c_in="c_in" if channels is None else channels,
        c_out="c_out" if out_channels is None else out_channels,
        alpha=alpha,
        error=error,
    )
    more: Facts = []
    data: dict[str, Any] = {}
    if filter is not None:
        if alpha is None:
            raise NamingError("--filter runs soft heads: say how sharp they are, as in --alpha 2")
        facts, data["filter"] = _trial(read_geometry(**shape), image, alpha, filter)
        more += facts
    if prove:
        if channels is None or out_channels is None:
            raise NamingError("--prove needs numbers of channels: give --channels and --out-channels")
        facts, data["same_price"] = _proof(read_geometry(**shape), image, channels, out_channels)
        more += facts
    figure = replace(figure, facts=(*figure.facts, *more), data={**figure.data, **data})
    show(figure, out, json)


def _trial(
    geometry: Geometry, image: tuple[int, int], alpha: float, name: str
) -> tuple[Facts, dict[str, Any]]:
    """Print the error of soft heads against the convolution on an image, and its bound."""
    from lattend.nn.convolution.trial import try_heads
    from lattend.report.numbers import format_number

    keys = max(*image, *geometry.keys(*image))
    if keys > MOST_KEYS or geometry.heads > MOST_HEADS:
        raise DomainError(
            f"--filter runs {geometry.heads:,} heads on {keys:,} rows or columns with the padding; "
            f"at most {MOST_HEADS} heads and {MOST_KEYS} rows and columns: take a smaller --size or --kernel"
        )
    trial = try_heads(geometry, *image, alpha, name)
    numbers = {"error": trial.error, "bound": float(trial.bound.max()), "hard_error": trial.hard_error}
    error, bound, hard = map(format_number, numbers.values())
    sentence = f"soft heads differ from the convolution by {error}, at most {bound}; hard heads by {hard}"
    return [(f"filter {name}", sentence)], {"name": name, **numbers}


def _proof(
    geometry: Geometry, image: tuple[int, int], channels: int, out_channels: int
) -> tuple[Facts, dict[str, Any]]:
    """Print whether hard heads cost as much as the convolution, for all image sizes."""
    from lattend.nn.convolution.convert import priced_heads
    from lattend.nn.convolution.price import QUANTITIES, of_conv
    from lattend.report.numbers import format_value

    layer = priced_heads(geometry, channels, out_channels)
    price = of_conv(layer, *image)
    verdicts = {quantity: layer.same_price(quantity) for quantity in QUANTITIES}
    facts = [
        (f"same {quantity}", f"{verdict}; here {format_value(price.value(quantity))}")
        for quantity, verdict in verdicts.items()
    ]
    return facts, {quantity: verdict.holds for quantity, verdict in verdicts.items()}


def _padding(text: str | None) -> int | tuple[int, int] | str | None:
    if text in (None, "same", "valid"):
        return text
    try:
        return read_size("--padding", text)
    except TextError:
        message = "--padding is same, valid, a whole number, or rows by columns as in 1x2"
        raise TextError(message, text, 0, len(text)) from None
