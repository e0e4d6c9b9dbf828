"""Small sets of images and records for the tests of heads in training."""

from __future__ import annotations

from typing import Any

import numpy as np

from lattend.study.heads.record import Record
from lattend.study.heads.training import train
from lattend.study.image_sets import ImageSet

SMALL: dict[str, Any] = {"kernel": 2, "layers": 2, "width": 8, "batch": 16, "patch": 1, "rate": 1e-2}


def images(many: int = 64, side: int = 6, seed: int = 0) -> ImageSet:
    """A bright row or a bright column: which of the two is the class."""
    random = np.random.default_rng(seed)

    def part(number: int) -> tuple[Any, Any]:
        labels = random.integers(0, 2, number)
        drawn = np.zeros((number, 1, side, side), np.uint8)
        for image, label in zip(drawn, labels, strict=True):
            at = random.integers(0, side)
            image[0].T[at] = 255 * label
            image[0, at] = np.maximum(image[0, at], 255 * (1 - label))
        return drawn, labels

    return ImageSet("bars", *part(many), *part(many // 2))


def record(epochs: int = 2, **options: Any) -> Record:
    return train(images(), epochs=epochs, **(SMALL | options))
