"""Training memory: the formula is what torch keeps for the backward pass of plain code."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import lattend as lt

small = st.integers(1, 5)


def kept(run: Callable[[], Tensor], parameters: list[Tensor]) -> int:
    """The numbers torch keeps, each tensor once, without parameters."""
    held: dict[int, Tensor] = {}

    def keep(x: Tensor) -> Tensor:
        held[x.untyped_storage().data_ptr()] = x.detach()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        out = run()
    learned = {p.untyped_storage().data_ptr() for p in parameters}
    result = sum(
        x.untyped_storage().nbytes() // x.element_size() for at, x in held.items() if at not in learned
    )
    out.sum()  # alive until here, so that no storage was used twice
    return result


def weights(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


@settings(max_examples=20)
@given(small, small, small)
def test_linear_and_feed_forward(n: int, d: int, hidden: int) -> None:
    up, down = weights((d, hidden), (hidden, d))
    x = torch.randn(n, d, requires_grad=True)
    assert (
        kept(lambda: x @ up, [up]) == lt.cost.linear(n=n, d_in=d, d_out=hidden, bias=False).saved_activations
    )
    run = kept(lambda: torch.relu(x @ up) @ down, [up, down])
    assert run == lt.cost.feed_forward(n=n, d=d, hidden=hidden, bias=False).saved_activations


@settings(max_examples=20)
@given(small, small, small, small)
def test_attention(n: int, heads: int, d: int, wide: int) -> None:
    q, k, v, o = weights((heads, d, wide), (heads, d, wide), (heads, d, wide), (heads * wide, d))
    x = torch.randn(n, d, requires_grad=True)

    def run() -> Tensor:
        a, b, c = (torch.stack([x @ w for w in each]) for each in (q, k, v))
        mixed = torch.softmax(a @ b.mT, -1) @ c
        return mixed.transpose(0, 1).reshape(n, heads * wide) @ o

    result = lt.cost.attention("full", n=n, heads=heads, D_i=d, D_hid=wide, out_bias=False).saved_activations
    assert kept(run, [q, k, v, o]) == result


@settings(max_examples=10)
@given(small, small, small)
def test_attention_with_positions(n: int, d: int, wide: int) -> None:
    """Values come from the tokens without their positions, so both are kept."""
    q, k, v, o, p = weights((d, wide), (d, wide), (d, wide), (wide, d), (n, d))
    x = torch.randn(n, d, requires_grad=True)

    def run() -> Tensor:
        moved = x + p
        return torch.softmax((moved @ q) @ (moved @ k).mT, -1) @ (x @ v) @ o

    cost = lt.cost.attention(n=n, heads=1, D_i=d, D_hid=wide, encoding="absolute", out_bias=False)
    assert kept(run, [q, k, v, o, p]) == cost.saved_activations


@settings(max_examples=20)
@given(small, small, small, small)
def test_the_grid_rnn(rows: int, cols: int, h: int, c: int) -> None:
    into, left, top = weights((c, h), (h, h), (h, h))
    image = torch.randn(rows, cols, c, requires_grad=True)

    def run() -> Tensor:
        state: dict[tuple[int, int], Tensor] = {}
        for i in range(rows):
            for j in range(cols):
                total = image[i, j][None] @ into
                total = total + state[i, j - 1] @ left if j else total
                total = total + state[i - 1, j] @ top if i else total
                state[i, j] = torch.tanh(total)
        return state[rows - 1, cols - 1]

    assert kept(run, [into, left, top]) == lt.cost.rnn2d(rows=rows, cols=cols, h=h, c=c).saved_activations


@settings(max_examples=5)
@given(small, small, small, small, st.integers(1, 3))
@pytest.mark.parametrize("directions", [1, 2, 4])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_grid_rnn_of_lt_nn(
    cell: str, directions: int, rows: int, cols: int, h: int, c: int, layers: int
) -> None:
    """The module keeps its states in a frame of edges, which the formula leaves out."""
    made = lt.nn.GridRNN(c, h, cell, directions, layers=layers)
    image = torch.randn(1, rows, cols, c, requires_grad=True)
    frame = (2 if cell == "lstm" else 1) * directions * layers * h * (rows + cols + 1)
    result = kept(lambda: made(image), list(made.parameters()))
    assert result == made.cost(rows=rows, cols=cols).total("saved_activations") + frame


@settings(max_examples=20)
@given(small, small, small, small)
def test_a_stacked_rnn(steps: int, layers: int, h: int, c: int) -> None:
    into = weights(*[(c if layer == 0 else h, h) for layer in range(layers)])
    back = weights(*[(h, h)] * layers)
    x = torch.randn(steps, c, requires_grad=True)

    def run() -> Tensor:
        state: list[Tensor | None] = [None] * layers
        seen: Tensor = x
        for step in range(steps):
            seen = x[step][None]
            for layer in range(layers):
                before = state[layer]
                total = seen @ into[layer]
                total = total if before is None else total + before @ back[layer]
                state[layer] = seen = torch.tanh(total)
        return seen

    result = lt.cost.rnn(steps=steps, inputs=c, hidden=h, layers=layers, initial=False).saved_activations
    assert kept(run, [*into, *back]) == result


def test_one_cell_is_alive_at_a_time() -> None:
    assert lt.cost.rnn(steps=100, inputs=3, hidden=7, layers=2).peak_activations == 14
    linear = lt.cost.linear(n=2, d_in=3, d_out=5, bias=False)
    assert linear.peak_activations == 2 * 3 + 2 * 5
    assert lt.cost.linear().peak_activations is None
