"""A reference against torch in float64: the same outputs, and the same gradients by the tape."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lattend.cost.reference.numbers import CountingTape, backward, counting, floats
from lattend.cost.reference.shapes import Shapes, filled

CLOSE = 1e-9
Tensors: TypeAlias = dict[str, Tensor]


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def check(
    wanted: Callable[[Tensor, Tensors], Tensor],
    result: Callable[[Any, Any], Any],
    x: Tensor,
    weights: Shapes,
) -> None:
    """Equal outputs, on floats and on numbers; equal gradients of the input and of every weight."""
    lists = filled(weights, Random(7))
    tensors = {
        name: torch.tensor(each, dtype=torch.float64, requires_grad=True) for name, each in lists.items()
    }
    expected = wanted(x.requires_grad_(), tensors)
    seeds = drawn(*expected.shape)
    gradients = torch.autograd.grad(expected, [x, *tensors.values()], seeds)

    same(result(x.tolist(), lists), expected)
    tape = CountingTape()
    inputs, counted = counting(x.tolist(), tape), counting(lists, tape)
    outputs = result(inputs, counted)
    same(floats(outputs), expected)
    back = backward(outputs, seeds.flatten().tolist())
    for ours, theirs in zip([inputs, *counted.values()], gradients, strict=True):
        same(back.of(ours), theirs)


def same(result: Any, expected: Tensor) -> None:
    ours = torch.tensor(result, dtype=torch.float64)
    torch.testing.assert_close(ours, expected.detach(), rtol=CLOSE, atol=CLOSE)


def module(made: nn.Module) -> Callable[[Tensor, Tensors], Tensor]:
    """A torch module as a function of its input and its weights."""
    return lambda x, w: functional_call(made, w, (x,))
