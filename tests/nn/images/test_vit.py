"""The vision transformer against a stack of torch's own layers with the same weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import lattend as lt
from lattend.errors import DomainError, TensorError

SMALL: dict[str, Any] = {
    "rows": 6,
    "cols": 4,
    "patch": 2,
    "c": 3,
    "d": 8,
    "layers": 2,
    "heads": 2,
    "classes": 5,
}


def learned(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def plain(model: Any, image: Tensor) -> tuple[Tensor, nn.Module]:
    """The same in torch's words: a convolution, encoder layers with norms first, the class token."""
    d, patch = model.embed.out_features, model.patches.size[0]
    conv: Any = nn.Conv2d(image.shape[1], d, patch, stride=patch, dtype=torch.float64)
    options: dict[str, Any] = {"dropout": 0.0, "activation": "gelu", "layer_norm_eps": 1e-6}
    options |= {"batch_first": True, "norm_first": True, "dtype": torch.float64}
    layers = [
        nn.TransformerEncoderLayer(d, block.attention.head_count, 4 * d, **options) for block in model.blocks
    ]
    with torch.no_grad():
        conv.weight.copy_(model.embed.weight.view_as(conv.weight))
        conv.bias.copy_(model.embed.bias)
        for layer, block in zip(layers, model.blocks, strict=True):
            layer.self_attn.load_state_dict(block.attention.to_torch().state_dict())
            for theirs, ours in (
                ("linear1", "up"),
                ("linear2", "down"),
                ("norm1", "norm1"),
                ("norm2", "norm2"),
            ):
                getattr(layer, theirs).load_state_dict(getattr(block, ours).state_dict())
    x = conv(image).flatten(2).transpose(1, 2)
    x = torch.cat([model.token.expand(len(x), 1, d), x], 1) + model.positions
    for layer in layers:
        x = layer(x)
    x = nn.functional.layer_norm(x, (d,), model.norm.weight, model.norm.bias, 1e-6)
    return x[:, 0] @ model.classify.weight.T + model.classify.bias, nn.ModuleList([conv, *layers])


def test_forward_and_gradients() -> None:
    torch.manual_seed(0)
    model: Any = lt.nn.ViT(**SMALL, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    image = torch.randn(2, 3, 6, 4, dtype=torch.float64, requires_grad=True)
    found, (wanted, stack) = model(image), plain(model, image)
    assert_close(found, wanted, rtol=1e-11, atol=1e-11)
    mixed = torch.randn_like(found)
    shared = [image, model.token, model.positions, model.norm.weight, model.classify.bias]
    last: Any = list(stack.children())[-1]
    block = model.blocks[-1]
    ours = torch.autograd.grad((found * mixed).sum(), [*shared, block.up.weight, block.attention.W_out])
    theirs = torch.autograd.grad(
        (wanted * mixed).sum(), [*shared, last.linear1.weight, last.self_attn.out_proj.weight]
    )
    for one, other in zip(ours[:-1], theirs[:-1], strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)
    assert_close(ours[-1].flatten(0, 1), theirs[-1].T, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ({}, 86_567_656),  # ViT-B/16
        ({"patch": 32}, 88_224_232),  # ViT-B/32
        ({"d": 1024, "layers": 24, "heads": 16}, 304_326_632),  # ViT-L/16
        ({"patch": 14, "d": 1280, "layers": 32, "heads": 16}, 632_045_800),  # ViT-H/14
    ],
)
def test_published_sizes(options: dict[str, Any], parameters: int) -> None:
    model = lt.nn.ViT(**options, device="meta")
    assert learned(model) == model.cost().parameters == parameters
    assert model(torch.empty(2, 3, 224, 224, device="meta")).shape == (2, 1000)


@pytest.mark.parametrize("padding", ["crop", "zeros"])
def test_images_that_patches_do_not_divide(padding: str) -> None:
    model = lt.nn.ViT(**{**SMALL, "rows": 7}, hidden=9, padding=padding)
    assert model.tokens(torch.zeros(1, 3, 7, 4)).shape == (1, 1 + (3 if padding == "crop" else 4) * 2, 8)
    assert learned(model) == model.cost().parameters


def test_what_does_not_fit() -> None:
    with pytest.raises(DomainError, match="layers must be at least 1, got 0"):
        lt.nn.ViT(layers=0)
    with pytest.raises(DomainError, match="d = 10 does not divide into 3 heads"):
        lt.nn.ViT(d=10, heads=3, device="meta")
    with pytest.raises(DomainError, match="7 rows are not patches of 2 every 2: 1 is left over"):
        lt.nn.ViT(**{**SMALL, "rows": 7})
    with pytest.raises(TensorError, match=r"takes images \(N, 3, 6, 4\), got \(1, 3, 4, 6\)"):
        lt.nn.ViT(**SMALL)(torch.zeros(1, 3, 4, 6))
    bad: Any = (
        (-1, "at least 1, got -1"),
        (0, "at least 1, got 0"),
        (2.5, "an integer, got 2.5"),
    )
    for hidden, message in bad:
        with pytest.raises(DomainError, match=f"hidden must be {message}"):
            lt.nn.ViT(**SMALL, hidden=hidden)
    image = torch.zeros(1, 3, 6, 4)
    with pytest.raises(TensorError, match="image is uint8 and the weights are float32; cast one of them"):
        lt.nn.ViT(**SMALL)(image.to(torch.uint8))
    with pytest.raises(TensorError, match="image is on cpu and the weights are on meta; move one of them"):
        lt.nn.ViT(**SMALL, device="meta")(image)
    with torch.autocast("cpu", torch.bfloat16):
        assert lt.nn.ViT(**SMALL)(image.bfloat16()).shape == (1, 5)


def test_patches_that_are_not_square() -> None:
    model = lt.nn.ViT(**{**SMALL, "rows": 8, "patch": (4, 2)})
    assert model.tokens(torch.zeros(1, 3, 8, 4)).shape == (1, 1 + 2 * 2, 8)
    assert learned(model) == model.cost().parameters


def test_the_cost_is_that_of_lt_cost() -> None:
    found, wanted = lt.nn.ViT(**SMALL).cost(), lt.cost.vit(**SMALL)
    for count in ("parameters", "multiplies", "adds"):
        assert getattr(found, count) == getattr(wanted, count)
