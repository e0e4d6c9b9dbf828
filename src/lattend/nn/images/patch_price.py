"""The price of patches: their embedding, their positions, and one layer of attention over them."""

from __future__ import annotations

from typing import NamedTuple

from lattend import cost
from lattend.cost.cost import Cost
from lattend.cost.layers.tokenwise import positions
from lattend.counts.count import Count
from lattend.errors import DomainError
from lattend.nn.images.patch_grid import PatchGrid, patch_grid

MOST_SIZES = 24  # of patches, along a curve


def embedding_cost(grid: PatchGrid, channels: int, width: int) -> Cost:
    """Of making each patch a token; zeros that are added are multiplied like any number."""
    rows, cols = (max(cuts.size, cuts.end) for cuts in grid)
    patch = (grid.rows.patch, grid.cols.patch)
    if patch == (grid.rows.stride, grid.cols.stride):
        return cost.patch_embedding(rows=rows, cols=cols, patch=patch, c=channels, d=width)
    stride = (grid.rows.stride, grid.cols.stride)
    return cost.conv(rows=rows, cols=cols, c_in=channels, c_out=width, kernel=patch, stride=stride)


def position_cost(tokens: int, width: int) -> Cost:
    """Of a learned position for every token and for a class token before them."""
    return positions(n=tokens + 1, d=width)


def attention_cost(width: int, heads: int) -> Cost:
    """Of one layer of full attention over n tokens, its projections too; a formula in n.

    >>> attention_cost(768, 12).multiplies
    1536n(n + 1536)
    """
    if width % heads:
        raise DomainError(f"width = {width:,} does not divide into {heads} heads")
    return cost.attention("full", n="n", heads=heads, D_i=width, D_hid=width // heads)


class PatchSize(NamedTuple):
    """A size of square patches side by side, and what they cost; pixels left over are cropped."""

    patch: int
    tokens: int
    embedding: int
    attention: int


def patch_sizes(rows: int, cols: int, channels: int, width: int, heads: int) -> list[PatchSize]:
    """Patches that divide the image, from single pixels to its shorter side; powers of 2 where few do.

    >>> [(one.patch, one.tokens) for one in patch_sizes(8, 12, 3, 16, 4)]
    [(1, 96), (2, 24), (4, 6)]
    """
    short = min(rows, cols)
    found = [patch for patch in range(1, short + 1) if rows % patch == 0 and cols % patch == 0]
    if len(found) < 3:
        found = [2**power for power in range(short.bit_length()) if 2**power <= short]
    over = _formula(cost.linear(n="n", d_in="d_in", d_out=width))
    mixing = _formula(attention_cost(width, heads))
    sizes: list[PatchSize] = []
    for patch in found[:MOST_SIZES]:
        grid = patch_grid((rows, cols), patch, padding="crop")
        made = over(n=grid.tokens, d_in=grid.numbers(channels))
        sizes.append(PatchSize(patch, grid.tokens, made, mixing(n=grid.tokens)))
    return sizes


def _formula(layer: Cost) -> Count:
    found = layer.multiplies
    assert isinstance(found, Count)
    return found
