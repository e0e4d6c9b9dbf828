"""What pictures of images share: sizes and pixels as given, sides, the query's outline, numbers, legends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.draw.formats.palette import Look, ink
from lattend.draw.grid.marks import Label, Shape, box
from lattend.draw.grid.panel import Panel, Side, cell_side
from lattend.errors import DomainError, NamingError

Pixel = tuple[int, int]
Facts = tuple[tuple[str, str], ...]
QUERY = "#1c1f26"  # the colour of the query's outline
MOST_NUMBERS = 32  # rows or columns whose cells are numbered


def check_size(size: Pixel, most: int) -> None:
    """Raises unless an image has 1 to `most` rows and columns."""
    rows, cols = size
    if not (min(size) >= 1 and max(size) <= most):
        raise DomainError(f"an image has 1 to {most:,} rows and columns here, got {rows:,} × {cols:,}")


def pixel_of(size: Pixel, pixel: Pixel | None) -> Pixel:
    """The pixel, or the middle one if none is given; raises where it lies outside an image of this size."""
    rows, cols = size
    if pixel is None:
        return rows // 2, cols // 2
    if len(pixel) != 2 or not (0 <= pixel[0] < rows and 0 <= pixel[1] < cols):
        raise DomainError(f"pixel {tuple(pixel)} lies outside an image of {rows} × {cols}")
    return pixel


def pixel_side(name: str, span: range) -> Side:
    """A side with one cell a pixel, whose ticks may be negative."""
    side = cell_side(name, len(span), span.start)
    return replace(side, ticks=tuple((place, text.replace("-", "−")) for place, text in side.ticks))


def outline(pixel: Pixel, width: float) -> Shape:
    """The outline of the query's cell."""
    row, col = pixel
    return box(row, col, row + 1, col + 1, QUERY, width)


def numbers(
    values: NDArray[np.int64], cells: NDArray[np.uint8], looks: Sequence[Look], least: int = 0
) -> tuple[Label, ...]:
    """The number of each cell from `least` on, all of one size; none where cells are too small."""
    if max(values.shape) > MOST_NUMBERS:
        return ()
    longest = str(int(values.max()))
    return tuple(
        Label(row + 0.5, col + 0.5, str(int(number)), ink(looks[int(cells[row, col])].fill), like=longest)
        for (row, col), number in np.ndenumerate(values)
        if number >= least
    )


def legend(panels: Sequence[Panel], looks: Sequence[Look]) -> tuple[Look, ...]:
    """Those of these looks that occur on the panels."""
    used = {look for panel in panels for row in panel.rows_of_looks() for look in row}
    return tuple(look for look in looks if look in used)


# Arguments of a module, read from its attributes, so that torch is not loaded for it


def conv_arguments(module: Any) -> dict[str, Any] | None:
    """The arguments of `draw_conv` for a Conv2d or the heads made from one; None for anything else."""
    if hasattr(module, "geometry") and hasattr(module, "c_in"):
        found = {"kernel": module.geometry.kernel, **module.geometry.options}
        found |= {"c_in": module.c_in, "c_out": module.c_out}
    elif hasattr(module, "kernel_size") and hasattr(module, "in_channels"):
        if len(module.kernel_size) != 2 or getattr(module, "transposed", False):
            raise NamingError(f"draw_conv draws a Conv2d, not a {type(module).__name__}")
        names = ("stride", "dilation", "padding", "padding_mode")
        found = {name: getattr(module, name) for name in names}
        found |= {"kernel": module.kernel_size, "c_in": module.in_channels, "c_out": module.out_channels}
    else:
        return None
    if module.groups != 1:
        raise NamingError(f"draw_conv draws one group of channels, and this module has {module.groups}")
    return found


def grid_arguments(module: Any) -> dict[str, Any] | None:
    """The arguments of `draw_grid` for a GridRNN; None for anything else."""
    if not (hasattr(module, "directions") and hasattr(module, "cell")):
        return None
    if module.layers != 1 or module.shift or module.bias:
        raise NamingError("draw_grid draws a GridRNN of one layer, without shift and bias")
    return {"directions": module.directions, "cell": module.cell.name, "c": module.c, "h": module.h}


def refuse(given: dict[str, Any], usual: dict[str, Any]) -> None:
    """Raises where an argument is given that the module has of its own."""
    for name, value in usual.items():
        if given[name] != value:
            raise NamingError(f"a module has its own {name}; leave it out")
