"""Models of pixels with large weights, and all images of a small size."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from lattend.nn.grid.pixels import PixelModel

CELLS = ("rnn", "lstm", "gru")


def made(levels: int = 2, h: int = 4, seed: int = 0, factor: float = 3.0, **options: object) -> PixelModel:
    """A model whose weights are large, so that its distribution is far from uniform."""
    torch.manual_seed(seed)
    model = PixelModel(levels, h, dtype=torch.float64, embedding=3, **options)  # pyright: ignore[reportArgumentType]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
    return model


def all_images(levels: int, *shape: int) -> Tensor:
    """Every image of that shape, in the order of `number`."""
    pixels = torch.Size(shape).numel()
    return torch.tensor(list(itertools.product(range(levels), repeat=pixels))).view(-1, *shape)


def number(images: Tensor, levels: int) -> Tensor:
    pixels = images.flatten(1)
    return (pixels * levels ** torch.arange(pixels.shape[1] - 1, -1, -1)).sum(1)


def frequencies(images: Tensor, levels: int, many: int) -> Tensor:
    return torch.bincount(number(images, levels), minlength=many) / len(images)


def probabilities(model: PixelModel, images: Tensor) -> Tensor:
    return torch.exp(-model.nats(images)).detach()


def distance(p: Tensor, q: Tensor) -> float:
    """Half the sum of |p - q|, the greatest difference in the probability of any event."""
    return float((p - q).abs().sum()) / 2


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
