"""The network's layer is MultiHeadAttention, only quicker: outputs and gradients, and against plain loops."""

from __future__ import annotations

import math

import pytest
import torch

from lattend.nn.attention.attention import MultiHeadAttention
from lattend.study.heads.training import HeadLayer, HeadNet


def layer_of(heads: int = 4, spread: float = 2.0, sharp: float = 1.0) -> HeadLayer:
    torch.manual_seed(0)
    layer = HeadLayer(8, heads, spread).double()
    with torch.no_grad():
        layer.encoding.root.copy_(sharp * torch.rand(heads, dtype=torch.float64) + 0.05)
    return layer


@pytest.mark.parametrize(("rows", "cols"), [(5, 5), (3, 7), (1, 4)])
@pytest.mark.parametrize("spread", [0.0, 2.0, 30.0])
def test_outputs_and_gradients_are_those_of_attention(rows: int, cols: int, spread: float) -> None:
    layer = layer_of(spread=spread)
    x = torch.randn(2, rows, cols, 8, dtype=torch.float64, requires_grad=True)
    wanted = [x, *layer.parameters()]
    result: list[tuple[torch.Tensor, ...]] = []
    for run in (layer, lambda y: MultiHeadAttention.forward(layer, y)):
        out = run(x)
        slope = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view_as(out)
        result.append((out, *torch.autograd.grad((out * slope).sum(), wanted)))
    for ours, theirs in zip(*result, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_output_of_loops() -> None:
    layer = layer_of(heads=1)
    x = torch.randn(1, 3, 4, 8, dtype=torch.float64)
    (dy, dx), alpha = layer.encoding.centres[0].tolist(), layer.encoding.alpha.item()
    value = x[0] @ layer.W_v[0]
    out = layer(x)[0]
    for y in range(3):
        for c in range(4):
            raised = {
                (u, v): math.exp(-alpha * ((u - y - dy) ** 2 + (v - c - dx) ** 2))
                for u in range(3)
                for v in range(4)
            }
            total = sum(raised.values())
            parts = [value[place] * weight / total for place, weight in raised.items()]
            assert layer.b_out is not None
            mixed = torch.stack(parts).sum(0)
            torch.testing.assert_close(out[y, c], mixed @ layer.W_out[0] + layer.b_out)


def test_patches_are_positions() -> None:
    torch.manual_seed(0)
    net = HeadNet(3, 5, layers=1, width=8, patch=2)
    images = torch.randn(2, 3, 8, 6)
    inner = torch.nn.functional.unfold(images, 2, stride=2).movedim(1, 2).reshape(2, 4, 3, 12)
    x = net.blocks[0](net.embedding(inner))
    torch.testing.assert_close(net(images), net.classifier(net.norm(x).mean((1, 2))))


def test_the_pictures_of_heads_know_the_network() -> None:
    import lattend as lt

    net = HeadNet(1, 10, layers=2, width=8, kernel=2)
    assert len(lt.nn.draw_heads(net).panels) == 2
    assert [len(layer) for layer in net.heads()] == [4, 4]
