"""The error of soft heads: a bound at every pixel, from what each head leaks and where it could go."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from lattend.errors import NamingError
from lattend.nn.convolution.geometry import Along
from lattend.nn.convolution.layer import ConvAttention, check_centres

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
