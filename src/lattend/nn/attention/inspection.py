"""What a layer attends to: scores of one query, all weights, its heads as places, its price."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lattend.attend.attention import attention
from lattend.attend.bias import Bias, shape_text
from lattend.attend.tensor_terms import evaluate
from lattend.cost.cost import Cost
from lattend.cost.layers.attention import attention as price_of
from lattend.errors import DomainError, NamingError, TooLarge
from lattend.nn.attention.gaussian_heads import Head
from lattend.nn.attention.quadratic import Quadratic
from lattend.rules.rule import Rule

if TYPE_CHECKING:
    from lattend.nn.attention.attention import MultiHeadAttention

MOST_WEIGHTS = 1 << 27
OWN = {  # what attention takes besides a rule's values, and the layer decides
    "rule": "give it to the layer",
    "scale": "give it to the layer",
    "bias": "give an encoding to the layer",
    **dict.fromkeys(("q", "k", "v"), "it is made by the layer"),
    "return_lse": "take lt.attention(*layer.projected(x), …)",
}


def check_given(given: Mapping[str, Any]) -> None:
    """Raises where a call of the layer is given what the layer decides."""
    for name in given:
        if name in OWN:
            raise NamingError(f"a call of this layer takes no {name}: {OWN[name]}")


def scores(
    layer: MultiHeadAttention, query: int | tuple[int, ...], x: Tensor | None, sizes: Mapping[str, int]
) -> Tensor:
    """The scores of one query, by the definition: scale · q·k, the bias, and -inf outside the rule."""
    place = (query,) if isinstance(query, int) else tuple(query)
    if len(place) not in layer.rules:
        raise NamingError(f"a query of this layer has {_axes(layer)} numbers, got {place}")
    rule = layer.rules[len(place)]
    for name, size in sizes.items():
        if rule.values.get(name, size) != size:
            raise DomainError(f"{name} = {size} is given, and the layer was made for {rule.values[name]}")
    if x is None:
        given = {**rule.values, **sizes}
        missing = [axis.queries for axis in rule.axes if axis.queries not in given]
        if missing:
            raise NamingError(f"scores without x need the sizes: give {', '.join(f'{s}=…' for s in missing)}")
        shape = [given[axis.queries] for axis in rule.axes]
        tokens = layer.W_v.new_zeros(1, *shape, layer.d_in)
    else:
        if len(layer.rule_for(x).axes) != len(place):
            raise NamingError(
                f"a query of x with shape {shape_text(x)} has {x.dim() - 2} numbers, got {place}"
            )
        tokens, shape = x, list(x.shape[1:-1])
        given = {**rule.values, **sizes}
        for axis, size in zip(rule.axes, shape, strict=True):
            if given.get(axis.queries, size) != size:
                raise DomainError(f"{axis.queries} = {given[axis.queries]} is given, but x has {size}")
    known = {axis.queries: size for axis, size in zip(rule.axes, shape, strict=True)} | dict(sizes)
    known |= {"heads": layer.head_count} if rule.has_heads else {}
    bound = rule.complete(**{name: size for name, size in known.items() if name not in rule.values})
    for axis, size in zip(bound.axes, shape, strict=True):
        if bound.lengths[axis.key] != size:
            raise DomainError(
                f"scores are those of x alone, {size} keys, and {axis.keys} = {bound.lengths[axis.key]}"
            )
    bound.located("query", [axis.query for axis in bound.axes], place)
    q, k, _ = layer.projected(tokens)
    asked = q[(slice(None), slice(None), *place)]
    found = layer.scale * torch.einsum("bhd,bh...d->bh...", asked, k)
    bias = layer.encoding.bias()
    if bias is not None:
        found = found + _added(bias, bound, place, layer.head_count, found)
    attended = torch.from_numpy(_attended(bound, place)).to(found.device)
    found = found.masked_fill(~attended, float("-inf"))
    return found[0] if x is None else found


def _added(bias: Bias, bound: Rule, place: tuple[int, ...], heads: int, like: Tensor) -> Tensor:
    """The bias of one query's row: [heads, *places]."""
    axes, lengths = len(place), like.shape[2:]
    names: dict[str, Any] = dict(bound.values)
    names["head"] = torch.arange(heads, device=like.device).view(-1, *[1] * axes)
    for at, axis in enumerate(bound.axes):
        along = [-1 if other == at else 1 for other in range(axes)]
        names |= {axis.query: place[at], axis.key: torch.arange(lengths[at], device=like.device).view(along)}
    tensors = {name: tensor.to(like.dtype) for name, tensor in bias.tensors.items()}
    return evaluate(bias.term, names, tensors)


def _attended(bound: Rule, place: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The attended keys of one query: [heads or 1, *places]."""
    ranges = {name: np.arange(length) for name, length in bound.lengths.items()}
    ranges |= {axis.query: np.array([at]) for axis, at in zip(bound.axes, place, strict=True)}
    return bound.mask_at(ranges).reshape(-1, *[bound.lengths[axis.key] for axis in bound.axes])


def weights(layer: MultiHeadAttention, x: Tensor, given: Mapping[str, Any]) -> Tensor:
    """All weights: what attention gives for values that are the unit vectors."""
    check_given(given)
    rule, places = layer.rule_for(x), x.shape[1:-1]
    n = prod(places)
    if x.shape[0] * layer.head_count * n * n > MOST_WEIGHTS:
        raise TooLarge(
            f"the weights of {n:,} × {n:,} pairs in {layer.head_count} heads are more than "
            f"{MOST_WEIGHTS:,} numbers; ask for one query: layer.scores(query, x).softmax(…)"
        )
    q, k, _ = layer.projected(x)
    units = torch.eye(n, dtype=q.dtype, device=q.device).view(*places, n)
    v = units.expand(x.shape[0], layer.head_count, *units.shape)
    found = attention(q, k, v, rule, scale=layer.scale, bias=layer.encoding.bias(), **given)
    return found.unflatten(-1, places)


def heads_of(encoding: Quadratic) -> list[Head]:
    """Heads as plain numbers; those of a line lie along one row."""
    centres, precisions = encoding.centres.tolist(), encoding.precision.tolist()
    padded = [(0.0, *centre) if len(centre) == 1 else tuple(centre) for centre in centres]
    return [Head(centre, tuple(p)) for centre, p in zip(padded, precisions, strict=True)]


def cost(layer: MultiHeadAttention, sizes: Mapping[str, Any]) -> Cost:
    """The price by lt.cost.attention, under the rule that these sizes belong to."""
    wanted = {1: ("n", "m"), 2: ("rows", "cols")}
    fitting = [axes for axes in layer.rules if any(name in sizes for name in wanted[axes])]
    axes = fitting[0] if fitting else min(layer.rules)
    rule = layer.rules[axes]
    for name, size in sizes.items():
        if name in rule.values and rule.values[name] != size:
            raise DomainError(f"{name} = {size} is asked for, and the layer was made for {rule.values[name]}")
    options: dict[str, Any] = {"heads": layer.head_count, "D_i": layer.d_in, "D_hid": layer.d_hidden}
    options |= {"D_o": layer.d_head_out, "D_out": layer.d_out}
    options |= {"D_keys": layer.d_keys, "D_values": layer.d_values} if layer.cross else {}
    options |= {"bias": layer.b_v is not None, "out_bias": layer.b_out is not None}
    return price_of(rule, **options, **layer.encoding.price(), **sizes)


def _axes(layer: MultiHeadAttention) -> str:
    return " or ".join(str(axes) for axes in layer.rules)
