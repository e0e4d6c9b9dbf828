"""Random rules on every kernel, forward and backward, against the reference in float64.

Memory is filled with NaN before a kernel sees it, so that what no part writes cannot be read unnoticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from random_rules import Attended, attended
from torch import Tensor

import lattend as lt
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton import launch
from lattend.errors import LattendError
from lattend.plans.plan import plan
from lattend.plans.tables.tile_costs import Choice, TileShape
from lattend.rules.rule import Rule

pytestmark = [  # of the interpreter: its NumPy warns of log 0, and of scalars in arrays
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
KERNELS = ["triton", "dense", "sdpa", None] + (["cpu"] if DEVICE.type == "cpu" else [])
LINES = (TileShape((16,), 16), TileShape((16,), 16, split=True), TileShape((16,), 16, tma=True, split=True))
BOXES = (TileShape((4, 4), 16), TileShape((1, 16), 16), TileShape((16, 1), 16))
BOXES += tuple(
    TileShape(outer, 16, tma=True, inner=inner) for outer in ((4, 4), (2, 8)) for inner in ((2, 8), (16, 1))
)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
PROMISED = ("two parts", "no part", "a gate", "queries left out", "empty rows", "m != n", "one query")
PROMISED += ("grouped-query", "a bias", "an odd head_dim", "sdpa", "an image", "an array", "float16")


@pytest.fixture(scope="module", autouse=True)
def nan_in_fresh_memory() -> Iterator[None]:
    """torch.empty and all its kin give NaN while these tests run."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.zeros(1).new_empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(before)


def made(case: Attended) -> tuple[Rule, dict[str, Any]]:
    """The rule and the values it is called with."""
    source = torch.Generator().manual_seed(case.seed)
    n, m = case.sizes if case.on_a_line else (prod(case.sizes),) * 2
    shapes = {"doc": (max(n, m),), "seen": (case.heads, m), "chosen": (-(-n // 4), -(-m // 4))}
    arrays = {
        name: torch.randint(0, 2 if name != "doc" else 3, shape, generator=source)
        for name, shape in shapes.items()
        if f"{name}[" in case.text
    }
    if case.bound:
        rule, values = lt.rule(case.text, data={name: x.numpy() for name, x in arrays.items()}), {}
    else:
        rule = lt.rule(case.text, data=dict.fromkeys(arrays))
        if case.per_element:
            arrays = {name: torch.stack([x, 1 - x][: case.batch]) for name, x in arrays.items()}
        values = {name: x.to(DEVICE) for name, x in arrays.items()}
    values |= {name: value for name, value in (("t", case.t), ("w", case.w)) if name in rule.parameters}
    if not case.on_a_line:
        return rule, {**values, "rows": case.sizes[0], "cols": case.sizes[1]}
    return rule, values | ({"m": m} if m != n or "m" in rule.sizes else {})


def tensors(case: Attended) -> tuple[list[Tensor], dict[str, Tensor]]:
    """q, k and v, and the tensors of the bias, of which the large ones are not contiguous."""
    source = torch.Generator().manual_seed(case.seed)
    n, m = case.sizes if case.on_a_line else (prod(case.sizes),) * 2
    shapes = (
        (case.heads, n, case.head_dim),
        (case.kv_heads, m, case.head_dim),
        (case.kv_heads, m, case.value_dim),
    )
    qkv = [torch.randn(case.batch, *shape, generator=source) for shape in shapes]
    drawn = {
        "slope": torch.randn(case.heads, generator=source) / 8,
        "near": torch.randn(7, case.heads, generator=source).mT,
        "row": torch.randn(n, 2, generator=source)[:, 0],
        "column": torch.randn(m, generator=source),
        "scalar": torch.randn((), generator=source) / 8,
        "table": torch.randn(n, m, case.heads, generator=source).permute(2, 0, 1),
        "masked": torch.zeros(n, m),
    }
    drawn["masked"][torch.rand(n, m, generator=source) < 0.3] = -torch.inf
    drawn["masked"][n // 2] = -torch.inf
    return qkv, {name: x for name, x in drawn.items() if case.bias is not None and name in case.bias}


def results(
    case: Attended, kernel: str | None, dtype: torch.dtype, slopes: tuple[Tensor, Tensor] | None
) -> tuple[list[Tensor], tuple[Tensor, Tensor]]:
    """Output, log-sum-exp and all gradients, in float64 on the CPU; and the gradients that came in."""
    rule, values = made(case)
    qkv, biases = tensors(case)
    kind = getattr(torch, case.dtype)
    q, k, v = (x.to(kind).to(DEVICE, dtype).requires_grad_() for x in qkv)
    whole = {
        name: x.to(DEVICE, torch.float64 if dtype == torch.float64 else x.dtype) for name, x in biases.items()
    }
    whole = {name: x.requires_grad_() for name, x in whole.items()}
    bias = None if case.bias is None else whole.get(case.bias)
    if case.bias is not None and bias is None:
        bias = lt.Bias(case.bias, **whole)
    out, lse = lt.attention(q, k, v, rule, kernel=kernel, bias=bias, return_lse=True, **values)
    if slopes is None:
        source = torch.Generator().manual_seed(case.seed + 1)
        slopes = (torch.randn(out.shape, generator=source), torch.randn(lse.shape, generator=source))
        slopes = (
            slopes[0].to(kind).double(),
            slopes[1].double().masked_fill(lse.cpu().isneginf(), torch.nan),
        )
    incoming = (slopes[0].to(DEVICE, out.dtype), slopes[1].to(DEVICE, lse.dtype))
    asked = [q, k, v, *whole.values()]
    grads = torch.autograd.grad((out, lse), asked, incoming)
    return [x.detach().cpu().double() for x in (out, lse, *grads)], slopes


def check(case: Attended, seen: Counter[str]) -> None:
    """Raises unless every kernel that takes the call gives what the reference does."""
    wanted, slopes = results(case, "reference", torch.float64, None)
    note(case, wanted[1], seen)
    dtype = getattr(torch, case.dtype)
    shape = (LINES if case.on_a_line else BOXES)[case.tile]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "choose", lambda *given, **how: Choice(shape, 1.0, True))
        for kernel in KERNELS:
            try:
                found, _ = results(case, kernel, dtype, slopes)
            except LattendError as reason:
                assert kernel == "sdpa" and 'kernel="sdpa" cannot run this' in str(reason)
                continue
            seen[str(kernel)] += 1
            names = ("out", "lse", "dq", "dk", "dv", *tensors(case)[1])
            for name, x, exact in zip(names, found, wanted, strict=True):
                compare(f"{kernel}: {name}", x, exact, 5 * TOLERANCE[dtype])


def compare(what: str, found: Tensor, exact: Tensor, limit: float) -> None:
    assert torch.equal(found == -torch.inf, exact == -torch.inf), f"{what}: -inf elsewhere"
    held = exact != -torch.inf
    error = (found - exact)[held].norm() / (exact[held].norm() + 1)  # terms of size 1 may cancel
    assert error < limit, f"{what} is off by {error:.1e}"


def note(case: Attended, lse: Tensor, seen: Counter[str]) -> None:
    """Counts what the case reaches."""
    rule, values = made(case)
    names = ("rows", "cols") if not case.on_a_line else ("n", "m")
    sizes = dict(zip(names, case.sizes, strict=True)) | ({"heads": case.heads} if rule.has_heads else {})
    numbers = {name: x for name, x in values.items() if isinstance(x, int)}
    parts = plan(rule, **sizes | numbers).parts
    seen["examples"] += 1
    seen["two parts"] += len(parts) > 1
    seen["no part"] += not parts
    seen["a gate"] += any(part.gates for part in parts)
    seen["queries left out"] += any(not part.covers for part in parts)
    seen["empty rows"] += bool(lse.isneginf().any())
    seen["m != n"] += case.on_a_line and case.sizes[0] != case.sizes[1]
    seen["one query"] += case.on_a_line and case.sizes[0] == 1
    seen["grouped-query"] += case.heads != case.kv_heads
    seen["a bias"] += case.bias is not None
    seen["an odd head_dim"] += case.head_dim in (1, 5)
    seen["an image"] += not case.on_a_line
    seen["an array"] += "[" in case.text
    seen["float16"] += case.dtype == "float16"


def case(
    text: str, sizes: tuple[int, int], heads: int = 2, kv_heads: int = 2, t: int = 3, **others: Any
) -> Attended:
    usual: dict[str, Any] = {
        "head_dim": 16, "value_dim": 16, "batch": 1, "bias": None, "dtype": "float32", "w": 2,
        "bound": True, "per_element": False, "tile": 1, "seed": 0,
    }  # fmt: skip
    return Attended(text, sizes, heads, kv_heads, t=t, **usual | others)


WRONG_ONCE = [
    case("k <= q and k <= 2 or head < 1", (37, 37)),
    case("((q == t) or (k <= t - 1)) and k <= q or head < 1", (37, 37), kv_heads=1),
    case("q % 7 == 3 or k % 7 != 0", (1, 9)),
    case("0 < kx - kx == -2", (3, 4), tile=0),
    case("0 < kx - kx == -2 or qx % 7 == 3", (9, 1), tile=0),
    case("k < q", (9, 9), bias="slope[head]*(q - k)"),  # with NaN flowing into an empty row
    case("k <= q", (9, 9), bias="table"),
    case("k >= 0", (21, 37), bias="masked"),
    case("qy == ky or qx == kx", (3, 4), bias="masked", tile=0),
]


@pytest.mark.parametrize("one", WRONG_ONCE, ids=lambda one: one.text)
def test_what_was_wrong_once(one: Attended) -> None:
    check(one, Counter())


def swept(most: int, start: int = 0) -> Counter[str]:
    """Checks so many random cases, and counts what they reached; none is passed over."""
    seen: Counter[str] = Counter()

    @seed(start)
    @settings(max_examples=most, suppress_health_check=SLOW, phases=[Phase.generate])
    @given(one=attended())
    def every(one: Attended) -> None:
        seen["tried"] += 1
        check(one, seen)

    every()
    assert seen["tried"] == seen["examples"] >= 0.95 * most, f"{seen['examples']} of {most} were checked"
    return seen


def test_random_rules() -> None:
    swept(16)


@pytest.mark.long
@pytest.mark.parametrize("start", range(4))
def test_many_random_rules(start: int) -> None:
    seen = swept(500, start)
    for kind in PROMISED:
        assert seen[kind] >= 5, f"only {seen[kind]} of {seen['examples']} cases have {kind}"
