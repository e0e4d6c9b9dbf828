"""draw_patches: an image in patches, with the price of making each one a token."""

from __future__ import annotations

from dataclasses import replace

from lattend import cost
from lattend.cost.cost import Cost
from lattend.draw.picture import Picture
from lattend.errors import DomainError, NamingError
from lattend.nn.images.patch_grid import Pair, PatchGrid, patch_grid
from lattend.nn.pictures.patch_picture import patches


def draw_patches(
    image: Pair,
    patch: Pair,
    stride: Pair | None = None,
    padding: str = "error",
    *,
    channels: int | None = None,
    width: int | None = None,
) -> Picture:
    """The picture of an image in patches; sizes are numbers or (rows, cols), as those of `lt.nn.Patches`.

    `channels` of the image and the `width` of a token add what the embedding cost.

    >>> dict(draw_patches(224, 16, channels=3, width=768).facts)["embedding"]  # 16*16*3*768 + 768
    '590,592 parameters, 115,605,504 multiplies'
    """
    found = patches(image, patch, stride, padding)
    given = {"channels": channels, "width": width}
    for name, number in given.items():
        if number is not None and number < 1:
            raise DomainError(f"{name} must be at least 1, got {number}")
    if channels is None and width is None:
        return found
    if channels is None or width is None:
        missing = next(name for name, number in given.items() if number is None)
        raise NamingError(f"the price of an embedding needs channels and width: give {missing} too")
    grid = patch_grid(image, patch, stride, padding)
    numbers = grid.rows.patch * grid.cols.patch * channels
    cost = _embedding(grid, channels, width)
    told = (
        (
            "a token",
            f"{grid.rows.patch} × {grid.cols.patch} × {channels} = {numbers:,} numbers, made {width:,}",
        ),
        ("embedding", f"{cost.parameters:,} parameters, {cost.multiplies:,} multiplies"),
    )
    price = {"parameters": cost.parameters, "multiplies": cost.multiplies}
    data = {**found.data, "channels": channels, "width": width, "embedding": price}
    return replace(found, facts=(*found.facts, *told), data=data)


def _embedding(grid: PatchGrid, channels: int, width: int) -> Cost:
    """The price of the patches, zeros that are added multiplied like any number."""
    rows, cols = (max(cuts.size, cuts.end) for cuts in grid)
    patch = (grid.rows.patch, grid.cols.patch)
    if patch == (grid.rows.stride, grid.cols.stride):
        return cost.patch_embedding(rows=rows, cols=cols, patch=patch, c=channels, d=width)
    stride = (grid.rows.stride, grid.cols.stride)
    return cost.conv(rows=rows, cols=cols, c_in=channels, c_out=width, kernel=patch, stride=stride)
