"""Attention of 8 bits: what a person gives, what runs, and on a Hopper GPU the kernel beside float64."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import lattend as lt
from lattend.attend import quantize
from lattend.attend.call import fp8
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton import kernel
from lattend.attend.kernels.triton.launch import PlanExecutor
from lattend.attend.kernels.triton.shapes import on_hopper, steps
from lattend.attend.replay.recorder import Recorder
from lattend.errors import LattendError, NamingError, TensorError
from lattend.plans.plan import plan

DTYPE = torch.float8_e4m3fn
ROUNDED = 4e-3  # of an output in bfloat16 that was computed in float32
HAS_HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
needs_hopper = pytest.mark.skipif(not HAS_HOPPER, reason="needs a Hopper GPU: Gluon has no interpreter")
attend: Any = lt.attention
Quantized = tuple[list[Tensor], list[Tensor]]


def drawn(
    heads: tuple[int, int], n: int, m: int, widths: tuple[int, int], batch: int = 2, seed: int = 0,
    device: str = "cpu",
) -> Quantized:  # fmt: skip
    """q, k and v of 8 bits, and their scales."""
    source = torch.Generator(device).manual_seed(seed)
    shapes = ((heads[0], n, widths[0]), (heads[1], m, widths[0]), (heads[1], m, widths[1]))
    made = [quantize(torch.randn(batch, *shape, generator=source, device=device)) for shape in shapes]
    return [x for x, _ in made], [scale for _, scale in made]


def exact(given: Quantized) -> list[Tensor]:
    """What the numbers of 8 bits stand for, in float64."""
    return [x.double() * scale.double()[..., None, None] for x, scale in zip(*given, strict=True)]


def error(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted).norm() / wanted.norm().clamp(min=1e-9))


# What a person gives


@pytest.mark.parametrize("scale", [None, -0.3])
@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("k <= q", {}),
        ("k <= q and q - k <= t", {"t": 3}),
        ("k <= q", {"softcap": 5.0}),
        ("k <= q and head != 1", {}),
        ("k <= q", {"padding": torch.tensor([50, 7])}),
        ("k <= q", {"bias": lt.Bias("-slope[head]*(q - k)", slope=torch.rand(4))}),
        ("k <= q", {"sinks": torch.randn(4)}),
        ("doc[q] == doc[k]", {"doc": torch.arange(50) // 20}),
        ("k <= q", {"kernel": "reference"}),
    ],
)
def test_any_call_is_what_its_numbers_stand_for(
    rule: str, options: dict[str, Any], scale: float | None
) -> None:
    given = drawn((4, 2), 50, 50, (32, 48))
    out, lse = attend(*given[0], rule, scales=given[1], scale=scale, return_lse=True, **options)
    wanted, wanted_lse = attend(*exact(given), rule, scale=scale, return_lse=True, **options)
    assert out.dtype == torch.bfloat16 and lse.dtype == torch.float32
    assert error(out, wanted) <= ROUNDED
    torch.testing.assert_close(lse.double(), wanted_lse, rtol=1e-5, atol=1e-5)


def test_scales_are_numbers_or_one_for_each_head() -> None:
    (q, k, v), (of_q, of_k, _) = drawn((4, 2), 30, 30, (16, 16))
    found = attend(q, k, v, "k <= q", scales=(of_q[0], of_k.double(), 0.25))
    factors = (of_q[0][:, None, None], of_k[..., None, None], 0.25)
    wide = [x.double() * factor for x, factor in zip((q, k, v), factors, strict=True)]
    assert error(found, attend(*wide, "k <= q")) <= ROUNDED


def test_a_repeated_call_takes_the_scales_it_is_given() -> None:
    (q, k, v), scales = drawn((2, 2), 40, 40, (16, 16))
    for factor in (1.0, 2.0, 3.0, 3.0, 1.0):
        found = attend(q, k, v, "k <= q", scales=(*scales[:2], scales[2] * factor))
        wanted = attend(*exact(([q, k, v], [*scales[:2], scales[2] * factor])), "k <= q")
        assert error(found, wanted) <= ROUNDED


def test_on_images_and_end_to_end() -> None:
    (q, k, v), scales = drawn((2, 2), 36, 36, (16, 16))
    images = [x.reshape(2, 2, 6, 6, 16) for x in (q, k, v)]
    found = attend(*images, "abs(qy - ky) <= 1 and abs(qx - kx) <= 1", scales=scales)
    wide = [x.double() * s[..., None, None, None] for x, s in zip(images, scales, strict=True)]
    assert error(found, attend(*wide, "abs(qy - ky) <= 1 and abs(qx - kx) <= 1")) <= ROUNDED
    flat, cu = [x[0].transpose(0, 1) for x in (q, k, v)], torch.tensor([0, 10, 36])
    found = attend(*flat, "k <= q", scales=[s[0] for s in scales], cu_seqlens=cu)
    wide = [x.double() * s[0][:, None] for x, s in zip(flat, scales, strict=True)]
    assert error(found, attend(*wide, "k <= q", cu_seqlens=cu)) <= ROUNDED


def test_in_a_compiled_program_and_mapped() -> None:
    (q, k, v), scales = drawn((2, 2), 24, 24, (16, 16))
    wanted = attend(q, k, v, "k <= q", scales=scales)
    compiled: Any = torch.compile(lambda *given: 2 * attend(*given, "k <= q", scales=scales), backend="eager")
    assert torch.equal(compiled(q, k, v), 2 * wanted)
    mapped = torch.vmap(lambda q: attend(q, k, v, "k <= q", scales=scales))(torch.stack([q, q]))
    assert torch.equal(mapped, torch.stack([wanted, wanted]))


def test_quantize() -> None:
    x = torch.randn(2, 3, 50, 16)
    x[1, 2] = 0
    found, scale = quantize(x)
    assert found.dtype == DTYPE and scale.shape == (2, 3) and scale[1, 2] == 1
    wide = found.double() * scale.double()[..., None, None]
    assert error(wide, x.double()) <= 2**-4 / 3**0.5 and torch.equal(wide[1, 2], x[1, 2].double())
    assert (found.double().abs().amax((2, 3))[scale != 1] == fp8.MOST).all()
    assert quantize(x[:, :, :0])[1].eq(1).all()
    with pytest.raises(TensorError, match="takes a tensor of floating-point numbers"):
        quantize(torch.ones(2, 3, 4, dtype=torch.int64))


Q, K, V = (torch.zeros(2, heads, 8, 16).to(DTYPE) for heads in (4, 2, 2))
ONES, CACHE = (1, 1, 1), lt.KVCache("k <= q", batch=2, heads=2, head_dim=16)
WRONG: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "no scales": (TensorError, "q is float8_e4m3fn: give what its numbers are multiplied by", {}),
    "two of them": (NamingError, "scales are three, of q, k and v", {"scales": (1, 1)}),
    "other heads": (
        TensorError, r"the scale of q .* \(4,\) or \(2, 4\).*\(2, 2\)", {"scales": (torch.ones(2, 2), 1, 1)}
    ),
    "negative": (NamingError, "the scale of k is a number from 0 on", {"scales": (1, -1, 1)}),
    "whole numbers": (TensorError, "the scale of v .* int64", {"scales": (1, 1, torch.ones(2).long())}),
    "dropout": (NamingError, "dropout is for training", {"scales": ONES, "dropout": 0.1}),
    "a cache": (NamingError, "a cache holds numbers", {"scales": ONES, "cache": CACHE}),
    "a gradient": (
        LattendError, "has no gradients, and one is", {"scales": (torch.ones(4, requires_grad=True), 1, 1)}
    ),
    "a name from elsewhere": (NamingError, "write scales=", {"scales": ONES, "q_descale": 1}),
    "an unknown kernel": (NamingError, "kernel is one of", {"scales": ONES, "kernel": "none"}),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit(what: str) -> None:
    kind, message, options = WRONG[what]
    with pytest.raises(kind, match=message):
        attend(Q, K, V, "k <= q", **options)


def test_scales_of_wider_numbers() -> None:
    with pytest.raises(TensorError, match=r"and q is float32; lattend\.attend\.quantize gives both"):
        attend(Q.float(), K, V, "k <= q", scales=ONES)
    with pytest.raises(LattendError, match="has no gradients"):
        attend(Q.clone().requires_grad_(), K, V, "k <= q", scales=ONES)


# What runs


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are chosen as where Triton compiles them."""
    monkeypatch.setattr(kernel, "_interpreted", lambda: False)


def explained(rule: str = "k <= q", **options: Any) -> Any:
    asked = {"n": 16384, "heads": 16, "head_dim": 128, "device": "cuda"} | options
    return lt.explain(rule, dtype="float8_e4m3fn", **asked)


def test_explain_says_which_runs() -> None:
    found = explained()
    assert (found.kernel, found.dtype, found.backward) == ("triton", "float8_e4m3fn", None)
    assert found.parts[0].hopper and found.backward_text == "none: 8 bits have no gradients"
    assert found.kernels["sdpa"] == "it has no products of 8 bits"
    assert found.notes == (
        "8 bits: weights are rounded to e4m3 too, results are bfloat16 and have no gradients",
    )


@pytest.mark.parametrize(
    ("rule", "options", "dtype", "reason"),
    [
        ("k <= q", {"device": "cpu"}, "float32", "products of 8 bits need a Hopper GPU, and q is on cpu"),
        ("k <= q", {"softcap": 2.0}, "bfloat16", "the kernel of 8 bits does not take a softcap"),
        ("k <= q", {"kernel": "sdpa"}, "bfloat16", 'kernel="sdpa" has no products of 8 bits'),
        ("k <= q", {"head_dim": 256}, "bfloat16", "head dimensions from 33 to 128, and this is 256"),
        ("k <= q", {"head_dim": 32}, "bfloat16", "head dimensions from 33 to 128, and this is 32"),
        ("k <= q", {"head_dim": 72}, "bfloat16", "multiples of 16"),
        ("k <= q", {"n": 128}, "bfloat16", "fewer than 12,288 queries"),
        ("k <= q and (q - k) % 16 == 0", {}, "bfloat16", "whose keys follow each other"),
    ],
)
def test_explain_says_why_not(rule: str, options: dict[str, Any], dtype: str, reason: str) -> None:
    found = explained(rule, **options)
    assert found.dtype == dtype
    note = found.notes[-1]
    assert note.startswith(f"8 bits: dequantized to {dtype} before anything else") and reason in note


def test_steps_that_begin_with_a_multiple_of_16_are_counted() -> None:
    found, (cost,) = plan(lt.rule("k <= q and q - k <= 130"), n=1000), on_hopper("forward", 128, DTYPE)
    table, part = found.tiles(0, (128,)), found.parts[0]
    firsts = [max(0, 128 * tile - 130) // 16 * 16 for tile in range(8)]
    wanted = sum(-(-(min(128 * (tile + 1), 1000) - first) // 128) for tile, first in enumerate(firsts))
    assert sum(steps(table, part, cost.shape)) == wanted


# On a GPU


RULES = (
    "k <= q",
    "k <= q and q - k <= 300",
    "abs(q - k) <= 200",
    "q // 100 == k // 100",
    "k <= q and q - k <= 150 + 100 * head",
    "k < 40 or k <= q and q - k <= 200",
    "k <= q and q - k <= 50 or q - k >= 200 and q - k <= 330",  # parts that share queries
    "q >= 30 and k <= q and k < 190",  # rows that no part has
    "k <= q and head != 1",
    "doc[q] == doc[k] and k <= q",
    "k <= q and k >= begin[q]",
)


@needs_hopper
@pytest.mark.parametrize("text", RULES)
@settings(max_examples=8, deadline=None)
@given(
    n=st.sampled_from([1, 63, 128, 129, 500, 1000]),
    m=st.sampled_from([1, 100, 128, 500, 1000]),
    heads=st.sampled_from([(1, 1), (2, 2), (4, 2), (3, 1)]),
    head_dim=st.sampled_from([64, 80, 128]),
    batch=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_the_kernel(
    text: str, n: int, m: int, heads: tuple[int, int], head_dim: int, batch: int, seed: int
) -> None:
    given = drawn(heads, n, m, (head_dim, head_dim), batch, seed, "cuda")
    source = torch.Generator("cuda").manual_seed(seed)
    arrays: dict[str, Tensor] = {}
    if "doc" in text:
        arrays["doc"] = torch.randint(0, 4, (max(n, m),), generator=source, device="cuda").sort()[0]
    if "begin" in text:
        arrays["begin"] = torch.randint(0, m + 9, (n,), generator=source, device="cuda")
    rule = lt.rule(text, data=dict.fromkeys(arrays)) if arrays else lt.rule(text)
    sizes = {"n": n, "m": m} | ({"heads": heads[0]} if rule.has_heads else {})
    (cost,) = on_hopper("forward", head_dim, DTYPE)
    runner = PlanExecutor(plan(rule, **sizes), given[0][0].device, shapes=lambda kernel, place: cost.shape)
    call = AttentionCall(rule, head_dim**-0.5, scales=(given[1][0], given[1][1], given[1][2]))
    q, k, v = given[0]
    out, lse = runner.forward(Recorder(), call, q, k, v, {name: x[None] for name, x in arrays.items()})
    wanted, wanted_lse = attend(
        *exact(given), rule, kernel="dense", return_lse=True, **arrays, **({} if n == m else {"m": m})
    )
    assert error(out, wanted) <= TOLERANCE[DTYPE]
    # tensor cores add the products of a score with some 14 bits
    torch.testing.assert_close(lse.double(), wanted_lse, rtol=1e-3, atol=5e-3)


@needs_hopper
def test_a_person_s_call_on_a_gpu() -> None:
    (q, k, v), scales = drawn((8, 2), 2048, 2048, (128, 128), 1, 5, "cuda")
    wanted = attend(*exact(([q, k, v], scales)), "k <= q", kernel="dense")
    for factor in (1.0, 2.0, 2.0, 1.0):  # the first is checked, later ones are repeated
        found = attend(q, k, v, "k <= q", scales=(scales[0], scales[1], scales[2] * factor))
        assert error(found, wanted * factor) <= TOLERANCE[DTYPE]
    assert attend(q, k, v, "k <= q", scales=(-scales[0], scales[1], scales[2])).isnan().all()
    wide = lt.attention(q, k, v, "k <= q", scales=scales, softcap=50.0)  # dequantized
    capped = attend(*exact(([q, k, v], scales)), "k <= q", kernel="dense", softcap=50.0)
    assert error(wide, capped) <= TOLERANCE[torch.bfloat16]


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="needs Triton's interpreter")
def test_values_are_transposed() -> None:
    from lattend.attend.kernels.triton.hopper.transposed import transposed

    for shape in ((2, 3, 200, 64), (1, 1, 5, 80), (1, 2, 128, 128)):
        v = torch.randn(shape).to(DTYPE)
        found = transposed(Recorder(), v)
        place = torch.arange(found.shape[-1])
        key = (place & -16) + (place & 2) * 4 + ((place >> 2) & 3) * 2 + (place & 1)
        whole = torch.zeros(*shape[:2], found.shape[-1], shape[-1])
        whole[:, :, : shape[2]] = v.float()
        assert torch.equal(found.float(), whole[:, :, key].transpose(-1, -2))
