"""Weights from torch.nn.MultiheadAttention and back: the same outputs and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn.attention.made import gradients, scramble
from torch import nn
from torch.testing import assert_close

import lattend as lt

MHA = lt.nn.MultiHeadAttention
EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}


def module_of(**options: Any) -> nn.MultiheadAttention:
    module = nn.MultiheadAttention(**{"embed_dim": 6, "num_heads": 3, "dtype": torch.float64, **options})
    scramble(module)
    return module


def tokens(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 3), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_outputs_and_gradients(
    heads: int, width: int, bias: bool, batch_first: bool, kdim: bool, cross: bool
) -> None:
    d, n, m = heads * width, 4, 5 if cross or kdim else 4
    others: dict[str, Any] = {"kdim": 3, "vdim": 2} if kdim else {}
    module = module_of(embed_dim=d, num_heads=heads, bias=bias, batch_first=batch_first, **others)
    layer = MHA.from_torch(module)
    x = tokens(2, n, d)
    y = tokens(2, m, 3 if kdim else d) if cross or kdim else x
    z = tokens(2, m, 2) if kdim else y
    given = [t if batch_first else t.transpose(0, 1) for t in (x, y, z)]
    wanted = module(*given, need_weights=False)[0]
    wanted = wanted if batch_first else wanted.transpose(0, 1)
    found = layer(x, *([] if y is x else [y] if z is y else [y, z]))
    assert_close(found, wanted, **EXACT)
    inputs, theirs = list(dict.fromkeys((x, y, z))), dict(module.named_parameters())
    ours = gradients(found, *inputs, *layer.parameters())
    torchs = gradients(wanted, *inputs, *theirs.values())
    for one, other in zip(ours[: len(inputs)], torchs, strict=False):
        assert_close(one, other, **EXACT)
    for name, parameter in layer.to_torch().named_parameters():
        assert torch.equal(parameter, theirs[name])
    with torch.no_grad():  # gradients in the place of weights go the same way back
        for parameter, grad in zip(layer.parameters(), ours[len(inputs) :], strict=True):
            parameter.copy_(grad)
    expected = dict(zip(theirs, torchs[len(inputs) :], strict=True))
    for name, grad in layer.to_torch().named_parameters():
        assert_close(grad, expected[name], **EXACT)


def test_a_rule_takes_the_place_of_the_mask() -> None:
    module, x = module_of(batch_first=True), tokens(2, 7, 6)
    layer = MHA.from_torch(module, "strided", t=2)
    hidden = ~torch.from_numpy(lt.rules.strided(2).mask(n=7))
    assert_close(layer(x), module(x, x, x, attn_mask=hidden, need_weights=False)[0], **EXACT)


def test_a_bias_that_is_missing_is_zeros_in_torch() -> None:
    layer = MHA(6, 2, 2, 6, 3, dtype=torch.float64)
    scramble(layer)
    module, x = layer.to_torch(), tokens(2, 4, 6)
    assert module.in_proj_bias is not None and not module.in_proj_bias.any()
    assert_close(module(x, x, x, need_weights=False)[0], layer(x), **EXACT)


def test_weights_are_copies() -> None:
    module = module_of(batch_first=True)
    layer = MHA.from_torch(module)
    before = layer.W_v.clone()
    scramble(module, 5)
    assert torch.equal(layer.W_v, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"add_bias_kv": True}, "add_bias_kv=True adds a learned key, which no rule attends to"),
        ({"add_zero_attn": True}, "add_zero_attn=True adds a key of zeros, which no rule attends to"),
        ({"dropout": 0.1}, r"dropout = 0.1 drops weights in training, .*: module.eval\(\) first"),
    ],
)
def test_what_the_layer_cannot_hold(options: dict[str, Any], message: str) -> None:
    with pytest.raises(lt.errors.LattendError, match=message):
        MHA.from_torch(module_of(**options))


def test_dropout_does_nothing_in_evaluation() -> None:
    module, x = module_of(dropout=0.5, batch_first=True).eval(), tokens(1, 4, 6)
    assert_close(MHA.from_torch(module)(x), module(x, x, x, need_weights=False)[0], **EXACT)


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ((7, 2, 2, 7), {}, "torch cuts d_in = 7 into heads alike, and 3 heads do not divide it"),
        (
            (6, 4, 2, 6),
            {},
            "d_in/heads = 6/3 = 2 numbers and its output d_in = 6: d_hidden must be 2, and is 4",
        ),
        ((6, 2, 3, 6), {}, "d_head_out must be 2, and is 3"),
        ((6, 2, 2, 5), {}, "d_out must be 6, and is 5"),
        ((6, 2, 2, 6), {"rule": "causal"}, 'the rule "k <= q" would be lost'),
        ((6, 2, 2, 6), {"encoding": "relative"}, "torch's attention has no encoding, .* relative"),
        ((6, 2, 2, 6), {"encoding": "quadratic"}, "torch's attention has no encoding, .* quadratic"),
        ((6, 2, 2, 6), {"scale": 1.0}, "torch scales by 1/√2, and this layer by 1: put the factor into W_q"),
    ],
)
def test_what_torch_cannot_hold(sizes: tuple[int, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(lt.errors.LattendError, match=message):
        MHA(*sizes, heads=3, **options).to_torch()


def test_only_torchs_attention_is_taken() -> None:
    with pytest.raises(lt.errors.NamingError, match=r"takes a torch\.nn\.MultiheadAttention, not Linear"):
        MHA.from_torch(nn.Linear(2, 2))  # pyright: ignore[reportArgumentType]
