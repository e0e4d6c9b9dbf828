"""from_conv and to_conv: convolutions into attention heads and back, alone or in a whole model."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from lattend.errors import DomainError, NamingError, TensorError
from lattend.nn.attention.gaussian_heads import Head
from lattend.nn.convolution.geometry import Along, Geometry
from lattend.nn.convolution.layer import ConvAttention, Execution
from lattend.nn.convolution.sharpness import check_share, enough, sharpness
from lattend.rules.language.expr import Truth

TOLERANCE = 1e-6
WHOLE = 0.05  # how far from a pixel a centre may lie; what leaks for it is counted
LISTED = 6
Shift = tuple[int, int]
CallSignature = TypeVar("CallSignature", bound=nn.Module)


@overload
def from_conv(
    conv: nn.Conv2d,
    alpha: float | Tensor | None = ...,
    *,
    execution: Execution | None = ...,
    learn: bool = ...,
) -> ConvAttention: ...
@overload
def from_conv(
    conv: nn.Module,
    alpha: float | Tensor | None = ...,
    *,
    execution: Execution | None = ...,
    learn: bool = ...,
) -> nn.Module: ...
def from_conv(
    conv: nn.Module,
    alpha: float | Tensor | None = None,
    *,
    execution: Execution | None = None,
    learn: bool = False,
) -> nn.Module:
    """The attention layer that gives what a convolution gives; of a model, a copy with all of them replaced.

    A head for every tap of the kernel, with W^(h) = W^conv at its shift. Without `alpha` heads are hard, each
    with the one key stride·q + Δ; with it they are soft, of that sharpness. `learn` makes α and the centres
    parameters of soft heads. A layer that a model uses twice stays one; two layers with one weight tensor
    get a weight each, which are trained apart.

    >>> conv = nn.Conv2d(3, 8, kernel_size=3, padding=1)
    >>> layer = from_conv(conv)
    >>> layer
    ConvAttention(3, 8, heads=3×3, padding=(1, 1, 1, 1) zeros, execution='hard')
    >>> image = torch.randn(2, 3, 5, 7)
    >>> torch.allclose(layer(image), conv(image), atol=1e-5)
    True
    """
    chosen: Execution = execution or ("hard" if alpha is None else "soft")

    def one(found: nn.Conv2d, name: str) -> ConvAttention:
        return _heads(found, name, alpha, chosen, learn)

    if isinstance(conv, nn.Conv2d):
        return one(conv, "conv")
    if _is_other_convolution(conv):
        raise NamingError(
            f"from_conv takes nn.Conv2d, or a model with such layers, not {type(conv).__name__}: "
            "heads stand on the pixels of an image, and attend from output to input"
        )
    return _replaced(conv, one, nn.Conv2d, "from_conv found no nn.Conv2d")


@overload
def to_conv(layer: ConvAttention, *, tolerance: float = ...) -> nn.Conv2d: ...
@overload
def to_conv(layer: nn.Module, *, tolerance: float = ...) -> nn.Module: ...
def to_conv(layer: nn.Module, *, tolerance: float = TOLERANCE) -> nn.Module:
    """The convolution that sharp heads amount to; of a model, a copy with all layers that `from_conv` made.

    Takes one layer of attention with the quadratic encoding too. Centres of soft heads must lie within 0.05
    of a pixel and cover a kernel, and the heads must leak no more than `tolerance` of their weight.

    >>> conv = nn.Conv2d(3, 8, kernel_size=2, stride=2)
    >>> again = to_conv(from_conv(conv))
    >>> again, torch.equal(again.weight, conv.weight)
    (Conv2d(3, 8, kernel_size=(2, 2), stride=(2, 2)), True)
    """
    if isinstance(layer, ConvAttention) or _has_heads(layer):
        return conv_of(layer, tolerance)

    def one(found: ConvAttention, name: str) -> nn.Conv2d:
        return conv_of(found, tolerance)

    return _replaced(layer, one, ConvAttention, "to_conv found no layer made by from_conv")


def _heads(
    conv: nn.Conv2d, name: str, alpha: float | Tensor | None, execution: Execution, learn: bool
) -> ConvAttention:
    """The heads of one convolution, in its dtype and on its device, with weights of their own."""
    if is_lazy(conv.weight):
        raise TensorError(f"{name} does not know its channels yet; run it once on an image first")
    _check_plain(conv, name)
    weight = conv.weight.detach().flatten(2).permute(2, 1, 0).clone()  # [heads, c_in / groups, c_out]
    bias = None if conv.bias is None else conv.bias.detach().clone()
    made = ConvAttention(
        weight.contiguous(),
        bias,
        geometry_of(conv, name),
        groups=conv.groups,
        alpha=alpha,
        execution=execution,
        learn=learn,
    )
    made.weight.requires_grad_(conv.weight.requires_grad)
    if made.bias is not None and conv.bias is not None:
        made.bias.requires_grad_(conv.bias.requires_grad)
    return made.train(conv.training)


def priced_heads(geometry: Geometry, c_in: int, c_out: int) -> ConvAttention:
    """Hard heads without numbers, for their price alone: no memory is taken, however many the channels.

    >>> from lattend.nn.convolution.geometry import read_geometry
    >>> bool(priced_heads(read_geometry(3), 1000, 1000).same_price())
    True
    """
    return _heads(
        nn.Conv2d(c_in, c_out, geometry.kernel, bias=False, device="meta", **geometry.options),
        "conv",
        None,
        "hard",
        learn=False,
    )


def _check_plain(conv: nn.Conv2d, name: str) -> None:
    """Raises where calling the convolution does more than torch's Conv2d, which heads would leave out."""
    for method in ("forward", "_conv_forward"):
        if getattr(getattr(conv, method), "__func__", None) is not getattr(nn.Conv2d, method):
            raise NamingError(
                f"{name} is a {type(conv).__name__} with a {method} of its own, and heads give what that of "
                "nn.Conv2d gives; make a plain nn.Conv2d with its weights, and do the rest around it"
            )
    if conv._forward_hooks or conv._forward_pre_hooks:
        raise NamingError(
            f"{name} has forward hooks, which heads would not call; remove them first, and register them on "
            "the layer that from_conv makes"
        )


def geometry_of(conv: nn.Conv2d, name: str = "conv") -> Geometry:
    """The receptive field of a convolution's kernel; raises where its padding is no distance to a pixel."""
    pairs = (conv.kernel_size, conv.stride, conv.dilation)
    kernel, stride, dilation = ((int(pair[0]), int(pair[1])) for pair in pairs)
    padding = conv.padding if isinstance(conv.padding, str) else (int(conv.padding[0]), int(conv.padding[1]))
    mode = "replicate" if conv.padding_mode == "replicate" else "zeros"
    found = Geometry.of(kernel, stride, dilation, padding, mode)
    padded = any(along.before or along.after for along in (found.y, found.x))
    if padded and conv.padding_mode not in ("zeros", "replicate"):
        raise NamingError(
            f'{name} has padding_mode="{conv.padding_mode}", and a head sees the pixel nearest its centre: '
            '"replicate", or "zeros" once these are in the image. Pad the image yourself, and take padding=0'
        )
    return found


def _is_other_convolution(module: Any) -> bool:
    others = (nn.Conv1d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    return isinstance(module, others)


def _has_heads(layer: Any) -> bool:
    return all(callable(getattr(layer, name, None)) for name in ("split", "heads"))


def _replaced(
    model: nn.Module, one: Callable[[CallSignature, str], nn.Module], kind: type[CallSignature], missing: str
) -> nn.Module:
    """A copy of the model with every module of a kind replaced; one that is used twice stays one."""
    if not isinstance(model, nn.Module):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f"{missing}: {type(model).__name__} is no torch module")
    copied = copy.deepcopy(model)
    made: dict[nn.Module, nn.Module] = {}
    for path, module in list(copied.named_modules(remove_duplicate=False)):
        if isinstance(module, kind):
            parent, _, name = path.rpartition(".")
            if module not in made:
                made[module] = one(module, path)
            setattr(copied.get_submodule(parent), name, made[module])
    if not made:
        raise NamingError(f"{missing} in {type(model).__name__}")
    return copied


def conv_of(layer: Any, tolerance: float) -> nn.Conv2d:
    """The convolution of sharp heads: those of `from_conv`, or of a layer with the quadratic encoding."""
    check_share("tolerance", tolerance)
    if isinstance(layer, ConvAttention):
        asked = tolerance if layer.execution == "soft" else None
        shifts = [_shift(at, head, asked) for at, head in enumerate(layer.heads())]
        made = _conv(layer.weight, shifts, layer.geometry, layer.groups, layer.bias)
        return made.train(layer.training)
    _check_everywhere(layer)
    shifts = [_shift(at, head, tolerance) for at, head in enumerate(layer.heads())]
    with torch.enable_grad():  # so that they say whether they are trained
        weight, bias = layer.split(), layer.bias
    return _conv(weight, shifts, around(shifts), 1, bias).train(layer.training)


def _check_everywhere(layer: Any) -> None:
    """Raises unless positions alone decide the weights of the heads, and all pixels are their keys."""
    if getattr(getattr(layer, "encoding", None), "content", False):
        raise NamingError(
            "these heads attend by what pixels hold too, by queries and keys; a convolution sees positions "
            "alone: take the quadratic encoding with content=False"
        )
    rules = getattr(layer, "rules", {2: None})
    if 2 not in rules or getattr(layer, "cross", False):
        raise NamingError("a convolution's heads attend from the pixels of an image to the same image")
    if rules[2] is not None and rules[2].condition != Truth(True):
        raise NamingError(
            f'rule "{rules[2].text}" keeps pixels from some queries, and a convolution does not: take "full"'
        )


def _shift(at: int, head: Head, tolerance: float | None) -> Shift:
    """The pixel a head attends to; raises unless its centre is one and, given a tolerance, it is sharp."""
    down, tilt, across = head.precision
    if tilt:
        raise DomainError(
            f"head {at} is tilted, precision {head.precision}: beyond the edge of an image the pixel nearest "
            "to it is not the one that padding repeats; set its second number to 0"
        )
    alpha = min(down, across)
    if not all(math.isfinite(place) for place in head.centre):
        raise DomainError(
            f"the centre of head {at} is ({head.centre[0]:g}, {head.centre[1]:g}), which is no place: its "
            "training went astray; set it to the pixel it is to attend to"
        )
    y, x = (round(place) for place in head.centre)
    off = max(abs(head.centre[0] - y), abs(head.centre[1] - x))
    if off > (WHOLE if tolerance is not None else 0):
        raise DomainError(
            f"the centre of head {at} is ({head.centre[0]:g}, {head.centre[1]:g}), and a tap stands on a "
            f"pixel: round it to ({y}, {x}) first, or train it closer"
        )
    if tolerance is None:
        return y, x
    # j steps away the exponent is j² ± 2j·off, no less than j²(1 − 2·off)
    share = 1 - 2 * off
    leak = sharpness(alpha * share).leak if alpha > 0 else 1.0
    if leak > tolerance:
        raise DomainError(
            f"head {at} leaks {leak:.3g} of its weight at α = {alpha:g}, more than the tolerance "
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
    wanted, (rows, cols) = geometry.shifts(), geometry.kernel
    kernel = f"{rows} × {cols} kernel"
    for head, shift in enumerate(shifts):
        if shift not in wanted:
            raise DomainError(
                f"head {head} attends to {shift}, which is no shift of the {kernel}: {_listed(wanted)}"
            )
    missing = [shift for shift in wanted if shift not in shifts]
    if missing:
        raise DomainError(
            f"the heads do not cover a {kernel}: none attends to {_listed(missing)}; "
            "add a head there, with a matrix of zeros if nothing is to be seen"
        )
    taps = weight.new_zeros(len(wanted), *weight.shape[1:])
    places = torch.tensor([wanted.index(shift) for shift in shifts], device=weight.device)
    taps.index_add_(0, places, weight.detach())
    conv = nn.Conv2d(
        weight.shape[1] * groups,
        weight.shape[2],
        geometry.kernel,
        **geometry.options,
        groups=groups,
        bias=bias is not None,
        dtype=weight.dtype,
        device=weight.device,
    )
    with torch.no_grad():
        conv.weight.copy_(taps.permute(2, 1, 0).unflatten(2, geometry.kernel))
        if bias is not None and conv.bias is not None:
            conv.bias.copy_(bias).requires_grad_(bias.requires_grad)
    conv.weight.requires_grad_(weight.requires_grad)
    return conv


def _listed(shifts: Sequence[Shift]) -> str:
    some = ", ".join(str(shift) for shift in shifts[:LISTED])
    return some if len(shifts) <= LISTED else f"{some} and {len(shifts) - LISTED} more"
