"""query_heads: the heads of a kernel for one query: their taps, the weights of all keys, and what leaks."""

from __future__ import annotations

import math
from typing import NamedTuple

from lattend.errors import DomainError
from lattend.nn.attention.gaussian_heads import Floats, isotropic
from lattend.nn.convolution.geometry import Geometry
from lattend.nn.convolution.sharpness import Sharpness, sharpness

Pixel = tuple[int, int]


class QueryHead(NamedTuple):
    """One head for one query; pixels are those of the image, and negative ones lie in the padding."""

    shift: Pixel
    tap: Pixel  # the pixel its centre stands on
    weights: Floats  # of every key, [rows, cols] of `Geometry.keys`
    sharpness: Sharpness


class QueryHeads(NamedTuple):
    """The heads of one query. The first key is pixel `origin`, before the image where zeros are padded."""

    query: Pixel  # of the output
    pixel: Pixel  # of the image: stride times the query
    origin: Pixel
    keys: Pixel  # rows and columns of them
    heads: list[QueryHead]
    radius: float  # of the circle around a centre that holds half of its Gaussian, on the plane

    @property
    def leak(self) -> float:
        """The greatest share of a head's weight that misses its tap."""
        return self.worst.leak

    @property
    def worst(self) -> Sharpness:
        """That of the head that leaks most."""
        return max((head.sharpness for head in self.heads), key=lambda sharpness: sharpness.log_leak)


def query_heads(
    geometry: Geometry, rows: int, cols: int, alpha: float, query: Pixel | None = None
) -> QueryHeads:
    """The soft heads of a kernel at a pixel of the output, the middle one if none is given.

    >>> from lattend.nn.convolution.geometry import read_geometry
    >>> found = query_heads(read_geometry(3), 8, 8, alpha=2.0)
    >>> found.query, found.heads[0].tap, round(found.leak, 6)
    ((4, 4), (3, 3), 0.381307)
    """
    outputs, keys = geometry.outputs(rows, cols), geometry.keys(rows, cols)
    asked = (outputs[0] // 2, outputs[1] // 2) if query is None else query
    if not (0 <= asked[0] < outputs[0] and 0 <= asked[1] < outputs[1]):
        raise DomainError(f"pixel {asked} lies outside an output of {outputs[0]} × {outputs[1]}")
    own = geometry.y.stride * asked[0], geometry.x.stride * asked[1]
    zeros = geometry.mode == "zeros"
    origin = (-geometry.y.before, -geometry.x.before) if zeros else (0, 0)
    heads = [_head(shift, own, origin, keys, alpha) for shift in geometry.shifts()]
    return QueryHeads(asked, own, origin, keys, heads, math.sqrt(math.log(2) / alpha))


def _head(shift: Pixel, own: Pixel, origin: Pixel, keys: Pixel, alpha: float) -> QueryHead:
    tap = own[0] + shift[0], own[1] + shift[1]
    place = tap[0] - origin[0], tap[1] - origin[1]  # among the keys
    near = min(max(place[0], 0), keys[0] - 1), min(max(place[1], 0), keys[1] - 1)
    beyond = place[0] - near[0], place[1] - near[1]
    weights = isotropic((float(beyond[0]), float(beyond[1])), alpha).weights(*keys, near)
    return QueryHead(
        shift, tap, weights, sharpness(alpha, rows=keys[0], cols=keys[1], query=near, centre=beyond)
    )
