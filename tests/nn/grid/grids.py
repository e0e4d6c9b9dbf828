"""Random modules and inputs for the tests of GridRNN."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from lattend.nn.grid.rnn import GridRNN
from lattend.nn.grid.scan import CHECKED, RECORDS
from lattend.nn.grid.states import GridStates

CELLS = [("rnn", name) for name in ("tanh", "relu", "sigmoid", "identity")]
CELLS += [("lstm", "tanh"), ("gru", "tanh")]
NAMES = ["rnn", "lstm", "gru"]


def some(*shape: int, seed: int = 0) -> Tensor:
    source = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=source, dtype=torch.float64)


def model(c: int, h: int, cell: str = "rnn", directions: int = 1, **kind: Any) -> GridRNN:
    """A module in float64 whose weights are the same at every call."""
    made = GridRNN(c, h, cell, directions, dtype=torch.float64, **kind)
    with torch.no_grad():
        for place, parameter in enumerate(made.parameters()):
            parameter.copy_(some(*parameter.shape, seed=place) * h**-0.5)
    return made


def by(kernel: str, given: GridRNN, **changed: Any) -> GridRNN:
    """The same module, run by another kernel."""
    other = copy.deepcopy(given)
    for name, value in {"kernel": kernel, **changed}.items():
        setattr(other, name, value)
    return other


def states_for(given: GridRNN, x: Tensor, seed: int = 0) -> GridStates:
    """Random states for all layers and directions, which want gradients."""
    batch, rows, cols, _ = x.shape
    count = given.layers * given.directions

    def side(length: int, place: int) -> Any:
        parts = [
            some(count, batch, length, given.h, seed=seed + place + k).requires_grad_() for k in range(2)
        ]
        return tuple(parts) if given.cell.name == "lstm" else parts[0]

    return GridStates(side(rows, 1), side(cols, 3))


def tensors_of(states: GridStates | tuple[Any, Any] | None) -> list[Tensor]:
    if states is None:
        return []
    return [t for side in states for t in (side if isinstance(side, tuple) else (side,)) if t is not None]


def gradients(given: GridRNN, x: Tensor, states: GridStates | None, mask: Tensor | None) -> list[Tensor]:
    """The output, the states that go on, and the gradients of everything that has one."""
    x = x.detach().requires_grad_()
    out, ends = given(x, states, mask, return_states=True)
    found = [out, *tensors_of(ends)]
    weights = [some(*t.shape, seed=place).to(t) for place, t in enumerate(found)]
    wanted = [x, *given.parameters(), *tensors_of(states)]
    return [*found, *torch.autograd.grad(found, wanted, weights)]


def agree(found: list[Tensor], wanted: list[Tensor]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b)


def forget() -> None:
    """Lets go of what earlier calls decided."""
    RECORDS.clear()
    CHECKED.clear()
