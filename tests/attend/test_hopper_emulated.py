"""The kernels for Hopper, run without one: the same source in an emulator, under schedules that are drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import gluon_emulator as emulator
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_rules import affine
from torch import Tensor

import lattend as lt
from lattend.attend.call import AttentionCall, BackwardInputs
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton import launch
from lattend.attend.kernels.triton.chunks import steps_of
from lattend.attend.kernels.triton.hopper import launches
from lattend.attend.kernels.triton.shapes import TileShape, on_hopper
from lattend.attend.kernels.triton.tables import in_boxes, in_order, refined
from lattend.attend.tape import Tape
from lattend.plans.plan import plan

PROGRAMS, DTYPE = 3, torch.bfloat16
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow]
RULES = (
    "k <= q",
    "k <= q and q - k <= 70",
    "abs(q - k) <= 33",
    "q // 64 == k // 64",
    "q // 100 == k // 100",
    "k <= q and q - k <= 50 + 100 * head",
    "k < 40 or k <= q and q - k <= 90",
    "k <= q and q - k <= 20 or q - k >= 100 and q - k <= 130",  # parts that share queries, and keys
    "q < 40 or k <= q and q - k <= 70",
    "q >= 30 and k <= q and k < 90",  # rows that no part has
    "k <= q and head != 1",
    "k <= q and (q + k) % 3 != 1",
    "doc[q] == doc[k] and k <= q",
    "k <= q and k >= begin[q]",
)
ORDERED = (  # every l-th position, or c of each l
    "k <= q and (q - k) % 32 == 0",
    "(q - k) % 16 == 5",
    "k <= q and (q - k < 32 or (q - k) % 32 == 0)",
    "k <= q and (q // 32 == k // 32 or k % 32 >= 24)",
    "k % 16 == 3 or k <= q and q - k < 200",
)


@pytest.fixture(autouse=True)
def _on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that depend on data are made by torch, as the CPU kernel has them."""

    def table(tape: Tape, part: Any, table: Tensor, rows: int, *others: Any) -> Tensor:
        return refined(part, table, rows, others[2]).contiguous()

    monkeypatch.setattr(launch, "device_table", table)
    monkeypatch.setattr(launch, "room_for_row_bounds", lambda *given: None)


@pytest.fixture
def schedule(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Sets the seed from which schedules are drawn."""
    seeds = [0]

    def instead(tape: Tape, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        emulator.launch(kernel, min(programs, PROGRAMS), arguments, constants, seeds[0])

    def seeded(seed: int) -> None:
        seeds[0] = seed

    monkeypatch.setattr(launches.launched, "launch", instead)
    yield seeded


def shape_of(kernel: str, place: int) -> TileShape:
    return next(on_hopper(kernel, 128, DTYPE)).shape


def error(found: Tensor, wanted: Tensor) -> float:
    wanted = wanted.detach()
    return float((found.double() - wanted).norm() / wanted.norm().clamp(min=1e-9))


def check(
    text: str, n: int, m: int, heads: tuple[int, int], head_dim: int, batch: int, seed: int,
    value_dim: int | None = None, scale: float | None = None, **numbers: int,
) -> None:  # fmt: skip
    """Output, log-sum-exp and gradients beside float64."""
    source = torch.Generator().manual_seed(seed)
    arrays: dict[str, Tensor] = {}
    if "doc" in text:
        arrays["doc"] = torch.randint(0, 4, (max(n, m),), generator=source).sort()[0]
    if "begin" in text:
        arrays["begin"] = torch.randint(-9, m + 9, (n,), generator=source)
    rule = lt.rule(text, data=dict.fromkeys(arrays)) if arrays else lt.rule(text)
    numbers = {name: number for name, number in numbers.items() if name in rule.parameters}
    sizes = {"n": n, "m": m} | ({"heads": heads[0]} if rule.has_heads else {})
    found = plan(rule, **sizes, **numbers)
    q, k = (
        torch.randn(batch, h, size, head_dim, generator=source) for h, size in ((heads[0], n), (heads[1], m))
    )
    width, factor = value_dim or head_dim, head_dim**-0.5 if scale is None else scale
    v, grad = (
        torch.randn(batch, h, size, width, generator=source) for h, size in ((heads[1], m), (heads[0], n))
    )
    q, k, v, grad = (x.to(DTYPE) for x in (q, k, v, grad))
    runner = launch.Runner(found, q.device, shapes=shape_of)
    call, data = (
        AttentionCall(rule.at(**numbers), factor),
        {name: x[None] for name, x in arrays.items()},
    )
    out, lse = runner.forward(Tape(), call, q, k, v, data)
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    attend: Any = lt.attention
    given: dict[str, Any] = {**arrays, **numbers} if n == m else {**arrays, **numbers, "m": m}
    wanted, exact_lse = attend(*exact, rule, kernel="dense", scale=factor, return_lse=True, **given)
    assert error(out, wanted) <= TOLERANCE[DTYPE]
    torch.testing.assert_close(lse.double(), exact_lse.detach(), rtol=1e-3, atol=1e-3)
    grad_lse = torch.randn(lse.shape, generator=source)
    end = (wanted * grad.double()).sum()
    end += (grad_lse * torch.where(exact_lse == -torch.inf, 0.0, exact_lse)).sum()
    inputs = BackwardInputs(grad, grad_lse, q, k, v, wanted.detach().to(DTYPE), exact_lse.detach().float())
    grads = runner.backward(Tape(), call, inputs, data)[:3]
    for got, want in zip(grads, torch.autograd.grad(end, exact), strict=True):
        assert error(got, want) <= TOLERANCE[DTYPE]


@pytest.mark.parametrize("text", RULES)
@settings(max_examples=4, deadline=None, suppress_health_check=SLOW)
@given(
    n=st.sampled_from([1, 63, 128, 129, 256, 401]),
    m=st.sampled_from([100, 128, 256, 321]),
    heads=st.sampled_from([(1, 1), (2, 2), (4, 2)]),
    head_dim=st.sampled_from([64, 80, 128]),
    batch=st.integers(1, 2),
    seed=st.integers(0, 999),
)
def test_results_and_gradients(
    schedule: Callable[[int], None], text: str, n: int, m: int, heads: tuple[int, int], head_dim: int,
    batch: int, seed: int,
) -> None:  # fmt: skip
    if "head" in text:  # heads that share keys have the same tiles
        heads = heads[0], heads[0]
    schedule(seed)
    check(text, n, m, heads, head_dim, batch, seed)


@pytest.mark.parametrize("text", ORDERED)
@pytest.mark.parametrize(("n", "heads", "head_dim", "batch"), [(384, (2, 2), 128, 1), (32, (4, 2), 64, 2)])
def test_positions_in_an_order(
    schedule: Callable[[int], None], text: str, n: int, heads: tuple[int, int], head_dim: int, batch: int
) -> None:
    found = plan(lt.rule(text), n=n)
    for kernel, parts in (("forward", found.parts), ("backward_dkdv", found.transposed)):
        assert all(in_order(part) or in_boxes(part, kernel) for part in parts)
    schedule(n)
    check(text, n, n, heads, head_dim, batch, n)


@settings(max_examples=20, deadline=None, suppress_health_check=SLOW)
@given(text=affine(), n=st.sampled_from([100, 200, 300]), t=st.integers(0, 150), seed=st.integers(0, 999))
def test_random_rules(schedule: Callable[[int], None], text: str, n: int, t: int, seed: int) -> None:
    rule = lt.rule(text)
    found = plan(rule, n=n, **({"t": t} if "t" in rule.parameters else {}))
    assume(all(map(in_order, (*found.parts, *found.transposed))))  # others are not theirs
    schedule(seed)
    check(text, n, n, (2, 1), 64, 1, seed, t=t)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")  # Triton's interpreter
@pytest.mark.parametrize("text", [RULES[0], *RULES[5:9]])
def test_long_tiles_of_keys_in_chunks(
    schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:

    def counts(part: Any, tiles: Any, shape: TileShape, *given: int) -> Any:
        steps = steps_of(tiles, shape)
        return np.minimum(steps, np.arange(len(steps)) % 3 + 2)

    monkeypatch.setattr(launch, "chunk_counts", counts)
    schedule(3)
    check(text, 301, 301, (2, 2) if "head" in text else (2, 1), 72, 1, 3)


def test_a_part_of_one_step_joins_another(
    schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it gives has the same bits under any schedule."""
    joined: list[int | None] = []

    def noted(self: Any, *given: Any, joined_before: Any = launch.Runner.part, **named: Any) -> Any:
        joined.append(named.get("joined"))
        return joined_before(self, *given, **named)

    monkeypatch.setattr(launch.Runner, "part", noted)
    rule, n = lt.rule("k < 40 or k <= q and q - k <= 90"), 500
    q, k, v, grad = (torch.randn(1, 2, n, 64).to(DTYPE) for _ in range(4))
    call, found = AttentionCall(rule, 0.1), list[list[Tensor]]()
    for seed in range(3):
        schedule(seed)
        runner = launch.Runner(plan(rule, n=n), q.device, shapes=shape_of)
        out, lse = runner.forward(Tape(), call, q, k, v, {})
        grads = runner.backward(Tape(), call, BackwardInputs(grad, None, q, k, v, out, lse), {})[:3]
        found.append([out, lse, *grads])
    assert joined == [0, 0, None, None] * 3  # in the forward pass and for queries, not for keys
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("scale", [None, -0.2, 0.0])
@pytest.mark.parametrize("widths", [(72, 128), (128, 72), (40, 64)])
def test_values_of_another_width_and_any_scale(
    schedule: Callable[[int], None], widths: tuple[int, int], scale: float | None
) -> None:
    check("k <= q and q - k <= 90", 200, 200, (2, 1), widths[0], 1, 5, value_dim=widths[1], scale=scale)


def test_few_keys_that_many_heads_share(
    schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each head's gradients come first, in float32, which are not these kernels'."""
    monkeypatch.setattr(launch, "MANY_ROWS", 1)
    asked: list[bool] = []

    def noted(self: Any, *given: Any, hopper: bool = False) -> Any:
        asked.append(hopper)
        raise StopIteration

    monkeypatch.setattr(launch, "may_take_hopper", lambda *given: True)
    monkeypatch.setattr(launch.Runner, "part", noted)
    q, k, lse = (
        torch.zeros(1, 4, 200, 64).to(DTYPE),
        torch.zeros(1, 2, 200, 64).to(DTYPE),
        torch.zeros(1, 4, 200),
    )
    runner, call = (
        launch.Runner(plan(lt.rule("k <= q"), n=200), q.device),
        AttentionCall(lt.rule("k <= q"), 0.1),
    )
    for keys in (k, q):  # shared, and alone
        with pytest.raises(StopIteration):
            runner.backward_dkdv(Tape(), call, BackwardInputs(q, None, q, keys, keys, q, lse), lse, {})
    assert asked == [False, True]


def test_what_is_strange_stays_where_it_is_attended(schedule: Callable[[int], None]) -> None:
    """A head without pairs has zeros, whatever its tensors hold."""
    rule = lt.rule("k <= q and head != 1")
    q, k, v, grad = (torch.randn(1, 2, 200, 64).to(DTYPE) for _ in range(4))
    for x in (q, k, v, grad):
        x[:, 1, ::3], x[:, 1, 1::3] = torch.inf, torch.nan
    runner = launch.Runner(plan(rule, n=200, heads=2), q.device, shapes=shape_of)
    call = AttentionCall(rule, 0.1)
    out, lse = runner.forward(Tape(), call, q, k, v, {})
    grads = runner.backward(Tape(), call, BackwardInputs(grad, None, q, k, v, out, lse), {})[:3]
    for x in (out, *grads):
        assert x.isfinite().all() and not x[:, 1].any() and x[:, 0].any()


# What the emulator finds: kernels that are wrong in one place


FEW_STEPS, MORE_STEPS = "k == q", "k <= q and q - k <= 290 and q - k >= 3"
KERNELS = {
    "forward": "attention_fwd_hopper_kernel",
    "backward_dq": "attention_bwd_dq_hopper_kernel",
    "backward_dkdv": "attention_bwd_dkdv_hopper_kernel",
}


def broken(name: str, right: str, wrong: str, folder: Path) -> dict[str, Any]:
    """The kernels by name, where one place in the source of a module is changed."""
    sources = {
        each: Path(launches.__file__).with_name(f"{each}.py").read_text() for each in ("tiles", *KERNELS)
    }
    assert sources[name].count(right) == 1, f"{right} is there {sources[name].count(right)} times"
    sources[name] = sources[name].replace(right, wrong)
    package = f"broken_{uuid4().hex}"
    (folder / package).mkdir()
    for each, source in sources.items():
        moved = source.replace("lattend.attend.kernels.triton.hopper.tiles", f"{package}.tiles")
        (folder / package / f"{each}.py").write_text(moved)
    sys.path.insert(0, str(folder))
    try:
        return {
            kernel: getattr(import_module(f"{package}.{each}"), kernel) for each, kernel in KERNELS.items()
        }
    finally:
        sys.path.remove(str(folder))


FREED = "                mbarrier.arrive(v_free.index(last % STAGES), count=1)\n"
WRONG = {
    "values are not waited for": ("forward", "                arrived(v_ready, last, STAGES)\n", ""),
    "values are never freed": ("forward", FREED, ""),
    "values come before they have room": (
        "forward",
        "V, JoinedV, v_buffer, v_ready, v_free, now - 1, index - 1",
        "V, JoinedV, v_buffer, v_ready, k_free, now - 1, index - 1",
    ),
    "keys are freed before they are read": (
        "backward_dq",
        "                mbarrier.arrive(k_free.index(last % STAGES), count=1)\n"
        "                mbarrier.arrive(v_free.index(now % STAGES), count=1)\n",
        "                mbarrier.arrive(k_free.index(now % STAGES), count=1)\n"
        "                mbarrier.arrive(v_free.index(now % STAGES), count=1)\n",
    ),
    "the next tile is not waited for": (
        "backward_dkdv", "                arrived(ready, following, TILES, ends & (following < turns))\n", ""
    ),
    "the next tile's scores are of this one's keys": (
        "backward_dkdv", "k_buffer.index((following % TILES)", "k_buffer.index((turn % TILES)"
    ),
    "a sum goes on from tile to tile": ("backward_dkdv", "dv, index > 0,", "dv, True,"),
    "a product is read before it is waited for": (
        "backward_dkdv", "wait(1, deps=[dp_begun, p])", "wait(2, deps=[dp_begun, p])"
    ),
    "log-sum-exps begin anywhere": ("backward_dkdv", "HAS_FULL, 4, CHUNKED,", "HAS_FULL, 1, CHUNKED,"),
    "a tile is freed while it is written": (
        "tiles", "        tma.store_wait(0)\n        mbarrier", "        mbarrier"
    ),
    "a tile's numbers are those of the next": (
        "tiles", "number = noted.index(turn %", "number = noted.index((turn + 1) %"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_kernel_that_is_wrong_is_found(
    what: str, schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, kernel in broken(*WRONG[what], tmp_path).items():
        monkeypatch.setattr(launches, name, kernel)
    monkeypatch.setattr(emulator, "MOST_IDLE", 500)
    monkeypatch.setattr(sys.modules[__name__], "PROGRAMS", 1)  # which takes all tiles
    with pytest.raises((AssertionError, emulator.Emulated)):
        for seed in range(20):
            schedule(seed)
            check(FEW_STEPS if seed % 2 else MORE_STEPS, 700, 700, (1, 1), 64, 1, seed)


def test_the_right_kernels_pass_where_the_wrong_ones_do_not(
    schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PROGRAMS", 1)
    for seed in range(4):
        schedule(seed)
        check(FEW_STEPS if seed % 2 else MORE_STEPS, 700, 700, (1, 1), 64, 1, seed)
