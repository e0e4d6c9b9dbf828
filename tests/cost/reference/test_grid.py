"""The 2-D RNN on lists: which pixels a state has seen, and lt.nn.GridRNN beside it."""

from __future__ import annotations

from random import Random

import pytest
import torch

import lattend as lt
from lattend.cost import reference as plain
from lattend.cost.reference import CountingTape, backward, counting, shapes
from lattend.cost.reference.numbers import depth

SEEN = {
    0: ["xx.", "xx.", "..."],  # down and right: all above and to the left
    1: [".xx", ".xx", "..."],
    2: ["...", "xx.", "xx."],
    3: ["...", ".xx", ".xx"],
}


@pytest.mark.parametrize(("way", "seen"), SEEN.items())
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_a_direction_sees_the_corner_it_comes_from(cell: str, way: int, seen: list[str]) -> None:
    source, tape = Random(2), CountingTape()
    image = counting(shapes.fill((3, 3, 2), source), tape)
    weights = counting(shapes.filled(shapes.rnn2d_stack(2, 2, cell, 4, 1, bias=True), source), tape)
    middle = plain.rnn2d_stack(image, weights, cell, directions=4)[1][1]
    gradients = backward(middle[2 * way : 2 * way + 2]).of(image)
    assert ["".join("x" if any(pixel) else "." for pixel in row) for row in gradients] == seen
    assert depth(middle) == 3


def test_floats_and_numbers_give_the_same() -> None:
    source = Random(4)
    image, weights = shapes.fill((2, 3, 2), source), shapes.filled(shapes.rnn2d(3, 2, "lstm"), source)
    tape = CountingTape()
    counted = plain.rnn2d(counting(image, tape), counting(weights, tape), "lstm")
    assert plain.floats(counted) == plain.rnn2d(image, weights, "lstm")


@pytest.mark.parametrize("directions", [1, 2, 4])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_grid_rnn_of_lt_nn_gives_the_same(cell: str, directions: int) -> None:
    torch.manual_seed(2)
    made = lt.nn.GridRNN(3, 2, cell, directions, bias=True, layers=2, dtype=torch.float64)
    image = torch.randn(1, 3, 4, 3, dtype=torch.float64)
    weights = {
        f"{layer}.{way}.{name}": part.tolist()
        for layer in range(2)
        for name in ("W_in", "W_left", "W_top", "b")
        for way, part in enumerate(getattr(made, name)[layer].detach().chunk(directions))
    }
    result = torch.tensor(
        plain.rnn2d_stack(image[0].tolist(), weights, cell, directions), dtype=torch.float64
    )
    torch.testing.assert_close(result, made(image)[0].detach(), rtol=1e-12, atol=1e-12)
