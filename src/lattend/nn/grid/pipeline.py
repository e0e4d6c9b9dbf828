"""Pipeline of an image in strips of rows: which piece of columns a strip does when, its steps and its bytes.

A direction takes the strips in turn, down from the first or up from the last, and hands a piece on to the
next strip a step later. Where some go up, pieces that go down are done at every second step and those that go
up at the steps between, so that a strip that would wait for one side works for the other:

    P = 3 strips, C = 1 piece, directions=4: 4·1 + 2 = 6 steps; directions 0 and 1 go down, 2 and 3 up
    strip 0  0 . 1 2 . 3
    strip 1  . 0 2 1 3 .
    strip 2  . 2 0 3 1 .

Between two of its pieces a strip sends the last row of one and gets the row above the other, both at once.
Each row leaves after a step and is needed at the next, so all that a strip waits for is from earlier steps:
there is no deadlock, even where messages are not buffered. Backward is the same in reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lattend.nn.grid.rnn import FLIPS, GridRNN
from lattend.nn.grid.states import ROWS


class PipelinePiece(NamedTuple):
    """A piece of the columns in one direction, numbered as it travels, and the step at which it is done."""

    step: int
    direction: int
    number: int


def pipeline(directions: int, pieces: int, place: int, strips: int) -> list[PipelinePiece]:
    """The pieces that a strip does in one layer, in order.

    >>> [(p.direction, p.number) for p in pipeline(4, 1, place=1, strips=3)]  # 0 and 1 go down, 2 and 3 up
    [(0, 0), (2, 0), (1, 0), (3, 0)]
    """
    up = [ROWS in axes for axes in FLIPS[directions]]
    pace = 2 if any(up) else 1
    found: list[PipelinePiece] = []
    for way, waits, start in ((False, place, 0), (True, strips - 1 - place, strips % 2)):
        along = [direction for direction in range(directions) if up[direction] == way]
        order = [(direction, number) for number in range(pieces) for direction in along]
        found += [PipelinePiece(pace * i + start + waits, *piece) for i, piece in enumerate(order)]
    return sorted(found)


def pipeline_steps(directions: int, layers: int, pieces: int, strips: int) -> int:
    """Steps of a pass, one piece of one direction and layer each.

    Down alone, a strip goes on to the next layer at once, and the last one begins strips - 1 steps late. With
    directions that go up, a layer ends when the first and the last strip have what comes from the other. No
    order takes fewer: the strip in the middle begins (strips - 1) // 2 steps late, and what it does last has
    as many steps to go.

    >>> pipeline_steps(1, 1, 32, 8), pipeline_steps(4, 1, 32, 8)  # 32 + 8 - 1, 4·32 + 2·3
    (39, 134)
    """
    if directions < 4:
        return layers * directions * pieces + strips - 1
    return layers * (directions * pieces + (strips - 1) // 2 * 2)


def border_bytes(
    net: GridRNN, shape: Sequence[int], rows: Sequence[int], itemsize: int, backward: bool = False
) -> list[int]:
    """What each rank gets in a pass: a row of states, or of gradients, for each layer and direction.

    shape is batch and cols. States come down if there are rows above and up if there are rows below, as the
    directions go; their gradients come from the other side.

    >>> border_bytes(GridRNN(3, 8, cell="lstm"), (2, 20), [4, 0, 5], 4)  # 2 · 2 · 20 · 8 numbers of 4 bytes
    [0, 0, 2560]
    """
    row = shape[0] * shape[1] * net.h * (2 if net.cell.name == "lstm" else 1) * itemsize
    up = sum(ROWS in axes for axes in net.flips)
    from_above, from_below = (up, net.directions - up) if backward else (net.directions - up, up)
    return [
        net.layers * row * (from_above * any(rows[:rank]) + from_below * any(rows[rank + 1 :])) if own else 0
        for rank, own in enumerate(rows)
    ]
