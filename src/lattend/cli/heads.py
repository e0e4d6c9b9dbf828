"""lattend heads: the heads of a layer over the image, and the scores of positional encodings."""

from __future__ import annotations

from typing import Annotated, Any

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
from lattend.cli.output import show
from lattend.errors import NamingError
from lattend.nn.images.size_text import read_size
from lattend.wording import close_names

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
    given = {"FILE": file, "--kernel": kernel, "--dilation": dilation, "--covariance": covariance}
    given |= {"--centres": centres, "--alpha": alpha, "--channels": channels, "--seed": seed}
    where = read_points("--centres", centres, 2)
    widths = read_numbers_of("--alpha", alpha)
    image = None if size is None else read_size("--size", size)
    place = read_place(pixel)
    if scores is not None:
        refuse(given, ("FILE", *OF_HEADS), "is not for --scores; leave it out")
        from lattend.nn.pictures.scores import draw_scores

        options: dict[str, Any] = {"width": channels, "seed": seed, "centres": where, "alpha": widths}
        told = {name: value for name, value in options.items() if value is not None}
        show(draw_scores(scores, size=image, pixel=place, **told), out, json)
        return
    refuse(given, OF_SCORES, "is for --scores; leave it out")
    from lattend.nn.pictures.heads import draw_heads, make_heads

    if file is not None:
        refuse(given, (*OF_HEADS, "--centres", "--alpha"), "is not for saved heads; leave it out")
        close = close_names(file, TRAINING)
        if close:
            raise NamingError(f'there is no file "{file}"; did you mean `lattend heads {close[0]}`?')
        show(draw_heads(file, size=image, pixel=place), out, json)
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
    show(draw_heads(made, size=image, pixel=place), out, json)
