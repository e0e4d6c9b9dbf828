"""The plain layers against torch's own modules in float64: outputs, and gradients by the tape."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cost.against_torch import Tensors, check, drawn, module, same
from torch import Tensor, nn
from torch.nn import functional

from lattend.cost import reference as plain
from lattend.cost.reference import shapes
from lattend.cost.reference.recurrence import FLIPS, GATES


@pytest.mark.parametrize("bias", [True, False])
def test_linear(bias: bool) -> None:
    made = module(nn.Linear(3, 4, bias=bias))
    check(made, plain.linear, drawn(5, 3), shapes.linear(3, 4, bias))


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
def test_feed_forward(activation: str, gated: bool) -> None:
    def wanted(x: Tensor, w: Tensors) -> Tensor:
        function = getattr(torch, activation, None) or getattr(functional, activation)
        inner = function(functional.linear(x, w["linear1.weight"], w["linear1.bias"]))
        if gated:
            inner = inner * functional.linear(x, w["gate.weight"], w["gate.bias"])
        return functional.linear(inner, w["linear2.weight"], w["linear2.bias"])

    weights = shapes.feed_forward(3, 5, gated=gated)
    check(wanted, lambda x, w: plain.feed_forward(x, w, activation), drawn(4, 3), weights)


def test_norms() -> None:
    check(module(nn.LayerNorm(5)), plain.layer_norm, drawn(3, 5), shapes.norm(5, "layer"))
    check(module(nn.RMSNorm(5, eps=1e-5)), plain.rms_norm, drawn(3, 5), shapes.norm(5, "rms"))


def test_embedding() -> None:
    made, tokens = nn.Embedding(7, 3).double(), [4, 0, 4]
    same(plain.embedding(tokens, {"weight": made.weight.tolist()}), made(torch.tensor(tokens)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": (2, 3)},
        {"padding": (1, 2), "dilation": (2, 1)},
        {"padding": (2, 0), "groups": 2, "stride": (2, 1)},
        {"padding": (4, 4), "stride": (2, 2)},  # some windows see padding alone
        {"padding": "valid", "stride": (2, 2)},
        {"padding": "same", "dilation": (1, 3), "groups": 2},  # an odd number of columns: one more after
        {"padding": (4, 3), "padding_mode": "replicate", "stride": (2, 1)},
        {"padding": "same", "padding_mode": "replicate"},
    ],
)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")  # torch says that it copies
def test_conv2d(options: dict[str, Any], bias: bool) -> None:
    made = module(nn.Conv2d(4, 6, (3, 2), bias=bias, **options))
    weights = shapes.conv2d(4, 6, (3, 2), options.get("groups", 1), bias)
    check(made, lambda x, w: plain.conv2d(x, w, **options), drawn(4, 6, 5), weights)


def test_patch_embedding() -> None:
    def wanted(x: Tensor, w: Tensors) -> Tensor:
        return functional.conv2d(x, w["weight"], w["bias"], stride=(2, 3)).flatten(1).transpose(0, 1)

    check(wanted, plain.patch_embedding, drawn(3, 6, 7), shapes.conv2d(3, 5, (2, 3)))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("options", [{"initial": False}, {"in_turn": True}])
def test_recurrent(kind: str, layers: int, bias: bool, options: dict[str, bool]) -> None:
    made = module(getattr(nn, kind.upper())(3, 4, num_layers=layers, bias=bias))
    check(
        lambda x, w: made(x, w)[0],
        lambda x, w: plain.recurrent(kind, x, w, **options),
        drawn(5, 3),
        shapes.recurrent(kind, 3, 4, layers, bias),
    )


# On an image


def grid_cell(
    cell: str, activation: str, x: Tensor, left: list[Tensor], top: list[Tensor], w: Tensors
) -> list[Tensor]:
    """One cell on torch's tensors, by the formulas of GridRNN; states that are not there are zeros."""
    pre = w["W_in"] @ x + w.get("b", torch.tensor(0.0))
    before = w["W_left"] @ left[0] + w["W_top"] @ top[0]
    if cell == "rnn":
        return [pre + before if activation == "identity" else getattr(torch, activation)(pre + before)]
    if cell == "lstm":
        i, f, share, g, o = (pre + before).chunk(5)
        share = share.sigmoid()
        c = f.sigmoid() * (share * left[1] + (1 - share) * top[1]) + i.sigmoid() * g.tanh()
        return [o.sigmoid() * c.tanh(), c]
    r, z, share, _ = (pre + before).sigmoid().chunk(4)
    n = (pre.chunk(4)[3] + r * before.chunk(4)[3]).tanh()
    return [(1 - z) * n + z * (share * left[0] + (1 - share) * top[0])]


def swept(cell: str, activation: str, image: Tensor, w: Tensors) -> Tensor:
    """All cells, one anti-diagonal after another."""
    (rows, cols, _), h = image.shape, w["W_left"].shape[1]
    done: dict[tuple[int, int], list[Tensor]] = {}
    nothing = [torch.zeros(h, dtype=torch.float64)] * 2
    for diagonal in range(rows + cols - 1):
        for i in range(max(0, diagonal - cols + 1), min(rows, diagonal + 1)):
            j = diagonal - i
            left, top = done.get((i, j - 1), nothing), done.get((i - 1, j), nothing)
            done[i, j] = grid_cell(cell, activation, image[i, j], left, top, w)
    return torch.stack([torch.stack([done[i, j][0] for j in range(cols)]) for i in range(rows)])


@pytest.mark.parametrize("shape", [(3, 4), (4, 2), (1, 3), (3, 1), (1, 1)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cell", GATES)
def test_rnn2d(cell: str, bias: bool, shape: tuple[int, int]) -> None:
    def wanted(x: Tensor, w: Tensors) -> Tensor:
        return swept(cell, "tanh", x, w) + sum(0 * each.sum() for each in w.values())  # also those not used

    check(wanted, lambda x, w: plain.rnn2d(x, w, cell), drawn(*shape, 3), shapes.rnn2d(2, 3, cell, bias))


@pytest.mark.parametrize("activation", ["relu", "sigmoid", "identity"])
def test_activations_of_rnn2d(activation: str) -> None:
    check(
        lambda x, w: swept("rnn", activation, x, w),
        lambda x, w: plain.rnn2d(x, w, activation=activation),
        drawn(3, 4, 3),
        shapes.rnn2d(2, 3),
    )


@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize(("directions", "layers"), [(1, 3), (2, 2), (4, 2)])
def test_directions_and_layers_of_rnn2d(cell: str, directions: int, layers: int) -> None:
    axes = {"": (), "cols": (1,), "rows": (0,), "rows cols": (0, 1)}

    def wanted(x: Tensor, w: Tensors) -> Tensor:
        for layer in range(layers):
            parts: list[Tensor] = []
            for way, flip in enumerate(FLIPS[directions]):
                one = {name[4:]: each for name, each in w.items() if name.startswith(f"{layer}.{way}.")}
                parts.append(swept(cell, "tanh", x.flip(axes[flip]), one).flip(axes[flip]))
            x = torch.cat(parts, -1)
        return x

    weights = shapes.rnn2d_stack(2, 3, cell, directions, layers, bias=False)
    check(wanted, lambda x, w: plain.rnn2d_stack(x, w, cell, directions), drawn(2, 3, 3), weights)


@pytest.mark.parametrize(
    ("cell", "order"),
    [("rnn", [0]), ("lstm", [0, 1, None, 2, 3]), ("gru", [0, 1, None, 2])],  # torch's gate for each of ours
)
def test_one_row_is_the_recurrent_net_on_a_line(cell: str, order: list[int | None]) -> None:
    """A cell whose l is 1 takes all it keeps from its left neighbour."""
    torch.manual_seed(3)
    made = getattr(nn, cell.upper())(3, 4, bias=False).double()
    x = drawn(5, 3)
    weights: dict[str, Any] = {"W_top": torch.zeros(4 * len(order), 4).tolist()}
    for ours, theirs in ("W_in", made.weight_ih_l0), ("W_left", made.weight_hh_l0):
        gates = theirs.detach().chunk(len(order) - (None in order))
        none = torch.zeros_like(gates[0])
        weights[ours] = torch.cat([none if gate is None else gates[gate] for gate in order]).tolist()
    if cell != "rnn":
        weights["b"] = [40.0 if gate is None else 0.0 for gate in order for _ in range(4)]  # σ(40) is 1
    same(plain.rnn2d([x.tolist()], weights, cell), made(x)[0][None])
