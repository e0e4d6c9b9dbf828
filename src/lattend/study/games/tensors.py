"""Games whose f is a torch function: gradients by autograd, in floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from lattend.errors import TraceError
from lattend.study.games.fields import PlainField
from lattend.study.games.methods import Vector


class TensorField(PlainField):
    """The gradients of a function of torch numbers, as numpy vectors."""

    def __init__(self, function: Callable[..., Any], first: int, many: int) -> None:
        super().__init__(first, float)
        self.function = function
        self.many = many

    def value(self, values: Sequence[Any]) -> float:
        return float(self._run(torch.tensor([float(x) for x in values], dtype=torch.float64)))

    def all(self, values: Sequence[Any]) -> Vector:
        point = torch.tensor([float(x) for x in values], dtype=torch.float64, requires_grad=True)
        return self._slope(point).detach().numpy()

    def hessian(self, values: Sequence[Any]) -> list[list[Any]]:
        point = torch.tensor([float(x) for x in values], dtype=torch.float64)
        matrix = torch.autograd.functional.hessian(self._run, point)
        assert isinstance(matrix, torch.Tensor)
        return matrix.tolist()

    def _run(self, point: torch.Tensor) -> torch.Tensor:
        value = self.function(*point.unbind())
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise TraceError(f"the game's function must give one number, got {value!r:.60}")
        return value.reshape(())

    def _slope(self, point: torch.Tensor) -> torch.Tensor:
        value = self._run(point)
        if not value.requires_grad:
            return torch.zeros_like(point)
        (slope,) = torch.autograd.grad(value, point, allow_unused=True)
        return torch.zeros_like(point) if slope is None else slope
