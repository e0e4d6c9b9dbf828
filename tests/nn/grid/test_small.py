"""Small images on a GPU against the plain path, outputs and gradients; by the interpreter where no GPU is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from nn.grid.grids import CELLS, NAMES, by, forget, gradients, model, some, states_for
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.nn.grid.cells import GridOptions
from lattend.nn.grid.gpu import backend, small
from lattend.nn.grid.rnn import GridRNN
from lattend.nn.grid.scan import CHECKED, RECORDS

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

pytestmark = [  # of the interpreter: its NumPy warns of overflow in exp, and of scalars in arrays
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No records; under the interpreter small tiles, so that few numbers fill several."""
    if DEVICE == "cpu":
        monkeypatch.setattr(backend, "ROW_BLOCK", 2)
        monkeypatch.setattr(small, "TILE", 8)
        monkeypatch.setattr(small, "LENGTH", 8)
    forget()
    yield
    forget()


def on_gpu(given: GridRNN) -> GridRNN:
    return by("gpu", given).to(DEVICE, torch.float32)


def moved(x: Any, dtype: torch.dtype = torch.float32) -> Any:
    if isinstance(x, Tensor):
        return x.detach().to(DEVICE, dtype if x.is_floating_point() else None).requires_grad_(x.requires_grad)
    return x if x is None else type(x)(*map(moved, x)) if hasattr(x, "_fields") else tuple(map(moved, x))


def far(found: Tensor, exact: Tensor) -> float:
    return float(
        (found.detach().double().cpu() - exact.detach()).norm() / exact.detach().norm().clamp_min(1e-30)
    )


def close(found: list[Tensor], wanted: list[Tensor], dtype: torch.dtype = torch.float32) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape and far(a, b) <= 2 * TOLERANCE[dtype]


def outputs(net: GridRNN, x: Tensor, mask: Tensor | None = None) -> list[Tensor]:
    """The map alone, and the gradients of all it depends on."""
    x = x.detach().requires_grad_()
    out = net(x, mask=mask)
    weights = some(*out.shape).to(out)
    return [out.detach(), *torch.autograd.grad(out, [x, *net.parameters()], weights)]


def holes(*shape: int) -> Tensor:
    return some(*shape, seed=7) > -0.5


ONE_WAY = [(cell, 1, False) for cell in CELLS]


@pytest.mark.parametrize(
    ("cell", "directions", "masked"), [*ONE_WAY, *(((name, "tanh"), 2, True) for name in NAMES)]
)
def test_maps_and_gradients(cell: tuple[str, str], directions: int, masked: bool) -> None:
    exact = model(3, 3, cell[0], directions, activation=cell[1], bias=directions > 1, kernel="diagonals")
    net, x = on_gpu(exact), some(2, 3, 2, 3)
    mask = holes(2, 3, 2) if masked else None
    wanted = outputs(exact, x, mask)
    for _ in range(2):  # the second time from the record
        close(outputs(net, moved(x), moved(mask)), wanted)
    assert len(CHECKED) == 1


@pytest.mark.parametrize("name", ["rnn", "gru"])
def test_four_directions_and_several_tiles(name: str) -> None:
    exact = model(9, 3 if name != "rnn" else 9, name, 4, bias=True, kernel="diagonals")
    x = some(1, 3, 4, 9)
    close(outputs(on_gpu(exact), moved(x)), outputs(exact, x))


@pytest.mark.parametrize(
    ("name", "directions", "recompute"),
    [("rnn", 2, False), ("lstm", 1, True), ("lstm", 2, False), ("gru", 1, True), ("gru", 4, False)],
)
def test_edges_and_the_states_that_go_on(name: str, directions: int, recompute: bool) -> None:
    exact = model(2, 3, name, directions, bias=True, recompute=recompute, kernel="diagonals")
    x, mask = some(1, 2, 3, 2), holes(1, 2, 3)
    net, states = on_gpu(exact), states_for(exact, x)
    wanted = gradients(exact, x, states, mask)
    for _ in range(2):
        close(gradients(net, moved(x), moved(states), moved(mask)), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_layers(name: str) -> None:
    """The second layer reads a part of the first one's states, where it lies."""
    exact = model(2, 3, name, layers=3, bias=True, kernel="diagonals")
    net, x = on_gpu(exact), some(1, 2, 2, 2)
    for _ in range(2):
        close(outputs(net, moved(x)), outputs(exact, x))
    assert len(CHECKED) == 2  # of the first layer, and of all others


@pytest.mark.parametrize("order", [(0, 3, 1, 2), (3, 2, 1, 0)])
def test_images_in_any_order_in_memory(order: tuple[int, ...]) -> None:
    exact, x = model(2, 3, directions=2, kernel="diagonals"), some(2, 3, 2, 2)
    strided = moved(x).permute(order).contiguous().permute([order.index(axis) for axis in range(4)])
    assert not strided.is_contiguous()
    net, wanted = on_gpu(exact), outputs(exact, x)
    for given in (moved(x), strided, strided):  # each has a record of its own
        close(outputs(net, given), wanted)
    assert len(RECORDS) == 2


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (3,), (4,), (0, 3), (2, 4)])
def test_only_the_gradients_that_are_wanted(wanted: tuple[int, ...]) -> None:
    exact, x = model(2, 3, "gru", bias=True, kernel="diagonals"), some(1, 2, 2, 2)
    net, given = on_gpu(exact), moved(x)

    def found(net: GridRNN, x: Tensor) -> list[Tensor]:
        x = x.detach()
        tensors = [x, net.W_in[0], net.b[0], net.W_left[0], net.W_top[0]]  # pyright: ignore
        for place, tensor in enumerate(tensors):
            tensor.requires_grad_(place in wanted)
        return [*torch.autograd.grad(net(x).square().sum(), [tensors[place] for place in wanted])]

    for _ in range(2):
        close(found(net, given), found(exact, x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_half_precision(name: str, dtype: torch.dtype) -> None:
    exact, x = model(3, 4, name, bias=True, kernel="diagonals"), some(1, 3, 2, 3)
    rounded = model(3, 4, name, bias=True, kernel="diagonals")
    rounded.load_state_dict({k: v.to(dtype) for k, v in exact.state_dict().items()})
    net = by("gpu", exact).to(DEVICE, dtype)
    wanted = outputs(rounded, x.to(dtype).double())
    for _ in range(2):
        close(outputs(net, moved(x, dtype)), wanted, dtype)


@pytest.mark.parametrize("name", NAMES)
def test_small_and_large_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same wavefront with torch's products around it."""
    net, x = on_gpu(model(3, 3, name, 2, bias=True)), moved(some(1, 3, 2, 3))
    found = outputs(net, x)
    forget()
    monkeypatch.setattr(small, "MOST_PIXELS", 0)
    torch.testing.assert_close(outputs(net, x), found, atol=1e-5, rtol=1e-4)


def test_what_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    how = GridOptions(model(3, 5, "lstm").cell, ((), (2,)), "gpu")
    x, left = torch.zeros(2, 4, 4, 3), torch.zeros(2, 25, 5)
    products = 32 * 2 * 25 * (3 + 2 * 5)  # pixels, directions, gates*h, c + 2h
    monkeypatch.setattr(small, "MOST_PRODUCTS", products)
    assert small.fits(how, x, left)
    monkeypatch.setattr(small, "MOST_PRODUCTS", products - 1)
    assert not small.fits(how, x, left)
    monkeypatch.setattr(small, "MOST_PRODUCTS", products)
    monkeypatch.setattr(small, "MOST_PIXELS", 31)
    assert not small.fits(how, x, left)


def test_gradients_are_the_same_at_every_call() -> None:
    """Sums over pixels have one order: no atomics."""
    net, x = on_gpu(model(3, 5, directions=2, bias=True)), moved(some(1, 3, 2, 3))
    first = outputs(net, x)
    for _ in range(2):
        assert all(map(torch.equal, outputs(net, x), first))


def test_second_derivatives_of_a_repeated_call() -> None:
    exact, x = model(2, 3, "gru", 2, kernel="diagonals"), some(1, 2, 3, 2)
    net = on_gpu(exact)

    def twice(net: GridRNN, x: Tensor) -> list[Tensor]:
        x = x.detach().requires_grad_()
        (grad,) = torch.autograd.grad(net(x).square().sum(), x, create_graph=True)
        return [*torch.autograd.grad(grad.square().sum(), [x, *net.parameters()])]

    for _ in range(2):
        close(twice(net, moved(x)), twice(exact, x))


def test_whoever_watches_sees_torchs_products() -> None:
    net, x = on_gpu(model(2, 3)), moved(some(1, 2, 3, 2))
    wanted = net(x)
    with FlopCounterMode(display=False) as counter:
        found = net(x)
    assert counter.get_total_flops() == 2 * 6 * 2 * 3  # W_in: 6 pixels of c·h multiply-adds
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_backward_that_is_watched_after_a_forward_that_was_not() -> None:
    net, x = on_gpu(model(2, 3, "lstm", 2)), moved(some(1, 2, 3, 2))
    wanted = outputs(net, x)[2:]
    out = net(x)
    with FlopCounterMode(display=False):
        found = torch.autograd.grad(out, list(net.parameters()), some(*out.shape).to(out))
    torch.testing.assert_close([*found], wanted, atol=1e-5, rtol=1e-4)
