"""steer for torch tensors: which keys lead where is decided on their numbers, then all is made of tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lattend.errors import TensorError
from lattend.study.steering.linear import Floats
from lattend.study.steering.numbers import (
    NumberArray,
    at_heads,
    check_error,
    check_finite,
    check_scale,
    check_shapes,
    check_values,
    read,
    rounding,
)
from lattend.study.steering.ray import EXACTLY, NEVER, Ray, aim
from lattend.study.steering.steer import USUAL_ERROR, Steered, SteeredHeads, farthest, shoot


def steer_tensors(
    keys: Any, weights: Any, sharpness: Any, error: Any, values: Any, scale: float | str
) -> Steered | SteeredHeads:
    """`lt.study.steer` with gradients to keys, weights, sharpness or error, and values; float64 inside.

    The best fit is differentiated through the equation that it solves: the mean keys agree.
    """
    inputs = {"keys": keys, "weights": weights, "sharpness": sharpness, "error": error, "values": values}
    like = next(x for x in inputs.values() if isinstance(x, Tensor))
    tensors = {name: _tensor(name, x, like) for name, x in inputs.items() if x is not None}
    numbers = {name: x.detach().cpu().numpy() for name, x in tensors.items()}
    for name, x in numbers.items():
        check_finite(name, x)
    lead = check_shapes(numbers["keys"], numbers["weights"], torch.finfo(like.dtype).eps)
    small = rounding(np.dtype(str(like.dtype).removeprefix("torch.").replace("bfloat16", "float16")))
    if "sharpness" in numbers:
        at_heads("sharpness", numbers["sharpness"], lead)
    if "error" in numbers:
        check_error(numbers["error"], lead)
    if "values" in numbers:
        check_values(numbers["values"], numbers["keys"].shape[-2], lead)
    factor = check_scale(scale, numbers["keys"].shape[-1])
    axes = {"keys": 2, "weights": 1, "sharpness": 0, "error": 0, "values": 2}
    wide = {name: x.expand(lead + x.shape[x.dim() - axes[name] :]) for name, x in tensors.items()}
    heads: list[Steered] = []
    for place in np.ndindex(lead):
        one = {name: x[place] for name, x in wide.items()}
        one["weights"] = one["weights"] / one["weights"].sum()
        row, wanted = (
            NumberArray(one[name].detach().cpu().numpy(), None, small) for name in ("keys", "weights")
        )
        heads.append(_shoot(aim(row, wanted), one, factor, like.dtype))
    return heads[0] if not lead else SteeredHeads(lead, tuple(heads), torch.stack)


def _tensor(name: str, value: Any, like: Tensor) -> Tensor:
    if not isinstance(value, Tensor):
        return torch.as_tensor(read(name, value).floats, device=like.device)
    if not value.is_floating_point():
        raise TensorError(f"{name} is {value.dtype}; give floats, as in {name}.float()")
    if value.device != like.device:
        raise TensorError(f"{name} is on {value.device} and another on {like.device}; move one of them")
    return value.double()


def _shoot(ray: Ray, one: dict[str, Tensor], scale: float, dtype: torch.dtype) -> Steered:
    """The query by numpy, rounded to this dtype, with derivatives from the same formulas on tensors."""

    def number(name: str) -> float | None:
        return one[name].item() if name in one else None

    values = one["values"].detach().cpu().numpy() if "values" in one else None
    steered = shoot(ray, number("sharpness"), number("error"), values, scale, lambda q: _rounded(q, dtype))
    made: dict[str, Any] = {}
    for name, x in _formulas(ray, one, scale).items():
        value = torch.as_tensor(getattr(steered, name), dtype=x.dtype, device=x.device)
        made[name] = (value + (x - x.detach()).nan_to_num()).to(dtype)
    return Steered(ray=ray, scale=scale, **made)


def _rounded(query: Floats, dtype: torch.dtype) -> Floats:
    return torch.as_tensor(query).to(dtype).double().numpy()


def _formulas(ray: Ray, one: dict[str, Tensor], scale: float) -> dict[str, Tensor]:
    """All that is told of the query on the ray, as functions of the tensors."""
    keys, wanted = one["keys"], one["weights"]
    face = torch.as_tensor(ray.face, device=keys.device)
    many, rest = int(ray.face.sum()), int((~ray.face).sum())
    beta = _sharpness(one, many, rest, keys)
    start, direction = _start(ray, keys, wanted, face), _direction(ray, keys, face)
    leak = leak_bound = keys.new_zeros(())
    parts = torch.zeros_like(wanted)
    far = beta
    if rest:
        centred = keys - keys[face].mean(0)
        level = torch.logsumexp(centred[face] @ start, 0) - math.log(many)
        gaps = (centred[face] @ direction).mean() - centred[~face] @ direction
        far = ((beta - level + centred[~face] @ start) / gaps).max()
        off = centred[~face] @ (start + far * direction)
        raised = torch.exp(off - off.max())
        leak = torch.sigmoid(torch.log(raised.sum() / many) - beta)
        leak_bound = torch.sigmoid(math.log(rest / many) - beta)
        parts = parts.masked_scatter(~face, raised / raised.sum())
    query = (start + far * direction) / scale
    logits = scale * (keys @ query)
    limit, misfit = wanted, keys.new_zeros(())
    if ray.reach == NEVER:
        limit = torch.zeros_like(wanted).masked_scatter(face, torch.softmax(keys[face] @ start, 0))
        misfit = (limit - wanted).abs().sum() / 2
    apart = (limit - wanted) - leak * limit + leak * parts
    bound = misfit + leak_bound
    error = bound if ray.reach == EXACTLY else apart.abs().sum() / 2
    formulas: dict[str, Tensor] = {}
    if "values" in one:
        values = one["values"]
        row, column = farthest(values.detach().cpu().numpy())
        formulas["output"], formulas["wanted_output"] = torch.softmax(logits, 0) @ values, wanted @ values
        formulas["output_bound"] = bound * torch.linalg.vector_norm(values[row] - values[column])
        formulas["output_error"] = torch.linalg.vector_norm(apart @ values)
    formulas |= {"query": query, "wanted": wanted, "logits": logits, "weights": torch.softmax(logits, 0)}
    return formulas | {"error": error, "bound": bound, "sharpness": beta}


def _sharpness(one: dict[str, Tensor], many: int, rest: int, keys: Tensor) -> Tensor:
    if "sharpness" in one:
        return one["sharpness"]
    if not rest:
        return keys.new_zeros(())
    error = one.get("error", keys.new_tensor(USUAL_ERROR))
    return torch.log(rest * (1 - error) / (many * error))


def _start(ray: Ray, keys: Tensor, wanted: Tensor, face: Tensor) -> Tensor:
    """The start of the ray: logits that are set, or the best fit on the face."""
    held, logs = keys[face], torch.log(torch.where(wanted > 0, wanted, 1.0))
    if ray.independent:
        return _given(ray, keys, torch.where(face, logs + math.log(int(ray.face.sum())), 0.0))
    if ray.reach != NEVER and ray.order == len(held) - 1:
        return _shortest(held, logs[face], ray.order)
    # One step of Newton from where the slope is 0: the same point, with the derivative of the true solution
    at = torch.as_tensor(ray.start / ray.unit, device=keys.device)
    weights = torch.softmax(held @ at, 0)
    about = (held - weights @ held).detach()
    curvature = about.T @ (weights.detach()[:, None] * about)
    return at - _inverse(curvature, ray.order) @ ((weights - wanted[face]) @ (held - held.mean(0)))


def _direction(ray: Ray, keys: Tensor, face: Tensor) -> Tensor:
    """The direction of the ray: the shortest vector with one product for all keys of the face, and 1 less for
    those that touch the gap.
    """
    if ray.independent:
        return _given(ray, keys, face.double())
    if ray.face.all():
        return torch.zeros_like(keys[0])
    touching = torch.as_tensor(ray.touching, device=keys.device)
    centre = keys[face].mean(0)
    rows = torch.cat((keys[face] - centre, keys[touching] - centre))
    heights = torch.cat((keys.new_zeros(int(ray.face.sum())), -keys.new_ones(int(ray.touching.sum()))))
    return _inverse(rows, ray.order + int(ray.touching.sum())) @ heights


def _given(ray: Ray, keys: Tensor, logits: Tensor) -> Tensor:
    """The shortest query with these logits; up to a common constant where the keys cannot set it."""
    return _inverse(keys, len(keys)) @ logits if ray.levelled else _shortest(keys, logits, ray.order)


def _shortest(keys: Tensor, logits: Tensor, order: int) -> Tensor:
    return _inverse(keys - keys.mean(0), order) @ (logits - logits.mean())


def _inverse(rows: Tensor, order: int) -> Tensor:
    """The pseudo-inverse of rows that are known to have this rank."""
    sizes = torch.linalg.svdvals(rows.detach())
    left_out = float(sizes[order] / sizes[0]) if order < len(sizes) and sizes[0] > 0 else 0.0
    return torch.linalg.pinv(rows, rtol=left_out * (1 + 1e-6))
