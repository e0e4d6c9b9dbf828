"""States on the edges of an image: those that come in from the left and the top, and those that go on.

They are held in the order of the image; a direction that travels left or up meets them flipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lattend.errors import DomainError, TensorError
from lattend.nn.grid.cells import NO_EDGES, Edges, Flips

Side = Tensor | tuple[Tensor, Tensor] | None
ROWS, COLS = 1, 2  # axes of [batch, rows, cols, ..]


class GridStates(NamedTuple):
    """The states left of an image [layers*directions, batch, rows, h] and above it [.., batch, cols, h].

    For an lstm each is a pair (h, c); None is zeros. One layer with one direction may leave out the first
    axis. A direction that travels left has its "left" states at the right edge, one that travels up has
    its "top" states at the bottom.
    """

    left: Side = None
    top: Side = None


class Sizes(NamedTuple):
    """What the shapes of states must fit."""

    cell: str
    layers: int
    flips: Flips
    batch: int
    rows: int
    cols: int
    size: int


def edges_of(states: GridStates | tuple[Side, Side] | None, sizes: Sizes, like: Tensor) -> list[Edges]:
    """The edges of each layer as its directions meet them; raises where a state does not fit."""
    if states is None:
        return [NO_EDGES] * sizes.layers
    if not isinstance(states, tuple) or len(states) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TensorError(f"states must be GridStates(left=…, top=…), got {type(states).__name__}")
    left, left_c = _parts("left", states[0], sizes, like)
    top, top_c = _parts("top", states[1], sizes, like)
    return [Edges(*each) for each in zip(left, top, left_c, top_c, strict=True)]


def _parts(name: str, side: Side, sizes: Sizes, like: Tensor) -> tuple[list[Tensor | None], ...]:
    """The tensors h and c of one side, layer by layer."""
    nothing: list[Tensor | None] = [None] * sizes.layers
    if side is None:
        return nothing, nothing
    if sizes.cell == "lstm" and not (isinstance(side, tuple) and len(side) == 2):
        raise TensorError(f"states: {name} of an lstm is a pair (h, c), got {type(side).__name__}")
    if sizes.cell != "lstm" and not isinstance(side, Tensor):
        raise TensorError(f"states: {name} of a {sizes.cell} is a tensor, got {type(side).__name__}")
    parts = side if isinstance(side, tuple) else (side,)
    found = [_layers(name, part, sizes, like) for part in parts]
    return found[0], found[1] if len(found) > 1 else nothing


def _layers(name: str, part: Tensor, sizes: Sizes, like: Tensor) -> list[Tensor | None]:
    """A state tensor as one [directions, batch, rows or cols, h] for each layer, in the order of travel."""
    length, axis = (sizes.rows, ROWS) if name == "left" else (sizes.cols, COLS)
    count = sizes.layers * len(sizes.flips)
    wanted = [count, sizes.batch, length, sizes.size]
    whole = part[None] if count == 1 and part.dim() == 3 else part
    if list(whole.shape) != wanted:
        axes = f"[layers*directions, batch, {'rows' if axis == ROWS else 'cols'}, h]"
        raise TensorError(f"states: {name} must be {axes} = {wanted}, got {list(part.shape)}")
    if whole.device != like.device:
        raise TensorError(f"states: {name} is on {whole.device} and x on {like.device}; move one of them")
    layers = whole.to(like.dtype).unflatten(0, (sizes.layers, -1))
    return [flipped(layer, sizes.flips, axis) for layer in layers]


def flipped(edge: Tensor, flips: Flips, axis: int) -> Tensor:
    """Edges [directions, batch, length, h] in the order of travel, or back in that of the image."""
    if not any(axis in axes for axes in flips):
        return edge
    return torch.stack([e.flip(1) if axis in axes else e for e, axes in zip(edge, flips, strict=True)])


def ends_of(found: list[tuple[Tensor, Tensor | None]], flips: Flips) -> GridStates:
    """What the image on the right takes as its left states, and the one below as its top states.

    `found` has h and c of every layer, [directions, batch, rows, cols, h], in the order of travel.
    """

    def side(states: list[Tensor], axis: int) -> Tensor:
        last = [x[:, :, :, -1] if axis == ROWS else x[:, :, -1] for x in states]
        return torch.cat([flipped(x, flips, axis) for x in last])

    h, c = [h for h, _ in found], [c for _, c in found if c is not None]
    left, top = side(h, ROWS), side(h, COLS)
    return GridStates((left, side(c, ROWS)), (top, side(c, COLS))) if c else GridStates(left, top)


def format_tensor(x: Tensor) -> str:
    """A tensor in an error: float32 [2, 3]."""
    return f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}"


def ragged_mask(
    sizes: Sequence[tuple[int, int]], rows: int | None = None, cols: int | None = None, device: Any = None
) -> Tensor:
    """The mask [batch, rows, cols] of images of those (rows, cols), each in the top left corner.

    rows and cols are those of the largest unless given.

    >>> ragged_mask([(1, 2), (2, 1)]).int().tolist()
    [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]
    """
    if not isinstance(sizes, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(f"sizes are (rows, cols) of every image, in a list, not {sizes!r}")
    if not sizes:
        raise DomainError("sizes is empty; give (rows, cols) of every image")
    for size in sizes:
        if not _is_size(size):
            raise DomainError(f"sizes: (rows, cols) of an image are two numbers from 0 on, got {size!r}")
    most = [max(axis) for axis in zip(*sizes, strict=True)]
    wanted = [most[0] if rows is None else rows, most[1] if cols is None else cols]
    for name, length, need in zip(("rows", "cols"), wanted, most, strict=True):
        if length < need:
            raise DomainError(f"{name}={length}: an image of sizes has {need}")
    given = torch.tensor([list(size) for size in sizes], device=device)
    row = torch.arange(wanted[0], device=device)[:, None]
    col = torch.arange(wanted[1], device=device)
    return (row < given[:, 0, None, None]) & (col < given[:, 1, None, None])


def _is_size(size: Any) -> bool:
    """Whether these are two whole numbers from 0 on."""
    whole = isinstance(size, (tuple, list)) and all(isinstance(n, int) and n >= 0 for n in size)
    return whole and len(size) == 2
