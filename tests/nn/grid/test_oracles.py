"""GridRNN against torch's own recurrent nets on one row and one column, and against the code on lists."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from nn.grid.grids import CELLS, NAMES, model, some
from torch import Tensor, nn

from lattend.cost.reference.recurrence import rnn2d, rnn2d_stack
from lattend.nn.grid.rnn import GridRNN

BLOCKS = {"rnn": [0], "lstm": [0, 1, 3, 4], "gru": [0, 1, 3]}  # torch's gates among ours
TORCH = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
LARGE = 50.0  # sigmoid(50) is 1, sigmoid(-50) is 0


def like_torch(theirs: Any, name: str, down: bool, layers: int, directions: int) -> GridRNN:
    """A GridRNN with the weights of a torch net on one axis, and any numbers on the other."""
    ours = model(theirs.input_size, theirs.hidden_size, name, directions, bias=True, layers=layers)
    h, gates = theirs.hidden_size, ours.cell.gates
    with torch.no_grad():
        for layer in range(layers):
            for direction in range(directions):
                suffix = f"l{layer}{'_reverse' if direction else ''}"
                base = direction * gates * h
                rows = torch.cat([torch.arange(h) + base + b * h for b in BLOCKS[name]])
                past = ours.W_top if down else ours.W_left
                ours.W_in[layer][rows] = getattr(theirs, f"weight_ih_{suffix}")
                past[layer][rows] = getattr(theirs, f"weight_hh_{suffix}")
                assert ours.b is not None
                ours.b[layer][rows] = 0.0
                if name != "rnn":
                    share = slice(base + 2 * h, base + 3 * h)
                    ours.W_in[layer][share], ours.W_left[layer][share], ours.W_top[layer][share] = 0, 0, 0
                    ours.b[layer][share] = -LARGE if down else LARGE
    return ours


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(("down", "directions"), [(False, 1), (False, 2), (True, 1)])
def test_one_row_and_one_column_are_torchs(name: str, down: bool, layers: int, directions: int) -> None:
    torch.manual_seed(1)
    theirs = TORCH[name](
        3, 4, layers, bias=False, batch_first=True, bidirectional=directions == 2, dtype=torch.float64
    )
    ours = like_torch(theirs, name, down, layers, directions)
    x = some(2, 6, 3).requires_grad_()
    image = x[:, :, None] if down else x[:, None]
    found = ours(image).flatten(1, 2)
    wanted, _ = theirs(x)
    torch.testing.assert_close(found, wanted)
    grad = some(*wanted.shape, seed=2)
    (a,) = torch.autograd.grad(found, x, grad)
    (b,) = torch.autograd.grad(wanted, x, grad)
    torch.testing.assert_close(a, b)


def test_initial_states_are_torchs() -> None:
    torch.manual_seed(1)
    theirs = nn.LSTM(3, 4, bias=False, batch_first=True, dtype=torch.float64)
    ours = like_torch(theirs, "lstm", False, 1, 1)
    x, h, c = some(2, 5, 3), some(1, 2, 4), some(1, 2, 4, seed=9)
    out, (last_h, last_c) = theirs(x, (h, c))
    found, ends = ours(x[:, None], ((h[0][:, None], c[0][:, None]), None), return_states=True)
    torch.testing.assert_close(found[:, 0], out)
    end_h, end_c = ends.left
    torch.testing.assert_close(end_h[0, :, 0], last_h[0])
    torch.testing.assert_close(end_c[0, :, 0], last_c[0])


def listed(x: Tensor) -> Any:
    return x.tolist()


@pytest.mark.parametrize(("name", "activation"), CELLS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (3, 4)])
def test_plain_lists(name: str, activation: str, shape: tuple[int, int]) -> None:
    net = model(2, 3, name, activation=activation, bias=True)
    assert net.b is not None
    weights = {"W_in": net.W_in[0], "W_left": net.W_left[0], "W_top": net.W_top[0], "b": net.b[0]}
    x = some(*shape, 2)
    wanted = rnn2d(listed(x), {k: listed(w) for k, w in weights.items()}, name, activation)
    torch.testing.assert_close(net(x[None])[0], torch.tensor(wanted, dtype=torch.float64))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("directions", [2, 4])
def test_plain_stack(name: str, directions: int) -> None:
    """Directions and layers: layer 1 reads all directions of layer 0."""
    net = model(2, 2, name, directions, layers=2)
    weights = {
        f"{layer}.{way}.{kind}": listed(getattr(net.weights(layer), part)[way])
        for layer in range(2)
        for way in range(directions)
        for kind, part in (("W_in", "into"), ("W_left", "left"), ("W_top", "top"))
    }
    x = some(3, 4, 2)
    wanted = rnn2d_stack(listed(x), weights, name, directions)
    torch.testing.assert_close(net(x[None])[0], torch.tensor(wanted, dtype=torch.float64))


def test_the_formula_by_hand() -> None:
    """Left is h[row, col-1], top is h[row-1, col]: weights 10 and 100 tell the paths apart."""
    net = GridRNN(1, 1, activation="identity", dtype=torch.float64)
    with torch.no_grad():
        for weight, value in zip(net.parameters(), (1, 10, 100), strict=True):
            weight.fill_(value)
    x = torch.zeros(1, 2, 3, 1, dtype=torch.float64)
    x[0, 0, 0] = 1
    # row 0: 1, 10, 10*10; row 1: 100, 10*100 + 100*10, 10*2000 + 100*100
    assert net(x)[0, :, :, 0].tolist() == [[1, 10, 100], [100, 2000, 30000]]
