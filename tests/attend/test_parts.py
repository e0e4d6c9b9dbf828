"""Several parts in one launch: the bits of one launch for each, and what the reference gives in float64.

test_gpu.py compares the gradients with the reference.

Under the interpreter programs run one after another, in the order in which a GPU begins them: one that waits
for a later one would never end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import lattend as lt
from lattend.attend.call import AttentionCall, BackwardInputs
from lattend.attend.kernels import reference
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton import launch
from lattend.attend.kernels.triton.fixed_point import FixedPointSums
from lattend.attend.kernels.triton.kernel import arrays
from lattend.attend.kernels.triton.shapes import TileShape, choose_together
from lattend.attend.tape import Tape
from lattend.plans.plan import plan
from lattend.rules.language.parser import parse_term
from lattend.rules.rule import Rule

pytestmark = [  # of the interpreter: its NumPy warns of log 0, and of scalars in arrays
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
R = lt.rules
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LINE, TMA = TileShape((16,), 16, split=True), TileShape((16,), 16, tma=True, split=True)
TOGETHER = ["attention_fwd_parts_kernel", "attention_bwd_dq_parts_kernel"]
ALONE = ["attention_fwd_kernel", "attention_bwd_dq_kernel"]
KERNELS = ("forward", "backward_dq")


@pytest.fixture(scope="module", autouse=True)
def nan_in_fresh_memory() -> Iterator[None]:
    """torch.empty and all its kin give NaN, so that sums that no part wrote are not read unnoticed."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before)


def tensors(rule: Rule, batch: int, heads: int, kv_heads: int, size: int) -> list[Tensor]:
    queries = prod(rule.values[axis.queries] for axis in rule.axes)
    keys = prod(rule.values[axis.keys] for axis in rule.axes)
    source = torch.Generator().manual_seed(3)
    counts = ((heads, queries), (kv_heads, keys), (kv_heads, keys))
    return [torch.randn(batch, *count, size, generator=source) for count in counts]


def results(
    call: AttentionCall, shape: TileShape, inputs: list[Tensor], most: int
) -> tuple[list[Tensor], list[str]]:
    """Output, log-sum-exp, gradients of queries and bias, so many parts in a launch; and the kernels."""
    launched: list[str] = []
    plain = launch.launch

    def noted(tape: Tape, kernel: Any, *given: Any) -> None:
        launched.append(kernel.fn.__name__)
        plain(tape, kernel, *given)

    runner = launch.Runner(
        plan(call.rule), DEVICE, lambda kernel, place: shape, term=call.term, tensors=tuple(call.bias)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "launch", noted)
        patch.setattr(launch, "PARTS_TOGETHER", dict.fromkeys(KERNELS, most))
        q, k, v = (x.to(DEVICE) for x in inputs)
        tape, found = Tape(), arrays(Tape(), call, DEVICE)
        out, lse = runner.forward(tape, call, q, k, v, found)
        given = BackwardInputs(torch.cos(out), torch.sin(lse.masked_fill(lse.isinf(), 0)), q, k, v, out, lse)
        if call.scale < 0:  # which the forward pass alone turns around
            return [out, lse], launched
        fixed, delta = FixedPointSums.of(tape, runner.plan, call, found, given), torch.empty_like(lse)
        grad = runner.backward_dq(tape, call, given, delta, found, fixed)
        return [out, lse, grad, delta, *fixed.gradients(tape)], launched


def check(
    call: AttentionCall, shape: TileShape = LINE, *, batch: int = 1, heads: int = 2, kv_heads: int = 2,
    size: int = 16, dtype: torch.dtype = torch.float32,
) -> None:  # fmt: skip
    """Raises unless one launch gives the bits of several, near the reference."""
    inputs = [x.to(dtype) for x in tensors(call.rule, batch, heads, kv_heads, size)]
    (out, lse, *grads), launched = results(call, shape, inputs, 3)
    (alone, alone_lse, *alone_grads), each = results(call, shape, inputs, 1)
    passes, parts = 1 + bool(grads), len(plan(call.rule).parts)
    assert launched == TOGETHER[:passes] and each == [name for name in ALONE[:passes] for _ in range(parts)]
    assert torch.equal(out, alone) and torch.equal(lse, alone_lse)
    for found, wanted in zip(grads, alone_grads, strict=True):
        assert torch.equal(found, wanted)
    exact, exact_lse = reference.forward(call, *(x.double() for x in inputs))
    error = (out.cpu().double() - exact).norm() / exact.norm()
    assert error <= TOLERANCE[dtype], f"{call.rule}: off by {error:.1e}"
    torch.testing.assert_close(lse.cpu().double(), exact_lse, rtol=1e-3, atol=1e-3)


LINES = [
    R.sparse_strided(l=5).at(n=37),
    R.sparse_fixed(l=6, c=2).at(n=37),
    R.longformer(t=3, g=2).at(n=37),  # three parts, none of which holds all rows
    R.sinks(s=2, t=4).at(n=20, m=33),
    lt.rule("q >= 20 and k < 5 or q < 10 and k > 9").at(n=37),  # rows without keys
    lt.rule("q // 8 == k // 8 or (q - k) % 8 == 0 or k < 2").at(n=21),
    lt.rule("q >= 30 and k < 5 or k <= q and q - k <= 3").at(n=37),
]
IMAGES = [R.axial().at(rows=3, cols=7), R.axial().at(rows=2, cols=9)]


@pytest.mark.parametrize("rule", LINES, ids=str)
def test_lines(rule: Rule) -> None:
    check(AttentionCall(rule, 0.3))


@pytest.mark.parametrize("rule", IMAGES, ids=str)
@pytest.mark.parametrize("outer", [(4, 4), (1, 16)])
def test_images(rule: Rule, outer: tuple[int, int]) -> None:
    check(AttentionCall(rule, 0.3), TileShape(outer, 16))


def test_volumes() -> None:
    rule = lt.rule("qy == ky and qz == kz or qx == kx and qz == kz or qx == kx and qy == ky")
    check(AttentionCall(rule.at(depth=2, rows=2, cols=5), 0.3), TileShape((2, 2, 4), 16), heads=1, kv_heads=1)


def test_heads_that_share_keys_along_a_batch() -> None:
    call = AttentionCall(R.sparse_strided(l=5).at(n=21), 0.3)
    check(call, TMA, batch=2, heads=2, kv_heads=1, size=32)
    check(call, LINE, heads=4, kv_heads=2, size=24, dtype=torch.bfloat16)


def test_heads_that_differ() -> None:
    near = lt.rule("k <= q and q - k <= 4*head + 1 or k % 8 == 0 and k <= q")
    check(AttentionCall(near.at(n=21, heads=3), 0.3), batch=2, heads=3, kv_heads=3)
    check(AttentionCall(lt.rule("head == 0 and k <= q or k < 3").at(n=21, heads=2), 0.3), batch=2)


def test_arrays_that_pairs_look_up() -> None:
    rule = lt.rule("(qy == ky or qx == kx) and seen[ky, kx] > 0", data={"seen": None}).at(rows=4, cols=5)
    seen = torch.randint(0, 2, (2, 4, 5), generator=torch.Generator().manual_seed(5))
    check(AttentionCall(rule, 0.3, data={"seen": seen}), TileShape((4, 4), 16), batch=2)


def test_weights() -> None:
    call = AttentionCall(R.sparse_fixed(l=6, c=2).at(n=21), 0.3)
    for changed in (
        {"softcap": 2.0},
        {"scale": -0.3},
        {"term": parse_term("slope[head] * (q - k)"), "bias": {"slope": torch.tensor([0.1, -0.2])}},
        {"dropout": 0.25, "seed": torch.tensor([7])},
    ):
        check(replace(call, **changed))


def test_padding() -> None:
    call = AttentionCall(R.sparse_strided(l=5).at(n=21), 0.3, key_range=torch.tensor([[0, 17], [4, 21]]))
    check(call, TMA, batch=2)
    mask = torch.rand(2, 21, generator=torch.Generator().manual_seed(6)) < 0.7
    check(replace(call, key_range=torch.tensor([[0, 21], [0, 21]]), key_mask=mask), batch=2)


def test_a_call_that_is_repeated_counts_from_zero() -> None:
    rule = R.axial().at(rows=5, cols=7)
    call, runner = (
        AttentionCall(rule, 0.3),
        launch.Runner(plan(rule), DEVICE, lambda *_: TileShape((4, 4), 16)),
    )
    q, k, v = (x.to(DEVICE) for x in tensors(rule, 1, 2, 2, 16))
    tape = Tape(q, k, v)
    steps = tape.steps(*runner.forward(tape, call, q, k, v, {}))
    assert steps is not None
    for x in (q, 2 * q):
        for found, wanted in zip(steps(x, k, v), runner.forward(Tape(), call, x, k, v, {}), strict=True):
            assert torch.equal(found, wanted)


@pytest.mark.parametrize("kernel", KERNELS)
def test_which_plans_run_in_one_launch(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    two, three = plan(R.axial().at(rows=5, cols=7)), plan(R.longformer(t=3, g=2).at(n=37))
    assert launch.runs_together(kernel, two.parts) and launch.runs_together(kernel, three.parts)
    assert not launch.runs_together(kernel, plan(R.causal().at(n=37)).parts)
    four = plan(lt.rule("k < 4 or abs(q - k) <= 8 or (q - k) % 16 == 0").at(n=64))
    assert len(four.parts) == 4 and not launch.runs_together(kernel, four.parts)
    documents = lt.rule("doc[q] == doc[k] and k <= q or (q - k) % 8 == 0", data={"doc": None})
    assert not launch.runs_together(kernel, plan(documents, n=37).parts)  # their table is made of the data
    monkeypatch.setitem(launch.PARTS_TOGETHER, kernel, 1)
    assert not launch.runs_together(kernel, two.parts)


def test_shapes_of_one_launch_agree() -> None:
    found = plan(R.sparse_fixed(l=128, c=8).at(n=16_384))
    q = torch.empty(1, 16, 16_384, 128, dtype=torch.bfloat16, device="meta")
    runner = launch.Runner(found, DEVICE)
    alone = [runner.shape("forward", place, q, q) for place in range(2)]
    assert alone[0].warps != alone[1].warps
    shapes, together = runner.shapes_of("forward", [0, 1], q, q, [False, False])
    assert together and len({shape.compiled_for for shape in shapes}) == 1
    chosen = choose_together(found, [0, 1], "forward", 128, torch.bfloat16)
    assert chosen is not None and [choice.shape for choice in chosen] == shapes


def test_shapes_that_do_not_agree_have_a_launch_each() -> None:
    rule = R.axial().at(rows=5, cols=7)
    shapes = [TileShape((4, 4), 16), TileShape((4, 4), 16, warps=8)]
    runner = launch.Runner(plan(rule), DEVICE, lambda kernel, place: shapes[place])
    q = torch.empty(1, 1, 35, 16)
    assert runner.shapes_of("forward", [0, 1], q, q, [False, False]) == (shapes, False)


def test_it_compiles_for_hopper_into_code_that_counts_and_waits() -> None:
    plain = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compile_for_hopper.py")), "parts"],
        env=plain, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    found = json.loads(ran.stdout)
    assert len(found) == 2
    for name, code in found.items():
        assert code["products"] > 0 and code["spills"] == 0, (name, code)
        assert code["acquires"] == code["releases"] == code["counts"] == 1, (name, code)
