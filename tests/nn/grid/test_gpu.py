"""The Triton kernels against the reference, outputs and gradients; under the interpreter where no GPU is.

A watchdog ends every wait: a program that waits for one that does not come is found, not hung upon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.replay.recorder import Recorder
from lattend.errors import LattendError
from lattend.nn.grid import plain
from lattend.nn.grid.cells import CellKind, Edges, neighbours
from lattend.nn.grid.gpu import backend, launch
from lattend.nn.grid.gpu.wavefront import wait_for
from lattend.nn.grid.layout import RowMajorLayout, framed
from lattend.nn.grid.steps import gates_again

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
INTERPRETED = DEVICE.type == "cpu"
CELLS = [CellKind("rnn"), CellKind("rnn", "relu"), CellKind("rnn", "sigmoid"), CellKind("rnn", "identity")]
CELLS += [CellKind("lstm"), CellKind("gru")]

pytestmark = [  # of the interpreter: its NumPy warns of overflow in exp, and of scalars in arrays
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


ROW_BLOCK = (
    4 if INTERPRETED else backend.ROW_BLOCK
)  # the interpreter multiplies small matrices too, and is slow


@pytest.fixture(autouse=True)
def watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program may look for its neighbour more often than this; the interpreter's never need to."""
    monkeypatch.setattr(launch, "spins", 3 if INTERPRETED else 10_000_000)
    monkeypatch.setattr(backend, "ROW_BLOCK", ROW_BLOCK)
    monkeypatch.setattr(backend, "framed", framed_in_nan)


def framed_in_nan(*given: Any) -> Tensor:
    """Room for states: what the kernels do not write is NaN."""
    found = framed(*given)
    found[:, :, 1:, 1:] = torch.nan
    return found


def noted(run: Callable[..., tuple[Any, ...]], repeated: bool, *given: Any) -> Sequence[Any]:
    """What a call gives, or what its steps give when they are taken again, which is the same."""
    recorder = Recorder(*given)
    first = run(recorder, *given)
    steps = recorder.steps(*first)
    assert steps is not None
    if not repeated:
        return first
    again: Any = [None if x is None else x.clone() for x in given]
    found = steps(*again)
    torch.testing.assert_close(found, [*first], rtol=0, atol=0, equal_nan=True)
    return found


def _edges(x: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    return (None, None) if x is None else (x[:, :, 1:, 0], x[:, :, 0, 1:])


class Problem:
    """Random tensors of a grid in float64, and what the reference makes of them."""

    def __init__(
        self, cell: CellKind, directions: int, batch: int, rows: int, cols: int, h: int, masked: bool = False
    ) -> None:
        source = torch.Generator().manual_seed(rows * 100 + cols)

        def some(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=source, dtype=torch.float64)

        images, frame = (directions, batch, rows, cols), (directions, batch, rows + 1, cols + 1, h)
        self.cell, self.h = cell, some(*frame)
        self.pre = some(*images, cell.gates * h).requires_grad_()
        self.left, self.top = (
            (some(directions, cell.gates * h, h) / (2 * h**0.5)).requires_grad_() for _ in range(2)
        )
        self.c = some(*frame) if cell.name == "lstm" else None
        self.mask = torch.rand(*images, generator=source) > 0.3 if masked else None
        self.grad_h, self.grad_c = some(*images, h), None if self.c is None else some(*images, h)
        found_h, found_c = plain.by_cells(cell, self.pre, self.left, self.top, self.h, self.c, self.mask)
        loss = (found_h * self.grad_h).sum()
        if found_c is not None and self.grad_c is not None:
            loss = loss + (found_c * self.grad_c).sum()
        d_pre, d_left, d_top = torch.autograd.grad(loss, (self.pre, self.left, self.top))
        self.wanted = {"h": found_h, "c": found_c, "d_pre": d_pre, "d_left": d_left, "d_top": d_top}

    def found(
        self, dtype: torch.dtype, keep: bool = True, repeated: bool = False
    ) -> dict[str, Tensor | None]:
        """The same from the kernels, in this dtype."""

        def given(x: Tensor | None) -> Any:
            return None if x is None else x.detach().to(DEVICE, dtype if x.is_floating_point() else None)

        states: list[Any] = [given(self.h), given(self.c)]
        edges = [edge for x in states for edge in _edges(x)]
        pre, left, top, mask = given(self.pre), given(self.left), given(self.top), given(self.mask)
        layout = RowMajorLayout(*pre.shape[:-1])
        pre, mask = layout.take(pre), None if mask is None else layout.take(mask)
        h, c, gates = noted(
            lambda recorder, pre, left, top, mask, *edges: backend.forward(
                recorder, self.cell, layout, pre, left, top, Edges(*edges), mask, keep
            ),
            repeated, pre, left, top, mask, *edges,
        )  # fmt: skip
        if not keep:
            gates = gates_again(self.cell, layout, pre, left, top, h)
        d_pre, d_hidden, _ = noted(
            lambda recorder, *given: backend.backward(recorder, self.cell, layout, *given),
            repeated, given(self.grad_h), given(self.grad_c), left, top, h, c, gates, mask,
        )  # fmt: skip
        d_pre, d_hidden, near = layout.give(d_pre), layout.give(d_hidden), neighbours(h)
        d_left, d_top = (
            torch.einsum("dbrcg,dbrch->dgh", d_hidden.double(), states.double())
            for states in (near.h_left, near.h_top)
        )
        inner = None if c is None else c[:, :, 1:, 1:]
        return {"h": h[:, :, 1:, 1:], "c": inner, "d_pre": d_pre, "d_left": d_left, "d_top": d_top}

    def check(self, dtype: torch.dtype = torch.float32, keep: bool = True, repeated: bool = False) -> None:
        for name, found in self.found(dtype, keep, repeated).items():
            exact = self.wanted[name]
            if exact is None or found is None:
                assert exact is None and found is None
                continue
            away = (found.double().cpu() - exact).norm() / exact.norm().clamp_min(1e-30)
            assert away <= 2 * TOLERANCE[dtype], f"{name} is off by {away:.1e}"


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("cell", CELLS, ids="-".join)
def test_outputs_and_gradients(cell: CellKind, masked: bool) -> None:
    problem = Problem(cell, 1, 2, ROW_BLOCK + 2, 5, 5, masked)  # two row blocks, the second with 2 rows
    problem.check(repeated=cell.activation == "tanh")


@pytest.mark.parametrize("cell", CELLS[-3:], ids="-".join)
@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1), (2, 1, 3, 6, 17), (1, 1, 2 * ROW_BLOCK + 1, 2, 3)])
def test_odd_shapes(cell: CellKind, shape: tuple[int, int, int, int, int]) -> None:
    Problem(cell, *shape).check()


@pytest.mark.parametrize("cell", [CellKind("lstm"), CellKind("gru")], ids=lambda cell: cell.name)
def test_gates_made_again(cell: CellKind) -> None:
    Problem(cell, 1, 1, ROW_BLOCK + 1, 3, 5, True).check(keep=False)


@pytest.mark.parametrize(
    "cell", [CellKind("rnn"), CellKind("lstm"), CellKind("gru")], ids=lambda cell: cell.name
)
def test_half_precision(cell: CellKind) -> None:
    Problem(cell, 1, 1, ROW_BLOCK + 2, 4, 16).check(torch.bfloat16)


@pytest.mark.skipif(INTERPRETED, reason="only a GPU runs row blocks side by side; test_held.py emulates them")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("cell", CELLS[-2:], ids="-".join)
def test_weights_held_on_the_chip(cell: CellKind, size: int, dtype: torch.dtype) -> None:
    Problem(cell, 2, 4, 5 * ROW_BLOCK + 3, 40, size, masked=True).check(dtype, repeated=True)


def test_weights_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain rnn too large for the chip, its weights in several blocks each way."""
    monkeypatch.setattr(backend, "ON_CHIP", 0)
    monkeypatch.setattr(backend, "_blocks", lambda *_: backend.BlockSizes(16, 16, 4, 2))
    Problem(CellKind("rnn"), 2, 1, ROW_BLOCK + 1, 3, 35, True).check()


@pytest.mark.parametrize("cell", [CellKind("lstm"), CellKind("gru")], ids=lambda cell: cell.name)
def test_gates_block_by_block(cell: CellKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_blocks", lambda *_: backend.BlockSizes(16, 16, 4, 2))
    Problem(cell, 1, 1, ROW_BLOCK + 1, 2, 20).check()


@pytest.mark.parametrize("room", [1, 2, 5])
def test_little_room(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer programs fit than there are row blocks and images: they come one group after the other."""
    monkeypatch.setattr(launch, "_fits", lambda *_: room)
    Problem(CellKind("rnn"), 1, 3, 3 * ROW_BLOCK - 1, 3, 4).check()


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 50))
def test_groups_cover_every_row_block_once_and_in_order(row_blocks: int, images: int, room: int) -> None:
    done: set[tuple[int, int]] = set()
    for group in launch.groups(row_blocks, images, room):
        assert row_blocks == 1 or group.row_blocks * group.images <= room
        own = {
            (row_block, image)
            for row_block in range(group.first_block, group.first_block + group.row_blocks)
            for image in range(group.first_image, group.first_image + group.images)
        }
        assert not own & done
        # The row block above the first is there already
        assert all(
            row_block != group.first_block or row_block == 0 or (row_block - 1, image) in done
            for row_block, image in own
        )
        done |= own
    assert len(done) == row_blocks * images


def test_how_many_programs_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    chip = SimpleNamespace(
        multi_processor_count=132,
        regs_per_multiprocessor=65536,
        shared_memory_per_multiprocessor=233472,
        max_threads_per_multi_processor=2048,
    )
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: chip)
    device = torch.device("cuda")
    assert launch.room_for(64, 0, 8, device) == 132 * 4  # 65536 / (64 * 256) = 4
    assert launch.room_for(65, 0, 8, device) == 132 * 3  # 72 registers: 65536 / (72 * 256) = 3.6
    assert launch.room_for(32, 73728, 4, device) == 132 * 3  # 233472 / (73728 + 1024) = 3.1
    assert launch.room_for(255, 232448, 8, device) == 132


@triton.jit
def waiting_kernel(Flag, Stuck, spins):
    wait_for(Flag, 2, Stuck, spins)


def test_the_watchdog_bites() -> None:
    flag, stuck = (
        torch.ones(1, dtype=torch.int32, device=DEVICE),
        torch.zeros(1, dtype=torch.int32, device=DEVICE),
    )
    waiting_kernel[(1,)](flag, stuck, 50)
    assert stuck.item() == 1
    flag.fill_(2)
    stuck.zero_()
    waiting_kernel[(1,)](flag, stuck, 50)
    assert stuck.item() == 0


def test_a_program_that_waits_in_vain_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never:
        """A kernel whose programs say that they gave up."""

        def __getitem__(self, _: object) -> Any:
            def run(_: Tensor, flags: Tensor, *rest: object, **constants: object) -> None:
                flags[0] = 1

            return run

    monkeypatch.setattr(launch, "_fits", lambda *_: 1)
    monkeypatch.setattr(launch, "spins", 7)
    with pytest.raises(LattendError, match="a program read the flag of the row block above it 7 times"):
        x = torch.zeros(1, device=DEVICE)
        launch.launch(Recorder(), Never(), (x,), launch.GridShape(1, 1, 20, 3), {"BR": 16})


def test_no_room_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise launch.OutOfResources(300_000, 232_448, "shared memory")

    monkeypatch.setattr(launch, "_fits", full)
    with pytest.raises(
        LattendError, match=r"no room for a row block of 16 rows with h = 9: .*kernel=\"diagonals\""
    ):
        x = torch.zeros(1, device=DEVICE)
        launch.launch(Recorder(), None, (x,), launch.GridShape(1, 1, 20, 3), {"BR": 16, "H": 9})


@pytest.mark.parametrize(("row", "col"), [(0, 1), (ROW_BLOCK - 1, 2), (ROW_BLOCK, 0)])
def test_what_is_not_a_number_stays_in_its_quadrant(row: int, col: int) -> None:
    rows = ROW_BLOCK + 2
    problem = Problem(CellKind("rnn", "identity"), 1, 1, rows, 4, 3)
    with torch.no_grad():
        problem.pre[0, 0, row, col] = torch.nan
    h = problem.found(torch.float32)["h"]
    assert h is not None
    lost = h[0, 0].isnan().all(-1)
    assert lost[row:, col:].all() and lost.sum() == (rows - row) * (4 - col)
    assert h[0, 0].isnan().any(-1).sum() == lost.sum()
