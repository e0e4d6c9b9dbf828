"""RNN, LSTM and GRU on lists, along a line as torch has them, and on an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from lattend.cost.reference.numbers import (
    Matrix,
    Vector,
    Weights,
    blocks,
    by_entry,
    each,
    part,
    plus,
    times,
    unit,
    zeros,
)
from lattend.errors import DomainError, NamingError


def recurrent(
    kind: str,
    tokens: Matrix,
    weights: Weights,
    *,
    initial: bool = True,
    in_turn: bool = False,
) -> Matrix:
    """The outputs of an "rnn", "lstm" or "gru" at every step of its last layer; a cell is a unit.

    With `initial`, the first step is given a state of zeros and multiplies it; otherwise it leaves it out.
    With `in_turn`, every cell waits for the one before it, in this layer and at the end of the last.

    >>> recurrent("rnn", [[0.0], [0.0]], {"weight_ih_l0": [[1.0]], "weight_hh_l0": [[1.0]]})
    [[0.0], [0.0]]
    """
    if kind not in _CELLS:
        raise NamingError(f"kind is one of {', '.join(_CELLS)}, not {kind!r}")
    layers = sum(name.startswith("weight_ih_l") for name in weights)
    before: Any = ()
    for layer in range(layers):
        w = {name.removesuffix(f"_l{layer}"): w for name, w in weights.items() if name.endswith(f"_l{layer}")}
        row = w["weight_hh"][0]
        state = [zeros(row[0], len(row)) for _ in range(2)] if initial else []
        outputs: Matrix = []
        for x in tokens:
            state = unit(_CELLS[kind](x, state, w), after=before if in_turn else ())
            before = state
            outputs.append(state[0])
        tokens = outputs
    return tokens


def _sides(x: Vector, state: list[Vector], w: Weights) -> tuple[Vector, Vector]:
    """W x + b_ih, and U h + b_hh; with no state given the bias alone, or nothing."""
    from_input, from_state = times(w["weight_ih"], x), times(w["weight_hh"], state[0]) if state else []
    if "bias_ih" in w:
        from_input = plus(from_input, w["bias_ih"])
        from_state = plus(from_state, w["bias_hh"]) if from_state else w["bias_hh"]
    return from_input, from_state


def _rnn(x: Vector, state: list[Vector], w: Weights) -> list[Vector]:
    """tanh(W x + U h)."""
    from_input, from_state = _sides(x, state, w)
    return [each("tanh", plus(from_input, from_state) if from_state else from_input)]


def _lstm(x: Vector, state: list[Vector], w: Weights) -> list[Vector]:
    """Gates i, f, g, o; c' = f∘c + i∘g and h' = o∘tanh c'."""
    from_input, from_state = _sides(x, state, w)
    take, forget, new, give = blocks(plus(from_input, from_state) if from_state else from_input, 4)
    forget = each("sigmoid", forget)
    c = by_entry(each("sigmoid", take), each("tanh", new))
    if state:
        c = plus(by_entry(forget, state[1]), c)
    return [by_entry(each("sigmoid", give), each("tanh", c)), c]


def _gru(x: Vector, state: list[Vector], w: Weights) -> list[Vector]:
    """Gates r, z; n = tanh(W x + r∘U h) and h' = (1 - z)∘n + z∘h."""
    from_input, from_state = _sides(x, state, w)
    size = len(from_input) // 3
    gates = from_input[: 2 * size]
    gates = each("sigmoid", plus(gates, from_state[: 2 * size]) if from_state else gates)
    reset, keep, new = gates[:size], gates[size:], from_input[2 * size :]
    if from_state:
        new = plus(new, by_entry(reset, from_state[2 * size :]))
    mixed = by_entry([1.0 - z for z in keep], each("tanh", new))
    return [plus(mixed, by_entry(keep, state[0])) if state else mixed]


_CELLS = {"rnn": _rnn, "lstm": _lstm, "gru": _gru}


Pixels: TypeAlias = list[Matrix]  # [row][column][channel]
State: TypeAlias = list[Vector]  # h, and for an lstm c; empty where there is no cell
Cell: TypeAlias = Callable[[Vector, State, State, Weights], State]
GATES = {"rnn": 1, "lstm": 5, "gru": 4}
ACTIVATIONS = ("tanh", "relu", "sigmoid", "identity")
FLIPS = {1: ("",), 2: ("", "cols"), 4: ("", "cols", "rows", "rows cols")}  # axes that a direction turns round
T = TypeVar("T")


def rnn2d(
    image: Pixels, weights: Weights, cell: str = "rnn", activation: str = "tanh", *, initial: bool = False
) -> Pixels:
    """The state h of every pixel, from the top left corner on; a cell is a unit.

    Weights are W_in [gates*h][c], W_left and W_top [gates*h][h], and b [gates*h] if there is a bias.
    With `initial`, cells at the edge are given states of zeros and multiply them, as a kernel does.

    >>> rnn2d([[[1.0], [2.0]]], {"W_in": [[10.0]], "W_left": [[1.0]], "W_top": [[1.0]]}, activation="relu")
    [[[10.0], [30.0]]]
    """
    check_cell(cell, activation)
    step = _grid_rnn(activation) if cell == "rnn" else {"lstm": _grid_lstm, "gru": _grid_gru}[cell]

    def edge() -> State:
        one = weights["W_left"][0]
        return [zeros(one[0], len(one)) for _ in range(2)] if initial else []

    done: list[list[State]] = []
    for row, line in enumerate(image):
        done.append([])
        for col, x in enumerate(line):
            left = done[row][col - 1] if col > 0 else edge()
            top = done[row - 1][col] if row > 0 else edge()
            done[row].append(unit(step(x, left, top, weights)))
    return [[state[0] for state in line] for line in done]


def rnn2d_stack(
    image: Pixels,
    weights: Weights,
    cell: str = "rnn",
    directions: int = 1,
    activation: str = "tanh",
    *,
    initial: bool = False,
) -> Pixels:
    """The outputs of the last layer at every pixel, directions side by side.

    Direction 0 goes down and right, 1 down and left, 2 up and right, 3 up and left. The weights of layer 0,
    direction 1 are "0.1.W_in" and so on; a layer above the first is given all directions of the one below.
    """
    check_directions(directions)
    for layer in range(1 + max(int(name.split(".")[0]) for name in weights)):
        own = part(weights, str(layer))
        stacked = [
            flipped(rnn2d(flipped(image, axes), part(own, str(way)), cell, activation, initial=initial), axes)
            for way, axes in enumerate(FLIPS[directions])
        ]
        image = [
            [[x for way in pixels for x in way] for pixels in zip(*lines, strict=True)]
            for lines in zip(*stacked, strict=True)
        ]
    return image


def flipped(image: Sequence[Sequence[T]], axes: str) -> list[list[T]]:
    """An image with its "rows", its "cols", or both in reverse order."""
    lines = [list(line) for line in (reversed(image) if "rows" in axes else image)]
    return [line[::-1] for line in lines] if "cols" in axes else lines


def check_cell(cell: str, activation: str = "tanh") -> None:
    """Raise where no cell has this name and this activation."""
    if cell not in GATES:
        raise NamingError(f"cell is one of {', '.join(GATES)}, not {cell!r}")
    if activation not in ACTIVATIONS:
        raise NamingError(f"activation is one of {', '.join(ACTIVATIONS)}, not {activation!r}")
    if cell != "rnn" and activation != "tanh":
        raise NamingError(f'activation="{activation}": {cell} has tanh alone; cell="rnn" takes the others')


def check_directions(directions: int) -> None:
    """Raise where there are not so many directions."""
    if directions not in FLIPS:
        raise DomainError(f"directions is 1, 2 or 4, not {directions!r}")


def _from_pixel(x: Vector, w: Weights) -> Vector:
    """W_in x, and the bias if there is one."""
    return plus(times(w["W_in"], x), w["b"]) if "b" in w else times(w["W_in"], x)


def _from_cells(left: State, top: State, w: Weights) -> Vector:
    """W_left h_left + W_top h_top of those that are there; empty where neither is."""
    terms = [times(w[name], state[0]) for name, state in (("W_left", left), ("W_top", top)) if state]
    return plus(*terms) if len(terms) == 2 else terms[0] if terms else []


def _both(x: Vector, left: State, top: State, w: Weights) -> Vector:
    before = _from_cells(left, top, w)
    return plus(_from_pixel(x, w), before) if before else _from_pixel(x, w)


def _grid_rnn(activation: str) -> Cell:
    if activation == "identity":
        return lambda x, left, top, w: [_both(x, left, top, w)]
    return lambda x, left, top, w: [each(activation, _both(x, left, top, w))]


def _grid_lstm(x: Vector, left: State, top: State, w: Weights) -> State:
    """C = f∘(l∘c_left + (1 - l)∘c_top) + i∘g, and h = o∘tanh c."""
    take, keep, share, new, give = blocks(_both(x, left, top, w), 5)
    take, keep, share, give = (each("sigmoid", gate) for gate in (take, keep, share, give))
    c = by_entry(take, each("tanh", new))
    old = _shared(share, left[1:], top[1:])
    c = plus(c, by_entry(keep, old)) if old else c
    return [by_entry(give, each("tanh", c)), c]


def _grid_gru(x: Vector, left: State, top: State, w: Weights) -> State:
    """N = tanh(pre + r∘m), and h = (1 - z)∘n + z∘(l∘h_left + (1 - l)∘h_top); m is n's part of the cells."""
    pre, before = blocks(_from_pixel(x, w), 4), blocks(_from_cells(left, top, w), 4)
    some = bool(left or top)
    gates = [plus(*both) for both in zip(pre[:3], before[:3], strict=True)] if some else pre[:3]
    reset, keep, share = (each("sigmoid", gate) for gate in gates)
    new = plus(pre[3], by_entry(reset, before[3])) if some else pre[3]
    h = by_entry([1.0 - z for z in keep], each("tanh", new))
    old = _shared(share, left, top)
    return [plus(h, by_entry(keep, old)) if old else h]


def _shared(share: Vector, left: State, top: State) -> Vector:
    """l∘left + (1 - l)∘top of those that are there; empty where neither is."""
    terms = [by_entry(share, left[0])] if left else []
    terms += [by_entry([1.0 - a for a in share], top[0])] if top else []
    return plus(*terms) if len(terms) == 2 else terms[0] if terms else []
