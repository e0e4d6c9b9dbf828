"""GridRNN: recurrent nets on an image, as a torch module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import torch
from torch import Tensor, nn

from lattend.cost.reference.recurrence import check_directions
from lattend.errors import DomainError, TensorError
from lattend.nn.grid.cells import Edges, Flips, Neighbours, beside, checked, hidden, masked, state
from lattend.nn.grid.layout import side_by_side
from lattend.nn.grid.scan import again, known, scan
from lattend.nn.grid.states import GridStates, Side, Sizes, edges_of, ends_of, format_tensor

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

# Axes of [batch, rows, cols, c] along which each direction sees the image flipped
FLIPS: dict[int, Flips] = {1: ((),), 2: ((), (2,)), 4: ((), (2,), (1,), (1, 2))}


class Weights(NamedTuple):
    """The weights of one layer, for each direction."""

    into: Tensor  # [directions, gates*h, c]
    bias: Tensor | None  # [directions, gates*h]
    left: Tensor  # [directions, gates*h, h]
    top: Tensor


class GridRNN(nn.Module):
    """h[row, col] = σ(W_in x[row, col] + W_left h[row, col-1] + W_top h[row-1, col]) on images.

    x [batch, rows, cols, c] gives h [batch, rows, cols, directions*h]. `cell` is "rnn", "lstm" or "gru";
    `directions` 1 goes down and right, 2 also down and left, 4 from all corners, and layer k + 1 reads all
    directions of layer k. With `shift` the output at a pixel knows only pixels before it, for generation.
    `recompute` saves no gates for backward. `kernel` is "native", "cpu", "gpu", "diagonals" or
    "reference"; None takes the fastest that runs.

    Layer k has W_in[k] [directions*gates*h, c], W_left[k] and W_top[k] [directions*gates*h, h] and, with
    `bias`, b[k]; an rnn has 1 gate, an lstm 5, a gru 4. All start uniform in ±1/√h, as in torch.nn.RNN:
    W_left h_left + W_top h_top then has 2h · 1/(3h) = 2/3 of the states' variance, and does not blow up.

    >>> model = GridRNN(3, 8)
    >>> model(torch.zeros(2, 5, 7, 3)).shape
    torch.Size([2, 5, 7, 8])
    >>> sum(p.numel() for p in model.parameters())  # hc + 2h² = 8*3 + 2*64
    152
    """

    def __init__(
        self,
        c: int,
        h: int,
        cell: str = "rnn",
        directions: int = 1,
        activation: str = "tanh",
        bias: bool = False,
        layers: int = 1,
        shift: bool = False,
        kernel: str | None = None,
        recompute: bool = False,
        *,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("c", c), ("h", h), ("layers", layers)):
            if not isinstance(value, int) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DomainError(f"{name} must be a whole number from 1 on, got {value!r}")
        check_directions(directions)
        if shift and directions == 4:
            raise DomainError("shift=True, directions=4: from four corners no pixel is later; take 1 or 2")
        if kernel is not None:
            known(kernel)
        self.cell = checked(cell, activation)
        self.c, self.h, self.directions, self.layers, self.bias = c, h, directions, layers, bias
        self.shift, self.kernel, self.recompute = shift, kernel, recompute

        def made(*widths: int) -> nn.Parameter:
            shape = (directions * self.cell.gates * h, *widths)
            return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))

        self.W_in = nn.ParameterList(made(directions * h if k else c) for k in range(layers))
        self.W_left = nn.ParameterList(made(h) for _ in range(layers))
        self.W_top = nn.ParameterList(made(h) for _ in range(layers))
        self.b = nn.ParameterList(made() for _ in range(layers)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew, uniform in ±1/√h."""
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(self.h**-0.5), self.h**-0.5)

    @property
    def flips(self) -> Flips:
        """For each direction, the axes of [batch, rows, cols, c] along which it sees the image flipped."""
        return FLIPS[self.directions]

    def weights(self, layer: int) -> Weights:
        """The weights of a layer with an axis for the directions, in autocast's dtype if that is on."""
        each = self.directions, self.cell.gates * self.h
        given = self._weights(layer, _autocast(self.W_in[layer]))
        return Weights(*(x if x is None else x.view(*each, *x.shape[1:]) for x in given))  # pyright: ignore

    def _weights(self, layer: int, dtype: torch.dtype | None) -> Sequence[Tensor | None]:
        """The parameters of a layer in the order of Weights, cast to the dtype if there is one."""
        into, left, top = (self._parameter(name, layer) for name in ("W_in", "W_left", "W_top"))
        found = into, self._parameter("b", layer) if self.bias else None, left, top
        return found if dtype is None else [x if x is None else _cast(x, dtype) for x in found]

    def _parameter(self, name: str, layer: int) -> Tensor:
        """A parameter, sooner than by the attributes of two modules; by these where it is not held as one."""
        found = self._modules[name]
        held = None if found is None else found._parameters.get(str(layer))
        return getattr(found, str(layer)) if held is None else held

    def cost(self, *, rows: Any = "rows", cols: Any = "cols") -> Cost:
        """What one image costs, in numbers or as formulas: lt.cost.rnn2d with the sizes of this module.

        Without the second run of the first layer's cell under `shift`, and with a function for every
        activation, the identity too.
        """
        from lattend.cost.layers.recurrent import rnn2d  # loads the sets, which running does not need

        return rnn2d(
            rows=rows,
            cols=cols,
            c=self.c,
            h=self.h,
            cell=self.cell.name,
            directions=self.directions,
            layers=self.layers,
            bias=self.bias,
        )

    @overload
    def forward(
        self,
        x: Tensor,
        states: GridStates | tuple[Side, Side] | None = ...,
        mask: Tensor | None = ...,
        *,
        return_states: Literal[False] = ...,
    ) -> Tensor: ...
    @overload
    def forward(
        self,
        x: Tensor,
        states: GridStates | tuple[Side, Side] | None = ...,
        mask: Tensor | None = ...,
        *,
        return_states: Literal[True],
    ) -> tuple[Tensor, GridStates]: ...
    def forward(
        self,
        x: Tensor,
        states: GridStates | tuple[Side, Side] | None = None,
        mask: Tensor | None = None,
        *,
        return_states: bool = False,
    ) -> Tensor | tuple[Tensor, GridStates]:
        """The states h of all pixels; with `return_states` also those that go on to the neighbouring images.

        `states` come in over the left and the top edge. Where `mask` [batch, rows, cols] is False there is
        no pixel: its state is zero.
        """
        joined, first = not self.shift and not return_states, 0
        if joined and states is None:
            x, first = self._again(x, mask)
            if first == self.layers:
                return x
        dtype = _autocast(x)
        if first == 0:
            self.check(x, mask)
        x = _cast(x, dtype)
        batch, rows, cols, _ = x.shape
        sizes = Sizes(self.cell.name, self.layers, self.flips, batch, rows, cols, self.h)
        found: list[tuple[Tensor, Tensor | None]] = []
        for layer, edges in [*enumerate(edges_of(states, sizes, x))][first:]:
            given: Any = self._weights(layer, dtype)
            h, c = scan(
                self.cell, x, *given, edges=edges, mask=mask,
                flips=sizes.flips, kernel=self.kernel, recompute=self.recompute, joined=joined,
            )  # fmt: skip
            if joined:
                x = h
                continue
            found.append((h, c))
            maps = h.unbind(0)
            if self.shift:
                maps = self._all_shifted(layer, edges, h, c, mask)
            x = side_by_side(self.flips, maps)
        return (x, ends_of(found, self.flips)) if return_states else x

    def _again(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, int]:
        """The map after as many layers as are like those of a call that was checked before, and how many."""
        options = self.cell, self.flips, self.kernel, self.recompute
        for layer in range(self.layers):
            given: Any = self._weights(layer, None)
            found = again(options, mask, x, *given)
            if found is None:
                return x, layer
            x = found
        return x, self.layers

    def _all_shifted(
        self, layer: int, edges: Edges, h: Tensor, c: Tensor | None, mask: Tensor | None
    ) -> list[Tensor]:
        """The shifted maps of all directions."""
        weights, found = self.weights(layer), list[Tensor]()
        for way, axes in enumerate(self.flips):
            there = None if mask is None else mask.flip(axes)
            sides = Edges(*of_direction(way, *edges))
            given: Any = Weights(*of_direction(way, *weights)), sides, *of_direction(way, h, c), there
            found.append(self.shifted(layer, way, *given))
        return found

    def shifted(
        self, layer: int, direction: int, weights: Weights, edges: Edges, h: Tensor, c: Tensor | None,
        mask: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """The map of a direction as it may be seen at each pixel when it is not known yet.

        Weights, edges and states are those of the direction, [1, ..], and all is in the order of travel.
        Down-right, the first layer asks its cell again without the pixel: the neighbours know all others of
        the quadrant. Upper layers read only what is shifted already. Down-left moves one row down, since
        in its own row it comes from the pixels to the right.
        """
        found = h
        if direction == 1:
            found = _after(edges.top, h, 2)
        elif layer == 0:
            sides = [(edges.left, h, 3), (edges.top, h, 2)]
            sides += [] if c is None else [(edges.left_c, c, 3), (edges.top_c, c, 2)]
            near = Neighbours(*(_after(edge, x, axis) for edge, x, axis in sides))
            past = hidden(near, beside(weights.left, weights.top))
            pre = torch.zeros_like(past) if weights.bias is None else weights.bias[0].expand_as(past)
            found = state(self.cell, pre, past, near)[0]
        return masked((found[0], None), mask)[0]

    def check(self, x: Tensor, mask: Tensor | None) -> None:
        """Raises where an image or its mask does not fit."""
        if not isinstance(x, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TensorError(f"x must be a tensor [batch, rows, cols, c], got {type(x).__name__}")
        if x.dim() != 4 or x.shape[-1] != self.c or not x.is_floating_point():
            hint = "; write x.movedim(1, -1)" if x.dim() == 4 and x.shape[1] == self.c else ""
            hint = "; write x[None] for a batch of one" if x.dim() == 3 and x.shape[-1] == self.c else hint
            raise TensorError(
                f"x must be floats [batch, rows, cols, c] with c = {self.c}, got {format_tensor(x)}{hint}"
            )
        if 0 in x.shape[1:3]:
            raise TensorError(f"x has no pixels: it is {format_tensor(x)}")
        weight = getattr(self.W_in, "0")
        if x.device != weight.device:
            raise TensorError(f"x is on {x.device} and the weights are on {weight.device}; move one of them")
        if _autocast(x) is None and x.dtype != weight.dtype:
            raise TensorError(f"x is {format_tensor(x)} and the weights are {weight.dtype}; cast one of them")
        if mask is not None and (mask.dtype != torch.bool or mask.shape != x.shape[:3]):
            wanted = f"bool [batch, rows, cols] = {list(x.shape[:3])}"
            raise TensorError(f"mask must be {wanted}, True where a pixel is, got {format_tensor(mask)}")

    def __repr__(self) -> str:
        return f"GridRNN({self.extra_repr()})"

    def extra_repr(self) -> str:
        """The arguments, those left as they are by default not said."""
        said = [f"{self.c}, {self.h}"]
        if self.cell.name != "rnn":
            said.append(f"cell={self.cell.name!r}")
        if self.cell.activation != "tanh":
            said.append(f"activation={self.cell.activation!r}")
        usual = {
            "directions": 1,
            "bias": False,
            "layers": 1,
            "shift": False,
            "kernel": None,
            "recompute": False,
        }
        said += [f"{k}={getattr(self, k)!r}" for k, v in usual.items() if getattr(self, k) != v]
        return ", ".join(said)


def of_direction(direction: int, *tensors: Tensor | None) -> list[Any]:
    """The parts [1, ..] of tensors [directions, ..], None where there is none."""
    return [None if x is None else x[direction : direction + 1] for x in tensors]


def _after(edge: Tensor | None, states: Tensor, axis: int) -> Tensor:
    """The states of a direction [1, ..] moved on by one along an axis, with the edge coming in."""
    first = torch.zeros_like(states.narrow(axis, 0, 1)) if edge is None else edge.unsqueeze(axis)
    return torch.cat((first, states.narrow(axis, 0, states.shape[axis] - 1)), axis)


def _autocast(x: Tensor) -> torch.dtype | None:
    """The dtype that autocast asks for on the tensor's device, or None where it is off."""
    device = x.device.type
    on = device != "meta" and torch.is_autocast_enabled(device)
    return torch.get_autocast_dtype(device) if on else None


def _cast(x: Tensor, dtype: torch.dtype | None) -> Tensor:
    return x if dtype is None or x.dtype == torch.float64 else x.to(dtype)
