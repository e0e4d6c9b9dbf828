"""Outputs and gradients of the layer against attention written out, in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from nn.attention import reference
from nn.attention.made import encoding_of, gradients, layers, scramble
from torch.testing import assert_close

import lattend as lt

MHA = lt.nn.MultiHeadAttention
EXACT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-11}


def mask_of(layer: Any, sizes: tuple[int, ...], **more: int) -> torch.Tensor:
    rule = layer.rules[len(sizes)]
    known = {axis.queries: size for axis, size in zip(rule.axes, sizes, strict=True)} | more
    known |= {"heads": layer.head_count} if rule.has_heads else {}
    return torch.from_numpy(rule.mask(**{k: v for k, v in known.items() if k not in rule.values}))


def check(layer: Any, mask: torch.Tensor, *tokens: torch.Tensor, **given: Any) -> None:
    found, wanted = layer(*tokens, **given), reference.outputs(layer, tokens[0], mask, *tokens[1:])
    assert_close(found, wanted, **EXACT)
    of = [*tokens, *layer.parameters()]
    for one, other in zip(gradients(found, *of), gradients(wanted, *of), strict=True):
        assert_close(one, other, **EXACT)


def tokens(*shape: int) -> torch.Tensor:
    source = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=source, dtype=torch.float64).requires_grad_()


@settings(max_examples=80)
@given(layers())
def test_any_layer(made: Any) -> None:
    layer, sizes, _ = made
    check(layer, mask_of(layer, sizes), tokens(2, *sizes, layer.d_in))


@pytest.mark.parametrize("name", ["relative", "sinusoidal", "quadratic beside content", "covariance"])
@pytest.mark.parametrize("rule", ["full", "neighbourhood(r=2)"])
def test_larger_images(name: str, rule: str) -> None:
    """Waves split into products of waves give the four terms exactly, also far away."""
    layer = MHA(8, 4, 3, 5, 2, rule, encoding_of(name, 2, 2, 4), bias=True, dtype=torch.float64)
    scramble(layer)
    check(layer, mask_of(layer, (5, 17)), tokens(1, 5, 17, 8))


def test_a_long_line_of_waves() -> None:
    layer = MHA(3, 4, 3, 5, 2, "strided(t=3)", lt.nn.Relative(2, 4, 6), dtype=torch.float64).double()
    scramble(layer)
    check(layer, mask_of(layer, (150,)), tokens(1, 150, 3))


@pytest.mark.parametrize("encoding", [None, "absolute", "sinusoidal", "tables", "relative", "quadratic"])
def test_keys_of_other_tokens(encoding: str | None) -> None:
    layer = MHA(4, 4, 3, 5, 2, "k <= q + 1", encoding, bias=True, n=3, m=5, dtype=torch.float64)
    scramble(layer)
    check(layer, mask_of(layer, (3,)), tokens(2, 3, 4), tokens(2, 5, 4))


def test_keys_and_values_of_other_widths() -> None:
    layer = MHA(4, 2, 3, 5, 2, d_keys=3, d_values=6, dtype=torch.float64)
    mask = torch.ones(1, 3, 5, dtype=torch.bool)
    check(layer, mask, tokens(2, 3, 4), tokens(2, 5, 3), tokens(2, 5, 6))
    assert layer.cost(n=3, m=5).parameters == sum(p.numel() for p in layer.parameters())


def test_keys_of_another_image() -> None:
    layer = MHA(
        4, 2, 3, 5, 2, "neighbourhood(r=1)", "absolute", d_keys=2, rows=3, cols=2, dtype=torch.float64
    )
    check(layer, mask_of(layer, (3, 2)), tokens(2, 3, 2, 4), tokens(2, 3, 2, 2))
    assert layer.cost().parameters == sum(p.numel() for p in layer.parameters())


def test_full_takes_a_line_and_an_image() -> None:
    layer = MHA(4, 2, 3, 5, 2, dtype=torch.float64)
    image = tokens(2, 3, 5, 4)
    assert_close(layer(image).flatten(1, 2), layer(image.flatten(1, 2)), **EXACT)
    by_text = MHA(4, 2, 3, 5, 2, lt.rules.full(), dtype=torch.float64)
    by_text.load_state_dict(layer.state_dict())
    assert torch.equal(by_text(image), layer(image))


def test_parameters_and_arrays_may_come_with_the_call() -> None:
    layer = MHA(4, 2, 3, 5, 2, "strided", dtype=torch.float64)
    check(layer, torch.from_numpy(lt.rules.strided(2).mask(n=6)), tokens(2, 6, 4), t=2)
    packed = MHA(4, 2, 3, 5, 2, lt.rules.documents(), dtype=torch.float64)
    ids = torch.tensor([0, 0, 1, 1, 1])
    check(packed, ids[:, None] == ids, tokens(2, 5, 4), doc=ids)


def test_one_head_by_hand() -> None:
    """Tokens (1,2), (2,0), (0,1), (1,1); W_q = I, W_k = diag(1,0), W_v = diag(0,1); no scaling."""
    layer: Any = MHA(2, 2, 2, 2, 1, out_bias=False, scale=1.0, dtype=torch.float64)
    diagonals = {"W_q": [1.0, 1.0], "W_k": [1.0, 0.0], "W_v": [0.0, 1.0], "W_out": [1.0, 1.0]}
    layer.load_state_dict({name: torch.diag(torch.tensor(x))[None] for name, x in diagonals.items()})
    x = torch.tensor([[[1, 2], [2, 0], [0, 1], [1, 1]]], dtype=torch.float64)
    assert layer.scores(0, x)[0, 0].tolist() == [1, 2, 0, 1]
    assert layer.scores(1, x)[0, 0].tolist() == [2, 4, 0, 2]
    assert layer.weights(x)[0, 0, :3].round(decimals=4).tolist() == [
        [0.1966, 0.5344, 0.0723, 0.1966],
        [0.1050, 0.7758, 0.0142, 0.1050],
        [0.25, 0.25, 0.25, 0.25],
    ]
    assert layer(x)[0].round(decimals=4).tolist() == [[0, 0.6622], [0, 0.3292], [0, 1], [0, 0.6622]]


@pytest.mark.parametrize("encoding", ["absolute", "sinusoidal", "tables", "relative", "quadratic"])
def test_compiled_it_is_the_same(encoding: str) -> None:
    layer = MHA(4, 2, 3, 5, 2, encoding=encoding, rows=3, cols=4)
    x = torch.randn(2, 3, 4, 4)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), layer(x))


def test_half_precision() -> None:
    layer = MHA(4, 8, 8, 5, 2, encoding="relative", rows=3, cols=4)
    x = torch.randn(2, 3, 4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(layer(x).float(), layer.float()(x).float(), rtol=0.05, atol=0.05)
    assert layer.bfloat16()(x.bfloat16()).dtype == torch.bfloat16
