"""The kernel for Hopper of 8 bits, run without one: in the emulator, beside float64 of the same numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import gluon_emulator as emulator
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_rules import affine
from torch import Tensor

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton import launch
from lattend.attend.kernels.triton.hopper import forward_fp8, launches
from lattend.attend.kernels.triton.shapes import on_hopper
from lattend.attend.kernels.triton.tables import refined
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan
from lattend.plans.tables.adjacency import in_order
from lattend.plans.tables.tile_costs import TileShape

DTYPE, PROGRAMS = torch.float8_e4m3fn, 3
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow]
RULES = (
    "k <= q",
    "k <= q and q - k <= 70",
    "abs(q - k) <= 33",
    "q // 100 == k // 100",
    "k <= q and q - k <= 50 + 100 * head",
    "k < 40 or k <= q and q - k <= 90",
    "k <= q and q - k <= 20 or q - k >= 100 and q - k <= 130",  # parts that share queries
    "q >= 30 and k <= q and k < 90",  # rows that no part has
    "k <= q and head != 1",
    "k <= q and (q + k) % 3 != 1",
    "doc[q] == doc[k] and k <= q",
    "k <= q and k >= begin[q]",
)


@pytest.fixture(autouse=True)
def schedule(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Sets the seed from which schedules are drawn."""
    seeds = [0]

    def instead(recorder: Recorder, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        emulator.launch(kernel, min(programs, PROGRAMS), arguments, constants, seeds[0])

    def table(recorder: Recorder, part: Any, table: Tensor, rows: int, *others: Any) -> Tensor:
        return refined(part, table, rows, others[2]).contiguous()

    def seeded(seed: int) -> None:
        seeds[0] = seed

    monkeypatch.setattr(launches.launch_replay, "launch", instead)
    monkeypatch.setattr(launches, "transposed", by_torch)
    monkeypatch.setattr(launch, "device_table", table)
    monkeypatch.setattr(launch, "room_for_row_bounds", lambda *given: None)
    yield seeded


def by_torch(recorder: Recorder, v: Tensor) -> Tensor:
    """What transposed.py makes of values: of 16 keys place 4c + 2h + e has key 8h + 2c + e."""
    batch, heads, keys, width = v.shape
    whole = torch.zeros(batch, heads, -(-keys // 16), 2, 4, 2, width).to(DTYPE)
    whole.view(batch, heads, -1, width)[:, :, :keys] = v
    return whole.permute(0, 1, 6, 2, 4, 3, 5).reshape(batch, heads, width, -1).contiguous()


def shape_of(kernel: str, place: int) -> TileShape:
    return next(on_hopper(kernel, 128, DTYPE)).shape


def check(
    text: str, n: int, m: int, heads: tuple[int, int], head_dim: int, batch: int, seed: int,
    value_dim: int | None = None, scale: float | None = None, **numbers: int,
) -> None:  # fmt: skip
    """Output and log-sum-exp beside float64 of the numbers that 8 bits and scales stand for."""
    source = torch.Generator().manual_seed(seed)
    arrays: dict[str, Tensor] = {}
    if "doc" in text:
        arrays["doc"] = torch.randint(0, 4, (max(n, m),), generator=source).sort()[0]
    if "begin" in text:
        arrays["begin"] = torch.randint(-9, m + 9, (n,), generator=source)
    rule = lt.rule(text, data=dict.fromkeys(arrays)) if arrays else lt.rule(text)
    numbers = {name: number for name, number in numbers.items() if name in rule.parameters}
    sizes = {"n": n, "m": m} | ({"heads": heads[0]} if rule.has_heads else {})
    width, factor = value_dim or head_dim, head_dim**-0.5 if scale is None else scale
    shapes = ((heads[0], n, head_dim), (heads[1], m, head_dim), (heads[1], m, width))
    q, k, v = ((100 * torch.randn(batch, *shape, generator=source)).to(DTYPE) for shape in shapes)
    scales = tuple(
        (0.005 + 0.01 * torch.rand(b, h, generator=source)).float()
        for b, h in ((batch, heads[0]), (1, heads[1]), (batch, 1))
    )
    runner = launch.PlanExecutor(plan(rule, **sizes, **numbers), q.device, shapes=shape_of)
    call = AttentionCall(rule.at(**numbers), factor, scales=scales)  # pyright: ignore[reportArgumentType]
    out, lse = runner.forward(Recorder(), call, q, k, v, {name: x[None] for name, x in arrays.items()})
    exact = [x.double() * s[..., None, None] for x, s in zip((q, k, v), scales, strict=True)]
    attend: Any = lt.attention
    options: dict[str, Any] = {**arrays, **numbers} if n == m else {**arrays, **numbers, "m": m}
    wanted, exact_lse = attend(*exact, rule, kernel="dense", scale=factor, return_lse=True, **options)
    assert out.dtype == torch.bfloat16
    error = (out.double() - wanted).norm() / wanted.norm().clamp(min=1e-9)
    assert error <= TOLERANCE[DTYPE]
    torch.testing.assert_close(lse.double(), exact_lse, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("text", RULES)
@settings(max_examples=4, deadline=None, suppress_health_check=SLOW)
@given(
    n=st.sampled_from([1, 63, 128, 129, 256, 401]),
    m=st.sampled_from([5, 100, 128, 256, 321]),
    heads=st.sampled_from([(1, 1), (2, 2), (4, 2)]),
    head_dim=st.sampled_from([64, 80, 128]),
    batch=st.integers(1, 2),
    seed=st.integers(0, 999),
)
def test_results(
    schedule: Callable[[int], None], text: str, n: int, m: int, heads: tuple[int, int], head_dim: int,
    batch: int, seed: int,
) -> None:  # fmt: skip
    schedule(seed)
    check(text, n, m, heads, head_dim, batch, seed)


@settings(max_examples=20, deadline=None, suppress_health_check=SLOW)
@given(text=affine(), n=st.sampled_from([100, 200, 300]), t=st.integers(0, 150), seed=st.integers(0, 999))
def test_random_rules(schedule: Callable[[int], None], text: str, n: int, t: int, seed: int) -> None:
    rule = lt.rule(text)
    assume(all(map(in_order, plan(rule, n=n, **({"t": t} if "t" in rule.parameters else {})).parts)))
    schedule(seed)
    check(text, n, n, (2, 1), 64, 1, seed, t=t)


@pytest.mark.parametrize("scale", [None, 0.0])
@pytest.mark.parametrize("widths", [(80, 128), (128, 80), (48, 64)])
def test_values_of_another_width_and_any_scale(
    schedule: Callable[[int], None], widths: tuple[int, int], scale: float | None
) -> None:
    check("k <= q and q - k <= 90", 200, 200, (2, 1), widths[0], 1, 5, value_dim=widths[1], scale=scale)


def test_what_is_strange_stays_where_it_is_attended(schedule: Callable[[int], None]) -> None:
    """A head without pairs has zeros, whatever its tensors hold; a negative scale gives NaN, and its own."""
    rule, ones = lt.rule("k <= q and head != 1"), torch.ones(1, 3)
    q, k, v = (torch.randn(1, 3, 200, 64).to(DTYPE) for _ in range(3))
    for x in (q, k, v):
        x[:, 1, ::3] = torch.nan
    runner = launch.PlanExecutor(plan(rule, n=200, heads=3), q.device, shapes=shape_of)
    signs = torch.tensor([[1.0, 1.0, -1.0]])
    out, _ = runner.forward(Recorder(), AttentionCall(rule, 0.1, scales=(signs, ones, ones)), q, k, v, {})
    assert out[:, :2].isfinite().all() and not out[:, 1].any() and out[:, 0].any()
    assert out[:, 2].isnan().all()


def test_long_rows_of_values_that_are_alike(schedule: Callable[[int], None]) -> None:
    """Weights that e4m3 has, and values: nothing is lost but what bfloat16 rounds, at any length."""
    n = 1500
    q, k, v = (torch.full((1, 1, n, 64), value).to(DTYPE) for value in (0.0, 0.0, 1.5))
    ones = torch.ones(1, 1)
    runner = launch.PlanExecutor(plan(lt.rule("k <= q"), n=n), q.device, shapes=shape_of)
    call = AttentionCall(lt.rule("k <= q"), 0.1, scales=(ones, ones, ones))
    out, lse = runner.forward(Recorder(), call, q, k, v, {})
    assert (out == 1.5).all()
    torch.testing.assert_close(lse[0, 0], torch.arange(1, n + 1).log())


# What the emulator finds: a kernel that is wrong in one place

WRONG = {
    "values are not waited for": ("                arrived(v_ready, last, STAGES)\n", ""),
    "values are never freed": ("                mbarrier.arrive(v_free.index(last % STAGES), count=1)\n", ""),
    "queries are never freed": ("        mbarrier.arrive(q_free.index(turn % TILES), count=1)\n", ""),
    "results lie where others are still written": (
        "        tma.store_wait(0)  # the results of the tile before have left\n", ""
    ),
    "keys are taken in their own order": ("2, 4, 2)).permute((0, 1, 3, 2, 4))", "4, 2, 2))"),
    "tiles begin anywhere": ("gl.constexpr(16)", "gl.constexpr(1)"),
    "sums shrink one step late": ("shrink, words = later, packed(p)", "shrink, words = shrink, packed(p)"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_kernel_that_is_wrong_is_found(
    what: str, schedule: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, (right, wrong) = Path(forward_fp8.__file__).read_text(), WRONG[what]
    assert source.count(right) == 1, f"{right} is there {source.count(right)} times"
    name = f"broken_{uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(source.replace(right, wrong))
    monkeypatch.syspath_prepend(str(tmp_path))
    kernel = import_module(name).attention_fwd_fp8_hopper_kernel
    monkeypatch.setattr(launches, "attention_fwd_fp8_hopper_kernel", kernel)
    monkeypatch.setattr(emulator, "MOST_IDLE", 500)
    monkeypatch.setattr(sys.modules[__name__], "PROGRAMS", 1)  # which takes all tiles
    with pytest.raises((AssertionError, emulator.Emulated)):
        for seed in range(20):
            schedule(seed)
            check("k <= q and q - k <= 290 and q - k >= 3", 700, 700, (1, 1), 64, 1, seed)
