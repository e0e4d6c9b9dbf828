"""RNN, LSTM and GRU on lists, as torch's: the same gates in the same order, weights of the same names."""

from __future__ import annotations

from typing import Any

from lattend.cost.reference.numbers import unit
from lattend.cost.reference.vectors import Matrix, Vector, Weights, blocks, by_entry, each, plus, times, zeros
from lattend.errors import NamingError


def recurrent(
    kind: str,
    tokens: Matrix,
    weights: Weights,
    *,
    initial: bool = True,
    in_turn: bool = False,
) -> Matrix:
    """What the last layer of an "rnn", "lstm" or "gru" gives at every step; a cell of a layer is a unit.

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
