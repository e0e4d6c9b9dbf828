"""What can be seen of a layer: its split by heads, scores, weights, centres and widths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from nn.attention import reference
from nn.attention.made import layers, scramble
from torch.testing import assert_close

import lattend as lt
from lattend.nn.attention.gaussian_heads import Head

MHA = lt.nn.MultiHeadAttention
EXACT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-11}


@settings(max_examples=30)
@given(layers())
def test_the_split_by_heads(made: Any) -> None:
    """MHSA(Z)_q = Σ_h (Σ_k softmax(A^(h)_q)_k Z_k) W^(h) + b where q has keys, else b_out."""
    layer, sizes, _ = made
    x = torch.randn(2, *sizes, layer.d_in, dtype=torch.float64)
    W, b = layer.split(), 0 if layer.bias is None else layer.bias
    weights = layer.weights(x).flatten(-len(sizes)).flatten(2, -2)  # [batch, heads, n, m]
    mixed = torch.einsum("bhnm,bmi,hid->bnd", weights, x.flatten(1, -2), W).unflatten(1, sizes)
    sees = weights.sum(-1).gt(0.5).all(1)  # queries that have keys in all heads
    assert_close((mixed + b).flatten(1, -2)[sees], layer(x).flatten(1, -2)[sees], **EXACT)
    assert W.shape == (layer.head_count, layer.d_in, layer.d_out)


@settings(max_examples=40)
@given(layers())
def test_scores_and_weights_of_every_query(made: Any) -> None:
    layer, sizes, _ = made
    x = torch.randn(2, *sizes, layer.d_in, dtype=torch.float64)
    rule = layer.rules[len(sizes)]
    more = {"heads": layer.head_count} if rule.has_heads else {}
    mask = torch.from_numpy(rule.mask(**more)).reshape(-1, *sizes, *sizes)
    wanted = reference.scores(layer, x, x).unflatten(3, sizes).unflatten(2, sizes)
    wanted = wanted.masked_fill(~mask, float("-inf"))
    weights = layer.weights(x)
    for place in torch.cartesian_prod(*[torch.arange(s) for s in sizes]).view(-1, len(sizes)).tolist():
        row = layer.scores(tuple(place), x)
        assert_close(row, wanted[(slice(None), slice(None), *place)], **EXACT)
        shares = row.flatten(2).softmax(-1).nan_to_num(0).unflatten(-1, sizes)
        assert_close(weights[(slice(None), slice(None), *place)], shares, **EXACT)


def test_scores_of_positions_alone() -> None:
    """Without tokens: a quadratic head's parabola, whatever the weights are."""
    centred = lt.nn.Quadratic(1, centres=[[1.0, -1.0]], alpha=4.0, content=True)
    layer = MHA(3, 2, 2, 2, 1, encoding=centred)
    found = layer.scores((1, 1), rows=3, cols=3)
    wanted = [[-4.0 * ((y - 1) * (y - 3) + (x - 1) * (x + 1)) for x in range(3)] for y in range(3)]
    assert found[0].tolist() == wanted
    assert found.shape == (1, 3, 3)
    near = MHA(3, 2, 2, 2, 1, "ky <= qy", encoding=centred)
    assert near.scores((1, 1), rows=3, cols=3)[0, 2].tolist() == [float("-inf")] * 3


def test_four_terms_of_positions_alone() -> None:
    """With x = 0 the score is v W̃ r_δ: the same for all queries at one shift."""
    layer = MHA(3, 2, 2, 2, 2, "full", "relative", scale=1.0, dtype=torch.float64)
    scramble(layer)
    near, far = (layer.scores(q, n=6) for q in (0, 3))
    assert_close(near[:, :3], far[:, 3:])
    encoding: Any = layer.encoding
    r = reference.wave_of_shift(torch.arange(-3, 3)[:, None], 4)
    assert_close(far, torch.einsum("hd,kp,hpd->hk", encoding.v, r, encoding.W_r))


def test_heads_as_plain_numbers() -> None:
    layer = MHA(3, 2, 2, 2, 2, encoding=lt.nn.Quadratic(2, centres=[[0, 1], [-1, 2]], alpha=[4.0, 9.0]))
    assert layer.heads() == [Head((0.0, 1.0), (4.0, 0.0, 4.0)), Head((-1.0, 2.0), (9.0, 0.0, 9.0))]
    turned = lt.nn.Quadratic(1, centres=[[0.5, 1]], precision=[[4.0, 2.0, 5.0]])
    assert turned.root.tolist() == [[2.0, 1.0, 2.0]]  # [[2, 0], [1, 2]] times its transpose
    assert MHA(3, 2, 2, 2, 1, encoding=turned).heads() == [Head((0.5, 1.0), (4.0, 2.0, 5.0))]
    line = MHA(3, 2, 2, 2, 1, "causal", lt.nn.Quadratic(1, 1, centres=[[-2.0]], alpha=1.0))
    assert line.heads() == [Head((0.0, -2.0), (1.0, 0.0, 1.0))]


def test_a_score_is_that_of_the_head() -> None:
    """-(a dy² + 2b dy dx + c dx²) at δ - Δ, up to a number that is the same for all keys."""
    layer = MHA(3, 2, 2, 2, 1, encoding=lt.nn.Quadratic(1, centres=[[0.5, -1]], precision=[[4.0, 2.0, 5.0]]))
    ((centre, (a, b, c)),) = layer.heads()
    scores = layer.scores((2, 2), rows=4, cols=5)[0]
    for y in range(4):
        for x in range(5):
            dy, dx = y - 2 - centre[0], x - 2 - centre[1]
            form = -(a * dy * dy + 2 * b * dy * dx + c * dx * dx)
            assert scores[y, x].item() == pytest.approx(form + a / 4 - 2 * b / 2 + c)


def test_training_moves_centres_and_widths() -> None:
    """A head asked to copy the pixel one to the right goes there, and gets narrow."""
    torch.manual_seed(0)
    layer = MHA(1, 1, 1, 1, 1, encoding=lt.nn.Quadratic(1, centres=[[0.3, 0.4]], alpha=0.5), out_bias=False)
    with torch.no_grad():
        layer.W_v.fill_(1)
        layer.W_out.fill_(1)
    steps = torch.optim.Adam(layer.encoding.parameters(), lr=0.1)
    for _ in range(100):
        x = torch.randn(4, 6, 6, 1)
        loss = (layer(x)[:, :, :-1] - x[:, :, 1:]).square().mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
    ((centre, (alpha, _, _)),) = layer.heads()
    assert centre == pytest.approx((0, 1), abs=0.2)
    assert alpha > 1
