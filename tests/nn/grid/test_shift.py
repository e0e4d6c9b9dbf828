"""Which pixels an output knows, by its derivatives: exactly those that are claimed, no more and no fewer."""

from __future__ import annotations

import pytest
import torch
from nn.grid.grids import KERNELS, NAMES, model, some
from torch import Tensor

ROWS, COLS = 3, 4
SHIFTS = {
    1: lambda r, c, a, b: a <= r and b <= c and (a, b) != (r, c),  # up and left, without itself
    2: lambda r, c, a, b: (a, b) < (r, c),  # before it, row by row
}
KNOWN = {
    1: lambda r, c, a, b: a <= r and b <= c,
    2: lambda r, c, a, b: a <= r,
    4: lambda r, c, a, b: True,
}


def known(net: torch.nn.Module) -> Tensor:
    """Whether the output at [row, col] has a derivative by the pixel at [row, col]."""
    x = some(1, ROWS, COLS, 2)
    jacobian = torch.autograd.functional.jacobian(lambda t: net(t)[0], x)
    assert isinstance(jacobian, Tensor)
    return jacobian[:, :, :, 0].abs().sum((2, 5)) > 0


def claimed(rule: object) -> Tensor:
    return torch.tensor(
        [
            [[[rule(r, c, a, b) for b in range(COLS)] for a in range(ROWS)] for c in range(COLS)]  # pyright: ignore
            for r in range(ROWS)
        ]
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_shifted_outputs_know_what_came_before(name: str, directions: int, layers: int, bias: bool) -> None:
    net = model(2, 2, name, directions, layers=layers, bias=bias, shift=True)
    assert torch.equal(known(net), claimed(SHIFTS[directions]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("directions", [1, 2, 4])
def test_outputs_know_their_quadrants(name: str, directions: int) -> None:
    assert torch.equal(known(model(2, 2, name, directions)), claimed(KNOWN[directions]))


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_changed_pixel_changes_nothing_before_it(directions: int, kernel: str) -> None:
    """To the last bit, and in no layer: a NaN reaches what may know it, and nothing else."""
    net = model(2, 3, "lstm", directions, layers=2, shift=True, kernel=kernel)
    x = some(1, ROWS, COLS, 2)
    before = net(x)[0]
    for row in range(ROWS):
        for col in range(COLS):
            changed = x.clone()
            changed[0, row, col] = torch.nan
            after = net(changed)[0]
            for r in range(ROWS):
                for c in range(COLS):
                    reached = SHIFTS[directions](r, c, row, col)
                    assert after[r, c].isnan().any() == reached
                    assert reached or torch.equal(after[r, c], before[r, c])


def test_shift_asks_the_cell_without_its_pixel() -> None:
    """σ(W_left h_left + W_top h_top) of the states that the unshifted net has."""
    net, plain = model(2, 3, shift=True), model(2, 3)
    x = some(2, ROWS, COLS, 2)
    h = torch.nn.functional.pad(plain(x), (0, 0, 1, 0, 1, 0))
    wanted = torch.tanh(h[:, 1:, :-1] @ net.W_left[0].T + h[:, :-1, 1:] @ net.W_top[0].T)
    torch.testing.assert_close(net(x), wanted)


def test_down_left_moves_one_row_down() -> None:
    net, plain = model(2, 3, "gru", 2, shift=True), model(2, 3, "gru", 2)
    x, top = some(2, ROWS, COLS, 2), some(2, 2, COLS, 3)
    moved, still = net(x, (None, top))[..., 3:], plain(x, (None, top))[..., 3:]
    torch.testing.assert_close(moved[:, 1:], still[:, :-1])
    torch.testing.assert_close(moved[:, 0], top[1])
