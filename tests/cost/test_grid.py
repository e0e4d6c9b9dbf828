"""Recurrent nets on an image: what cells, directions and layers cost, by formulas written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from cost.running import check_numbers, run

import lattend as lt
from lattend.cost.reference import rnn2d_stack, shapes

C = lt.cost
GATES = {"rnn": 1, "lstm": 5, "gru": 4}


@pytest.mark.parametrize(("cell", "gates"), GATES.items())
def test_parameters(cell: str, gates: int) -> None:
    assert C.rnn2d(cell=cell).claim("parameters", f"{gates}(h c + 2h^2)")
    assert C.rnn2d(cell=cell, bias=True).claim("parameters", f"{gates}(h c + 2h^2 + h)")
    # Above the first layer every direction is given all directions of the layer below
    deep = C.rnn2d(cell=cell, directions=4, layers="l", bias=True)
    assert deep.claim("parameters", f"4*{gates}(h c + 2h^2 + h) + (l - 1)*4*{gates}(4h^2 + 2h^2 + h)")


@pytest.mark.parametrize(("cell", "gates"), GATES.items())
def test_a_kernel_multiplies_the_zeros_beyond_the_edge_too(cell: str, gates: int) -> None:
    """Needed leaves them out; what GridRNN executes, and a tool reports, does not."""
    cost, net = C.rnn2d(n=8, h=64, c=3, cell=cell), lt.nn.GridRNN(3, 64, cell=cell)
    # 64*192 + 112*4096, and 64*(192 + 8192)
    assert cost.multiply_adds == (gates * 471_040, gates * 536_576, gates * 536_576)
    assert C.of(net, (1, 8, 8, 3)).multiply_adds.executed == cost.multiply_adds.executed
    assert str(C.rnn2d().executed.multiplies) == str(C.rnn2d().dense.multiplies)
    assert C.rnn2d().dense.claim("multiplies", "n^2(h c + 2h^2)")


@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize(("rows", "cols", "directions", "layers"), [(1, 1, 1, 1), (3, 2, 1, 2), (2, 3, 2, 2)])
def test_dense_is_a_run_with_states_of_zeros(
    cell: str, rows: int, cols: int, directions: int, layers: int
) -> None:
    """Forward and backward, as plain code that multiplies the zeros counts it."""
    weights = shapes.rnn2d_stack(2, 3, cell, directions, layers, True)

    def layer(x: Any, w: Any) -> Any:
        return rnn2d_stack(x, w, cell, directions, initial=True)

    sizes: dict[str, Any] = {"rows": rows, "cols": cols, "h": 2, "c": 3, "directions": directions}
    cost = C.rnn2d(**sizes, cell=cell, layers=layers, bias=True)
    check_numbers(run(layer, weights, (rows, cols, 3)), cost.dense)


def test_what_an_lstm_and_a_gru_multiply() -> None:
    """Products of the gates at every cell; gate by gate where there is something to multiply."""
    lstm, gru = (C.rnn2d(rows="rows", cols="cols", cell=cell) for cell in ("lstm", "gru"))
    products = "(rows cols h c + (rows(cols - 1) + (rows - 1)cols) h^2)"
    near = "(rows(cols - 1) + (rows - 1)cols) h"  # l∘left, (1 - l)∘top
    # i∘g and o∘tanh c everywhere; f∘mixed wherever there is a neighbour
    assert lstm.claim("multiplies", f"5{products} + 2 rows cols h + {near} + (rows cols - 1)h")
    # (1 - z)∘n everywhere; r∘m and z∘mixed wherever there is a neighbour
    assert gru.claim("multiplies", f"4{products} + rows cols h + {near} + 2(rows cols - 1)h")
    assert lstm.claim("functions", "6 rows cols h")  # five gates, and tanh c
    assert gru.claim("functions", "4 rows cols h")


@pytest.mark.parametrize(
    ("cell", "kept", "held"),
    [  # h; h, c and five gates; h, r, z, l, n and m
        ("rnn", "n^2(c + h)", "n h"),
        ("lstm", "n^2(c + 7h)", "2n h"),
        ("gru", "n^2(c + 6h)", "n h"),
    ],
)
def test_memory(cell: str, kept: str, held: str) -> None:
    """For training the pixels, the states and the gates; in use a row of states."""
    cost = C.rnn2d(cell=cell)
    assert cost.claim("saved_activations", kept)
    assert cost.claim("cache", held)
    deep = C.rnn2d(cell=cell, layers=3)  # the image once, three times the rest
    assert deep.claim("saved_activations", f"{kept} + 2({kept} - n^2 c)")
    both = C.rnn2d(cell=cell, directions=2, layers=3)  # upper layers are given both directions side by side
    assert both.claim("saved_activations", f"{kept} + 5({kept} - n^2 c) + 2*2n^2 h")
    assert both.claim("cache", f"6*{held}")


@pytest.mark.parametrize(
    ("directions", "depth", "words"),
    [
        (1, "rows + cols + l - 2", "each cell one step after the one below"),
        (2, "rows + l cols - 1", "each cell cols steps after the one below"),
        (4, "l(rows + cols - 1)", "once the layer below is done"),
    ],
)
def test_how_far_layers_overlap(directions: int, depth: str, words: str) -> None:
    cost = C.rnn2d(rows="rows", cols="cols", layers="l", directions=directions)
    assert cost.claim("depth", depth)
    corner = "" if directions == 1 else ", from the corner where its direction starts"
    first = f"rnn2d: cell (row, col) runs at step col + row{corner}"
    assert cost.schedule == [first, f"rnn2d, upper layer: {words}"]


def test_scalar_depth_of_cells() -> None:
    """A sum of c + 2h terms, then what follows it in the cell, for each of the 2n - 1 steps."""
    sizes: dict[str, Any] = {"n": 3, "h": 2, "c": 4}
    tree = 1 + 3  # eight terms
    assert C.rnn2d(**sizes, bias=True).scalar_depth == 5 * (tree + 1 + 1)
    # σ, 1 - l, (1 - l)∘c_top, + l∘c_left, f∘mixed, + i∘g, tanh c, o∘tanh c
    assert C.rnn2d(**sizes, cell="lstm").scalar_depth == 5 * (tree + 8)
    # pre and neighbours have four terms each; their sum, σ, r∘m, + pre, tanh, (1 - z)∘n, the last add
    assert C.rnn2d(**sizes, cell="gru").scalar_depth == 5 * (1 + 2 + 1 + 1 + 1 + 1 + 1 + 1 + 1)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"cell": "elman"}, lt.errors.NamingError, "cell is one of rnn, lstm, gru, not 'elman'"),
        ({"directions": 3}, lt.errors.DomainError, "directions is 1, 2 or 4, not 3"),
        ({"directions": "d"}, lt.errors.NamingError, "directions must be a number here, not the name d"),
        ({"layers": 0}, lt.errors.DomainError, "layers must be at least 1, got 0"),
    ],
)
def test_what_does_not_fit_is_said(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        C.rnn2d(**given)
