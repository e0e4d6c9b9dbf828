"""Every kernel against the reference: outputs, states that go on, gradients, second derivatives."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn.grid.grids import CELLS, NAMES, agree, by, gradients, model, some, states_for
from torch import Tensor

from lattend.attend.kernels.native import library
from lattend.attend.replay.recorder import Recorder
from lattend.errors import LattendError, NamingError
from lattend.nn.grid import cpu, scan
from lattend.nn.grid.cells import CellKind, Edges, Flips, GridOptions
from lattend.nn.grid.layout import input_sums
from lattend.nn.grid.rnn import GridRNN
from lattend.nn.grid.steps import gates_again

KERNELS = ["cpu", "diagonals"]


def holes(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) > 0.3


@settings(max_examples=150, deadline=None)
@given(
    cell=st.sampled_from(CELLS),
    directions=st.sampled_from([1, 2, 4]),
    sizes=st.tuples(
        st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3)
    ),
    layers=st.integers(1, 2),
    options=st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    kernel=st.sampled_from(KERNELS),
)
def test_kernels_agree(
    cell: tuple[str, str],
    directions: int,
    sizes: tuple[int, ...],
    layers: int,
    options: tuple[bool, ...],
    kernel: str,
) -> None:
    batch, rows, cols, c, h = sizes
    bias, masked, begun, recompute = options
    reference = model(
        c, h, cell[0], directions, activation=cell[1], layers=layers, bias=bias, kernel="reference"
    )
    x = some(batch, rows, cols, c)
    mask = holes(batch, rows, cols) if masked else None
    states = states_for(reference, x) if begun else None
    agree(
        gradients(by(kernel, reference, recompute=recompute), x, states, mask),
        gradients(reference, x, states, mask),
    )


CASES = list(product(CELLS, [False, True], [((),), ((), (2,)), ((), (2,), (1,), (1, 2))]))


def problem(
    cell: tuple[str, str], masked: bool, flips: Flips
) -> tuple[CellKind, Tensor | None, list[Tensor]]:
    """A cell, a mask, and x, into, bias, left, top and the edges of a 2 x 3 image."""
    kind = CellKind(*cell)
    many, rows, cols, c, h = len(flips), 2, 3, 2, 2
    height = kind.gates * h
    shapes = [(2, rows, cols, c), (many, height, c), (many, height), (many, height, h), (many, height, h)]
    shapes += [(many, 2, rows, h), (many, 2, cols, h)] * (2 if cell[0] == "lstm" else 1)
    tensors = [(some(*shape, seed=k) * 0.7).requires_grad_() for k, shape in enumerate(shapes)]
    return kind, holes(2, rows, cols, seed=3) if masked else None, tensors


def run(cell: CellKind, mask: Tensor | None, flips: Flips, **how: Any) -> Any:
    def scanned(*tensors: Tensor) -> Any:
        x, into, bias, left, top, *edges = tensors
        h, c = scan.scan(cell, x, into, bias, left, top, Edges(*edges), mask, flips=flips, **how)
        return h if c is None else (h, c)

    return scanned


@pytest.mark.parametrize(("cell", "masked", "flips"), CASES)
@pytest.mark.parametrize(("kernel", "recompute"), [("cpu", False), ("cpu", True), ("diagonals", False)])
def test_gradcheck(cell: tuple[str, str], masked: bool, flips: Flips, kernel: str, recompute: bool) -> None:
    kind, mask, tensors = problem(cell, masked, flips)
    if kind.activation == "relu":
        tensors = [t.detach().abs().requires_grad_() for t in tensors]  # away from the kink
    scanned = run(kind, mask, flips, kernel=kernel, recompute=recompute)
    assert torch.autograd.gradcheck(scanned, tensors, fast_mode=True)


@pytest.mark.parametrize("name", NAMES)
def test_gradcheck_of_every_number(name: str) -> None:
    kind, mask, tensors = problem((name, "tanh"), True, ((),))
    assert torch.autograd.gradcheck(run(kind, mask, ((),), kernel="cpu"), tensors)


@pytest.mark.parametrize(("cell", "masked", "flips"), [case for case in CASES if case[0][1] != "relu"][::2])
def test_second_derivative(cell: tuple[str, str], masked: bool, flips: Flips) -> None:
    kind, mask, tensors = problem(cell, masked, flips)
    scanned = run(kind, mask, flips, kernel="cpu")
    assert torch.autograd.gradgradcheck(scanned, tensors, fast_mode=True)


@pytest.mark.parametrize("name", NAMES)
def test_first_derivative_is_the_same_with_a_graph(name: str) -> None:
    net, x = model(2, 3, name), some(2, 4, 3, 2).requires_grad_()
    (plain,) = torch.autograd.grad(net(x).square().sum(), x)
    (again,) = torch.autograd.grad(net(x).square().sum(), x, create_graph=True)
    torch.testing.assert_close(plain, again)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 2e-6), (torch.bfloat16, 2e-2)])
def test_low_precision(name: str, dtype: torch.dtype, bound: float) -> None:
    """Larger images with weights as they begin: against float64 on the same rounded numbers."""
    torch.manual_seed(0)
    net, x = GridRNN(3, 16, name, 2, layers=2, dtype=dtype), some(2, 20, 17, 3).to(dtype)
    wanted = gradients(by("diagonals", net).double(), x.double(), None, None)
    found = gradients(net, x, None, None)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == dtype
        assert (a.double() - b).abs().max() <= bound * max(1.0, b.abs().max().item())


@pytest.mark.parametrize("name", NAMES)
def test_only_c_or_only_part_has_a_gradient(name: str) -> None:
    """Outputs that nobody reads have no gradient, and inputs that want none get none."""
    kind, _, tensors = problem((name, "tanh"), False, ((),))
    tensors = [t.detach() for t in tensors]
    tensors[3].requires_grad_()
    found = run(kind, None, ((),), kernel="cpu")(*tensors)
    wanted = run(kind, None, ((),), kernel="reference")(*tensors)
    last = (lambda out: out[1]) if name == "lstm" else (lambda out: out)
    (a,) = torch.autograd.grad(last(found).sum(), tensors[3])
    (b,) = torch.autograd.grad(last(wanted).sum(), tensors[3])
    torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_gates_again(name: str) -> None:
    """Gates from the states that were kept are the gates that were kept."""
    kind, _, (x, into, bias, left, top, *edges) = problem((name, "tanh"), False, ((),))
    how = GridOptions(kind, kernel="cpu")
    with torch.no_grad():
        layout = how.layout(x)
        packed = input_sums(how.flips, layout, x, into, bias)
        h, _, kept = cpu.forward(
            Recorder(), kind, layout, packed.clone(), left, top, Edges(*edges), None, True
        )
        assert kept is not None
        torch.testing.assert_close(kept, gates_again(kind, layout, packed, left, top, h))


def test_numbers_too_large_are_inf_without_a_word() -> None:
    net = model(1, 2, activation="identity")
    x = some(1, 3, 3, 1) * 1e308
    found, wanted = net(x), by("reference", net)(x)
    assert not wanted.isfinite().all()
    assert torch.equal(found.isfinite(), wanted.isfinite())


def test_outputs_may_not_be_changed_in_place() -> None:
    net, x = model(2, 3), some(1, 2, 2, 2)
    with pytest.raises(RuntimeError, match="modified inplace"):
        net(x).mul_(2)


def test_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    x, single = torch.zeros(1, 1, 1, 1, dtype=torch.float64), torch.zeros(1, 1, 1, 1)
    assert scan.chosen(None, x) == "cpu"
    assert scan.chosen(None, single) == ("cpu" if library.missing() else "native")
    assert scan.chosen(None, x.to("meta")) == "diagonals"
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert scan.chosen("gpu", single) == "gpu"
    assert scan.chosen(None, x) == "cpu"
    assert scan.chosen(None, x.to("meta")) == "diagonals"
    with pytest.raises(LattendError, match=r"x is torch\.float64, and it takes float32"):
        scan.chosen("gpu", x)
    monkeypatch.setattr(scan, "find_spec", lambda name: None)
    with pytest.raises(LattendError, match='kernel="gpu" cannot run this: Triton is not installed'):
        scan.chosen("gpu", single)


def test_impossible_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    x = torch.zeros(1, 1, 1, 1)
    with pytest.raises(
        LattendError, match='"gpu" cannot run this: x is on cpu and Triton needs a CUDA device'
    ):
        scan.chosen("gpu", x)
    with pytest.raises(LattendError, match='x is on meta; kernel="diagonals" runs on every device'):
        scan.chosen("cpu", x.to("meta"))
    with pytest.raises(
        NamingError, match="kernel is one of gpu, native, cpu, diagonals, reference, not 'fast'"
    ):
        scan.chosen("fast", x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "recompute"), [("lstm", False), ("gru", True)])
def test_gpu_kernel_through_the_module(name: str, recompute: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, or under Triton's interpreter, which the tests turn on where there is none."""
    pytest.importorskip("triton")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        monkeypatch.setattr("lattend.nn.grid.gpu.backend.ROW_BLOCK", 2)  # the interpreter is slow
    wide = model(2, 3, name, 2, kernel="diagonals")
    net = by("gpu", wide, recompute=recompute).to(device, torch.float32)
    x = some(1, 1, 2, 2)
    mask = torch.tensor([[[True, False]]])
    found = gradients(net, x.to(device, torch.float32), None, mask.to(device))
    for a, b in zip(found, gradients(wide, x, None, mask), strict=True):
        torch.testing.assert_close(a.cpu().double(), b, atol=1e-5, rtol=1e-4)
