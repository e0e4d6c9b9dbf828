"""Sizes of Jacobians against closed forms, enumeration and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.study.gradients.networks import KERNEL, KINDS, ConvStack, LastToken, Recall

SHIFTS = range(-(KERNEL // 2), KERNEL // 2 + 1)


def randoms(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 4), st.integers(1, 3), st.integers(1, 6))
def test_a_linear_rnn_has_the_powers_of_its_matrix(seed: int, states: int, wide: int, n: int) -> None:
    """h_t = W h_(t-1) + U x_t: ∂h_T/∂x_(T−d) = W^d U."""
    w, u = randoms(states, states, seed=seed), randoms(states, wide, seed=seed + 1)

    def net(x: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(len(x), states)
        for t in range(x.shape[1]):
            h = h @ w.T + x[:, t] @ u.T
        return h

    result = lt.study.gradients.jacobian_sizes(net, randoms(2, n, wide, seed=seed + 2))
    wanted = [np.linalg.norm(np.linalg.matrix_power(w.numpy(), d) @ u.numpy()) for d in range(n)][::-1]
    assert result.numpy() == pytest.approx(np.array([wanted, wanted]), rel=1e-9)


def test_attention_without_scores_is_a_mean() -> None:
    """With W_q = 0 every weight is 1/n, whatever the tokens: ∂y_T/∂x_i = W_v/n at every distance."""
    net = LastToken(4, 7).double()
    torch.nn.init.zeros_(net.q.weight)
    result = lt.study.gradients.jacobian_sizes(net, randoms(3, 7, 4))
    assert result.detach().numpy() == pytest.approx(float(net.v.weight.detach().norm()) / 7, rel=1e-12)


@pytest.mark.parametrize("layers", [1, 3])
def test_convolutions_are_a_product_of_banded_matrices(layers: int) -> None:
    """Positive taps and inputs pass ReLU as they are; zeros stand around the sequence before every layer."""
    n = layers * (KERNEL // 2) + 1
    stack = ConvStack(1, n).double()
    assert len(stack.layers) == layers
    wanted = np.eye(n + 2)
    for at, (weight, _) in enumerate(layer.parameters() for layer in stack.layers):
        taps = np.abs(randoms(KERNEL, seed=at).numpy())
        weight.data = torch.tensor(taps[None])
        bands = [np.diag(np.full(n + 2 - abs(shift), taps[shift + KERNEL // 2]), shift) for shift in SHIFTS]
        wanted = sum(bands) @ wanted
    result = lt.study.gradients.jacobian_sizes(stack, torch.rand(1, n + 2, 1, dtype=torch.float64))
    assert result[0].numpy() == pytest.approx(wanted[-1], rel=1e-12)
    assert (result[0, :2] == 0).all() and result[0, 2] > 0  # as far as the stack reaches


def test_a_linear_2d_rnn_counts_paths() -> None:
    """h = x + a·left + b·top: from a pixel r rows up and c columns left there are C(r + c, r) paths."""
    net = lt.nn.GridRNN(1, 1, activation="identity").double()
    a, b, side = 0.5, 0.25, 4
    for weights, value in ((net.W_in, 1.0), (net.W_left, a), (net.W_top, b)):
        weights[0].data.fill_(value)
    x = randoms(1, side * side, 1)
    result = lt.study.gradients.jacobian_sizes(lambda x: net(x.unflatten(1, (side, side)))[:, -1, -1], x)
    wanted = [
        math.comb(r + c, r) * a**c * b**r for r in range(side - 1, -1, -1) for c in range(side - 1, -1, -1)
    ]
    assert result[0].detach().numpy() == pytest.approx(wanted, rel=1e-12)
    by = lt.study.gradients.by_distance(result.detach(), KINDS["rnn2d"].distances(7))
    assert by[1] == pytest.approx(math.sqrt((a**2 + b**2) / 2))  # one pixel to the left, one above
    assert by[6] == pytest.approx(math.comb(6, 3) * (a * b) ** 3)  # corner to corner


@pytest.mark.parametrize("name", KINDS)
def test_every_network_by_finite_differences(name: str) -> None:
    kind, length, wide, step = KINDS[name], 5, 3, 1e-6
    torch.manual_seed(1)
    net = kind.make(wide, length).double()
    positions = len(kind.distances(length))
    x = randoms(1, positions, wide, seed=3)
    result = lt.study.gradients.jacobian_sizes(net, x)[0]
    with torch.no_grad():
        for at in range(positions):
            columns = []
            for number in range(wide):
                moved = torch.zeros_like(x)
                moved[0, at, number] = step
                columns.append((net(x + moved) - net(x - moved))[0] / (2 * step))
            assert float(torch.stack(columns).norm()) == pytest.approx(float(result[at]), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(("name", "length", "last"), [("rnn", 6, 5), ("rnn2d", 6, 6), ("rnn2d", 7, 6)])
def test_distances(name: str, length: int, last: int) -> None:
    result = KINDS[name].distances(length)
    assert (int(result[0]), int(result[-1]), int(result.max())) == (last, 0, last)
    assert set(result.tolist()) == set(range(last + 1))


def test_a_network_is_measured_in_float64_and_goes_on_in_float32() -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    net = Recall(KINDS["rnn"], 4, 40, seed=2)
    sizes = net.measure().sizes
    assert sizes.dtype == torch.float64 and 0 < sizes[-1] < 1e-9
    assert next(net.parameters()).dtype == torch.float32
    assert torch.equal(torch.random.get_rng_state(), before)  # the numbers of others stay as they were
