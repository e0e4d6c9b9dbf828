"""The module: parameters, pieces of an image, ragged images, memory, and what it says when asked wrongly."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest
import torch
from nn.grid.grids import (
    KERNELS,
    NAMES,
    agree,
    by,
    compiled,
    gradients,
    model,
    some,
    states_for,
    tensors_of,
)
from torch import Tensor

import lattend as lt
from lattend.errors import LattendError

GATES = {"rnn": 1, "lstm": 5, "gru": 4}


@pytest.mark.parametrize(("c", "h"), [(3, 8), (1, 1), (5, 2)])
def test_parameters_of_the_notes(c: int, h: int) -> None:
    assert sum(p.numel() for p in lt.nn.GridRNN(c, h).parameters()) == h * c + 2 * h * h


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("directions", [1, 2, 4])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_parameters_are_those_of_the_cost(name: str, directions: int, layers: int, bias: bool) -> None:
    c, h = 3, 5
    net = lt.nn.GridRNN(c, h, name, directions, layers=layers, bias=bias)
    each = directions * GATES[name] * h  # rows of a weight matrix
    by_hand = each * (c + 2 * h + bias) + (layers - 1) * each * (directions * h + 2 * h + bias)
    assert sum(p.numel() for p in net.parameters()) == by_hand
    assert net.cost(rows=4, cols=6).parameters == by_hand
    if layers == 1:
        assert str(net.cost().depth) == "cols + rows - 1"


def test_weights_begin_in_a_range() -> None:
    net = lt.nn.GridRNN(3, 25, "lstm", bias=True)
    for p in net.parameters():
        assert 0.9 / 5 < p.abs().max() <= 1 / 5
    before = net.W_in[0].clone()
    net.reset_parameters()
    assert not torch.equal(before, net.W_in[0])


# Pieces of an image


def pieces(net: lt.nn.GridRNN, x: Tensor, axis: int, at: int) -> tuple[Tensor, Any]:
    """The image in two pieces, side by side (axis 2) or one below the other (axis 1), states handed on."""
    first, second = x.split([at, x.shape[axis] - at], axis)
    one, ends = net(first, return_states=True)
    handed = lt.nn.GridStates(left=ends.left) if axis == 2 else lt.nn.GridStates(top=ends.top)
    two, last = net(second, handed, return_states=True)
    return torch.cat((one, two), axis), last


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("directions", "axis"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("shift", [False, True])
def test_two_halves_are_the_whole(
    name: str, layers: int, kernel: str, directions: int, axis: int, shift: bool
) -> None:
    """Down-left cannot go on to the right, as it comes from there; both can go on below."""
    net = model(2, 3, name, directions, layers=layers, bias=True, kernel=kernel, shift=shift)
    x = some(2, 4, 5, 2).requires_grad_()
    whole, ends = net(x, return_states=True)
    joined, last = pieces(net, x, axis, 2)
    torch.testing.assert_close(joined, whole)
    passed = (last.left, ends.left) if axis == 2 else (last.top, ends.top)
    agree(tensors_of((passed[0], None)), tensors_of((passed[1], None)))
    grad = some(*whole.shape, seed=5)
    wanted = [x, *net.parameters()]
    agree(list(torch.autograd.grad(joined, wanted, grad)), list(torch.autograd.grad(whole, wanted, grad)))


def test_four_quarters() -> None:
    """The piece below on the right takes its left states from one neighbour and its top from the other."""
    net, x = model(2, 3, "lstm"), some(2, 4, 6, 2)
    whole = net(x)
    a, at_a = net(x[:, :1, :4], return_states=True)
    b, at_b = net(x[:, :1, 4:], lt.nn.GridStates(left=at_a.left), return_states=True)
    c, at_c = net(x[:, 1:, :4], lt.nn.GridStates(top=at_a.top), return_states=True)
    d = net(x[:, 1:, 4:], (at_c.left, at_b.top))
    rows = torch.cat((a, b), 2), torch.cat((c, d), 2)
    torch.testing.assert_close(torch.cat(rows, 1), whole)


@pytest.mark.parametrize("name", NAMES)
def test_states_of_directions_stand_where_the_image_has_them(name: str) -> None:
    """A turned image with turned states gives a turned result with the directions exchanged."""
    net, x = model(2, 3, name, 4), some(2, 3, 5, 2)
    states = states_for(net, x)
    order = [1, 0, 3, 2]  # what each direction becomes when columns are reversed
    turned = model(2, 3, name, 4)
    with torch.no_grad():
        for ours, theirs in zip(turned.parameters(), net.parameters(), strict=True):
            ours.copy_(theirs.unflatten(0, (4, -1))[order].flatten(0, 1))

    def exchanged(side: Any, flip: bool) -> Any:
        if isinstance(side, tuple):
            return tuple(exchanged(t, flip) for t in side)
        return side[order].flip(2) if flip else side[order]

    left, top = exchanged(states.left, False), exchanged(states.top, True)
    found, ends = turned(x.flip(2), (left, top), return_states=True)
    wanted, their_ends = net(x, states, return_states=True)
    torch.testing.assert_close(
        found.unflatten(-1, (4, 3)), wanted.flip(2).unflatten(-1, (4, 3))[..., order, :]
    )
    agree(tensors_of(ends), tensors_of((exchanged(their_ends.left, False), exchanged(their_ends.top, True))))  # pyright: ignore


# Ragged images


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("directions", [1, 2, 4])
@pytest.mark.parametrize("kernel", [*KERNELS, "reference"])
def test_ragged_images_are_as_if_alone(name: str, directions: int, kernel: str) -> None:
    net = model(2, 3, name, directions, layers=2, bias=True, kernel=kernel)
    sizes = [(3, 2), (1, 4), (2, 2)]
    mask = lt.nn.ragged_mask(sizes)
    x = some(3, 3, 4, 2).masked_fill(~mask[..., None], math.nan).requires_grad_()
    out = net(x, mask=mask)
    assert not out[~mask].any()
    (grad,) = torch.autograd.grad(out.square().sum(), x)
    assert not grad[~mask].any()
    for image, (rows, cols) in enumerate(sizes):
        alone = x[image : image + 1, :rows, :cols].detach().requires_grad_()
        single = net(alone)
        torch.testing.assert_close(out[image, :rows, :cols], single[0])
        (own,) = torch.autograd.grad(single.square().sum(), alone)
        torch.testing.assert_close(grad[image, :rows, :cols], own[0])


def test_ragged_mask() -> None:
    mask = lt.nn.ragged_mask([(1, 2), (0, 0)], rows=2, cols=3)
    assert mask.dtype == torch.bool
    assert mask.int().tolist() == [[[1, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]]


# Memory


def kept(net: lt.nn.GridRNN, x: Tensor) -> int:
    """How many numbers the graph keeps, besides the weights; each memory once."""
    own = {p.untyped_storage().data_ptr() for p in net.parameters()}
    seen: dict[int, int] = {}

    def pack(t: Tensor) -> Tensor:
        storage = t.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage.nbytes() // t.element_size()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        net(x)
    return sum(seen.values())


@compiled
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("directions", "layers"), [(1, 1), (1, 2), (2, 1)])
def test_memory_is_what_the_cost_says(name: str, directions: int, layers: int) -> None:
    """Pixels, states and gates; states have a row and a column of edges in front."""
    rows, cols, c, h = 5, 6, 2, 4
    net, x = model(c, h, name, directions, layers=layers), some(1, rows, cols, c)
    edges = (rows + cols + 1) * h * directions * layers * (2 if name == "lstm" else 1)
    counted = net.cost(rows=rows, cols=cols).total("saved_activations")
    assert kept(net, x) == counted + edges


@compiled
@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_recompute_keeps_no_gates(name: str) -> None:
    net, x = model(2, 4, name, 2, layers=2), some(3, 5, 6, 2)
    lean = by("native", net, recompute=True)
    gates = 5 * 4 * 2 * 2 * 3 * 5 * 6  # 5h for each of 2 directions, 2 layers, 3 images of 5 x 6
    assert kept(net, x) - kept(lean, x) == gates
    agree(gradients(lean, x, None, None), gradients(net, x, None, None))


def test_without_gradients_nothing_is_kept() -> None:
    net, x = model(2, 4, "lstm"), some(1, 3, 3, 2)
    with torch.no_grad():
        assert kept(net, x) == 0
        assert not net(x).requires_grad
    other = some(1, 7, 2, 2)
    with torch.inference_mode():
        first = net(other)
    found = net(other)  # what the first call has worked out serves here too
    torch.testing.assert_close(found, first)
    found.sum().backward()


# Around torch


def test_autocast() -> None:
    net, x = lt.nn.GridRNN(2, 8, "lstm", 2), torch.randn(2, 5, 4, 2)
    wanted = net(x)
    with torch.autocast("cpu", torch.bfloat16):
        found = net(x)
    assert found.dtype == torch.bfloat16
    assert (found - wanted).abs().max() < 0.02
    found.sum().backward()
    assert net.W_in[0].grad is not None and net.W_in[0].grad.dtype == torch.float32


def test_shapes_without_numbers() -> None:
    net = lt.nn.GridRNN(2, 3, "lstm", 4, layers=2, device="meta")
    assert net(torch.empty(5, 6, 7, 2, device="meta")).shape == (5, 6, 7, 12)


def test_state_dict() -> None:
    net, other = lt.nn.GridRNN(2, 3, "gru", 4, layers=2), lt.nn.GridRNN(2, 3, "gru", 4, layers=2)
    other.load_state_dict(net.state_dict())
    x = torch.randn(1, 3, 3, 2)
    assert torch.equal(net(x), other(x))
    assert list(net.state_dict()) == ["W_in.0", "W_in.1", "W_left.0", "W_left.1", "W_top.0", "W_top.1"]


def test_strides_do_not_matter() -> None:
    net, x = model(2, 3, "lstm", 2), some(2, 2, 5, 4)
    turned = x.movedim(1, -1)  # torch's images
    torch.testing.assert_close(net(turned), net(turned.contiguous()))
    one = some(1, 3, 4, 2).expand(3, -1, -1, -1)
    torch.testing.assert_close(net(one), net(one.clone()))


def test_learns_what_a_convolution_cannot_see() -> None:
    """Whether the first pixel was set is known at the last, 3 + 3 steps away."""
    torch.manual_seed(0)
    net, head = lt.nn.GridRNN(1, 8, "lstm", bias=True), torch.nn.Linear(8, 1)
    x = torch.randint(0, 2, (64, 4, 4, 1)).float()
    best = torch.optim.Adam([*net.parameters(), *head.parameters()], 0.03)
    loss = torch.tensor(1.0)
    for _ in range(60):
        best.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(head(net(x)[:, -1, -1]), x[:, 0, 0])
        loss.backward()
        best.step()
    assert loss < 0.1


def test_what_it_says_of_itself() -> None:
    assert repr(lt.nn.GridRNN(3, 8)) == "GridRNN(3, 8)"
    net = lt.nn.GridRNN(3, 8, "rnn", 2, activation="relu", bias=True, layers=2, shift=True, kernel="native")
    said = "3, 8, activation='relu', directions=2, bias=True, layers=2, shift=True, kernel='native'"
    assert net.extra_repr() == said
    assert repr(lt.nn.GridRNN(3, 8, "gru", recompute=True)) == "GridRNN(3, 8, cell='gru', recompute=True)"


@pytest.mark.parametrize("kernel", [None, "native", "diagonals", "reference"])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize(("directions", "shift"), [(1, True), (2, False), (4, False)])
def test_an_empty_batch(kernel: str | None, cell: str, directions: int, shift: bool) -> None:
    net = lt.nn.GridRNN(3, 5, cell, directions, bias=True, layers=2, shift=shift, kernel=kernel)
    x, mask = torch.zeros(0, 2, 4, 3, requires_grad=True), torch.ones(0, 2, 4, dtype=torch.bool)
    for _ in range(2):  # the second call repeats the first
        out, states = net(x, return_states=True)
        again = net(x, states, mask)
        assert out.shape == again.shape == net(x).shape == (0, 2, 4, 5 * directions)
        grads = torch.autograd.grad(net(x).sum() + again.sum(), [x, *net.parameters()])
        for grad, of in zip(grads, [x, *net.parameters()], strict=True):
            assert grad.shape == of.shape and not grad.any()


# Errors

X = torch.zeros(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lt.nn.GridRNN(0, 3), "c must be a whole number from 1 on, got 0"),
        (lambda: lt.nn.GridRNN(3, cast(Any, 2.0)), "h must be a whole number from 1 on, got 2.0"),
        (lambda: lt.nn.GridRNN(3, 3, layers=0), "layers must be a whole number from 1 on, got 0"),
        (lambda: lt.nn.GridRNN(3, 3, "cnn"), "cell is one of rnn, lstm, gru, not 'cnn'"),
        (
            lambda: lt.nn.GridRNN(3, 3, activation="gelu"),
            "activation is one of tanh, relu, sigmoid, identity, not 'gelu'",
        ),
        (
            lambda: lt.nn.GridRNN(3, 3, "lstm", activation="relu"),
            'activation="relu": lstm has tanh alone; cell="rnn" takes the others',
        ),
        (lambda: lt.nn.GridRNN(3, 3, directions=3), "directions is 1, 2 or 4, not 3"),
        (
            lambda: lt.nn.GridRNN(3, 3, directions=4, shift=True),
            "shift=True, directions=4: from four corners no pixel is later; take 1 or 2",
        ),
        (
            lambda: lt.nn.GridRNN(3, 3, kernel="fast"),
            "kernel is one of gpu, native, diagonals, reference, not 'fast'; leave it out for the best",
        ),
        (
            lambda: lt.nn.GridRNN(3, 3)(X),
            "x must be floats [batch, rows, cols, c] with c = 3, got float32 [2, 3, 4, 5]; "
            "write x.movedim(1, -1)",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3)(X[0]),
            "x must be floats [batch, rows, cols, c] with c = 5, got float32 [3, 4, 5]; "
            "write x[None] for a batch of one",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3)(X.long()),
            "x must be floats [batch, rows, cols, c] with c = 5, got int64 [2, 3, 4, 5]",
        ),
        (lambda: lt.nn.GridRNN(5, 3)(X[:, :0]), "x has no pixels: it is float32 [2, 0, 4, 5]"),
        (lambda: lt.nn.GridRNN(5, 3)(X[:0, :, :0]), "x has no pixels: it is float32 [0, 3, 0, 5]"),
        (
            lambda: lt.nn.GridRNN(5, 3)(X.double()),
            "x is float64 [2, 3, 4, 5] and the weights are torch.float32; cast one of them",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3)(X.to("meta")),
            "x is on meta and the weights are on cpu; move one of them",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3)(X, mask=torch.ones(2, 3, 4)),
            "mask must be bool [batch, rows, cols] = [2, 3, 4], True where a pixel is, got float32 [2, 3, 4]",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3)(X, mask=torch.ones(3, 4, dtype=torch.bool)),
            "mask must be bool [batch, rows, cols] = [2, 3, 4], True where a pixel is, got bool [3, 4]",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3)(X, X),
            "states must be GridStates(left=…, top=…), got Tensor",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3)(X, (torch.zeros(2, 4, 3), None)),
            "states: left must be [layers*directions, batch, rows, h] = [1, 2, 3, 3], got [2, 4, 3]",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3, directions=2)(X, (None, torch.zeros(2, 4, 3))),
            "states: top must be [layers*directions, batch, cols, h] = [2, 2, 4, 3], got [2, 4, 3]",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3, "lstm")(X, (torch.zeros(2, 3, 3), None)),
            "states: left of an lstm is a pair (h, c), got Tensor",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3, "gru")(X, (None, (torch.zeros(2, 4, 3), torch.zeros(2, 4, 3)))),
            "states: top of a gru is a tensor, got tuple",
        ),
        (
            lambda: lt.nn.GridRNN(5, 3)(X, (torch.zeros(2, 3, 3, device="meta"), None)),
            "states: left is on meta and x on cpu; move one of them",
        ),
        (lambda: lt.nn.ragged_mask([]), "sizes is empty; give (rows, cols) of every image"),
        (
            lambda: lt.nn.ragged_mask([(1, -1)]),
            "sizes: (rows, cols) of an image are two numbers from 0 on, got (1, -1)",
        ),
        (lambda: lt.nn.ragged_mask([(3, 2)], rows=2), "rows=2: an image of sizes has 3"),
    ],
)  # fmt: skip
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(LattendError) as caught:
        call()
    assert str(caught.value) == message


def test_what_an_lstm_keeps_does_not_grow_along_the_paths() -> None:
    """|c| is at most one more than the larger of its neighbours', however many paths lead to a pixel."""
    net = model(2, 16, "lstm")
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(3)
    _, ends = net(some(1, 40, 40, 2), return_states=True)
    assert all(c.abs().max() < 40 for c in (ends.left[1], ends.top[1]))
