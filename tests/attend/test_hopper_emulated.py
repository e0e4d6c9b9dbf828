"""The kernels for Hopper, run without one: the same source in an emulator, under schedules that are drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
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
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, rule_of
from lattend.attend.call.varlen import Sequences, packed_key, sequence_arrays
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton import launch, shapes
from lattend.attend.kernels.triton.hopper import launches
from lattend.attend.kernels.triton.shapes import on_hopper, padded
from lattend.attend.kernels.triton.tables import refined
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan
from lattend.plans.tables.adjacency import in_boxes, in_order
from lattend.plans.tables.chunks import steps_of
from lattend.plans.tables.tile_costs import TileShape

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
    "k <= q and (q // 32 == k // 32 or k % 32 == 31)",
    "k % 16 == 3 or k <= q and q - k < 200",
    "(q - k) % 64 == 0 and k <= q and q - k <= 192",
)


@pytest.fixture(autouse=True)
def _on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that depend on data are made by torch, as the CPU kernel has them."""

    def table(recorder: Recorder, part: Any, table: Tensor, rows: int, *others: Any) -> Tensor:
        return refined(part, table, rows, others[2]).contiguous()

    monkeypatch.setattr(launch, "device_table", table)
    monkeypatch.setattr(launch, "room_for_row_bounds", lambda *given: None)


@pytest.fixture
def schedule(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Sets the seed from which schedules are drawn."""
    seeds = [0]

    def instead(recorder: Recorder, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        emulator.launch(kernel, min(programs, PROGRAMS), arguments, constants, seeds[0])

    def seeded(seed: int) -> None:
        seeds[0] = seed

    monkeypatch.setattr(launches, "launch_replay", SimpleNamespace(launch=instead))  # not of those in Triton
    yield seeded


def shape_of(kernel: str, place: int, head_dim: int = 128) -> TileShape:
    """What is taken for a head_dim, or would be: gradients of queries have none for 64."""
    costs = (*on_hopper(kernel, head_dim, DTYPE), *on_hopper(kernel, 128, DTYPE))
    return costs[0].shape


def short(step: int, stages: int) -> TileShape:
    """A shape of the forward kernel for short tiles, of which groups of warps leave out steps."""
    return TileShape((128,), step, 12, stages, True, True, hopper=True, several=True)


def error(found: Tensor, wanted: Tensor) -> float:
    wanted = wanted.detach()
    return float((found.double() - wanted).norm() / wanted.norm().clamp(min=1e-9))


def check(
    text: str, n: int, m: int, heads: tuple[int, int], head_dim: int, batch: int, seed: int,
    value_dim: int | None = None, scale: float | None = None, like: int | None = None,
    forward: TileShape | None = None, **numbers: int,
) -> None:  # fmt: skip
    """Output, log-sum-exp and gradients beside float64, by the kernels for a head_dim, or `like` another, or
    a shape of the `forward` kernel.
    """
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
    size = like or padded(max(head_dim, width))

    def shape(kernel: str, place: int) -> TileShape:
        return forward if forward and kernel == "forward" else shape_of(kernel, place, size)

    runner = launch.PlanExecutor(found, q.device, shapes=shape)
    call, data = (
        AttentionCall(rule.at(**numbers), factor),
        {name: x[None] for name, x in arrays.items()},
    )
    out, lse = runner.forward(Recorder(), call, q, k, v, data)
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
    grads = runner.backward(Recorder(), call, inputs, data)[:3]
    for got, want in zip(grads, torch.autograd.grad(end, exact), strict=True):
        assert error(got, want) <= TOLERANCE[DTYPE]


@pytest.mark.parametrize("text", RULES)
@settings(max_examples=4, deadline=None, suppress_health_check=SLOW)
@given(
    n=st.sampled_from([1, 63, 128, 129, 256, 401]),
    m=st.sampled_from([100, 128, 256, 321]),
    heads=st.sampled_from([(1, 1), (2, 2), (4, 2)]),
    head_dim=st.sampled_from([64, 80, 128, 136, 256]),
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


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")  # Triton's interpreter
@pytest.mark.parametrize("text", ORDERED)
@pytest.mark.parametrize(
    ("n", "heads", "head_dim", "batch"), [(384, (2, 2), 128, 1), (64, (4, 2), 72, 2), (832, (2, 1), 64, 1)]
)
def test_positions_in_an_order(
    schedule: Callable[[int], None], text: str, n: int, heads: tuple[int, int], head_dim: int, batch: int
) -> None:
    found = plan(lt.rule(text), n=n)
    for kernel, parts in (("forward", found.parts), ("backward_dkdv", found.transposed)):
        assert all(in_order(part) or in_boxes(part, kernel) for part in parts)
    schedule(n)
    check(text, n, n, heads, head_dim, batch, n, like=128)


@settings(max_examples=20, deadline=None, suppress_health_check=SLOW)
@given(
    text=affine(),
    n=st.sampled_from([100, 200, 300]),
    t=st.integers(0, 150),
    seed=st.integers(0, 999),
    head_dim=st.sampled_from([64, 72, 136]),
)
def test_random_rules(
    schedule: Callable[[int], None], text: str, n: int, t: int, seed: int, head_dim: int
) -> None:
    rule = lt.rule(text)
    found = plan(rule, n=n, **({"t": t} if "t" in rule.parameters else {}))
    assume(all(map(in_order, (*found.parts, *found.transposed))))  # others are not theirs
    schedule(seed)
    shape = short(64, 4) if seed % 2 and head_dim <= 128 else None
    check(text, n, n, (2, 1), head_dim, 1, seed, t=t, forward=shape)


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


@pytest.mark.parametrize("text", [RULES[0], RULES[1], RULES[3], RULES[6], ORDERED[2]])
def test_groups_that_begin_their_products_in_turn(schedule: Callable[[int], None], text: str) -> None:
    shape = next(cost.shape for cost in on_hopper("forward", 128, DTYPE) if cost.shape.in_turn)
    for seed in range(3):
        schedule(seed)
        check(text, 416, 416, (2, 1), 64, 1, seed, like=128, forward=shape)


@pytest.mark.parametrize(
    "text", [*RULES, *ORDERED[:3], "k <= q and q - k <= 255", "q - k >= 150 and q - k <= 300"]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")  # Triton's interpreter
def test_short_tiles_forward(schedule: Callable[[int], None], text: str) -> None:
    for seed, shape in enumerate((short(64, 4), short(64, 3), short(32, 2))):
        schedule(seed)
        check(text, 832, 832, (2, 2 if "head" in text else 1), 64, 1, seed, like=128, forward=shape)


def test_a_part_of_one_step_joins_another(
    schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it gives has the same bits under any schedule."""
    joined: list[int | None] = []

    def noted(self: Any, *given: Any, joined_before: Any = launch.PlanExecutor.part, **named: Any) -> Any:
        joined.append(named.get("joined"))
        return joined_before(self, *given, **named)

    monkeypatch.setattr(launch.PlanExecutor, "part", noted)
    rule, n = lt.rule("k < 40 or k <= q and q - k <= 90"), 500
    q, k, v, grad = (torch.randn(1, 2, n, 64).to(DTYPE) for _ in range(4))
    call, found = AttentionCall(rule, 0.1), list[list[Tensor]]()
    for seed in range(3):
        schedule(seed)
        runner = launch.PlanExecutor(plan(rule, n=n), q.device, shapes=shape_of)
        out, lse = runner.forward(Recorder(), call, q, k, v, {})
        grads = runner.backward(Recorder(), call, BackwardInputs(grad, None, q, k, v, out, lse), {})[:3]
        found.append([out, lse, *grads])
    assert joined == [0, 0, None, None] * 3  # in the forward pass and for queries, not for keys
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("scale", [None, -0.2, 0.0])
@pytest.mark.parametrize("widths", [(72, 128), (128, 72), (40, 64), (136, 256), (256, 192)])
def test_values_of_another_width_and_any_scale(
    schedule: Callable[[int], None], widths: tuple[int, int], scale: float | None
) -> None:
    check("k <= q and q - k <= 90", 200, 200, (2, 1), widths[0], 1, 5, value_dim=widths[1], scale=scale)


def test_few_keys_that_many_heads_share(
    schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each head's gradients come first, in float32, which are not these kernels'."""
    monkeypatch.setattr(shapes, "MANY_ROWS", 1)
    asked: list[bool] = []

    def noted(self: Any, *given: Any, hopper: bool = False) -> Any:
        asked.append(hopper)
        raise StopIteration

    monkeypatch.setattr(launch, "may_take_hopper", lambda *given: True)
    monkeypatch.setattr(launch.PlanExecutor, "part", noted)
    q, k, lse = (
        torch.zeros(1, 4, 200, 64).to(DTYPE),
        torch.zeros(1, 2, 200, 64).to(DTYPE),
        torch.zeros(1, 4, 200),
    )
    runner, call = (
        launch.PlanExecutor(plan(lt.rule("k <= q"), n=200), q.device),
        AttentionCall(lt.rule("k <= q"), 0.1),
    )
    for keys in (k, q):  # shared, and alone
        with pytest.raises(StopIteration):
            runner.backward_dkdv(Recorder(), call, BackwardInputs(q, None, q, keys, keys, q, lse), lse, {})
    assert asked == [False, True]


def test_what_is_strange_stays_where_it_is_attended(schedule: Callable[[int], None]) -> None:
    """A head without pairs has zeros, whatever its tensors hold."""
    rule = lt.rule("k <= q and head != 1")
    q, k, v, grad = (torch.randn(1, 2, 200, 64).to(DTYPE) for _ in range(4))
    for x in (q, k, v, grad):
        x[:, 1, ::3], x[:, 1, 1::3] = torch.inf, torch.nan
    runner = launch.PlanExecutor(plan(rule, n=200, heads=2), q.device, shapes=shape_of)
    call = AttentionCall(rule, 0.1)
    out, lse = runner.forward(Recorder(), call, q, k, v, {})
    grads = runner.backward(Recorder(), call, BackwardInputs(grad, None, q, k, v, out, lse), {})[:3]
    for x in (out, *grads):
        assert x.isfinite().all() and not x[:, 1].any() and x[:, 0].any()


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")  # Triton's interpreter
@pytest.mark.parametrize("kv_heads", [1, 2])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_another_sequence_and_rows_behind_the_last_may_hold_anything(
    schedule: Callable[[int], None], head_dim: int, kv_heads: int
) -> None:
    """The kernels mark rows that a NaN has reached, and careful.py computes them again."""
    n, cu = 300, torch.tensor([0, 130, 200, 260])
    rule = rule_of(packed_key(lt.rule("k <= q and q - k <= 100").key, False)).at(n=n)
    names = ["cu", "seq"]
    arrays = dict(zip(names, sequence_arrays(Sequences(cu, cu, False), n, n), strict=True))
    runner = launch.PlanExecutor(
        plan(rule), cu.device, shapes=lambda kernel, place: shape_of(kernel, place, head_dim)
    )
    source = torch.Generator().manual_seed(head_dim)
    q, k, v, grad = (
        torch.randn(1, heads, n, head_dim, generator=source).to(DTYPE) for heads in (2, kv_heads, kv_heads, 2)
    )
    strange, real = torch.zeros(n, dtype=torch.bool), torch.ones(n, dtype=torch.bool)
    strange[130:200] = strange[260:] = True
    real[130:200] = real[260:] = False

    def results() -> list[Tensor]:
        call = AttentionCall(rule, 0.1)
        out, lse = runner.forward(Recorder(), call, q, k, v, arrays)
        grads = runner.backward(Recorder(), call, BackwardInputs(grad, None, q, k, v, out, lse), arrays)[:3]
        return [out, lse[..., None], *grads]

    plain = results()
    for x, number in ((q, torch.nan), (k, torch.inf), (v, torch.nan), (grad, torch.nan)):
        x[:, :, strange] = number
    for found, wanted in zip(results(), plain, strict=True):
        assert error(found[:, :, real], wanted[:, :, real].double()) <= TOLERANCE[DTYPE]
        assert found.isneginf()[:, :, 260:].all() or not found[:, :, 260:].any()


# What the emulator finds: kernels that are wrong in one place


FEW_STEPS, MORE_STEPS = "k == q", "k <= q and q - k <= 290 and q - k >= 3"
KERNELS = {
    "forward": "attention_fwd_hopper_kernel",
    "forward_narrow": "attention_fwd_narrow_hopper_kernel",
    "backward_dq": "attention_bwd_dq_hopper_kernel",
    "backward_dq_wide": "attention_bwd_dq_wide_hopper_kernel",
    "backward_dkdv": "attention_bwd_dkdv_hopper_kernel",
    "backward_dkdv_narrow": "attention_bwd_dkdv_narrow_hopper_kernel",
    "backward_dkdv_wide": "attention_bwd_dkdv_wide_hopper_kernel",
}


SHARED = ("orders", "tiles", "masks", "shared")


def broken(name: str, right: str, wrong: str, folder: Path) -> dict[str, Any]:
    """The kernels by name, where one place in the source of a module is changed."""
    folder_of = Path(launches.__file__)
    sources = {each: folder_of.with_name(f"{each}.py").read_text() for each in (*SHARED, *KERNELS)}
    assert sources[name].count(right) == 1, f"{right} is there {sources[name].count(right)} times"
    sources[name] = sources[name].replace(right, wrong)
    package = f"broken_{uuid4().hex}"
    (folder / package).mkdir()
    for each, source in sources.items():
        moved = source.replace("lattend.attend.kernels.triton.hopper.", f"{package}.")
        (folder / package / f"{each}.py").write_text(moved)
    sys.path.insert(0, str(folder))
    try:
        return {
            kernel: getattr(import_module(f"{package}.{each}"), kernel) for each, kernel in KERNELS.items()
        }
    finally:
        sys.path.remove(str(folder))


def break_kernels(monkeypatch: pytest.MonkeyPatch, name: str, right: str, wrong: str, folder: Path) -> None:
    """Has such kernels run, all tiles by one program, and deadlocks told soon."""
    for kernel, found in broken(name, right, wrong, folder).items():
        monkeypatch.setattr(launches, kernel, found)
    monkeypatch.setattr(emulator, "MOST_IDLE", 500)
    monkeypatch.setattr(sys.modules[__name__], "PROGRAMS", 1)


FREED = "                mbarrier.arrive(v_free.index(last % VALUES), count=1)\n"
WRONG = {
    "values are not waited for": ("forward", "                arrived(v_ready, last, VALUES)\n", ""),
    "values are never freed": ("forward", FREED, ""),
    "values come before they have room": (
        "forward", "joined, v_buffer, v_ready, v_free,", "joined, v_buffer, v_ready, k_free,"
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
    "a sum goes on from tile to tile": ("backward_dkdv", "dk, adds,", "dk, True,"),
    "a product is read before it is waited for": (
        "backward_dkdv", "wait(1 if VALUES_EARLY else 0, deps=[dp_begun, p])", "wait(2, deps=[dp_begun, p])"
    ),
    "log-sum-exps begin anywhere": ("backward_dkdv", "HAS_FULL, 4, HEIGHT, ", "HAS_FULL, 1, HEIGHT, "),
    "a step that is left out is never freed": (
        "backward_dkdv", "                    let_pass(g_ready, g_free, now + 1, STAGES, passed > 0)\n", ""
    ),
    "a step that is left out is freed before it is there": (
        "shared", "    arrived(ready, index, STAGES, pred)\n    mbarrier.arrive", "    mbarrier.arrive"
    ),
    "a step that is needed is left out": (
        "tiles", "gl.cdiv(gl.maximum(beyond - first, 1), STEP)", "gl.maximum(beyond - first, 1) // STEP"
    ),
    "scores go on from a step that was left out": (
        "backward_dkdv", "product(k, q_buffer, upcoming, STEP", "product(k, q_buffer, now + 1, STEP"
    ),
    "groups do not take turns": ("shared", "order.index((GROUP + 1) % order.shape[0])", "order.index(GROUP)"),
    "the next tile's scores are of this one's queries": (
        "forward_narrow", "q_buffer.index((following % TILES)", "q_buffer.index((turn % TILES)"
    ),
    "queries are not waited for": (
        "backward_dkdv", "                arrived(q_ready, upcoming, STAGES, following < turns)\n", ""
    ),
    "a third group frees no queries": ("backward_dkdv_narrow", "STAGES, False, GROUPS)", "STAGES, False, 2)"),
    "a tile's rows are not waited for": ("backward_dq_wide", "        arrived(ready, turn, 1)\n", ""),
    "keys of the step before are read": (
        "backward_dq_wide", "weighed(slopes, k_buffer, now, dq", "weighed(slopes, k_buffer, now - 1, dq"
    ),
    "a tile of a wide head is freed while it is written": (
        "backward_dkdv_wide", "            give_back(free, turn, True)\n",
        "            mbarrier.arrive(free.index(0), count=1)\n",
    ),
    "gradients of values are laid over those that are being written": (
        "backward_dkdv_wide", "            tma.store_wait(0)\n", ""
    ),
    "a tile is freed while it is written": (
        "shared", "        tma.store_wait(0)\n        mbarrier", "        mbarrier"
    ),
    "a tile's numbers are those of the next": (
        "tiles", "at = turn % (noted", "at = (turn + 1) % (noted"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_kernel_that_is_wrong_is_found(
    what: str, schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    head_dim, like = drawn_for(WRONG[what][0])
    break_kernels(monkeypatch, *WRONG[what], tmp_path)
    with pytest.raises((AssertionError, emulator.Emulated)):
        for seed in range(20):
            schedule(seed)
            rule = (FEW_STEPS, MORE_STEPS, "k <= 600")[seed % 3]
            check(rule, 700, 700, (1, 1), head_dim, 1, seed, like=like)


PASSES = "k_ready, k_free, v_ready, v_free, STAGES)\n"
WRONG_LEFT_OUT = {
    "first steps that are left out are never freed": (
        "forward", f"            pass_over(done, done + opening, {PASSES}", ""
    ),
    "last steps that are left out are never freed": (
        "forward", f"            pass_over(done, done + ending, {PASSES}", ""
    ),
    "steps of queries are freed twice": (
        "backward_dq", f"            pass_over(done, done + ending, {PASSES}",
        f"            pass_over(done - 1, done + ending, {PASSES}",
    ),
    "a tile begins with a step that it leaves out": (
        "forward", "product(q, k_buffer, done + opening,", "product(q, k_buffer, done,"
    ),
    "a mask is that of the first step": ("forward", "place_of(opening, tile", "place_of(0, tile"),
    "slopes have the mask of the first step": ("backward_dq", "place_of(opening, tile", "place_of(0, tile"),
    "a step too many is left out": ("tiles", "own - first, 0) // STEP,", "own - first + STEP, 0) // STEP,"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_LEFT_OUT)
def test_groups_that_leave_out_wrong_steps_are_found(
    what: str, schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    break_kernels(monkeypatch, *WRONG_LEFT_OUT[what], tmp_path)
    with pytest.raises((AssertionError, emulator.Emulated)):
        for seed in range(20):
            schedule(seed)
            check("k <= q and q - k <= 250", 700, 700, (1, 1), 64, 1, seed, like=128, forward=short(64, 4))


WRONG_ORDERED = {
    "rows are those of another class": ("orders", "slot // ORDER, base, 0]", "slot // ORDER, 0, 0]"),
    "bounds are positions": (
        "masks", "        low, high = slots_below(low, base, period, INNER), slots_below(high + 1",
        "        low, high = low, slots_below(high + 1"
    ),
    "a group's rows lie apart": (
        "orders", "slot // ORDER * period + slot % ORDER + base", "slot * period + base"
    ),
    "rows that no class has are the tile's": (
        "orders", "whole * ORDER + gl.minimum(gap - whole * period, ORDER)", "whole * ORDER"
    ),
    "numbers of queries are those of another class": (
        "backward_dkdv", "row = at + base * (query_rows // tile[len(tile) - 2])", "row = at"
    ),
    "keys that join lie as the others": (
        "forward", "load_either(K, JoinedK, theirs,", "load_either(K, JoinedK, False,"
    ),
    "values of the last step that joins lie as the others": (
        "forward", "values, joined = now + 1, place, theirs", "values, joined = now + 1, place, False"
    ),
    "all steps have one part's bounds": (
        "masks", "gl.where(theirs, joined[2], own[2])", "own[2]"
    ),
    "steps that join are not counted": (
        "tiles", "(step - tile[JOINED + 2]) * STEP", "step * STEP"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_ORDERED)
def test_a_kernel_that_is_wrong_about_orders_is_found(
    what: str, schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, kernel in broken(*WRONG_ORDERED[what], tmp_path).items():
        monkeypatch.setattr(launches, name, kernel)
    with pytest.raises((AssertionError, emulator.Emulated)):
        for text in ORDERED[2:4]:
            check(text, 384, 384, (1, 1), 64, 1, 1, like=128)


def drawn_for(module: str) -> tuple[int, int]:
    """A head_dim of which the kernel in a module is taken, and another whose shape it has."""
    kind = module.rpartition("_")[2]
    return {"wide": (256, 256), "narrow": (64, 64)}.get(kind, (64, 128))


@pytest.mark.parametrize("module", ["forward", "forward_narrow", "backward_dq_wide"])
def test_the_right_kernels_pass_where_the_wrong_ones_do_not(
    module: str, schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    head_dim, like = drawn_for(module)
    monkeypatch.setattr(sys.modules[__name__], "PROGRAMS", 1)
    for seed in range(4):
        schedule(seed)
        rule = FEW_STEPS if seed % 2 else MORE_STEPS
        check(rule, 700, 700, (1, 1), head_dim, 1, seed, like=like)
