"""check_grid: equal where the module is right, and not where a weight, a gradient or a mask is wrong."""

import numpy as np
import pytest
import torch

import lattend as lt
from lattend.attend.kernels.native import library
from lattend.errors import LattendError, NamingError, TooLarge
from lattend.nn.grid import check
from lattend.nn.grid.rnn import GridRNN


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_the_loops_are_the_equation_and_its_chain_rule():
    """h = σ(W_in x + W_left h + W_top h) and its gradients in numpy, without the library's references."""
    torch.manual_seed(2)
    rows, cols, c, h = 3, 4, 2, 3
    net = GridRNN(c, h, activation="sigmoid", dtype=torch.float64)
    x, g = torch.randn(rows, cols, c).double(), torch.randn(rows, cols, h).double()
    found = check._by_loops(net, [x], [g])
    w_in, w_left, w_top = (w[0].detach().numpy() for w in (net.W_in, net.W_left, net.W_top))
    states = np.zeros((rows + 1, cols + 1, h))  # with an edge of zeros
    for i in range(rows):
        for j in range(cols):
            total = w_in @ x[i, j].numpy() + w_left @ states[i + 1, j] + w_top @ states[i, j + 1]
            states[i + 1, j + 1] = sigmoid(total)
    np.testing.assert_allclose(found["h"], states[1:, 1:], atol=1e-14)
    back = np.zeros((rows + 1, cols + 1, h))  # with respect to the sums, with an edge of zeros at the end
    grads = {name: np.zeros_like(w) for name, w in (("W_in", w_in), ("W_left", w_left), ("W_top", w_top))}
    for i in reversed(range(rows)):
        for j in reversed(range(cols)):
            own = states[i + 1, j + 1]
            arrives = g[i, j].numpy() + w_left.T @ back[i, j + 1] + w_top.T @ back[i + 1, j]
            back[i, j] = arrives * own * (1 - own)
            grads["W_in"] += np.outer(back[i, j], x[i, j])
            grads["W_left"] += np.outer(back[i, j], states[i + 1, j])
            grads["W_top"] += np.outer(back[i, j], states[i, j + 1])
    for name, wanted in grads.items():
        np.testing.assert_allclose(found[f"gradient of {name}"], wanted, atol=1e-13)
    np.testing.assert_allclose(found["gradient of x"], back[:-1, :-1] @ w_in, atol=1e-13)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("directions", [1, 2, 4])
def test_equal(cell, directions):
    run = lt.nn.check_grid((3, 4), (2, 2), (1, 5), cell=cell, directions=directions, c=2, h=3)
    assert run and run.worst < 1e-13
    assert [row.name for row in run.rows if "padding" in row.name] == [
        f"h in the padding of image {number}" for number in range(3)
    ]
    assert all(tuple(row.differences) == check.KERNELS for row in run.rows)
    assert len(check.KERNELS) == (2 if library.missing() else 3)


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "relu", "identity"])
def test_activations_and_bias(activation):
    assert lt.nn.check_grid(3, activation=activation)
    net = GridRNN(2, 3, activation=activation, bias=True)
    run = lt.nn.check_grid(net, (2, 3))
    assert run and run.rows[-1].name == "gradient of b"
    assert net.W_in[0].dtype == torch.float32  # it is left as it was


def test_what_is_wrong_is_seen(monkeypatch):
    forward = GridRNN.forward

    def scaled(self, x, *args, **options):
        return (1 + 1e-9) * forward(self, x, *args, **options)

    def unmasked(self, x, *args, mask=None, **options):
        return forward(self, torch.nan_to_num(x), *args, **options)

    class WrongGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, *grad_outputs):
            return 1.001 * grad_outputs[0]

    def skewed(self, x, *args, **options):
        return forward(self, WrongGradient.apply(x), *args, **options)

    for wrong, names in (
        (scaled, ["h"]),
        (unmasked, ["h in the padding of image 1"]),
        (skewed, ["gradient of x of image 0", "gradient of x of image 1"]),
    ):
        monkeypatch.setattr(GridRNN, "forward", wrong)
        sizes = [(3, 4)] if wrong is scaled else [(3, 4), (2, 2)]
        run = lt.nn.check_grid(*sizes, directions=4)
        assert not run
        assert "differs" in str(run) and "they differ" in str(run)
        assert {row.name for row in run.rows if not row.equal} >= set(names)


def test_the_same_at_every_call():
    state = torch.get_rng_state()
    first, second = lt.nn.check_grid(3).json(), lt.nn.check_grid(3).json()
    assert first == second and first["equal"] is True
    assert torch.equal(torch.get_rng_state(), state)
    assert lt.nn.check_grid(3, seed=1).json()["rows"] != first["rows"]


def test_what_it_cannot_check():
    with pytest.raises(TooLarge, match="plain loops would do 16,250,000 products"):
        lt.nn.check_grid(500)
    with pytest.raises(NamingError, match="one layer, without shift"):
        lt.nn.check_grid(GridRNN(2, 2, layers=2), 3)
    with pytest.raises(NamingError, match="give the size of an image too"):
        lt.nn.check_grid(GridRNN(2, 2))
    with pytest.raises(LattendError, match="size is a whole number from 1 up"):
        lt.nn.check_grid(0)
