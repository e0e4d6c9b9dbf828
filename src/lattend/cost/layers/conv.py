"""Convolutions on an image: products inside the image are needed, those on padding are only dense."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lattend.cost.amount import Amount
from lattend.cost.cost import Cost, single
from lattend.cost.layer import ONE_STEP, Array, Columns, Layer, ReferenceRun, Statement
from lattend.cost.pairs import conv_path
from lattend.cost.points import Sizes, points
from lattend.cost.sizes import Size, keeps_recipe, need_number, number_of, read_size, read_sizes
from lattend.errors import DomainError, NamingError
from lattend.rules.language.polynomial import Polynomial

Pair = Size | tuple[Size, Size]
Padding = int | tuple[int, int] | str
MODES = ("zeros", "replicate")


@keeps_recipe
def conv(
    *,
    rows: Size = "rows",
    cols: Size = "cols",
    c_in: Size = "c_in",
    c_out: Size = "c_out",
    kernel: Pair = 3,
    stride: int | tuple[int, int] = 1,
    dilation: int | tuple[int, int] = 1,
    padding: Padding = 0,
    padding_mode: str = "zeros",
    groups: Size = 1,
    bias: bool = True,
    name: str = "conv",
) -> Cost:
    """A 2-D convolution; kernel, stride, dilation and padding are numbers or (rows, cols).

    Padding may also be "same" or "valid", and by `padding_mode` zeros or the nearest pixel ("replicate").
    Needed leaves out multiplies with the zeros of the padding; dense counts them, as most tools do. A kernel
    may be a name too, `kernel="k"`: at most as large as the image, and odd where the padding is "same".

    >>> conv(rows=4, cols=4, c_in=1, c_out=1, padding=1, bias=False).multiplies  # (3*4 - 2)^2
    100
    """
    if padding_mode not in MODES:
        raise NamingError(f"padding_mode is one of {', '.join(MODES)}, not {padding_mode!r}")
    sizes, channels = read_sizes(rows=rows, cols=cols), read_sizes(c_in=c_in, c_out=c_out)
    axes = [
        _ConvAxis.of(size, sizes, kernel, stride, dilation, padding, index, padding_mode)
        for index, size in enumerate(sizes)
    ]
    inside, outputs, seen, pixels, used = (
        getattr(axes[0], name) * getattr(axes[1], name)
        for name in ("inside", "outputs", "filled", "pixels", "taps")
    )
    each = _per_group(channels["c_in"], channels["c_out"], read_size("groups", groups))
    depth, out_channels = Amount.of(each * channels["c_out"]), Amount.of(channels["c_out"])
    taps = Amount.of(axes[0].kernel * axes[1].kernel)
    all_products = outputs * taps * depth
    made = Columns.same(outputs * out_channels)
    filled = Columns.of(seen * out_channels, made.dense)
    image = Array(
        "x",
        Columns.same(Amount.of(sizes["rows"] * sizes["cols"] * channels["c_in"])),
        "input",
        Columns.same(pixels * Amount.of(channels["c_in"])),
    )
    weight = Array("W", Columns.same(taps * depth), "parameter", Columns.same(used * depth))
    out = Array("y", made, touched=filled)
    products = Columns.of(inside * depth, all_products)
    over = "output, tap inside the image, channel in, channel out"
    steps = [
        Statement(name, "products", products, (image, weight), out, filled, over, (taps * Amount.of(each),))
    ]
    parameters = [weight]
    if bias:
        offset = Array("b", Columns.same(out_channels), "parameter")
        parameters.append(offset)
        done = Array("y + b", made)
        steps.append(Statement("bias", "adds", filled, (out, offset), done))
        steps.append(Statement("bias alone", "copies", made - filled, (offset,), done))
    one = Polynomial.constant(1)
    mixes = any(axis.kernel != one for axis in axes)
    options: dict[str, Any] = {
        what: tuple(getattr(axis, what) for axis in axes) for what in ("stride", "dilation")
    }
    options |= {"padding": _both(padding), "padding_mode": padding_mode, "bias": bias}
    taken = {"kernel_rows": axes[0].kernel, "kernel_cols": axes[1].kernel}
    run = ReferenceRun("conv", {**sizes, **channels, **taken, "groups": read_size("groups", groups)}, options)
    made_of, pixels = (tuple(steps), tuple(parameters)), sizes["rows"] * sizes["cols"]
    path = _path(sizes, axes)
    return single(Layer(name, *made_of, ONE_STEP, mixes, path, positions=pixels), run)


@keeps_recipe
def patch_embedding(
    *,
    rows: Size = "rows",
    cols: Size = "cols",
    patch: int | tuple[int, int] = 16,
    c: Size = 3,
    d: Size = "d",
    bias: bool = True,
) -> Cost:
    """An image cut into patches, each made a token of d numbers; a rest at the edges is dropped.

    >>> patch_embedding(rows=224, cols=224, d=768).parameters  # 3*16*16*768 + 768
    590592
    """
    cost = conv(rows=rows, cols=cols, c_in=c, c_out=d, kernel=patch, stride=patch, bias=bias, name="patches")
    return cost.named("patch embedding")


def output_size(size: int, kernel: int, stride: int = 1, dilation: int = 1, padding: int = 0) -> int:
    """How many outputs a convolution has along an axis.

    >>> output_size(224, 16, 16)
    14
    """
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


@dataclass(frozen=True)
class _ConvAxis:
    """Along one axis: pairs (output, tap) inside the image, and what takes part in one."""

    kernel: Polynomial
    stride: int
    dilation: int
    centred: bool  # padded so that every output lies in the middle of its taps
    inside: Amount
    outputs: Amount
    filled: Amount  # outputs with a tap inside the image
    pixels: Amount  # pixels under a tap
    taps: Amount  # taps that meet one

    @staticmethod
    def of(
        name: str,
        sizes: Sizes,
        kernel: Pair,
        stride: Pair,
        dilation: Pair,
        padding: Padding,
        place: int,
        mode: str,
    ) -> _ConvAxis:
        taken = read_size("kernel", _along("kernel", kernel, place))
        taps = number_of(taken)
        by, apart = (
            need_number(what, _along(what, number, place))
            for what, number in (("stride", stride), ("dilation", dilation))
        )
        if taps is None:
            return _ConvAxis.named(name, sizes, taken, by, apart, padding, place, mode)
        size, reach = number_of(sizes[name]), apart * (taps - 1) + 1
        before, after = pad = _padded(padding, place, reach, by)
        if size is not None and size + before + after < reach:
            shown = str(before) if before == after else f"{before} + {after}"
            raise DomainError(
                f"{name} = {size} with padding {shown} is less than the {reach} the kernel spans; pad it more"
            )
        fits = f"{by}*o + {reach} <= {name} + {before + after}"
        tapped, seen = f"{fits} and tap < {taps}", f"{by}*o + {apart}*tap - {before}"
        along, large = {name: sizes[name]}, f"{name} >= {reach - before - after}"
        if mode == "replicate":
            inside = tapped
            pixels = _repeated(name, along, tapped, seen, large, by, after, before + after - reach)
        else:
            inside = f"{tapped} and pixel == {seen} and pixel < {name}"
            pixels = points(inside, along, ("pixel",), large)
        return _ConvAxis(
            taken,
            by,
            apart,
            by == 1 and pad == (apart * (taps // 2),) * 2,
            points(inside, along, where=large),
            points(fits, along, where=large),
            points(inside, along, ("o",), large),
            pixels,
            points(inside, along, ("tap",), large),
        )

    @staticmethod
    def named(
        name: str,
        sizes: Sizes,
        kernel: Polynomial,
        by: int,
        apart: int,
        padding: Padding,
        place: int,
        mode: str,
    ) -> _ConvAxis:
        """The same with a kernel that is a name: at most as large as an image whose side is one, too."""
        if mode != "zeros":
            raise NamingError(f"padding_mode={mode!r} needs a kernel that is a number: give kernel=…")
        reach = "kernel" if apart == 1 else f"{apart}*kernel - {apart - 1}"
        along = {name: sizes[name], "kernel": kernel}
        large = f"{name} >= {reach}"
        if padding == "same":
            _padded(padding, place, 1, by)
            odd = "kernel % 2 == 1"
            large = f"{large} and {odd}" if number_of(sizes[name]) is None else odd
            before, fits, every = f"({reach} - 1) // 2", f"o < {name}", "true"
        else:
            pad, _ = _padded(padding, place, 1, by)
            before, fits, every = str(pad), f"{by}*o + {reach} <= {name} + {2 * pad}", large
        inside = f"{fits} and tap < kernel and pixel == {by}*o + {apart}*tap - {before} and pixel < {name}"
        return _ConvAxis(
            kernel,
            by,
            apart,
            padding == "same",
            points(inside, along, where=large),
            points(fits, along, where=every),
            *(points(inside, along, (index,), large) for index in ("o", "pixel", "tap")),
        )


def _path(sizes: Sizes, axes: list[_ConvAxis]) -> Amount | None:
    """How many of these it takes from one pixel to any other, where that is known."""
    down, across = (number_of(axis.kernel) for axis in axes)
    if down is None or across is None or not all(axis.centred for axis in axes):
        return None
    return conv_path(sizes["rows"], sizes["cols"], (down, across), (axes[0].dilation, axes[1].dilation))


def _repeated(
    name: str, along: Sizes, tapped: str, seen: str, large: str, by: int, after: int, more: int
) -> Amount:
    """The pixels under a tap where those at the edge are repeated: all but the last, and the last."""
    but_last = f"{tapped} and pixel < {name} - 1 and (pixel == {seen} or pixel == 0 and {seen} < 0)"
    # the last output begins at the last multiple of `by` up to name + more: near enough, 1, or not, 0
    most, near = f"{name} + {more}", min(after, by - 1)
    last = points(f"{by}*j <= {most}", along, where=large) - points(
        f"{by}*j < {most} - {near}", along, where=large
    )
    total = points(but_last, along, ("pixel",), large) + last
    if 1 + more >= 0 and (1 + more) % by > after:  # a single pixel always meets a tap
        total = total + points(f"j < 1 and {name} == 1", along, where=large)
    return total


def _padded(padding: Padding, place: int, reach: int, stride: int) -> tuple[int, int]:
    """Pixels before and after an axis; "same" puts the odd one after, as torch does."""
    if padding == "same":
        if stride != 1:
            raise DomainError(f'padding="same" needs stride 1, not {stride}; give a number of pixels')
        return (reach - 1) // 2, reach // 2
    if isinstance(padding, str) and padding != "valid":
        raise NamingError(f'padding is "same", "valid" or a number of pixels, not {padding!r}')
    pad = 0 if isinstance(padding, str) else need_number("padding", _along("padding", padding, place), 0)
    return pad, pad


def _along(name: str, pair: Pair, axis: int) -> Size:
    """The value for one axis."""
    if isinstance(pair, tuple) and len(pair) != 2:
        raise NamingError(f"{name} is one number, or two: rows and columns, not {pair}")
    return pair[axis] if isinstance(pair, tuple) else pair


def _both(padding: Padding) -> tuple[int, int] | str:
    """The padding of rows and columns, or its word."""
    return (padding, padding) if isinstance(padding, int) else padding


def _per_group(channels: Polynomial, c_out: Polynomial, groups: Polynomial) -> Polynomial:
    """Input channels of each output channel."""
    if channels == groups:
        return Polynomial.constant(1)
    number, many = number_of(groups), number_of(channels)
    if number is None:
        raise NamingError("groups is a number, or the same as c_in")
    if many is not None and many % number:
        raise DomainError(f"c_in = {many} cannot be cut into {number} groups")
    out = number_of(c_out)
    if out is not None and out % number:
        raise DomainError(f"c_out = {out} cannot be cut into {number} groups")
    return channels.times(Fraction(1, number))
