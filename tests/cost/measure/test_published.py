"""Published tables, to the last digit: torchvision's parameters and multiply-adds, which it calls GFLOPS.

torchvision counts products and convolutions, padding included, for one image of 224 × 224 and rounds to
three digits (num_params and _ops of each model's weights; its documentation shows two).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from cost.measure.models import SwinT, ViT, alexnet, language_model, resnet, vgg16
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lattend.cost.measure.measure import FlopCounter, of

PUBLISHED: dict[str, tuple[Callable[[], nn.Module], int, float]] = {
    "ResNet-18": (lambda: resnet((2, 2, 2, 2), bottleneck=False), 11_689_512, 1.814),
    "ResNet-50": (lambda: resnet((3, 4, 6, 3), bottleneck=True), 25_557_032, 4.089),
    "VGG16": (vgg16, 138_357_544, 15.47),
    "AlexNet": (alexnet, 61_100_840, 0.714),
    "ViT-B/16": (ViT, 86_567_656, 17.564),
    "Swin-T": (SwinT, 28_288_354, 4.491),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_and_multiply_adds(name: str) -> None:
    make, parameters, billions = PUBLISHED[name]
    with torch.device("meta"):
        model = make().eval()
    result = of(model, (1, 3, 224, 224))
    assert result.parameters == parameters
    assert round(result.multiply_adds.dense / 1e9, 3) == billions
    assert not result.unknown
    assert not result.notes
    assert result.multiply_adds.executed == result.multiply_adds.dense  # nothing is masked
    padded = {row.kind for row in result.rows if row.multiply_adds.needed < row.multiply_adds.dense}
    assert padded == ({"Conv2d"} if "Net" in name or "VGG" in name else set())
    assert max(map(len, str(result).splitlines())) <= 100


def test_what_padding_costs() -> None:
    """ResNet-18 spends some 4% of its multiply-adds on zeros around the image."""
    with torch.device("meta"):
        model = resnet((2, 2, 2, 2), bottleneck=False).eval()
    result = of(model, (1, 3, 224, 224))
    assert result.multiply_adds.dense == 1_814_073_344
    first = next(row for row in result.rows if row.kind == "Conv2d")
    # 112 outputs on a side take 7 taps, less 3, 1 at the left end and 2 at the right
    assert first.forward.needed == (112 * 7 - 3 - 1 - 2) ** 2 * 3 * 64
    with FlopCounter(display=False) as ours, torch.no_grad():
        model(torch.zeros(1, 3, 224, 224, device="meta"))
    assert ours.get_total_flops() == 2 * result.multiply_adds.dense
    with FlopCounter(display=False, padding=False) as ours, torch.no_grad():
        model(torch.zeros(1, 3, 224, 224, device="meta"))
    assert ours.get_total_flops() == 2 * result.multiply_adds.needed


def test_vit_whose_attention_torch_does_not_see() -> None:
    """torch's own counter has no formula for attention on a CPU."""
    model, image = ViT(192, 2, 3).eval(), torch.zeros(1, 3, 224, 224)
    with torch.no_grad():
        with FlopCounterMode(display=False) as theirs:
            model(image)
        with FlopCounter(display=False) as ours:
            model(image)
    result = of(model, image)
    assert ours.get_total_flops() == 2 * result.multiply_adds.needed
    pairs = 2 * 197**2  # of all heads together, a pair is 192 + 192 multiply-adds
    assert ours.get_total_flops() - theirs.get_total_flops() == 2 * pairs * (192 + 192)


def test_seventy_billion_parameters_without_memory() -> None:
    """The shape of Llama 3 70B: 70,553,706,496 parameters, and causal attention at half of all pairs."""
    n, layers, size = 8192, 80, 8192
    with torch.device("meta"):
        model = language_model(128_256, layers, size, 64, 8, 28_672)
    result = of(model, (1, n), dtype=torch.long)
    assert result.parameters == 70_553_706_496
    products = n * (result.parameters - 128_256 * size - (2 * layers + 1) * size)  # all but words and norms
    assert result.multiply_adds.needed == products + layers * n * (n + 1) // 2 * 2 * size
    assert result.multiply_adds.dense == products + layers * n * n * 2 * size
    assert "0 … 79 (80×) Decoder" in str(result)
    assert max(map(len, str(result).splitlines())) <= 100
