"""The formulas of lt.cost against layers run on numbers that count: equal, operation by operation.

Each layer is priced twice, as a formula that is given its sizes afterwards and from sizes given at once.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest
from cost.running import check, check_dense, check_numbers, one, run
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.cost import reference as plain
from lattend.cost.reference import CountingTape, backward, counting, numbers, shapes
from lattend.cost.reference import attention as attended

SMALL = st.integers(1, 4)
SIZE = st.integers(1, 6)
TRIES = settings(max_examples=40)


@TRIES
@given(SIZE, SIZE, SIZE, st.booleans())
def test_linear(n: int, d_in: int, d_out: int, bias: bool) -> None:
    result = run(one(plain.linear), shapes.linear(d_in, d_out, bias), (n, d_in))
    check(result, "linear", {"n": n, "d_in": d_in, "d_out": d_out}, bias=bias)


@TRIES
@given(SMALL, SMALL, SIZE, st.booleans(), st.booleans())
def test_feed_forward(n: int, d: int, hidden: int, bias: bool, gated: bool) -> None:
    layer = one(lambda x, w: plain.feed_forward(x, w, "gelu"))
    result = run(layer, shapes.feed_forward(d, hidden, bias, gated), (n, d))
    check(result, "feed_forward", {"n": n, "d": d, "hidden": hidden}, bias=bias, gated=gated)


@TRIES
@given(SIZE, SIZE, st.sampled_from(["layer", "rms"]))
def test_norm(n: int, d: int, kind: str) -> None:
    layer = plain.layer_norm if kind == "layer" else plain.rms_norm
    check(run(one(layer), shapes.norm(d, kind), (n, d)), "norm", {"n": n, "d": d}, kind=kind)


@TRIES
@given(SMALL, SIZE, SMALL)
def test_embedding(n: int, more: int, d: int) -> None:
    """Of different words; those that come twice would have their gradients added."""
    result = run(one(lambda w: plain.embedding(range(n), w)), {"weight": (n + more, d)})
    check(result, "embedding", {"n": n, "vocabulary": n + more, "d": d})


@settings(max_examples=25)
@given(SMALL, SMALL, SMALL, SMALL, st.booleans())
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_rnn2d(cell: str, rows: int, cols: int, h: int, c: int, bias: bool) -> None:
    layer = partial(plain.rnn2d, cell=cell)
    result = run(layer, shapes.rnn2d(h, c, cell, bias), (rows, cols, c))
    assert result["depth"] == rows + cols - 1
    check(result, "rnn2d", {"rows": rows, "cols": cols, "h": h, "c": c}, cell=cell, bias=bias)


@TRIES
@given(SMALL, SMALL, SMALL)
def test_rnn2d_on_a_square(n: int, h: int, c: int) -> None:
    result = run(plain.rnn2d, shapes.rnn2d(h, c), (n, n, c))
    assert result["multiplies"] == n * n * h * c + 2 * n * (n - 1) * h * h
    assert result["adds"] == n * n * h * (c - 1) + 2 * n * (n - 1) * h * h
    check(result, "rnn2d", {"n": n, "h": h, "c": c})


@settings(max_examples=12)
@given(
    st.sampled_from(["rnn", "lstm", "gru"]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(1, 2),
    st.integers(1, 3),
)
@pytest.mark.parametrize("directions", [1, 2, 4])
def test_directions_and_layers_of_rnn2d(
    directions: int, cell: str, rows: int, cols: int, h: int, c: int, layers: int
) -> None:
    """Layers overlap as far as the directions let them."""
    weights = shapes.rnn2d_stack(h, c, cell, directions, layers, bias=False)
    result = run(partial(plain.rnn2d_stack, cell=cell, directions=directions), weights, (rows, cols, c))
    later = {1: 1, 2: cols, 4: rows + cols - 1}[directions]
    assert result["depth"] == rows + cols - 1 + (layers - 1) * later
    sizes = {"rows": rows, "cols": cols, "h": h, "c": c, "layers": layers}
    check(result, "rnn2d", sizes, cell=cell, directions=directions)


@TRIES
@given(SMALL, SMALL, SMALL, st.integers(1, 3), st.booleans(), st.booleans())
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_recurrent(
    kind: str, steps: int, inputs: int, hidden: int, layers: int, bias: bool, initial: bool
) -> None:
    weights = shapes.recurrent(kind, inputs, hidden, layers, bias)
    result = run(lambda x, w: plain.recurrent(kind, x, w, initial=initial), weights, (steps, inputs))
    assert result["depth"] == steps + layers - 1
    sizes = {"steps": steps, "inputs": inputs, "hidden": hidden, "layers": layers}
    check(result, kind, sizes, bias=bias, initial=initial)


def test_recurrent_cells_in_turn() -> None:
    """One after another they take t·l steps, with the same operations."""
    weights = shapes.recurrent("lstm", 2, 3, 3, True)
    together, in_turn = (
        run(lambda x, w, turn=turn: plain.recurrent("lstm", x, w, in_turn=turn), weights, (4, 2))
        for turn in (False, True)
    )
    assert together == in_turn | {"depth": 4 + 3 - 1}
    assert in_turn["depth"] == 4 * 3


PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


@TRIES
@given(
    st.tuples(SIZE, SIZE),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.integers(1, 2),
    PAIRS,
    PAIRS,
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.booleans(),
)
def test_conv(
    image: tuple[int, int],
    channels: tuple[int, int],
    groups: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: tuple[int, int],
    bias: bool,
) -> None:
    rows, cols = image
    for size, pad, far, wide in zip(image, padding, dilation, kernel, strict=True):
        assume(size + 2 * pad >= far * (wide - 1) + 1)
    c_in, c_out = (groups * many for many in channels)

    def layer(x: Any, w: Any) -> Any:
        return plain.conv2d(x, w, stride, dilation, padding, groups)

    result = run(one(layer), shapes.conv2d(c_in, c_out, kernel, groups, bias), (c_in, rows, cols))
    options: dict[str, Any] = {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": padding}
    options |= {"groups": groups, "bias": bias}
    sizes = {"rows": rows, "cols": cols, "c_in": c_in, "c_out": c_out}
    cost = lt.cost.conv(**sizes, **options)
    check_numbers(result, cost)

    def padded(x: Any, w: Any) -> Any:
        """The image in a frame of zeros that are multiplied like everything else."""
        return plain.conv2d([framed(plane, padding) for plane in x], w, stride, dilation, (0, 0), groups)

    weights = shapes.conv2d(c_in, c_out, kernel, groups, bias)
    check_dense(run(one(padded), weights, (c_in, rows, cols)), cost)


def framed(plane: numbers.Matrix, padding: tuple[int, int]) -> numbers.Matrix:
    tall, wide = padding

    def zeros(size: int) -> numbers.Vector:
        return numbers.zeros(plane[0][0], size)

    whole = 2 * wide + len(plane[0])
    above, below = ([zeros(whole) for _ in range(tall)] for _ in range(2))
    return [*above, *([*zeros(wide), *row, *zeros(wide)] for row in plane), *below]


@settings(max_examples=20)
@given(st.integers(2, 6), st.integers(2, 6), SMALL, SMALL, st.booleans())
def test_conv_as_a_formula(rows: int, cols: int, c_in: int, c_out: int, bias: bool) -> None:
    weights = shapes.conv2d(c_in, c_out, (3, 3), 1, bias)
    result = run(one(lambda x, w: plain.conv2d(x, w, padding=(1, 1))), weights, (c_in, rows, cols))
    sizes = {"rows": rows, "cols": cols, "c_in": c_in, "c_out": c_out}
    check(result, "conv", sizes, kernel=3, padding=1, bias=bias)


@settings(max_examples=20)
@given(st.integers(1, 3), st.data(), SMALL, SMALL)
def test_patch_embedding(patch: int, data: st.DataObject, c: int, d: int) -> None:
    rows, cols = (data.draw(st.integers(patch, 6)) for _ in range(2))
    result = run(one(plain.patch_embedding), shapes.conv2d(c, d, (patch, patch)), (c, rows, cols))
    check(result, "patch_embedding", {"rows": rows, "cols": cols, "c": c, "d": d}, patch=patch)


@pytest.mark.parametrize("name", ["linear", "feed_forward", "norm", "rnn", "causal", "own token"])
def test_which_layers_mix_tokens(name: str) -> None:
    """Whether what the last token gives depends on any other token, read off its gradients."""
    n, d = 4, 3
    layers: dict[str, tuple[Any, shapes.Shapes, Any]] = {
        "linear": (plain.linear, shapes.linear(d, d), lt.cost.linear()),
        "feed_forward": (
            lambda x, w: plain.feed_forward(x, w, "gelu"),
            shapes.feed_forward(d, d),
            lt.cost.feed_forward(),
        ),
        "norm": (plain.layer_norm, shapes.norm(d, "layer"), lt.cost.norm()),
        "rnn": (
            lambda x, w: plain.recurrent("rnn", x, w),
            shapes.recurrent("rnn", d, d, 1, False),
            lt.cost.rnn(),
        ),
    }
    for rule, mask in ("causal", lambda q, k: k <= q), ("own token", lambda q, k: k == q):
        masks = [[[mask(q, k) for k in range(n)] for q in range(n)]]
        layers[rule] = (
            lambda x, w, masks=masks: attended.attention(x, x, w, masks),
            shapes.attention(1, d, d, d, d),
            lt.cost.attention("causal" if rule == "causal" else "k == q"),
        )
    layer, weights, cost = layers[name]
    source, tape = Random(3), CountingTape()
    tokens = counting(shapes.fill((n, d), source), tape)
    outputs = layer(tokens, counting(shapes.filled(weights, source), tape))
    back = backward(outputs, [0.0] * (n - 1) * d + [source.uniform(1, 2) for _ in range(d)])
    reached = any(gradient != 0 for token in back.of(tokens[:-1]) for gradient in token)
    assert list(cost.mixes_tokens.values()) == [reached]
