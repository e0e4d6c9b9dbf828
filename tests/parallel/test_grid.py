"""Nets on a grid over ranks: strips of rows, states and gradients beside one process, bytes to the byte."""

from __future__ import annotations

import pytest
import torch
from gloo_ranks import Crew
from parallel_grids import over_ranks, refused

import lattend as lt
from lattend.nn.grid.over_ranks import grid_rnn


@pytest.mark.parametrize(
    ("cell", "layers", "rows", "columns", "masked", "shift"),
    [
        ("rnn", 1, [3, 4, 2], None, False, False),
        ("lstm", 2, [2, 1, 5], 4, False, False),
        ("gru", 1, [4, 0, 3], 21, False, False),
        ("lstm", 1, [0, 4, 0, 3], 5, True, False),
        ("rnn", 2, [2, 3], 1, True, False),
        ("gru", 2, [1, 1, 1, 1, 1, 1, 1, 2], 6, False, False),
        ("lstm", 1, [3, 2], 8, False, True),
    ],
)
def test_strips_of_rows_are_the_whole_image(
    crew: Crew, cell: str, layers: int, rows: list[int], columns: int | None, masked: bool, shift: bool
) -> None:
    for found in crew.run(len(rows), over_ranks, cell, layers, rows, columns, masked, shift):
        assert max(map(abs, found)) < 1e-10


def test_nets_that_differ_are_told_on_every_rank(crew: Crew) -> None:
    for said in crew.run(2, refused):
        assert "GridRNN(3, 6) on rank 0 and " in said.replace("'", "") and "GridRNN(3, 5)" in said


def test_what_it_refuses(crew: Crew) -> None:
    del crew  # one process: nothing is sent, and there is no group
    with pytest.raises(lt.errors.LattendError, match="torchrun"):
        grid_rnn(lt.nn.GridRNN(3, 4), torch.zeros(1, 2, 5, 3))
