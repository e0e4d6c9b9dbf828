"""The handwritten digits of scikit-learn."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from lattend.errors import LattendError

SIZE, LEVELS, TEST = 8, 17, 360
INK = 8  # from this level on a pixel is ink where digits are binary


class Digits(NamedTuple):
    """Images [many, 8, 8] of whole numbers below `levels`, to train on and to test.

    The labels are the digits 0 to 9 that they show; a VAE needs none, they are there to classify or colour.
    """

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor
    levels: int

    def one_of_each(self) -> Tensor:
        """The first 0 of those to test, the first 1, and so on to 9."""
        return torch.stack([self.test[self.test_labels == digit][0] for digit in range(10)])


def digits(binary: bool = False) -> Digits:
    """The 1,797 digits of scikit-learn, 8 × 8 pixels of 17 levels: 1,437 to train on, 360 to test.

    The split is the same every time. `binary=True` makes levels from 8 on 1 and those below 0.
    """
    try:
        from sklearn.datasets import load_digits  # pyright: ignore[reportMissingTypeStubs]
    except ModuleNotFoundError:
        raise LattendError("the digits come with scikit-learn: pip install scikit-learn") from None
    images, labels = (torch.from_numpy(numbers).long() for numbers in load_digits(return_X_y=True))
    shuffled = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    images, labels = images.view(-1, SIZE, SIZE)[shuffled], labels[shuffled]
    images = (images >= INK).long() if binary else images
    return Digits(
        images[:-TEST], labels[:-TEST], images[-TEST:], labels[-TEST:], levels=2 if binary else LEVELS
    )
