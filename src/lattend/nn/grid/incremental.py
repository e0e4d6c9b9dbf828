"""IncrementalGrid: a shifted GridRNN run a few pixels at a time, as they become known."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from lattend.nn.grid.call import Edges
from lattend.nn.grid.cells import Neighbours, beside, hidden, state
from lattend.nn.grid.rnn import GridRNN
from lattend.nn.grid.scan import scan


class IncrementalGrid:
    """The states of the pixels seen so far, so that no pixel is run twice.

    A step takes pixels that do not wait for each other, by their rows and columns, each [pixels]: `features`
    gives what the net says at them, from those before, and `see` then takes them in. With two directions a
    step is one pixel, and they come row by row.
    """

    def __init__(self, net: GridRNN, batch: int, rows: int, cols: int) -> None:
        self.net, self.cols, self.pixels = net, cols, 0  # pixels seen so far
        self.weights = [net.weights(layer) for layer in range(net.layers)]
        self.near_weights = [beside(w.left[:1], w.top[:1]) for w in self.weights]
        like = net.W_in[0]

        def rest(pixels: int) -> list[Tensor]:
            """H, and c for an lstm, of one direction."""
            return [like.new_zeros(1, batch, pixels, net.h) for _ in range(1 + (net.cell.name == "lstm"))]

        # Down and right: all pixels and the edges left and above
        self.states = [rest((rows + 1) * (cols + 1)) for _ in self.weights]
        # Down and left: the row above, in the order of travel, and what each layer reads in this row
        two = self.weights if net.directions == 2 else []
        self.above = [rest(cols) for _ in two]
        self.read = [like.new_zeros(batch, 1, cols, w.into.shape[-1]) for w in two]
        self.past: tuple[Tensor, Neighbours] | None = None

    def features(self, row: Tensor, col: Tensor) -> Tensor:
        """What the net gives at these pixels, [batch, pixels, directions*h]; those before them were seen."""
        self.past = past, near = self._past(0, row, col)
        bias = self.weights[0].bias
        pre = torch.zeros_like(past) if bias is None else bias[0].expand_as(past)
        x = self._beside_left(0, state(self.net.cell, pre, past, near)[0], col)
        for layer in range(1, self.net.layers):
            h = self._run(layer, x, *self._past(layer, row, col), row, col)
            x = self._beside_left(layer, h, col)
        return x

    def see(self, row: Tensor, col: Tensor, x: Tensor) -> None:
        """Takes in the pixels of the last call of `features`, as the net reads them: [batch, pixels, c]."""
        assert self.past is not None
        self._run(0, x, *self.past, row, col)
        self.pixels += len(row)
        if self.above and self.pixels % self.cols == 0:
            self._go_left()

    def pick(self, index: Tensor) -> None:
        """Goes on with these images of the batch, in this order; one may come several times."""
        self.states = [[s.index_select(1, index) for s in layer] for layer in self.states]
        self.above = [[s.index_select(1, index) for s in layer] for layer in self.above]
        self.read = [x.index_select(0, index) for x in self.read]

    def _past(self, layer: int, row: Tensor, col: Tensor) -> tuple[Tensor, Neighbours]:
        """W_left h_left + W_top h_top at these pixels, and the states it is made of."""
        top = row * (self.cols + 1) + col + 1  # the pixel itself is a row further on, cols + 1 places
        sides = [s.index_select(2, at) for s in self.states[layer] for at in (top + self.cols, top)]
        near = Neighbours(*sides)
        return hidden(near, self.near_weights[layer]), near

    def _run(self, layer: int, x: Tensor, past: Tensor, near: Neighbours, row: Tensor, col: Tensor) -> Tensor:
        """The states h of pixels from what the layer reads there; they are saved for those that follow."""
        weights = self.weights[layer]
        pre = functional.linear(x, weights.into[0], None if weights.bias is None else weights.bias[0])
        h, c = state(self.net.cell, pre[None], past, near)
        here = (row + 1) * (self.cols + 1) + col + 1
        for own, new in zip(self.states[layer], (h, c), strict=False):
            assert new is not None
            own.index_copy_(2, here, new)
        if self.above:
            self.read[layer][:, 0].index_copy_(1, col, x)
        return h

    def _beside_left(self, layer: int, h: Tensor, col: Tensor) -> Tensor:
        """The output of a layer: h of the direction down and right, and h of the other from the row above."""
        if not self.above:
            return h[0]
        return torch.cat((h[0], self.above[layer][0][0].index_select(1, self.cols - 1 - col)), -1)

    def _go_left(self) -> None:
        """Runs the other direction over the row that is now whole, for the row below to read."""
        for layer, (into, bias, left, top) in enumerate(self.weights):
            h, *c = self.above[layer]
            found = scan(
                self.net.cell, self.read[layer], into[1:], None if bias is None else bias[1:],
                left[1:], top[1:], Edges(None, h, None, *c), flips=self.net.flips[1:], kernel=self.net.kernel,
            )  # fmt: skip
            self.above[layer] = [s[:, :, 0] for s in found if s is not None]
