"""The recurrence in compiled code: against the reference in float64, at every level of the processor."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn.grid.grids import CELLS, NAMES, by, gradients, model, some, states_for
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lattend.attend.kernels.native import library
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.errors import LattendError
from lattend.nn.grid import native, scan
from lattend.nn.grid.cells import CellKind, Edges
from lattend.nn.grid.rnn import GridRNN
from lattend.nn.grid.scan import RECORDS
from lattend.nn.grid.states import GridStates

pytestmark = pytest.mark.skipif(library.missing() is not None, reason=str(library.missing()))
LEVELS = library.levels() if library.missing() is None else ()


@pytest.fixture(autouse=True)
def unfinished_memory_is_nan() -> Iterator[None]:
    """What compiled code does not write, it must not read; records made so are forgotten."""
    RECORDS.clear()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    RECORDS.clear()


def single(x: Any) -> Any:
    """The same in float32, wanting gradients if it did."""
    if isinstance(x, tuple):
        return tuple(single(part) for part in x)
    return x if x is None else x.detach().float().requires_grad_(x.requires_grad)


def errors(found: list[Tensor], wanted: list[Tensor]) -> list[float]:
    assert len(found) == len(wanted)
    assert all(a.dtype == torch.float32 and a.shape == b.shape for a, b in zip(found, wanted, strict=True))
    pairs = [(a.detach().double(), b.detach()) for a, b in zip(found, wanted, strict=True)]
    return [float((a - b).norm() / b.norm().clamp_min(1e-30)) for a, b in pairs]


def compare(
    reference: GridRNN, x: Tensor, states: GridStates | None, mask: Tensor | None, **kind: Any
) -> None:
    """Errors are within the table's; or four times torch's own in float32, where states are saturated."""
    exact = gradients(reference, x, states, mask)
    own = None if states is None else GridStates(single(states.left), single(states.top))
    torchs = errors(gradients(by("diagonals", reference).float(), x.float(), own, mask), exact)
    net = by("native", reference, **kind).float()
    for _ in range(2):  # the second call repeats the steps of the first
        away = errors(gradients(net, x.float(), own, mask), exact)
        for mine, plain in zip(away, torchs, strict=True):
            assert mine <= max(2 * TOLERANCE[torch.float32], 4 * plain), (away, torchs)


@settings(max_examples=120, deadline=None)
@given(
    level=st.sampled_from(LEVELS or ("plain",)),
    cell=st.sampled_from(CELLS),
    directions=st.sampled_from([1, 2, 4]),
    sizes=st.tuples(*[st.integers(1, most) for most in (5, 6, 6, 4, 20)]),
    layers=st.integers(1, 2),
    options=st.tuples(*[st.booleans()] * 4),
)
def test_outputs_and_gradients(
    level: str, cell: tuple[str, str], directions: int, sizes: tuple[int, ...], layers: int,
    options: tuple[bool, ...],
) -> None:  # fmt: skip
    batch, rows, cols, c, h = sizes
    bias, masked, begun, recompute = options
    net = model(c, h, cell[0], directions, activation=cell[1], layers=layers, bias=bias, kernel="diagonals")
    x = some(batch, rows, cols, c)
    states = states_for(net, x) if begun else None
    mask = some(batch, rows, cols, seed=7) > -0.5 if masked else None
    with library.at_level(level):
        compare(net, x, states, mask, recompute=recompute)
    RECORDS.clear()  # they hold the level's code


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", [(2, 40, 37, 3, 32), (70, 3, 2, 2, 16), (1, 70, 1, 1, 33)])
def test_many_cells_a_diagonal_and_many_images(name: str, sizes: tuple[int, ...]) -> None:
    """A diagonal in several chunks, images side by side, and several of those in a task."""
    batch, rows, cols, c, h = sizes
    net = model(c, h, name, 2, bias=True, kernel="diagonals")
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(0.5)  # far from where states are chaotic
    compare(net, some(batch, rows, cols, c), None, None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wanted", range(9))
def test_one_gradient_alone(name: str, wanted: int) -> None:
    """X, a weight or an edge; through h alone and, of an lstm, through c alone."""
    kind, flips = CellKind(name), ((), (2,))
    shapes = [(2, 3, 4, 2), (2 * kind.gates * 3, 2), (2 * kind.gates * 3,), *[(2 * kind.gates * 3, 3)] * 2]
    shapes += [(2, 2, 3, 3), (2, 2, 4, 3)] * (2 if name == "lstm" else 1)
    if wanted >= len(shapes):
        pytest.skip("no such edge")
    tensors = [some(*shape, seed=place) * 0.7 for place, shape in enumerate(shapes)]

    def found(kernel: str, dtype: torch.dtype, of: int) -> list[Tensor]:
        own = [t.to(dtype) for t in tensors]
        own[wanted].requires_grad_()
        x, into, bias, left, top, *edges = own
        states = scan.scan(kind, x, into, bias, left, top, Edges(*edges), flips=flips, kernel=kernel)[of]
        assert states is not None
        grad = some(*states.shape, seed=3).to(dtype)
        return list(torch.autograd.grad(states, own[wanted], grad, materialize_grads=True))

    for of in range(2 if name == "lstm" else 1):
        away = errors(found("native", torch.float32, of), found("diagonals", torch.float64, of))
        assert max(away) <= 2 * TOLERANCE[torch.float32]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_for_any_number_of_threads(name: str, request: pytest.FixtureRequest) -> None:
    threads = torch.get_num_threads()
    request.addfinalizer(lambda: torch.set_num_threads(threads))
    net, x = model(3, 18, name, 2, bias=True, kernel="native").float(), some(67, 5, 6, 3).float()
    found: list[list[Tensor]] = []
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        found.append(gradients(net, x, None, None))
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_in_any_batch(name: str) -> None:
    net, x = model(2, 9, name, kernel="native").float(), some(7, 6, 5, 2).float()
    whole = net(x)
    for image in range(7):
        assert torch.equal(whole[image], net(x[image : image + 1])[0])


@pytest.mark.parametrize("name", NAMES)
def test_strange_numbers_stay_in_their_quadrant(name: str) -> None:
    net, x = model(2, 5, name, kernel="native").float(), some(2, 6, 7, 2).float()
    plain = net(x)
    x[1, 2, 3] = math.nan
    lost = net(x).isnan().any(-1)
    assert lost[1, 2:, 3:].all() and lost.sum() == 4 * 4
    assert torch.equal(net(x)[~lost], plain[~lost])
    large = net(torch.full_like(x, 1e30))
    assert not large.isnan().any()


def test_activations_are_close_everywhere() -> None:
    """Tanh and sigmoid of the sums alone: within a few units of the last place of 1."""
    x = torch.cat((torch.linspace(-30, 30, 4001), torch.tensor([-math.inf, math.inf, -1e30, 1e-30, 0.0])))
    for level in LEVELS:
        for name in ("tanh", "sigmoid"):
            net = GridRNN(1, 1, activation=name, kernel="native")
            with torch.no_grad(), library.at_level(level):
                net.W_in[0].fill_(1)
                RECORDS.clear()
                found = net(x.view(-1, 1, 1, 1)).flatten()
            exact = getattr(torch, name)(x.double())
            assert (found - exact).abs().max() < 5e-7


def test_strides_do_not_matter() -> None:
    net, x = model(2, 3, "lstm", 2, kernel="native").float(), some(2, 2, 5, 4).float()
    turned = x.movedim(1, -1)
    assert torch.equal(net(turned), net(turned.contiguous()))


def test_whoever_watches_sees_the_products() -> None:
    net, x = GridRNN(2, 3), torch.randn(2, 4, 3, 2)
    with FlopCounterMode(display=False) as counter:
        net(x)
    assert counter.get_total_flops() >= 2 * 24 * 2 * 3
    with FlopCounterMode(display=False), pytest.raises(LattendError, match="somebody traces or watches"):
        GridRNN(2, 3, kernel="native")(x)


def test_what_it_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.zeros(1, 1, 1, 1)
    with pytest.raises(LattendError, match=r'x is torch.float64, and it takes float32; kernel="cpu" takes'):
        scan.chosen("native", x.double())
    with pytest.raises(LattendError, match='x is on meta; kernel="diagonals" runs on every device'):
        scan.chosen("native", x.to("meta"))
    monkeypatch.setattr(native.library, "missing", lambda: "there is no compiled code")
    with pytest.raises(LattendError, match='kernel="native" cannot run this: there is no compiled code'):
        scan.chosen("native", x)
    assert scan.chosen(None, x) == "cpu"


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native.library, "function", lambda name: lambda *given: 1)
    with pytest.raises(MemoryError, match="a grid needs some rows of memory for each thread"):
        GridRNN(2, 3, kernel="native")(torch.zeros(1, 2, 2, 2))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("cell", range(3))
@pytest.mark.parametrize(
    ("directions", "batch", "rows", "cols", "channels", "size"),
    [
        (1, 0, 3, 4, 2, 5), (4, 0, 1, 1, 1, 1), (2, 0, 0, 0, 3, 3), (0, 2, 3, 4, 2, 5),  # no images
        (1, 2, 0, 4, 2, 5), (4, 2, 3, 0, 2, 5), (2, 1, 0, 0, 2, 5),  # no pixels
        (2, 2, 3, 4, 0, 5), (2, 2, 3, 4, 2, 0), (1, 1, 1, 1, 0, 0),  # no numbers
        (2, 2, 3, 4, 2, 1), (1, 2, 3, 4, 3, 16), (2, 1, 3, 4, 1, 17),
    ],
)  # fmt: skip
def test_entry_points_take_empty_tensors(
    level: str, cell: int, directions: int, batch: int, rows: int, cols: int, channels: int, size: int
) -> None:
    """Forward and backward of empty images, called without Python's checks: gradients are zeros."""
    gates, together = (1, 5, 4)[cell], min(batch, 2)
    sizes = (cell, 0, directions, batch, rows, cols, channels, size, together, together)
    shape = native.GridStruct(*sizes, parallel=library.parallel())

    def numbers(*axes: int) -> Tensor:
        return torch.randn(directions, *axes)

    weights = [numbers(gates * size, n) for n in (channels, 1, size, size)]
    edges = [numbers(batch, n, size) for n in (rows, cols) * 2]
    states = [torch.full((directions, batch, rows + 1, cols + 1, size), math.nan) for _ in range(2)]
    of_pixels = [numbers(batch, rows, cols, n) for n in (5 * size, size, size, channels)]
    partial = numbers(batch, channels + 2 * size + 1, gates * (-(-size // 16) * 16))
    gradients = [torch.full_like(x, math.nan) for x in weights]
    given = [
        torch.randn(batch, rows, cols, channels), None, *weights, *edges, *states, *of_pixels[:3], partial,
        of_pixels[3], *gradients, *[torch.zeros_like(x) for x in edges],
    ]  # fmt: skip
    addresses = torch.tensor([0 if x is None else x.data_ptr() for x in given])
    with library.at_level(level):
        for name in ("grid_forward", "grid_backward"):
            assert library.function(name)(ctypes.addressof(shape), addresses.data_ptr(), 2) == 0
    assert not any(x.isnan().any() for x in gradients)
    if not batch * rows * cols:
        assert not any(x.any() for x in gradients)
    else:
        assert not states[0][:, :, 1:, 1:].isnan().any()
