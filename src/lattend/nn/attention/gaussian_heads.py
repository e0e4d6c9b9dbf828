"""Heads of a layer as places: the centre of each one's attention from a query pixel, and its width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.report.numbers import log_sum

Floats = NDArray[np.float64]
SEEN = 40.0  # scores so far below the best weigh under 1e-17
MOST_HEADS = 1024  # that one picture shows
MOST_REACH = 256  # pixels from a centre that are summed on an image without edges


class Head(NamedTuple):
    """A head that scores the shift δ from its query by -(a dy² + 2b dy dx + c dx²), (dy, dx) = δ - centre.

    `centre` is (dy, dx), rows first; `precision` is (a, b, c). A width α the same in all directions
    is (α, 0, α).
    """

    centre: tuple[float, float]
    precision: tuple[float, float, float]

    @property
    def curvatures(self) -> tuple[float, float]:
        """The greatest and the least principal value of the form; the least of a flat one is not above 0."""
        a, b, c = self.precision
        half = math.hypot((a - c) / 2, b)
        return (a + c) / 2 + half, (a + c) / 2 - half

    @property
    def widths(self) -> tuple[float, float]:
        """The standard deviations along the narrow and the wide axis, in pixels: 1/√(2α) for α alike.

        >>> Head((0, 0), (2, 0, 0.5)).widths
        (0.5, 1.0)
        """
        narrow, wide = (math.inf if value <= 0 else 1 / math.sqrt(2 * value) for value in self.curvatures)
        return narrow, wide

    def scores(self, dy: Floats, dx: Floats) -> Floats:
        """The scores of these shifts, the best 0."""
        a, b, c = self.precision
        y, x = dy - self.centre[0], dx - self.centre[1]
        return -(a * y * y + 2 * b * y * x + c * x * x)

    def weights(self, rows: int, cols: int, query: tuple[int, int]) -> Floats:
        """The softmax of the scores over an image, for one query pixel; [rows, cols]."""
        return softmax(self.scores(*shifts(rows, cols, query)))

    def sharpest(self) -> float:
        """The greatest weight of a pixel on an image without edges; 0 where the head has no finite width."""
        return math.exp(self.log_sharpest()[0])

    def log_sharpest(self) -> tuple[float, float]:
        """The logarithms of the greatest weight and of all other weights together.

        >>> Head((0, 0), (100, 0, 100)).log_sharpest()[1]  # the four neighbors: log 4 - 100
        -98.6137056388801
        """
        least = self.curvatures[1]
        if least <= 0:
            return -math.inf, 0.0
        reach = math.ceil(math.sqrt(SEEN / least)) + 1
        if reach > MOST_REACH:  # so wide that the sum over pixels is the integral
            share = math.sqrt(self.curvatures[0] * least) / math.pi
            return math.log(share), math.log1p(-share)
        offsets = [math.floor(along) for along in self.centre]
        y, x = (np.arange(-reach, reach + 2, dtype=float) + offset for offset in offsets)
        scores = self.scores(y[:, None], x[None, :]).ravel()
        top = scores.argmax()
        others = np.delete(scores, top)
        total = log_sum(scores)
        return float(scores[top]) - total, log_sum(others) - total


def shifts(rows: int, cols: int, query: tuple[int, int]) -> tuple[Floats, Floats]:
    """δ = k - q of every pixel of an image, rows and columns apart."""
    y, x = np.arange(rows, dtype=float) - query[0], np.arange(cols, dtype=float) - query[1]
    return np.broadcast_to(y[:, None], (rows, cols)), np.broadcast_to(x[None, :], (rows, cols))


def softmax(scores: Floats) -> Floats:
    """e^score over the sum of all of them."""
    raised = np.exp(scores - scores.max())
    return raised / raised.sum()


def kernel_heads(
    kernel: int | tuple[int, int], dilation: int | tuple[int, int] = 1, alpha: float = 1.0
) -> list[Head]:
    """The heads that stand for a K × K convolution: one a tap, centres in its grid, row by row.

    >>> [head.centre for head in kernel_heads(2, dilation=2)]  # of even kernels the odd pixel is the last
    [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    """
    sides = [(given, given) if isinstance(given, int) else given for given in (kernel, dilation)]
    for name, pair in zip(("kernel", "dilation"), sides, strict=True):
        if min(pair) < 1:
            raise DomainError(f"{name} must be at least 1, got {min(pair)}")
    check_many(math.prod(sides[0]))
    rows, cols = (
        [apart * tap - apart * (taps - 1) // 2 for tap in range(taps)]
        for taps, apart in zip(*sides, strict=True)
    )
    return [isotropic((dy, dx), alpha) for dy in rows for dx in cols]


def check_many(heads: int) -> None:
    """Raises where there are more heads than a picture shows."""
    if heads > MOST_HEADS:
        raise DomainError(f"{heads:,} heads are more than a picture shows; give at most {MOST_HEADS:,}")


def isotropic(centre: tuple[float, float], alpha: float) -> Head:
    """A head as wide in all directions: its score is -α‖δ - centre‖²."""
    if not alpha > 0 or not math.isfinite(alpha):
        raise DomainError(f"alpha must be above 0, got {alpha:g}; a larger one makes a head narrower")
    return Head(centre, (alpha, 0.0, alpha))


def from_covariance(centre: tuple[float, float], covariance: Sequence[float]) -> Head:
    """A head with this covariance (yy, yx, xx) of its weights: half the inverse is the precision.

    >>> from_covariance((0, 0), (0.25, 0, 0.5)).precision
    (2.0, 0.0, 1.0)
    """
    yy, yx, xx = covariance
    area = yy * xx - yx * yx
    if not (yy > 0 and area > 0):
        raise DomainError(
            f"({yy:g}, {yx:g}, {xx:g}) is no covariance (yy, yx, xx): yy and yy*xx - yx*yx must be above 0"
        )
    return Head(centre, (xx / area / 2, -yx / area / 2 + 0.0, yy / area / 2))
