"""Plain code for every layer but attention, on lists of numbers or floats; weights named as torch names them.

A product with padding or with a state that is not there is left out, not done with a zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, TypeAlias

from costs.counted import Number, Scalar, apply, unit

Vector: TypeAlias = list[Scalar]
Matrix: TypeAlias = list[Vector]
Image: TypeAlias = list[Matrix]  # [channel][row][column]
Weights: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[int, int]


def total(values: Iterable[Scalar]) -> Scalar:
    """The sum: one add less than there are values."""
    first, *rest = values
    for each in rest:
        first = first + each
    return first


def dot(left: Sequence[Scalar], right: Sequence[Scalar]) -> Scalar:
    return total(a * b for a, b in zip(left, right, strict=True))


def times(matrix: Matrix, vector: Sequence[Scalar]) -> Vector:
    return [dot(row, vector) for row in matrix]


def plus(left: Vector, right: Vector) -> Vector:
    return [a + b for a, b in zip(left, right, strict=True)]


def by_entry(left: Vector, right: Vector) -> Vector:
    return [a * b for a, b in zip(left, right, strict=True)]


def each(function: str, vector: Vector) -> Vector:
    return [apply(function, x) for x in vector]


def zeros(like: Scalar, size: int) -> Vector:
    """Zeros that are counted wherever `like` is."""
    return [Number(0.0, like.tally) if isinstance(like, Number) else 0.0 for _ in range(size)]


def part(weights: Weights, name: str) -> Weights:
    """The weights of one part of a layer: "norm1" of {"norm1.weight": …} is {"weight": …}."""
    return {key[len(name) + 1 :]: each for key, each in weights.items() if key.startswith(name + ".")}


def linear(tokens: Matrix, weights: Weights) -> Matrix:
    """y = W x + b for every token; without "bias" in the weights none is added."""
    rows = [times(weights["weight"], x) for x in tokens]
    return [plus(row, weights["bias"]) for row in rows] if "bias" in weights else rows


def feed_forward(tokens: Matrix, weights: Weights, activation: str) -> Matrix:
    """Two maps with an activation between, which is multiplied with a third map if there is a "gate"."""
    hidden = [each(activation, row) for row in linear(tokens, part(weights, "linear1"))]
    if gate := part(weights, "gate"):
        hidden = [by_entry(*rows) for rows in zip(hidden, linear(tokens, gate), strict=True)]
    return linear(hidden, part(weights, "linear2"))


def layer_norm(tokens: Matrix, weights: Weights, epsilon: float = 1e-5) -> Matrix:
    def normed(x: Vector) -> Vector:
        mean = total(x) / float(len(x))
        centred = [a - mean for a in x]
        variance = dot(centred, centred) / float(len(x))
        inverse = 1.0 / apply("sqrt", variance + epsilon)
        return plus(by_entry([a * inverse for a in centred], weights["weight"]), weights["bias"])

    return [normed(x) for x in tokens]


def rms_norm(tokens: Matrix, weights: Weights, epsilon: float = 1e-5) -> Matrix:
    def normed(x: Vector) -> Vector:
        inverse = 1.0 / apply("sqrt", dot(x, x) / float(len(x)) + epsilon)
        return by_entry([a * inverse for a in x], weights["weight"])

    return [normed(x) for x in tokens]


def embedding(tokens: Sequence[int], weights: Weights) -> Matrix:
    return [weights["weight"][token] for token in tokens]


def conv2d(
    image: Image,
    weights: Weights,
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    padding: Pair = (0, 0),
    groups: int = 1,
) -> Image:
    """Convolution as torch's: the kernel is not flipped; what lies in the padding is left out."""
    kernels = weights["weight"]  # [out][in / groups][kernel rows][kernel columns]
    rows, cols = len(image[0]), len(image[0][0])
    tall, wide = len(kernels[0][0]), len(kernels[0][0][0])
    ends = [
        (size + 2 * pad - far * (kernel - 1) - 1) // step + 1
        for size, pad, far, kernel, step in zip(
            (rows, cols), padding, dilation, (tall, wide), stride, strict=True
        )
    ]
    depth, share = len(kernels[0]), len(kernels) // groups

    def at(out: int, i: int, j: int) -> Scalar:
        products: Vector = []
        for c, a, b in product(range(depth), range(tall), range(wide)):
            row = i * stride[0] - padding[0] + a * dilation[0]
            col = j * stride[1] - padding[1] + b * dilation[1]
            if 0 <= row < rows and 0 <= col < cols:
                products.append(kernels[out][c][a][b] * image[out // share * depth + c][row][col])
        if "bias" not in weights:
            return total(products) if products else zeros(kernels[0][0][0][0], 1)[0]
        return total(products) + weights["bias"][out] if products else weights["bias"][out]

    return [[[at(o, i, j) for j in range(ends[1])] for i in range(ends[0])] for o in range(len(kernels))]


def patch_embedding(image: Image, weights: Weights) -> Matrix:
    """One token a patch, row after row: a convolution that steps by its own kernel."""
    kernel = weights["weight"][0][0]
    channels = conv2d(image, weights, stride=(len(kernel), len(kernel[0])))
    rows, cols = len(channels[0]), len(channels[0][0])
    return [[plane[i][j] for plane in channels] for i in range(rows) for j in range(cols)]


def rnn2d(image: Image, weights: Weights, function: str = "tanh") -> list[Matrix]:
    """h[row][col] = σ(W_in x + W_left h[row][col-1] + W_top h[row-1][col]); a cell is a unit."""
    done: list[Matrix] = []
    for row in range(len(image[0])):
        done.append([])
        for col in range(len(image[0][0])):
            halves = [times(weights["W_in"], [plane[row][col] for plane in image])]
            if col > 0:
                halves.append(times(weights["W_left"], done[row][col - 1]))
            if row > 0:
                halves.append(times(weights["W_top"], done[row - 1][col]))
            done[row].append(unit([apply(function, total(parts)) for parts in zip(*halves, strict=True)]))
    return done


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
    """
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
    from_input, from_state = _sides(x, state, w)
    return [each("tanh", plus(from_input, from_state) if from_state else from_input)]


def _lstm(x: Vector, state: list[Vector], w: Weights) -> list[Vector]:
    from_input, from_state = _sides(x, state, w)
    both = plus(from_input, from_state) if from_state else from_input
    size = len(both) // 4
    take, forget, new, give = (both[size * gate : size * (gate + 1)] for gate in range(4))
    forget = each("sigmoid", forget)
    c = by_entry(each("sigmoid", take), each("tanh", new))
    if state:
        c = plus(by_entry(forget, state[1]), c)
    return [by_entry(each("sigmoid", give), each("tanh", c)), c]


def _gru(x: Vector, state: list[Vector], w: Weights) -> list[Vector]:
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
