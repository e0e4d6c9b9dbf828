"""Back from heads to a convolution: where each head looks, how sharply, and which tap it therefore is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lattend.errors import DomainError, NamingError
from lattend.nn.attention.gaussian_heads import Head
from lattend.nn.convolution.geometry import Along, Geometry
from lattend.nn.convolution.layer import ConvAttention
from lattend.nn.convolution.price import padding_of
from lattend.nn.convolution.sharpness import check_share, enough, sharpness
from lattend.rules.language.expr import Truth

WHOLE = 0.05  # how far from a pixel a centre may lie; what leaks for it is counted
LISTED = 6
Shift = tuple[int, int]


class Look(NamedTuple):
    """Where a head looks, k − q in rows and columns, and its α, the lesser of the two directions'."""

    centre: tuple[float, float]
    alpha: float


def conv_of(layer: Any, tolerance: float) -> nn.Conv2d:
    """The convolution of sharp heads: those of `from_conv`, or of a layer with the quadratic encoding."""
    check_share("tolerance", tolerance)
    if isinstance(layer, ConvAttention):
        asked = tolerance if layer.execution == "soft" else None
        shifts = [_shift(at, _look(at, head), asked) for at, head in enumerate(layer.heads())]
        made = _conv(layer.weight, shifts, layer.geometry, layer.groups, layer.bias)
        return made.train(layer.training)
    _check_everywhere(layer)
    shifts = [_shift(at, _look(at, head), tolerance) for at, head in enumerate(layer.heads())]
    with torch.enable_grad():  # so that they say whether they are trained
        weight, bias = layer.split(), layer.bias
    return _conv(weight, shifts, around(shifts), 1, bias).train(layer.training)


def _look(at: int, head: Head) -> Look:
    down, tilt, across = head.precision
    if tilt:
        raise DomainError(
            f"head {at} is tilted, precision {head.precision}: beyond the edge of an image the pixel nearest "
            "to it is not the one that padding repeats; set its second number to 0"
        )
    return Look(head.centre, min(down, across))


def _check_everywhere(layer: Any) -> None:
    """Raises unless positions alone decide where heads look, and all pixels are theirs to look at."""
    if getattr(getattr(layer, "encoding", None), "content", False):
        raise NamingError(
            "these heads look at what pixels hold too, by queries and keys; a convolution sees positions "
            "alone: take the quadratic encoding with content=False"
        )
    rules = getattr(layer, "rules", {2: None})
    if 2 not in rules or getattr(layer, "cross", False):
        raise NamingError("a convolution's heads look from the pixels of an image at the same image")
    if rules[2] is not None and rules[2].condition != Truth(True):
        raise NamingError(
            f'rule "{rules[2].text}" keeps pixels from some queries, and a convolution does not: take "full"'
        )


def _shift(at: int, look: Look, tolerance: float | None) -> Shift:
    """The pixel a head looks at; raises unless its centre is one and, given a tolerance, it is sharp."""
    if not all(math.isfinite(place) for place in look.centre):
        raise DomainError(
            f"the centre of head {at} is ({look.centre[0]:g}, {look.centre[1]:g}), which is no place: its "
            "training went astray; set it to the pixel it is to look at"
        )
    y, x = (round(place) for place in look.centre)
    off = max(abs(look.centre[0] - y), abs(look.centre[1] - x))
    if off > (WHOLE if tolerance is not None else 0):
        raise DomainError(
            f"the centre of head {at} is ({look.centre[0]:g}, {look.centre[1]:g}), and a tap stands on a "
            f"pixel: round it to ({y}, {x}) first, or train it closer"
        )
    if tolerance is None:
        return y, x
    # j steps away the exponent is j² ± 2j·off, no less than j²(1 − 2·off)
    share = 1 - 2 * off
    leak = sharpness(look.alpha * share).leak if look.alpha > 0 else 1.0
    if leak > tolerance:
        raise DomainError(
            f"head {at} leaks {leak:.3g} of its weight at α = {look.alpha:g}, more than the tolerance "
            f"{tolerance:g}; α = {math.ceil(1e3 * enough(tolerance) / share) / 1e3:g} would do"
        )
    return y, x


def around(shifts: Sequence[Shift]) -> Geometry:
    """The smallest kernel with these shifts that keeps the size of an image, padded by its nearest pixels."""
    y, x = (_along([shift[axis] for shift in shifts]) for axis in range(2))
    return Geometry(y, x, "replicate")


def _along(places: Sequence[int]) -> Along:
    low, high = min(places), max(places)
    if -low != (high - low) // 2:  # not what "same" pads: a kernel with its middle at the query
        low, high = -max(-low, high), max(-low, high)
    step = math.gcd(*(place - low for place in (*places, high))) or 1
    return Along((high - low) // step + 1, dilation=step, before=-low, after=high)


def _conv(
    weight: Tensor, shifts: Sequence[Shift], geometry: Geometry, groups: int, bias: Tensor | None
) -> nn.Conv2d:
    """The convolution with the matrices W^(h) [heads, c_in / groups, c_out] at these shifts."""
    y, x, wanted = geometry.y, geometry.x, geometry.shifts()
    kernel = f"{y.taps} × {x.taps} kernel"
    for head, shift in enumerate(shifts):
        if shift not in wanted:
            raise DomainError(
                f"head {head} looks at {shift}, which is no shift of the {kernel}: {_listed(wanted)}"
            )
    missing = [shift for shift in wanted if shift not in shifts]
    if missing:
        raise DomainError(
            f"the heads do not cover a {kernel}: none looks at {_listed(missing)}; "
            "add a head there, with a matrix of zeros if nothing is to be seen"
        )
    taps = weight.new_zeros(len(wanted), *weight.shape[1:])
    places = torch.tensor([wanted.index(shift) for shift in shifts], device=weight.device)
    taps.index_add_(0, places, weight.detach())
    conv = nn.Conv2d(
        weight.shape[1] * groups,
        weight.shape[2],
        (y.taps, x.taps),
        stride=(y.stride, x.stride),
        dilation=(y.dilation, x.dilation),
        padding=padding_of(geometry),
        padding_mode=geometry.mode,
        groups=groups,
        bias=bias is not None,
        dtype=weight.dtype,
        device=weight.device,
    )
    with torch.no_grad():
        conv.weight.copy_(taps.permute(2, 1, 0).unflatten(2, (y.taps, x.taps)))
        if bias is not None and conv.bias is not None:
            conv.bias.copy_(bias).requires_grad_(bias.requires_grad)
    conv.weight.requires_grad_(weight.requires_grad)
    return conv


def _listed(shifts: Sequence[Shift]) -> str:
    some = ", ".join(str(shift) for shift in shifts[:LISTED])
    return some if len(shifts) <= LISTED else f"{some} and {len(shifts) - LISTED} more"
