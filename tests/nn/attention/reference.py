"""Attention written out: every score of every pair as the sum of its terms, in float64."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import lattend as lt


def outputs(
    layer: Any, x: Tensor, mask: Tensor, keys: Tensor | None = None, values: Tensor | None = None
) -> Tensor:
    """What the layer gives; mask is [heads or 1, *places of queries, *places of keys]."""
    y = x if keys is None else keys
    z = y if values is None else values
    scored = scores(layer, x, y)
    marks = mask.reshape(-1, scored.shape[2], scored.shape[3])
    weights = softmax(scored, marks)
    v = torch.einsum("bmi,hio->bhmo", z.flatten(1, -2), layer.W_v)
    v = v if layer.b_v is None else v + layer.b_v[:, None]
    out = torch.einsum("bhnm,bhmo,hod->bnd", weights, v, layer.W_out)
    out = out if layer.b_out is None else out + layer.b_out
    return out.unflatten(1, x.shape[1:-1])


def softmax(scored: Tensor, marks: Tensor) -> Tensor:
    """Shares of each row's attended pairs; a row without any has none."""
    powers = scored.exp() * marks
    total = powers.sum(-1, keepdim=True)
    return powers / total.where(total > 0, 1.0)


def scores(layer: Any, x: Tensor, y: Tensor) -> Tensor:
    """[batch, heads, n, m]."""
    encoding, axes = layer.encoding, x.dim() - 2
    delta = shifts(x.shape[1:-1], y.shape[1:-1])  # [n, m, axes]
    total = torch.zeros(x.shape[0], layer.head_count, *delta.shape[:2], dtype=torch.float64)
    if layer.W_q is not None:
        left = terms(encoding, x.flatten(1, -2), layer.W_q, layer.b_q, x.shape[1:-1])
        other = getattr(encoding, "P_k", None)
        right = terms(encoding, y.flatten(1, -2), layer.W_k, layer.b_k, y.shape[1:-1], other)
        for a in left:
            for b in right:
                total = total + layer.scale * torch.einsum("bhnd,bhmd->bhnm", a, b)
        if isinstance(encoding, lt.nn.Relative):
            far = torch.einsum("nmp,hpd->hnmd", wave_of_shift(delta, encoding.d_p), encoding.W_r)
            for a in left:
                total = total + layer.scale * torch.einsum("bhnd,hnmd->bhnm", a, far)
            for b in right:
                total = total + layer.scale * torch.einsum("hd,bhmd->bhm", encoding.u, b)[:, :, None]
            total = total + layer.scale * torch.einsum("hd,hnmd->hnm", encoding.v, far)
    if isinstance(encoding, lt.nn.Tables):
        reach = torch.tensor(encoding.radius)
        places = torch.minimum(torch.maximum(delta, -reach), reach) + reach
        total = total + encoding.table[(slice(None), *places.unbind(-1))]
    if isinstance(encoding, lt.nn.Quadratic):
        total = total + quadratic(encoding, delta.double(), axes)
    return total


def quadratic(encoding: Any, delta: Tensor, axes: int) -> Tensor:
    """-(δ - Δ)ᵀ P (δ - Δ) + Δᵀ P Δ, with P = root rootᵀ."""
    if encoding.root.dim() == 1:
        roots = encoding.root[:, None, None] * torch.eye(axes, dtype=torch.float64)
    else:
        low, cross, high = encoding.root.unbind(-1)
        roots = torch.stack([low, torch.zeros_like(low), cross, high], -1).view(-1, 2, 2)
    P = roots @ roots.mT
    away = delta - encoding.centres[:, None, None]
    far = torch.einsum("hnma,hab,hnmb->hnm", away, P, away)
    return -far + torch.einsum("ha,hab,hb->h", encoding.centres, P, encoding.centres)[:, None, None]


def terms(
    encoding: Any,
    x: Tensor,
    W: Tensor,
    b: Tensor | None,
    places: Any,
    table: Tensor | None = None,
) -> list[Tensor]:
    """What a query or key is the sum of: x W, p W and the bias."""
    found = [torch.einsum("bni,hid->bhnd", x, W)]
    p = None
    if isinstance(encoding, lt.nn.Absolute):
        p = (encoding.P if table is None else table).flatten(0, -2)
    if isinstance(encoding, lt.nn.Sinusoidal):
        p = wave_of_shift(shifts([1] * len(places), places)[0], x.shape[-1])
    if p is not None:
        found.append(torch.einsum("ni,hid->hnd", p, W).expand_as(found[0]))
    if b is not None:
        found.append(b[:, None].expand_as(found[0]))
    return found


def shifts(queries: Any, keys: Any) -> Tensor:
    """k - q for every pair, flat positions row by row: [n, m, axes]."""
    return positions(keys)[None] - positions(queries)[:, None]


def positions(sizes: Any) -> Tensor:
    return torch.cartesian_prod(*[torch.arange(size) for size in sizes]).view(-1, len(sizes))


def wave_of_shift(delta: Tensor, d: int) -> Tensor:
    """Of each axis: sin(ω δ) for all ω, then cos(ω δ), with ω from 1 down towards 1/10000."""
    many = d // (2 * delta.shape[-1])
    speeds = torch.tensor([10000.0 ** (-i / many) for i in range(many)], dtype=torch.float64)
    angles = delta[..., None] * speeds
    return torch.cat([angles.sin(), angles.cos()], -1).flatten(-2)
