"""The kernel for Hopper of 8 bits, run without one: in the emulator, beside float64 of the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gluon_emulator as emulator
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_rules import affine
from torch import Tensor

import lattend as lt
from lattend.attend.call import AttentionCall
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton import launch
from lattend.attend.kernels.triton.hopper import launches
from lattend.attend.kernels.triton.shapes import TileShape, on_hopper
from lattend.attend.kernels.triton.tables import in_order, refined
from lattend.attend.tape import Tape
from lattend.plans.plan import plan

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

    def instead(tape: Tape, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        emulator.launch(kernel, min(programs, PROGRAMS), arguments, constants, seeds[0])

    def table(tape: Tape, part: Any, table: Tensor, rows: int, *others: Any) -> Tensor:
        return refined(part, table, rows, others[2]).contiguous()

    def seeded(seed: int) -> None:
        seeds[0] = seed

    monkeypatch.setattr(launches.launched, "launch", instead)
    monkeypatch.setattr(launches, "transposed", by_torch)
    monkeypatch.setattr(launch, "device_table", table)
    monkeypatch.setattr(launch, "room_for_row_bounds", lambda *given: None)
    yield seeded


def by_torch(tape: Tape, v: Tensor) -> Tensor:
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
    runner = launch.Runner(plan(rule, **sizes, **numbers), q.device, shapes=shape_of)
    call = AttentionCall(rule.at(**numbers), factor, scales=scales)  # pyright: ignore[reportArgumentType]
    out, lse = runner.forward(Tape(), call, q, k, v, {name: x[None] for name, x in arrays.items()})
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
