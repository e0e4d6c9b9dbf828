"""How many numbers a layer learns: the formula, what each encoding adds, and always what its cost says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn.attention.made import ENCODINGS, encoding_of, layers

import lattend as lt
from lattend.errors import DomainError

MHA = lt.nn.MultiHeadAttention


def learned(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@settings(max_examples=60)
@given(layers())
def test_the_cost_has_the_parameters_of_the_module(made: Any) -> None:
    layer, _, named = made
    assert layer.cost(**named).parameters == learned(layer)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("axes", [1, 2])
@settings(max_examples=4)
@given(st.tuples(*[st.integers(1, 6)] * 7), st.booleans())
def test_the_formula_and_what_an_encoding_adds(
    name: str | None, axes: int, sizes: tuple[int, ...], bias: bool
) -> None:
    """N_h·D_i·(2D_hid + D_o) + N_h·D_o·D_out + D_out, and the differences of docs/images.md."""
    heads, hid, out, d_out, rows, cols, d = sizes
    d_in = 4 * d if name == "sinusoidal" else d
    named: dict[str, Any] = {"n": rows} if axes == 1 else {"rows": rows, "cols": cols}
    n = rows if axes == 1 else rows * cols
    kind = encoding_of(name, heads, axes, hid)
    layer = MHA(d_in, hid, out, d_out, heads, "full", kind, bias=bias, **named)
    formula = heads * d_in * (2 * hid + out) + heads * out * d_out + d_out
    bare = -2 * heads * d_in * hid - (2 * heads * hid if bias else 0)  # no W_q and W_k, and no bias of theirs
    added = {
        None: 0,
        "absolute": n * d_in,
        "sinusoidal": 0,
        "tables": heads * (2 * rows - 1) * (1 if axes == 1 else 2 * cols - 1),
        "near tables": heads * 3,
        "relative": heads * hid * (8 + 2),
        "quadratic": bare + heads * (axes + 1),
        "quadratic beside content": heads * (axes + 1),
        "fixed quadratic": bare,
        "covariance": bare + heads * (2 if axes == 1 else 2 + 3),
        "covariance beside content": heads * (2 if axes == 1 else 2 + 3),
    }[name]
    assert learned(layer) == formula + added + (heads * (2 * hid + out) if bias else 0)
    assert learned(layer) == layer.cost(**named).parameters


def test_without_an_output_bias() -> None:
    assert learned(MHA(3, 4, 5, 6, 2, out_bias=False)) == 2 * 3 * (2 * 4 + 5) + 2 * 5 * 6


def test_the_cost_is_that_of_lt_cost() -> None:
    layer = MHA(3, 4, 5, 6, 2, "neighbourhood(r=1)")
    same = lt.cost.attention(lt.rules.neighbourhood(1), heads=2, D_i=3, D_hid=4, D_o=5, D_out=6)
    assert str(layer.cost().multiplies) == str(same.multiplies)
    assert layer.cost(rows=8, cols=8).adds == same.at(rows=8, cols=8).adds
    assert layer.cost(rows="a", cols=3).parameters == 2 * 3 * 13 + 60 + 6


def test_the_cost_of_full_by_the_sizes_that_are_asked_for() -> None:
    layer = MHA(3, 4, 5, 6, 2)
    assert str(layer.cost().multiplies) == str(layer.cost(n="n").multiplies)
    assert layer.cost(rows=3, cols=4).multiplies == layer.cost(n=12).multiplies
    assert layer.cost(n=3, m=5).multiplies == 2 * 3 * 5 * 9 + 3 * 24 + 5 * (24 + 30) + 3 * 60


def test_a_layer_without_memory() -> None:
    """On the meta device a layer has shapes and no numbers."""
    layer = MHA(768, 64, 64, 768, 12, encoding="tables", rows=14, cols=14, device="meta")
    assert layer.cost().parameters == learned(layer) == 4 * 768**2 + 768 + 12 * 27 * 27
    assert layer(torch.empty(2, 14, 14, 768, device="meta")).shape == (2, 14, 14, 768)


@pytest.mark.parametrize("options", [{"alpha": 2.0}, {"precision": [[1.0, 0.0, 1.0]] * 2}])
def test_quadratic_heads_without_memory(options: dict[str, Any]) -> None:
    heads = lt.nn.Quadratic(2, centres=[[0.0, 1.0]] * 2, **options, device="meta")
    with torch.device("meta"):
        same = lt.nn.Quadratic(2, centres=[[0.0, 1.0]] * 2, **options)
    assert heads.precision.shape == same.precision.shape == (2, 3)
    assert heads.root.is_meta and same.root.is_meta


def test_the_sizes_of_positions_given_as_a_module() -> None:
    layer = MHA(8, 4, 5, 6, 2, encoding=lt.nn.Absolute(8, (3, 4)))
    named = MHA(8, 4, 5, 6, 2, encoding="absolute", rows=3, cols=4)
    assert layer.cost().parameters == learned(layer) == learned(named)
    assert layer.cost().multiplies == named.cost(rows=3, cols=4).multiplies
    for each in (layer, named):
        with pytest.raises(DomainError, match="rows = 30 is asked for, and the layer was made for 3"):
            each.cost(rows=30, cols=40)


def test_the_positions_of_other_keys_given_as_a_module() -> None:
    own = lt.nn.Absolute(8, 3, d_keys=7, key_sizes=5)
    layer = MHA(8, 4, 5, 6, 2, "k <= q", encoding=own, d_keys=7, m=5)
    assert layer.cost().parameters == learned(layer)
    assert layer(torch.zeros(1, 3, 8), torch.zeros(1, 5, 7)).shape == (1, 3, 6)
