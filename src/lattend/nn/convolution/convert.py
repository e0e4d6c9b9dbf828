"""from_conv and to_conv: convolutions into attention heads and back, alone or in a whole model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar, overload

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from lattend.errors import NamingError, TensorError
from lattend.nn.convolution.back import conv_of
from lattend.nn.convolution.geometry import Along, Geometry
from lattend.nn.convolution.layer import ConvAttention, Execution

TOLERANCE = 1e-6
Kind = TypeVar("Kind", bound=nn.Module)


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

    >>> import torch
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
            "heads stand on the pixels of an image, and look back from output to input"
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

    >>> import torch
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
    """Where the kernel of a convolution looks; raises where its padding is no distance to a pixel."""
    axes: list[Along] = []
    for axis in range(2):
        taps, stride, dilation = (int(pair[axis]) for pair in (conv.kernel_size, conv.stride, conv.dilation))
        total = dilation * (taps - 1)
        if conv.padding == "same":
            before, after = total // 2, total - total // 2
        else:
            before = after = 0 if isinstance(conv.padding, str) else int(conv.padding[axis])
        axes.append(Along(taps, stride, dilation, before, after))
    padded = any(along.before or along.after for along in axes)
    if padded and conv.padding_mode not in ("zeros", "replicate"):
        raise NamingError(
            f'{name} has padding_mode="{conv.padding_mode}", and a head sees the pixel nearest its centre: '
            '"replicate", or "zeros" once these are in the image. Pad the image yourself, and take padding=0'
        )
    mode = "replicate" if conv.padding_mode == "replicate" else "zeros"
    return Geometry(axes[0], axes[1], mode)


def _is_other_convolution(module: Any) -> bool:
    others = (nn.Conv1d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    return isinstance(module, others)


def _has_heads(layer: Any) -> bool:
    return all(callable(getattr(layer, name, None)) for name in ("split", "heads"))


def _replaced(
    model: nn.Module, one: Callable[[Kind, str], nn.Module], kind: type[Kind], missing: str
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
