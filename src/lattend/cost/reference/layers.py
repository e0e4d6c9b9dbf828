"""The layers that lt.cost prices, as plain code ready to run: the arguments are those of lt.cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from lattend.cost.reference import convolution, grid, shapes, simple
from lattend.cost.reference.recurrent import recurrent
from lattend.cost.reference.running import Ran, one, run
from lattend.cost.reference.shapes import Shape, Shapes
from lattend.errors import DomainError, NamingError


@dataclass(frozen=True)
class Plain:
    """A layer as code that is called with inputs and weights, and the shapes of both."""

    code: Callable[..., Any]
    weights: Shapes
    inputs: tuple[Shape, ...]

    @property
    def size(self) -> int:
        """How many numbers it is given."""
        return shapes.size(self.weights) + sum(map(prod, self.inputs))

    def run(self) -> Ran:
        """What it costs, counted by running it once on random numbers."""
        return run(self.code, self.weights, *self.inputs)


def plain_layer(name: str, **arguments: Any) -> Plain:
    """A layer by its name in lt.cost, every size a number.

    >>> plain_layer("linear", n=2, d_in=3, d_out=4).run().forward.multiplies  # 2*3*4
    24
    """
    if name not in _LAYERS:
        raise NamingError(f"{name} has no plain code; these have: {', '.join(_LAYERS)}")
    return _LAYERS[name](**arguments)


def plain_names() -> tuple[str, ...]:
    """The layers of lt.cost that there is plain code for."""
    return tuple(_LAYERS)


def _linear(n: int, d_in: int, d_out: int, bias: bool = True) -> Plain:
    return Plain(one(simple.linear), shapes.linear(d_in, d_out, bias), ((n, d_in),))


def _feed_forward(
    n: int, d: int, hidden: int, bias: bool = True, activation: bool = True, gated: bool = False
) -> Plain:
    code = partial(simple.feed_forward, activation="gelu" if activation else None)
    return Plain(one(code), shapes.feed_forward(d, hidden, bias, gated), ((n, d),))


def _norm(n: int, d: int, kind: str = "layer") -> Plain:
    code = simple.layer_norm if kind == "layer" else simple.rms_norm
    return Plain(one(code), shapes.norm(d, kind), ((n, d),))


def _embedding(n: int, vocabulary: int, d: int) -> Plain:
    """Of different words: the gradients of one that comes twice would be added."""
    if n > vocabulary:
        raise DomainError(
            f"an embedding is priced for different tokens, and {n} are more than the {vocabulary} there are"
        )
    return Plain(one(partial(simple.embedding, range(n))), {"weight": (vocabulary, d)}, ())


def _conv(
    rows: int,
    cols: int,
    c_in: int,
    c_out: int,
    kernel: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    padding: tuple[int, int] | str = (0, 0),
    padding_mode: str = "zeros",
    groups: int = 1,
    bias: bool = True,
) -> Plain:
    options: dict[str, Any] = {"stride": stride, "dilation": dilation, "padding": padding}
    code = partial(convolution.conv2d, **options, groups=groups, padding_mode=padding_mode)
    return Plain(one(code), shapes.conv2d(c_in, c_out, kernel, groups, bias), ((c_in, rows, cols),))


def _recurrent(
    kind: str,
    steps: int,
    inputs: int,
    hidden: int,
    layers: int = 1,
    bias: bool = False,
    initial: bool = True,
) -> Plain:
    code = partial(recurrent, kind, initial=initial)
    return Plain(code, shapes.recurrent(kind, inputs, hidden, layers, bias), ((steps, inputs),))


def _rnn2d(
    rows: int,
    cols: int,
    h: int,
    c: int,
    cell: str = "rnn",
    directions: int = 1,
    layers: int = 1,
    bias: bool = False,
) -> Plain:
    code = partial(grid.rnn2d_stack, cell=cell, directions=directions)
    return Plain(code, shapes.rnn2d_stack(h, c, cell, directions, layers, bias), ((rows, cols, c),))


_LAYERS: dict[str, Callable[..., Plain]] = {
    "linear": _linear,
    "feed_forward": _feed_forward,
    "norm": _norm,
    "embedding": _embedding,
    "conv": _conv,
    "rnn": partial(_recurrent, "rnn"),
    "lstm": partial(_recurrent, "lstm"),
    "gru": partial(_recurrent, "gru"),
    "rnn2d": _rnn2d,
}
