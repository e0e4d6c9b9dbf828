"""The catalogue on images: neighborhoods, rows and columns, shifted windows, raster order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast

from lattend.errors import DomainError
from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.language import expr
from lattend.rules.language.parser import parse
from lattend.rules.rule import Rule, check_integer

_SIZE = {"y": "rows", "x": "cols", "z": "depth"}

# One axis of each kind: the condition, and how many keys it admits; a is the axis, size its length
_CONDITION = {
    ("clip", False): "abs(q{a} - k{a}) <= r",
    ("clip", True): "abs(q{a} - k{a}) <= r*step and (q{a} - k{a}) % step == 0",
    ("shift", False): "min(q{a}, {size} - 1 - r) - r <= k{a} <= max(q{a}, r) + r",
    ("shift", True): "q{a} % step == k{a} % step and "
    "min(q{a} // step, ({size} - 1 - q{a} % step) // step - r) - r <= k{a} // step "
    "<= max(q{a} // step, r) + r",
}
_KEYS = {
    ("clip", False): "(min(q{a}, r) + 1 + min({size} - 1 - q{a}, r))",
    ("clip", True): "(min(q{a} // step, r) + 1 + min(({size} - 1 - q{a}) // step, r))",
    ("shift", False): "min({size}, 2*r + 1)",
    ("shift", True): "min(({size} - 1 - q{a} % step) // step + 1, 2*r + 1)",
}


def neighbourhood(
    r: int | None = None,
    step: int | Literal["step"] | None = None,
    edge: Literal["clip", "shift"] = "clip",
    axes: Literal[2, 3] = 2,
) -> Rule:
    """The pixels within r along every axis: `abs(qy - ky) <= r and abs(qx - kx) <= r`.

    2r + 1 keys along an axis: r counts one side, NATTEN's kernel_size is 2r + 1. At the border
    `edge="clip"` drops the keys outside, as a padded convolution does; `edge="shift"` moves the window
    inside, as NATTEN does, so that every query keeps 2r + 1 keys along an axis that has as many. With a
    step (NATTEN's dilation) the window takes every step-th pixel: those with the query's remainder modulo
    step, so the farthest is r*step away when clipped.

        clip      shift        what the top left pixel of a 4 x 4 image attends to, r = 1
        ##..      ###.
        ##..      ###.
        ....      ###.
        ....      ....

    `step="step"` leaves the step symbolic, a number binds it, None is every pixel; it is that of Hassani and
    Shi 2022, Dilated Neighborhood Attention Transformer.

    >>> neighbourhood(r=1).mask(rows=3, cols=3).sum()  # (2 + 3 + 2)**2
    np.int64(49)
    """
    if edge not in ("clip", "shift"):
        raise DomainError(f'neighbourhood(edge={edge!r}): edge is "clip" or "shift"')
    if axes not in (2, 3):
        raise DomainError(f"neighbourhood(axes={axes!r}): an image has 2 axes, a volume 3")
    if isinstance(step, str) and step != "step":
        raise DomainError(f'neighbourhood(step={step!r}): give a number, "step" or None')
    kind = (edge, step is not None)
    names = "zyx"[-axes:]
    text = " and ".join(_CONDITION[kind].format(a=a, size=_SIZE[a]) for a in names)
    about = RuleInfo(
        name="neighbourhood",
        meaning="a pixel attends to the pixels within r of it along every axis"
        + (", every step-th one" if step is not None else "")
        + ("; at the border the window moves inside" if edge == "shift" else "; keys outside are dropped"),
        keys="*".join(_KEYS[kind].format(a=a, size=_SIZE[a]) for a in names),
        reference="Hassani et al. 2023, Neighborhood Attention Transformer",
        aliases=(
            "neighborhood(r, step, edge)",
            "natten(kernel_size = 2*r + 1, stride, dilation = step, is_causal)",
        ),
        elsewhere=('NATTEN: kernel_size = 2*r + 1, dilation = step, windows moved inside (edge="shift")',),
    )
    return entry(text, about, where="r >= 0", r=r, step=None if isinstance(step, str) else step)


_AXES = {
    1: (("", "n"),),
    2: (("y", "rows"), ("x", "cols")),
    3: (("z", "depth"), ("y", "rows"), ("x", "cols")),
}


def natten(
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    is_causal: bool | Sequence[bool] = False,
    axes: Literal[1, 2, 3] = 2,
) -> Rule:
    """NATTEN's window, one number for all axes or one for each: `natten((7, 3), is_causal=(True, False))`.

    Along an axis that is not causal the window of kernel_size keys has kernel_size // 2 of them before the
    query and is moved inside at the border, so every query has kernel_size keys. Along a causal one it ends
    at the query: itself and the kernel_size - 1 before it, and fewer near the start. With a stride, so many
    queries in a row share the window of their middle one (of 2 the second), of the last where it is causal.
    With a dilation the keys are those with the query's remainder modulo dilation. An axis has at least
    kernel_size * dilation positions, as NATTEN demands.

        not causal  causal  stride 2     one axis of 5 positions, kernel_size = 3
        ###..       #....   ###..
        ###..       ##...   ###..
        .###.       ###..   ..###
        ..###       .###.   ..###
        ..###       ..###   ..###

    >>> natten(3).mask(rows=3, cols=3).sum()  # 9 pixels * 3*3
    np.int64(81)
    >>> (
    ...     natten(3, axes=1).mask(n=5).sum(),
    ...     natten(3, is_causal=True, axes=1).mask(n=5).sum(),
    ... )  # 5*3, 1 + 2 + 3*3
    (np.int64(15), np.int64(12))
    """
    options = kernel_size, stride, dilation, is_causal
    several = [one for one in options if isinstance(one, (tuple, list))]
    number = len(several[0]) if several else axes
    if number not in _AXES:
        raise DomainError(f"natten: there are 1, 2 or 3 axes, got {number}")
    names = "kernel_size", "stride", "dilation", "is_causal"
    sizes, strides, steps, causal = (
        _each(name, one, number) for name, one in zip(names, options, strict=True)
    )
    windows = [*zip(sizes, strides, steps, causal, strict=True)]
    for window in windows:
        _check_window(*window)
    where = " and ".join(
        f"{length} >= {size * step}"
        for (_, length), size, step in zip(_AXES[number], sizes, steps, strict=True)
    )
    if number == 2 and len({*windows}) == 1 and windows[0][0] % 2 and windows[0][1::2] == (1, False):
        plain = neighbourhood(sizes[0] // 2, None if steps[0] == 1 else steps[0], "shift")
        return replace(plain, where=expr.all_of(plain.where, parse(where)))
    made = [
        (_causal if one else _around)(*axis, size, stride, step)
        for axis, (size, stride, step, one) in zip(_AXES[number], windows, strict=True)
    ]
    about = RuleInfo(
        name="neighbourhood",
        meaning="NATTEN's window along every axis: around the query, moved inside at the border, or causal",
        keys="*".join(f"({keys})" for _, keys in made),
        reference="Hassani et al. 2023, Neighborhood Attention Transformer",
    )
    return entry(" and ".join(condition for condition, _ in made), about, where=where)


def _each(name: str, value: int | Sequence[int], number: int) -> list[int]:
    """Returns one number for each axis."""
    if not isinstance(value, (tuple, list)):
        return [cast(int, value)] * number
    if len(value) != number:
        raise DomainError(f"natten({name}={value!r}): give one number, or one for each of {number} axes")
    return [*value]


def _check_window(size: int, stride: int, step: int, causal: object) -> None:
    for name, value in (("kernel_size", size), ("stride", stride), ("dilation", step)):
        check_integer(name, value)
        if value < 1:
            raise DomainError(f"natten({name}={value}): {name} is at least 1")
    if causal not in (0, 1):
        raise DomainError(f"natten(is_causal={causal!r}): is_causal is True or False, for each axis")
    if stride > size:
        raise DomainError(
            f"natten(stride={stride}): stride is 1 to kernel_size, got {stride} with kernel_size {size}"
        )


def _causal(a: str, length: str, size: int, stride: int, step: int) -> tuple[str, str]:
    """Returns the condition of a causal axis, and its number of keys."""
    if stride == 1:
        far = (size - 1) * step
        apart = f" and (q{a} - k{a}) % {step} == 0" if step > 1 else ""
        return f"k{a} <= q{a} and q{a} - k{a} <= {far}{apart}", f"min(q{a} // {step}, {size - 1}) + 1"
    query, key, last, group = _grouped(a, length, step)
    leader = f"min({_first(query, stride)} + {stride - 1}, {last})"
    window = f"k{a} <= q{a} and {leader} - {size - 1} <= {key}"
    return f"{group}{window}", f"{query} - max({leader} - {size - 1}, 0) + 1"


def _around(a: str, length: str, size: int, stride: int, step: int) -> tuple[str, str]:
    """Returns the condition of an axis whose window is moved inside at the border, and its number of keys."""
    before, after = size // 2, (size - 1) // 2
    query, key, last, group = _grouped(a, length, step)
    leader = query if stride == 1 else f"{_first(query, stride)} + {stride // 2}"
    end = f"{length} - {1 + after}" if step == 1 else f"{last} - {after}"
    window = f"min({leader}, {end}) - {before} <= {key} <= max({leader}, {before}) + {after}"
    return f"{group}{window}", f"min({last} + 1, {size})"


def _grouped(a: str, length: str, step: int) -> tuple[str, str, str, str]:
    """The query, the key and the last position as counted within the query's dilation group; who is in it."""
    if step == 1:
        return f"q{a}", f"k{a}", f"{length} - 1", ""
    last = f"({length} - 1 - q{a} % {step}) // {step}"
    return f"q{a} // {step}", f"k{a} // {step}", last, f"q{a} % {step} == k{a} % {step} and "


def _first(query: str, stride: int) -> str:
    """Returns the first query that has the same window."""
    return f"{query} // {stride} * {stride}"


AXIAL = RuleInfo(
    name="axial",
    meaning="a pixel attends to its row and its column",
    keys="rows + cols - 1",
    reference="Ho et al. 2019, Axial Attention in Multidimensional Transformers",
    aliases=("criss_cross",),
    elsewhere=(
        "CCNet: criss-cross attention",
        "Axial Transformer: rows and columns in turn, one a layer",
    ),
)


def axial() -> Rule:
    """Its row and its column: `qy == ky or qx == kx`.

    rows + cols - 1 keys a query.

        .#.        what the middle pixel of a 3 x 3 image attends to
        ###
        .#.

    >>> axial().mask(rows=2, cols=3).sum()  # 6 pixels * (2 + 3 - 1)
    np.int64(24)
    """
    return entry("qy == ky or qx == kx", AXIAL)


SWIN = RuleInfo(
    name="swin",
    meaning="w x w windows, shifted by `shift`; pixels attend to one another inside a window",
    keys="(min(rows, (qy - shift) // w*w + shift + w) - max(0, (qy - shift) // w*w + shift))"
    "*(min(cols, (qx - shift) // w*w + shift + w) - max(0, (qx - shift) // w*w + shift))",
    reference="Liu et al. 2021, Swin Transformer",
    aliases=("shifted_window(w, shift)",),
    elsewhere=("Swin: window_size = w, shift_size = shift",),
)


def swin(w: int | None = None, shift: int | None = None) -> Rule:
    """Shifted windows: `(qy - shift) // w == (ky - shift) // w and (qx - shift) // w == (kx - shift) // w`.

    w*w keys a query inside; a window cut by the border is smaller. shift = 0 is the unshifted layer, shift
    = w // 2 the shifted one. Swin rolls the image and masks the regions that a roll joins: the same pairs
    when w divides both sizes.

        ...        what the middle pixel of a 3 x 3 image attends to, w = 2, shift = 1
        .##
        .##

    >>> swin(w=2, shift=1).mask(rows=3, cols=3).sum()  # (1*1 + 2*2)**2
    np.int64(25)
    """
    text = "(qy - shift) // w == (ky - shift) // w and (qx - shift) // w == (kx - shift) // w"
    return entry(text, SWIN, where="0 <= shift and shift < w", w=w, shift=shift)


RASTER = RuleInfo(
    name="raster",
    meaning="a pixel attends to itself and all pixels before it in reading order",
    keys="qy*cols + qx + 1",
    reference="van den Oord et al. 2016, Pixel Recurrent Neural Networks",
    aliases=("raster_scan",),
    elsewhere=("PixelCNN and Image GPT: autoregressive in raster order",),
)


def raster() -> Rule:
    """Causal in reading order: `ky < qy or ky == qy and kx <= qx`.

    qy*cols + qx + 1 keys a query: causal on the image's pixels in reading order. Parmar et
    al. 2018, Image Transformer, has it too.

        ###        what the middle pixel of a 3 x 3 image attends to
        ##.
        ...

    >>> raster().mask(rows=2, cols=2).sum()  # 1 + 2 + 3 + 4
    np.int64(10)
    """
    return entry("ky < qy or ky == qy and kx <= qx", RASTER)
