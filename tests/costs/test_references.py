"""The references of single layers against torch's own modules, outputs and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from costs import references, shapes
from costs.against_torch import Tensors, check, drawn, module, same
from torch import Tensor, nn
from torch.nn import functional


@pytest.mark.parametrize("bias", [True, False])
def test_linear(bias: bool) -> None:
    made = module(nn.Linear(3, 4, bias=bias))
    check(made, references.linear, drawn(5, 3), shapes.linear(3, 4, bias))


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
def test_feed_forward(activation: str, gated: bool) -> None:
    def wanted(x: Tensor, w: Tensors) -> Tensor:
        function = getattr(torch, activation, None) or getattr(functional, activation)
        inner = function(functional.linear(x, w["linear1.weight"], w["linear1.bias"]))
        if gated:
            inner = inner * functional.linear(x, w["gate.weight"], w["gate.bias"])
        return functional.linear(inner, w["linear2.weight"], w["linear2.bias"])

    weights = shapes.feed_forward(3, 5, gated=gated)
    check(wanted, lambda x, w: references.feed_forward(x, w, activation), drawn(4, 3), weights)


def test_norms() -> None:
    check(module(nn.LayerNorm(5)), references.layer_norm, drawn(3, 5), shapes.norm(5, "layer"))
    check(module(nn.RMSNorm(5, eps=1e-5)), references.rms_norm, drawn(3, 5), shapes.norm(5, "rms"))


def test_embedding() -> None:
    made, tokens = nn.Embedding(7, 3).double(), [4, 0, 4]
    same(references.embedding(tokens, {"weight": made.weight.tolist()}), made(torch.tensor(tokens)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": (2, 3)},
        {"padding": (1, 2), "dilation": (2, 1)},
        {"padding": (2, 0), "groups": 2, "stride": (2, 1)},
        {"padding": (4, 4), "stride": (2, 2)},  # some windows see padding alone
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_conv2d(options: dict[str, Any], bias: bool) -> None:
    made = module(nn.Conv2d(4, 6, (3, 2), bias=bias, **options))
    weights = shapes.conv2d(4, 6, (3, 2), options.get("groups", 1), bias)
    check(made, lambda x, w: references.conv2d(x, w, **options), drawn(4, 6, 5), weights)


def test_patch_embedding() -> None:
    def wanted(x: Tensor, w: Tensors) -> Tensor:
        return functional.conv2d(x, w["weight"], w["bias"], stride=(2, 3)).flatten(1).transpose(0, 1)

    check(wanted, references.patch_embedding, drawn(3, 6, 7), shapes.conv2d(3, 5, (2, 3)))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("options", [{"initial": False}, {"in_turn": True}])
def test_recurrent(kind: str, layers: int, bias: bool, options: dict[str, bool]) -> None:
    made = module(getattr(nn, kind.upper())(3, 4, num_layers=layers, bias=bias))
    check(
        lambda x, w: made(x, w)[0],
        lambda x, w: references.recurrent(kind, x, w, **options),
        drawn(5, 3),
        shapes.recurrent(kind, 3, 4, layers, bias),
    )


def test_rnn2d() -> None:
    """Against the same recurrence on torch's tensors, one anti-diagonal at a time."""
    rows, cols, h, c = 3, 4, 2, 3

    def swept(image: Tensor, w: Tensors) -> Tensor:
        done: dict[tuple[int, int], Tensor] = {}
        nothing = torch.zeros(h, dtype=torch.float64)
        for diagonal in range(rows + cols - 1):
            for i in range(max(0, diagonal - cols + 1), min(rows, diagonal + 1)):
                j = diagonal - i
                left, top = done.get((i, j - 1), nothing), done.get((i - 1, j), nothing)
                sums = w["W_in"] @ image[:, i, j] + w["W_left"] @ left + w["W_top"] @ top
                done[i, j] = torch.tanh(sums)
        return torch.stack([torch.stack([done[i, j] for j in range(cols)]) for i in range(rows)])

    check(swept, references.rnn2d, drawn(c, rows, cols), shapes.rnn2d(h, c))
