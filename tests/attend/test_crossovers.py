"""Which side of a measured crossover a call is on: the kernels it gets, and what explain says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf
from typing import Any

import pytest
import torch
from torch import Tensor

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.explain.explain import Explanation
from lattend.attend.explain.meta_call import MetaTensor
from lattend.attend.kernels import dispatch, gpu_crossovers, reference
from lattend.attend.kernels.crossover import KernelCrossover
from lattend.attend.kernels.dispatch import chosen, chosen_backward
from lattend.attend.kernels.native import crossovers, library
from lattend.attend.kernels.native import kernel as native
from lattend.attend.kernels.native.crossovers import Measured
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton import kernel as triton_kernel
from lattend.rules.rule import Rule

DTYPES = ("float32", "bfloat16", "float16")
with_native = pytest.mark.skipif(library.missing() is not None, reason=str(library.missing()))


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward 64 keys of 16, backward 32 of them, on causal blocks; none on full ones."""
    found = {
        (work, dtype, blocks): Measured(numbers if blocks == "causal" else inf, 128 * 16)
        for work, numbers in (("forward", 64 * 16), ("backward", 32 * 16))
        for dtype in DTYPES
        for blocks in ("causal", "full")
    }
    monkeypatch.setattr(crossovers, "measured", lambda: found)


@pytest.fixture
def gpu_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small blocks have fewer than 640 keys of 64, in float32 2,048 if causal; in half precision all of them
    fewer than 2^29 products; those of TF32 all are small. Windows have 256 keys of 128, Hopper's causal
    blocks 2,048 keys and 2^19 rows.
    """
    half, exact = {"numbers": 640 * 64, "products": 1 << 29}, {"numbers": 640 * 64, "products": 1 << 50}
    ours = {"numbers": inf, "products": inf, "measured": 4096}
    found = {
        "forward": {
            "half": {blocks: {"D to 128": half, "D to 256": half} for blocks in ("causal", "full")},
            "float32": {
                "causal": {"D to 128": {**exact, "numbers": 2048 * 64}, "D to 256": exact},
                "full": {"D to 128": exact, "D to 256": exact},
            },
            "TF32": {blocks: {"D to 128": ours, "D to 256": ours} for blocks in ("causal", "full")},
        },
        "windows": half,
        "backward": {"windows": 256 * 128},
        "hopper causal": {"keys": 2048, "rows": 1 << 19},
    }
    gpu_crossovers.small_blocks.cache_clear()
    monkeypatch.setattr(gpu_crossovers, "measured", lambda: found)
    yield
    gpu_crossovers.small_blocks.cache_clear()


def kernels(rule: Rule, q: Tensor, k: Tensor, kernel: str | None = None) -> tuple[str, str]:
    call = AttentionCall(rule, 1.0, kernel=kernel)
    return chosen(call, q, k, k), chosen_backward(call, q, k, k, None)


def test_every_pass_dtype_and_kind_of_block_was_measured() -> None:
    stored = json.loads(crossovers.FILE.read_text())
    assert set(stored["machine"]) == {"date", "cpu", "torch"}
    wanted = product(crossovers.PASSES, DTYPES, ("causal", "full"))
    assert set(crossovers.measured()) == set(wanted)
    assert {str(dtype).removeprefix("torch.") for dtype in native.DTYPES} == set(DTYPES)
    assert all(min(found) > 0 for found in crossovers.measured().values())


def test_every_kind_of_block_was_measured_on_a_gpu() -> None:
    stored = json.loads(gpu_crossovers.FILE.read_text())
    assert set(stored["machine"]) == {"date", "device", "torch"}
    for precision, causal, width in product(gpu_crossovers.PRECISIONS, (True, False), (16, 128, 256, 512)):
        assert min(gpu_crossovers.small_blocks(precision, causal, width)[:2]) > 0
    assert stored["backward"]["windows"] > 0 and min(stored["windows"].values()) > 0
    assert gpu_crossovers.HopperCausal(**stored["hopper causal"]).keys > 0


def test_the_text() -> None:
    below = KernelCrossover("forward", keys=1024, width=64, numbers=8192 * 64)
    said = "forward: torch's own attention is faster from 8,192 keys of 64 on; here there are 1,024, "
    assert (str(below), below.passed) == (f"{said}12.5% of that", False)
    above = KernelCrossover("backward", keys=3000, width=32, numbers=1000.5 * 32)
    said = "backward: torch's own attention is faster from 1,001 keys of 32 on; here there are 3,000, "
    assert (str(above), above.passed) == (f"{said}3 times that", True)
    never = KernelCrossover("forward", keys=10**6, width=64, numbers=inf, measured=2**20)
    assert str(never) == (
        "forward: torch's own attention was faster from no size on that was measured, up to 16,384 keys of "
        "64; here there are 1,000,000"
    )
    assert never.json()["library_faster_from"] is None and not never.passed


@pytest.mark.parametrize("numbers", [1, 1000, 1024, 1025])
@pytest.mark.parametrize("keys", [1, 63, 64, 65])
def test_the_text_and_the_choice_agree(numbers: int, keys: int) -> None:
    found = KernelCrossover("forward", keys, 16, numbers)
    assert found.first is not None and found.passed == (keys >= found.first)
    assert ("times that" in str(found)) == found.passed


@with_native
@pytest.mark.usefixtures("table")
def test_each_pass_has_its_own() -> None:
    for n, wanted in ((31, ("native", "native")), (32, ("native", "sdpa")), (64, ("sdpa", "sdpa"))):
        x = torch.zeros(1, 2, n, 16)
        assert kernels(lt.rules.causal().at(n=n), x, x) == wanted
        assert kernels(lt.rules.causal().at(n=n), x, x, kernel="native") == ("native", "native")
        assert kernels(lt.rules.full().at(n=n), x, x) == ("native", "native")
        assert kernels(lt.rules.strided(t=3).at(n=n), x, x) == ("native", "native")
        assert kernels(lt.rules.causal().at(n=n), x.double(), x.double()) == ("sdpa", "sdpa")
    x, lse = torch.zeros(1, 2, 32, 16), torch.zeros(1, 2, 32)
    call = AttentionCall(lt.rules.causal().at(n=32), 1.0)
    assert chosen_backward(call, x, x, x, lse) == "native"  # torch's takes no gradient of the log-sum-exp


@with_native
@pytest.mark.usefixtures("table")
def test_a_window_counts_by_its_own_keys_and_not_by_its_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.zeros(1, 2, 128, 16)
    assert kernels(lt.rules.windowed(w=16).at(n=128), x, x) == ("native", "native")
    assert kernels(lt.rules.windowed(w=32).at(n=128), x, x) == ("native", "sdpa")
    assert kernels(lt.rules.windowed(w=64).at(n=128), x, x) == ("sdpa", "sdpa")
    few = {(work, "float32", "full"): Measured(64 * 16, 2048) for work in crossovers.PASSES}
    monkeypatch.setattr(crossovers, "measured", lambda: few)
    assert kernels(lt.rules.full().at(n=8, m=128), x[:, :, :8], x) == ("sdpa", "sdpa")
    assert kernels(lt.rules.full().at(n=128, m=8), x, x[:, :, :8]) == ("native", "native")


@with_native
@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rule", [lt.rules.causal(), lt.rules.windowed(w=40)], ids=str)
@pytest.mark.parametrize(("kv_heads", "inside"), [(4, False), (2, True)])
def test_torch_takes_gradients_of_what_the_native_kernel_gave(
    rule: Rule, dtype: torch.dtype, kv_heads: int, inside: bool
) -> None:
    n = 80 if "w" in rule.values else 41
    source = torch.Generator().manual_seed(0)
    q, k, v, grad = (
        torch.randn(2, n, heads, 16, generator=source).to(dtype).transpose(1, 2)
        for heads in (4, kv_heads, kv_heads, 4)
    )
    if not inside:
        q, k, v, grad = (x.contiguous() for x in (q, k, v, grad))
    call = AttentionCall(rule.at(n=n), 0.3)
    assert (chosen(call, q, k, v), chosen_backward(call, q, k, v, None)) == ("native", "sdpa")
    out, lse = dispatch.prepare(call, q, k, v).run(q, k, v)
    given = BackwardInputs(grad, None, q, k, v, out, lse)
    found = dispatch.prepare_backward(call, given)(grad, q, k, v, out, lse)
    wide = [x.double() for x in (q, k, v, grad)]
    exact, sums = reference.forward(call, wide[0], wide[1], wide[2])
    inputs = BackwardInputs(wide[3], None, wide[0], wide[1], wide[2], exact, sums)
    wanted = reference.backward(call, inputs)[:3]
    for one, other in zip(found, wanted, strict=True):
        assert (one.double() - other).norm() / other.norm() < TOLERANCE[dtype]


@with_native
@pytest.mark.usefixtures("table")
def test_explain_says_which_side_a_call_is_on() -> None:
    found = lt.explain("causal", n=48, head_dim=16)
    assert (found.kernel, found.backward, found.backward_text) == (
        *("native", "sdpa"),
        "sdpa, the same on every run",
    )
    assert [str(crossover) for crossover in found.crossovers] == [
        "forward: torch's own attention is faster from 64 keys of 16 on; here there are 48, 75.0% of that",
        "backward: torch's own attention is faster from 32 keys of 16 on; here there are 48, 1.5 times that",
    ]
    shown = " ".join(str(found).split())
    assert "crossover forward: torch's own attention is faster from 64 keys of 16 on" in shown
    assert found.json()["crossovers"][1] == {
        **{"pass": "backward", "keys": 48, "width": 16},
        **{"library_faster_from": 32, "library_is_faster": True},
    }
    large = lt.explain("causal", n=128, head_dim=16)
    assert (large.kernel, large.backward) == ("sdpa", "sdpa")
    assert [str(crossover) for crossover in large.crossovers] == [
        "forward: torch's own attention is faster from 64 keys of 16 on; here there are 128, 2 times that"
    ]


def test_explain_says_nothing_where_no_size_decides() -> None:
    asked: list[dict[str, Any]] = [{"kernel": "sdpa"}, {"dtype": "float64"}, {"softcap": 2.0}]
    for options in asked:
        assert lt.explain("causal", n=64, **options).crossovers == ()
    assert lt.explain("strided", n=64, t=3).crossovers == ()


@pytest.mark.usefixtures("gpu_table")
def test_windows_on_a_gpu() -> None:
    def explained(**options: Any) -> Explanation:
        return lt.explain("windowed", n=65536, head_dim=64, dtype="bfloat16", device="cuda", **options)

    def said(found: Explanation) -> list[str]:
        return [str(crossover) for crossover in found.crossovers if crossover.work == "backward"]

    assert said(explained(w=128)) == []  # it must be deterministic: no size decides
    small = explained(w=128, deterministic=False)
    assert small.backward_text == "triton; not sdpa: its backward pass is slower on windows this small"
    begun = "backward: torch's own attention is faster from 512 keys of 64 on; here there are "
    assert said(small) == [f"{begun}128, 25.0% of that"]
    large = explained(w=1024, deterministic=False)
    assert large.backward == "sdpa"
    assert said(large) == [f"{begun}1,024, 2 times that"]
    assert said(lt.explain("causal", n=4096, device="cuda", deterministic=False)) == []


@pytest.mark.usefixtures("gpu_table")
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_small_call_on_a_gpu_is_launched_by_us(dtype: str) -> None:
    def explained(n: int, heads: int, **options: Any) -> Explanation:
        return lt.explain("causal", n=n, heads=heads, head_dim=64, dtype=dtype, device="cuda", **options)

    small = explained(512, 4)
    assert (small.kernel, small.backward) == ("triton", "triton")
    (found,) = small.crossovers
    half = dtype == "bfloat16"
    said = (
        "640 keys of 64 on; here there are 512, 80.0%"
        if half
        else "2,048 keys of 64 on; here there are 512, 25.0%"
    )
    assert str(found) == f"forward: torch's own attention is faster from {said} of that"
    (found,) = explained(2048, 4).crossovers
    said = (
        "640 keys of 64 on; here there are 2,048, 3.2 times"
        if half
        else "2,048 keys of 64 on; here there are 2,048, 1 times"
    )
    assert str(found) == f"forward: torch's own attention is faster from {said} that"
    many = explained(512, 512)  # so much work that no launch is waited for
    assert (many.kernel, many.crossovers[0].first) == (("sdpa", 64) if half else ("triton", 2048))
    assert explained(512, 4, kernel="sdpa").crossovers == ()


@pytest.mark.usefixtures("gpu_table")
@pytest.mark.parametrize(
    ("head_dim", "n", "taken"),
    [(128, 1024, False), (128, 2048, True), (128, 32_768, False), (64, 8192, False), (64, 16_384, True),
     (32, 16_384, False), (256, 2048, False), (256, 4096, True), (256, 16_384, False)],
)  # fmt: skip
def test_long_causal_rows_on_hopper(
    head_dim: int, n: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From so many keys on, and with 2^19 rows at most: 16 heads of 32,768; of a wide head half as many."""
    monkeypatch.setattr(triton_kernel, "_interpreted", lambda: False)
    found = lt.explain("causal", n=n, heads=16, head_dim=head_dim, dtype="bfloat16", device="cuda")
    assert (found.kernel == "triton") == taken


def on_a_gpu(rule: str, heads: int, kv_heads: int, dtype: torch.dtype, **how: Any) -> tuple[str, str]:
    """The kernels of both passes of a call with 256 keys of 64, there or not."""
    q, k = (
        MetaTensor(torch.empty(1, count, 256, 64, dtype=dtype, device="meta")) for count in (heads, kv_heads)
    )
    q.on = k.on = torch.device("cuda")
    call = AttentionCall(lt.rule(rule).at(n=256), 0.1, **how)
    return chosen(call, q, k, k), chosen_backward(replace(call, trains=True), q, k, k, None)


@pytest.mark.usefixtures("gpu_table")
def test_a_small_training_step_that_may_be_nondeterministic_is_torchs_own() -> None:
    """Torch differentiates its own attention without Python; a forward alone is launched by us."""
    half, plain = torch.bfloat16, torch.float32
    free: dict[str, Any] = {"deterministic": False}
    assert on_a_gpu("k <= q", 4, 4, half, **free) == ("sdpa", "sdpa")
    assert on_a_gpu("k <= q", 4, 4, half, **free, trains=False) == ("triton", "sdpa")
    assert on_a_gpu("k <= q", 4, 4, half) == ("triton", "triton")
    assert on_a_gpu("k <= q", 4, 1, half, **free) == ("sdpa", "sdpa")
    assert on_a_gpu("k <= q", 4, 1, plain, **free) == ("triton", "triton")  # torch would repeat the keys
    assert on_a_gpu("q // 32 == k // 32", 4, 4, half, **free) == ("triton", "triton")


@pytest.mark.usefixtures("gpu_table")
def test_products_of_tf32_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's own attention makes three products for each, whether one is allowed or not."""
    free: dict[str, Any] = {"deterministic": False}
    large: dict[str, Any] = {"n": 8192, "head_dim": 128, "dtype": "float32", "device": "cuda"}
    assert on_a_gpu("k <= q", 4, 4, torch.float32, **free) == ("sdpa", "sdpa")
    assert lt.explain("causal", **large).kernel == "sdpa"
    monkeypatch.setattr(gpu_crossovers, "uses_tf32", lambda: True)
    assert on_a_gpu("k <= q", 4, 4, torch.float32, **free) == ("triton", "triton")
    told = lt.explain("causal", **large)
    said = "torch's own attention was faster from no size on that was measured, up to 4,096 keys of 128"
    assert told.kernel == "triton" and said in str(told.crossovers[0])
    assert on_a_gpu("k <= q", 4, 4, torch.bfloat16, **free) == ("sdpa", "sdpa")


@pytest.mark.usefixtures("gpu_table")
def test_shared_heads_count_where_keys_have_gradients() -> None:
    """256 keys are below 2,048, and above 2,048 / 16, what is left where sixteen heads add to each gradient.

    With gradients that are the same on every run the backward is ours, whichever the forward is.
    """
    assert on_a_gpu("k <= q", 16, 1, torch.float32, deterministic=False)[0] == "sdpa"
    for trains in (True, False):
        assert on_a_gpu("k <= q", 16, 1, torch.float32, trains=trains)[0] == "triton"
    assert on_a_gpu("k <= q", 16, 1, torch.float32, deterministic=False, trains=False)[0] == "triton"


@pytest.mark.usefixtures("gpu_table")
def test_explain_sees_whether_a_gradient_is_wanted() -> None:
    q = torch.empty(1, 4, 64, 16)
    how: dict[str, Any] = {"device": "cuda", "dtype": "bfloat16", "deterministic": False}
    found = [lt.explain("causal", like=x, **how) for x in (q, q.clone().requires_grad_(), (1, 4, 64, 16))]
    assert [one.kernel for one in found] == ["triton", "sdpa", "sdpa"]
    assert [one.backward for one in found] == ["sdpa"] * 3
    said = "sdpa, nondeterministic (atomics)"
    assert found[0].backward_text == f"{said}; a training step has sdpa in its forward pass too"
    assert found[1].backward_text == said
    with torch.no_grad():
        assert lt.explain("causal", like=q.clone().requires_grad_(), **how).kernel == "triton"
    sinks = torch.zeros(4, requires_grad=True)
    assert lt.explain("causal", like=q, sinks=sinks, **how).kernel == "sdpa"
