"""Convolutions on an image: products inside the image are needed, those on padding are only dense."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from lattend.costs.amount import Amount
from lattend.costs.cost import Cost, single
from lattend.costs.layer import ONE_STEP, Layer
from lattend.costs.paths import conv_path
from lattend.costs.points import Sizes, points
from lattend.costs.sizes import Size, need_number, number_of, read_size
from lattend.costs.statement import Array, Columns, Statement
from lattend.counts.polynomial import Polynomial
from lattend.errors import DomainError, NamingError

Pair = Size | tuple[Size, Size]


def conv(
    *,
    rows: Size = "rows",
    cols: Size = "cols",
    c_in: Size = "c_in",
    c_out: Size = "c_out",
    kernel: Pair = 3,
    stride: int | tuple[int, int] = 1,
    dilation: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    groups: Size = 1,
    bias: bool = True,
    name: str = "conv",
) -> Cost:
    """A 2-D convolution; kernel, stride, dilation and padding are numbers or (rows, cols).

    Needed leaves out multiplies with the zeros of the padding; dense counts them, as most tools do.

    >>> conv(rows=4, cols=4, c_in=1, c_out=1, padding=1, bias=False).multiplies  # (3*4 - 2)^2
    100
    """
    sizes = {"rows": read_size("rows", rows), "cols": read_size("cols", cols)}
    channels = {"c_in": read_size("c_in", c_in), "c_out": read_size("c_out", c_out)}
    axes = [
        _Axis.of(size, sizes, kernel, stride, dilation, padding, place) for place, size in enumerate(sizes)
    ]
    inside, outputs, seen, pixels, used = (
        getattr(axes[0], name) * getattr(axes[1], name)
        for name in ("inside", "outputs", "filled", "pixels", "taps")
    )
    each = _per_group(channels["c_in"], channels["c_out"], read_size("groups", groups))
    depth, out_channels = Amount.of(each * channels["c_out"]), Amount.of(channels["c_out"])
    taps = Amount.number(axes[0].kernel * axes[1].kernel)
    whole = outputs * taps * depth
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
    products = Columns.of(inside * depth, whole)
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
    sides = (axes[0].kernel, axes[1].kernel)
    path = None
    if all(axis.stride == 1 and axis.padding == axis.dilation * (axis.kernel // 2) for axis in axes):
        path = conv_path(sizes["rows"], sizes["cols"], sides, (axes[0].dilation, axes[1].dilation))
    across = max(sides) > 1
    return single(Layer(name, tuple(steps), tuple(parameters), ONE_STEP, across, path))


def patch_embedding(
    *,
    rows: Size = "rows",
    cols: Size = "cols",
    patch: int | tuple[int, int] = 16,
    c: Size = 3,
    d: Size = "d",
    bias: bool = True,
) -> Cost:
    """An image cut into patches, each made a token of d numbers; a rest at the edges is dropped."""
    found = conv(rows=rows, cols=cols, c_in=c, c_out=d, kernel=patch, stride=patch, bias=bias, name="patches")
    return found.named("patch embedding")


def output_size(size: int, kernel: int, stride: int = 1, dilation: int = 1, padding: int = 0) -> int:
    """How many outputs a convolution has along an axis.

    >>> output_size(224, 16, 16)
    14
    """
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


@dataclass(frozen=True)
class _Axis:
    """Along one axis: pairs (output, tap) inside the image, and what takes part in one."""

    kernel: int
    stride: int
    dilation: int
    padding: int
    inside: Amount
    outputs: Amount
    filled: Amount  # outputs that see the image
    pixels: Amount  # pixels that are seen
    taps: Amount  # taps that see one

    @staticmethod
    def of(
        name: str,
        sizes: Sizes,
        kernel: Pair,
        stride: Pair,
        dilation: Pair,
        padding: Pair,
        place: int,
    ) -> _Axis:
        taps, by, apart, pad = (
            _of_axis(what, given, place, least)
            for what, given, least in (
                ("kernel", kernel, 1),
                ("stride", stride, 1),
                ("dilation", dilation, 1),
                ("padding", padding, 0),
            )
        )
        size, reach = number_of(sizes[name]), apart * (taps - 1) + 1
        if size is not None and size + 2 * pad < reach:
            raise DomainError(
                f"{name} = {size} with padding {pad} is less than the {reach} the kernel spans; pad it more"
            )
        fits = f"{by}*o + {reach} <= {name} + {2 * pad}"
        inside = f"{fits} and tap < {taps} and pixel == {by}*o + {apart}*tap - {pad} and pixel < {name}"
        along, large = {name: sizes[name]}, f"{name} >= {reach - 2 * pad}"
        return _Axis(
            taps,
            by,
            apart,
            pad,
            points(inside, along, where=large),
            points(fits, along, where=large),
            points(inside, along, ("o",), large),
            points(inside, along, ("pixel",), large),
            points(inside, along, ("tap",), large),
        )


def _of_axis(name: str, given: Pair, axis: int, least: int) -> int:
    if isinstance(given, tuple) and len(given) != 2:
        raise NamingError(f"{name} is one number, or two: rows and columns, not {given}")
    return need_number(name, given[axis] if isinstance(given, tuple) else given, least)


def _per_group(channels: Polynomial, c_out: Polynomial, groups: Polynomial) -> Polynomial:
    """The channels each output channel sees."""
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
