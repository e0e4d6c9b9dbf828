"""try_heads and error_bound: how far soft heads are from a convolution, on one small image and at most."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

from lattend.errors import NamingError
from lattend.nn.convolution.convert import from_conv
from lattend.nn.convolution.geometry import Along, Geometry
from lattend.nn.convolution.layer import ConvAttention, check_centres

FILTERS = ("edges", "average", "sharpen", "random")


@dataclass(frozen=True)
class ConvTrial:
    """An image, what a filter makes of it, and what its heads make of it; all [rows, cols]."""

    image: Tensor
    filter: Tensor
    wanted: Tensor  # the convolution
    soft: Tensor  # heads of finite α
    hard: Tensor  # heads with one key each
    bound: Tensor  # how far soft may be from wanted at each pixel

    @property
    def error(self) -> float:
        """The greatest difference of soft heads from the convolution."""
        return float((self.soft - self.wanted).abs().max())

    @property
    def hard_error(self) -> float:
        """The same of hard heads: rounding alone."""
        return float((self.hard - self.wanted).abs().max())


@torch.no_grad()
def try_heads(geometry: Geometry, rows: int, cols: int, alpha: float, filter: str = "edges") -> ConvTrial:
    """The heads of a filter against its convolution, on `sample_image(rows, cols)`.

    >>> from lattend.nn.convolution.geometry import read_geometry
    >>> trial = try_heads(read_geometry(3), 6, 6, alpha=30.0)
    >>> trial.error < 1e-10, trial.hard_error < 1e-15
    (True, True)
    """
    geometry.outputs(rows, cols)  # raises where the image is too small
    taps = filter_weights(filter, *geometry.kernel)
    conv = nn.Conv2d(1, 1, geometry.kernel, bias=False, dtype=torch.float64, **geometry.options)
    conv.weight.copy_(taps[None, None])
    image = sample_image(rows, cols)
    soft = from_conv(conv, alpha)
    y, x = geometry.y, geometry.x
    around = (x.before, x.after, y.before, y.after)
    whole = pad(image[None, None], around, mode="constant" if geometry.mode == "zeros" else "replicate")
    wanted = conv2d(whole, conv.weight, stride=conv.stride, dilation=conv.dilation)[0, 0]
    by_soft, by_hard = (layer(image[None])[0] for layer in (soft, from_conv(conv)))
    return ConvTrial(image, taps, wanted, by_soft, by_hard, error_bound(soft, image[None]))


def filter_weights(name: str, rows: int, cols: int) -> Tensor:
    """One of FILTERS as a kernel [rows, cols].

    >>> filter_weights("edges", 1, 3)
    tensor([[-0.5000,  0.0000,  0.5000]], dtype=torch.float64)
    """
    if name not in FILTERS:
        raise NamingError(f"filter is one of {', '.join(FILTERS)}, not {name!r}")
    mean = torch.full((rows, cols), 1 / (rows * cols), dtype=torch.float64)
    if name == "average":
        return mean
    if name == "sharpen":
        mean = -mean
        mean[(rows - 1) // 2, (cols - 1) // 2] += 2
        return mean
    if name == "random":
        given = torch.Generator().manual_seed(0)
        return torch.randn(rows, cols, generator=given, dtype=torch.float64) / (rows * cols) ** 0.5
    slope = _along(cols) if cols > 1 else _along(1) + 1
    return (slope / slope.abs().sum()).expand(rows, cols) / rows


def sample_image(rows: int, cols: int) -> Tensor:
    """A ring on a ground that grows lighter, from 0 to 1: edges in every direction, and soft parts."""
    y, x = _along(rows)[:, None], _along(cols)[None, :]
    from_middle = (y * y + x * x).sqrt()
    ground = 0.15 * (2 + y + x) / 2
    return torch.where((from_middle > 0.35) & (from_middle < 0.8), torch.ones_like(ground), ground)


def _along(size: int) -> Tensor:
    """From -1 to 1 in so many places; 0 where there is one alone."""
    return torch.linspace(-1, 1, size, dtype=torch.float64) if size > 1 else torch.zeros(1).double()


AT_ONCE = 2**24  # distances between pixels that are held together, 128 MiB


@torch.no_grad()
def error_bound(layer: ConvAttention, x: Tensor) -> Tensor:
    """How far soft execution can be from the convolution at each output pixel, (N, rows, cols).

    Σ_h leak_h · max_k ‖z_k − z_centre‖ · ‖W^(h)‖₂, a bound of the Euclidean norm over the output's channels.
    In float64; rounding comes on top.
    """
    if not isinstance(layer, ConvAttention):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f"error_bound is for layers that from_conv made, not {type(layer).__name__}")
    layer.check(x)
    check_centres(layer)
    if x.dim() == 3:
        return error_bound(layer, x[None])[0]
    geometry, (rows, cols) = layer.geometry, x.shape[2:]
    geometry.outputs(rows, cols)
    y, across = geometry.y, geometry.x
    z = x.double()
    if geometry.mode == "zeros":
        z = pad(z, (across.before, across.after, y.before, y.after))
    heights, widths = geometry.keys(rows, cols)
    shift = (y.before, across.before) if geometry.mode == "zeros" else (0, 0)
    alpha, centres = layer.alpha.double(), layer.centres.long()
    near_y, sum_y = _others(y, y.outputs(rows), heights, centres[:, 0] + shift[0], alpha)
    near_x, sum_x = _others(across, across.outputs(cols), widths, centres[:, 1] + shift[1], alpha)
    sy, sx = sum_y[:, :, None], sum_x[:, None, :]
    leak = (sy + sx + sy * sx) / ((1 + sy) * (1 + sx))  # [heads, rows, cols] of the output
    centre = near_y[:, :, None] * widths + near_x[:, None, :]
    norms = torch.linalg.matrix_norm(layer.split().double(), 2)
    return torch.einsum("hyx,nhyx,h->nyx", leak, _farthest(z)[:, centre], norms)


def _others(along: Along, outputs: int, size: int, shift: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """The pixel nearest to each head's centre on an axis, and the others' weight as a share of its own."""
    centre = along.stride * torch.arange(outputs, device=shift.device) + shift[:, None]  # [heads, outputs]
    nearest = centre.clamp(0, size - 1)
    pixel = torch.arange(size, device=shift.device)
    beyond = (pixel - centre[..., None]).square() - (nearest - centre)[..., None].square()
    shares = torch.exp(-alpha[:, None, None] * beyond)
    return nearest, shares.masked_fill(pixel == nearest[..., None], 0).sum(-1)


def _farthest(z: Tensor) -> Tensor:
    """max_k ‖z_k − z_j‖ for every pixel j of the images, [N, pixels]."""
    pixels = z.flatten(2).mT  # [N, pixels, channels]
    some = max(1, AT_ONCE // max(1, pixels.shape[0] * pixels.shape[1]))
    exact = "donot_use_mm_for_euclid_dist"
    found = [torch.cdist(part, pixels, compute_mode=exact).amax(2) for part in pixels.split(some, 1)]
    return torch.cat(found, 1)
