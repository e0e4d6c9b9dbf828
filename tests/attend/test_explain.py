"""explain: its numbers against brute force, its reasons against the selection, its words and pictures."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.explain.explain import Explanation
from lattend.attend.kernels.cpu import kernel as cpu
from lattend.attend.kernels.dispatch import KERNELS, reasons
from lattend.attend.kernels.triton.shapes import choose
from lattend.draw.formats.palette import EMPTY
from lattend.errors import DomainError, LattendError, NamingError, TensorError, TooLarge, TraceError
from lattend.plans.plan import forget_plans, plan
from lattend.rules.rule import Rule

R = lt.rules
GPU: dict[str, Any] = {"device": "cuda", "dtype": "bfloat16"}
DOC = torch.arange(300) // 37
RULES: dict[str, tuple[Rule, dict[str, Any]]] = {
    "strided": (R.strided(), {"n": 300, "t": 40}),
    "thin": (R.strided(), {"n": 300, "t": 1}),
    "windowed": (R.windowed(), {"n": 300, "w": 70}),
    "sparse_strided": (R.sparse_strided(), {"n": 300, "l": 17}),
    "sparse_fixed": (R.sparse_fixed(), {"n": 300, "l": 16, "c": 3}),
    "longformer": (R.longformer(), {"n": 300, "t": 20, "g": 3}),
    "dilated": (R.dilated(), {"n": 300, "t": 9, "step": 4}),
    "some queries": (lt.rule("q % 4 == 1 and k <= q"), {"n": 300}),
    "not affine": (lt.rule("k*k <= q"), {"n": 300}),
    "heads": (lt.rule("k <= q and q - k <= t*head"), {"n": 300, "t": 30}),
    "other keys": (R.strided(), {"n": 100, "m": 300, "t": 40}),
    "neighbourhood": (R.neighbourhood(), {"rows": 20, "cols": 24, "r": 3}),
    "dilated image": (R.neighbourhood(step="step"), {"rows": 20, "cols": 24, "r": 1, "step": 3}),
    "axial": (R.axial(), {"rows": 20, "cols": 24}),
    "volume": (R.neighbourhood(axes=3), {"depth": 5, "rows": 6, "cols": 7, "r": 1}),
    "empty": (lt.rule("k < q and k > q"), {"n": 30}),
    "blocks": (R.bigbird(w=16, t=1, g=1, random=2, n=300), {}),
}


def explained(name: str, **options: Any) -> Explanation:
    rule, numbers = RULES[name]
    return lt.explain(rule, heads=4, **numbers, **options)


# Squares


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("options", [GPU, {}], ids=["cuda", "cpu"])
def test_needed_is_the_sum_of_the_mask(name: str, options: dict[str, Any]) -> None:
    rule, numbers = RULES[name]
    found = explained(name, **options)
    mask = rule.mask(**numbers, **({"heads": 4} if rule.has_heads else {}))
    assert (found.needed, found.dense) == (int(mask.sum()), mask.size)
    assert found.grids == (4 if rule.has_heads else 1)
    assert found.executed is not None and found.executed >= int(mask.sum())
    assert found.executed == sum(part.executed for part in found.parts)


@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("name", RULES)
def test_executed_on_a_gpu_is_the_steps_of_all_tiles(name: str, head_dim: int) -> None:
    rule, numbers = RULES[name]
    heads = {"heads": 4} if rule.has_heads else {}
    planned = plan(rule, **numbers, **heads)
    found = explained(name, kernel="triton", head_dim=head_dim, **GPU)
    assert len(found.parts) == len(planned.parts)
    for place, part in enumerate(found.parts):
        shape = choose(planned, place, "forward", head_dim, torch.bfloat16).shape
        table = planned.tiles(place, shape.outer).table
        steps = tiles = 0
        for tile in table.reshape(-1, table.shape[-1]).tolist():
            sides = [tile[a * 5 + 4] - tile[a * 5 + 3] for a in range(len(shape.outer))]
            slots = prod(sides)
            boxes = [len(range(0, side, size)) for side, size in zip(sides, shape.inner, strict=False)]
            steps += prod(boxes) if boxes else len(range(0, slots, shape.step))
            tiles += slots > 0
        each = 4 // len(table) if heads else 1
        assert (part.rows, part.step) == (shape.outer, shape.step)
        assert (part.tiles, part.steps) == (tiles * each, steps * each)
        assert part.executed == steps * each * prod(shape.outer) * shape.step


def _full_steps(name: str, found: Explanation) -> list[int]:
    """The steps of each part of a line whose pairs are all attended, from the mask."""
    rule, numbers = RULES[name]
    planned, mask = plan(rule, **numbers), rule.mask(**numbers)
    counts: list[int] = []
    for place, part in enumerate(found.parts):
        axis = planned.parts[place].axes[0]
        count, step = 0, part.step or 1 << 30
        for slot, base, inner_base, begin, end, *_ in planned.tiles(place, part.rows).table[0].tolist():
            rows = axis.outer_order.positions(slot + np.arange(part.rows[0]), base)
            rows = rows[(rows >= axis.first) & (rows <= axis.last)]
            for first in range(begin, end, step):
                slots = np.arange(first, first + step if part.step else end)
                keys = axis.inner_order.positions(slots, inner_base)
                inside = keys.max() < axis.inner_size and slots[-1] < end
                count += bool(inside and mask[np.ix_(rows, keys)].all())
        counts.append(count)
    return counts


@pytest.mark.parametrize("name", ["strided", "thin", "windowed", "dilated", "sparse_fixed"])
@pytest.mark.parametrize("options", [GPU, {}], ids=["cuda", "cpu"])
def test_full_steps_are_those_attended_all_over(name: str, options: dict[str, Any]) -> None:
    """Those of a part are a part of those of the rule, in which a tile may be full by several parts."""
    found = explained(name, kernel="triton" if options else "cpu", **options)
    for part, count in zip(found.parts, _full_steps(name, found), strict=True):
        assert part.full is not None and part.partial == part.steps - part.full
        assert part.full <= count
        if len(found.parts) == 1:
            assert part.full == count


@pytest.mark.parametrize("name", RULES)
def test_executed_on_a_cpu_is_what_its_kernel_computes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, numbers = RULES[name]
    shapes: list[tuple[int, int, int]] = []
    plain = cpu.tile_group

    def seen(*given: Any) -> Any:
        group = plain(*given)
        shapes.append(group.shape)
        return group

    found = explained(name, kernel="cpu")
    forget_plans()
    monkeypatch.setattr(cpu, "tile_group", seen)
    q, k, v = (torch.zeros(shape) for shape in found.shapes)
    sizes = {size: number for size, number in numbers.items() if size != "n"}
    lt.attention(q, k, v, rule, kernel="cpu", **sizes)
    computed = sum(map(prod, shapes))
    assert found.executed is not None
    if found.bound:
        assert found.bound == "at most" and found.executed >= computed
    else:
        assert found.executed == computed


@pytest.mark.usefixtures("without_native")
def test_other_kernels() -> None:
    causal = lt.explain(R.causal(), n=300)
    assert (causal.kernel, causal.bound) == ("sdpa", "about")
    # 300 queries in tiles of 128, 128 and 44: 128*128 + 128*256 + 44*300
    assert causal.executed == 128 * 128 + 128 * 256 + 44 * 300
    assert causal.parts[0].layout == "one block of 300 × 300, up to the diagonal"
    whole = lt.explain(R.full(), n=300, m=200)
    assert (whole.kernel, whole.executed, whole.bound, whole.useful) == ("sdpa", 60_000, "", 1.0)
    windows = lt.explain(R.windowed(), n=1024, w=256)
    assert windows.parts[0].layout == "4 blocks of 256 × 256, up to the diagonal"
    assert windows.executed == 4 * (128 * 128 + 128 * 256)
    dense = lt.explain(R.causal(), n=300, kernel="dense")
    assert (dense.executed, dense.parts) == (90_000, ())
    assert dense.why == "the dense kernel computes every pair and throws away those that are not attended"
    reference = lt.explain(R.strided(), n=300, t=3, heads=1, kernel="reference")
    assert (reference.executed, reference.useful) == (reference.needed, 1.0)


def test_data_of_each_batch_element() -> None:
    rule = R.documents(causal=True)
    docs = torch.stack([DOC, DOC * 0, DOC // 2])
    found = lt.explain(rule, like=(3, 2, 300, 64), doc=docs, **GPU)
    lengths = [(docs[i][:, None] == docs[i]).tril().sum().item() for i in range(3)]
    assert (found.needed, found.dense, found.grids) == (sum(lengths), 3 * 300 * 300, 3)
    assert found.bound == "" and found.forward_time.bound == "at most"
    assert "of a batch of 3" in str(found)
    one = lt.explain(rule, like=torch.empty(3, 2, 300, 64), doc=DOC)
    assert (one.needed, one.bound, one.kernel) == (lengths[0], "at most", "cpu")
    assert one.why.endswith('"doc[q] == doc[k]" looks up data, and the cpu kernel checks it for each pair')
    bare = lt.explain(rule, like=(3, 2, 300, 64), doc=DOC.to("meta"), **GPU)
    assert (bare.needed, bare.not_counted, bare.bound) == (None, "doc has no values here", "at most")
    assert bare.parts[0].full is None
    with pytest.raises(LattendError, match="doc has no values here"):
        bare.picture()
    assert bare._repr_svg_() is None


def test_blocks_given_now_are_the_blocks_of_the_rule() -> None:
    table = torch.tensor(np.random.default_rng(0).random((19, 19)) < 0.2)
    text = "k <= q and chosen[q // 16, k // 16]"
    bound = lt.rule(text, data={"chosen": table.numpy()})
    opened = lt.rule(text, data={"chosen": None})
    options: dict[str, Any]
    for options in (GPU, {}):
        one = lt.explain(bound, n=300, **options)
        other = lt.explain(opened, n=300, chosen=table, **options)
        assert (one.needed, one.executed, one.parts) == (other.needed, other.executed, other.parts)
        both = lt.explain(opened, like=(2, 8, 300, 64), chosen=torch.stack([table, table]), **options)
        assert one.needed and one.executed
        assert (both.needed, both.executed) == (2 * one.needed, 2 * one.executed)


# Kernels


@pytest.mark.usefixtures("without_native")
@pytest.mark.parametrize("name", ["strided", "heads", "not affine"])
@pytest.mark.parametrize("kernel", [None, "cpu", "dense"])
def test_reasons_are_those_of_the_selection(name: str, kernel: str | None) -> None:
    rule, numbers = RULES[name]
    q, k, v = (torch.zeros(2, 4, 300, 32) for _ in range(3))
    found = lt.explain(rule, like=(q, k, v), kernel=kernel, **{x: y for x, y in numbers.items() if x != "n"})
    bound = rule.at(**numbers, **({"heads": 4} if rule.has_heads else {}))
    assert found.kernels == reasons(AttentionCall(bound, 1.0, kernel), q, k, v)
    assert found.kernel == found.backward == (kernel or "cpu")


def test_kernels_on_a_gpu_that_is_not_here() -> None:
    found = lt.explain(R.windowed(), n=65536, w=512, **GPU)
    assert (found.kernel, found.backward) == ("sdpa", "triton")
    assert found.backward_text.startswith("triton; not sdpa: its backward pass is nondeterministic (atomics)")
    loose = lt.explain(R.windowed(), n=65536, w=4096, deterministic=False, **GPU)
    assert (loose.backward, loose.backward_text) == ("sdpa", "sdpa, nondeterministic (atomics)")
    small = lt.explain(R.windowed(), n=65536, w=512, deterministic=False, **GPU)
    assert small.backward == "triton"
    assert "not sdpa: its backward pass is slower on windows this small" in small.backward_text
    added = lt.explain(R.causal(), n=4096, bias=lt.Bias.alibi(8), **GPU)
    assert (added.kernel, added.kernels["sdpa"]) == ("triton", "there is a bias")
    shared = lt.explain(R.causal(), like=((1, 8, 4096, 64), (1, 2, 4096, 64), (1, 2, 4096, 32)), **GPU)
    assert (shared.kernel, shared.backward_text) == (
        "sdpa",
        "triton; tiles of keys that meet many queries are cut into 219 chunks; not sdpa: its backward pass "
        "is nondeterministic (atomics): ask with deterministic=False",
    )
    grouped = lt.explain(R.windowed(w=512), n=4096, kv_heads=2, **GPU)
    assert (grouped.kernel, grouped.kernels["sdpa"]) == ("triton", "8 query heads share 2 kv heads")
    assert "q (1, 8, 4096, 64), k (1, 2, 4096, 64), v (1, 2, 4096, 32), bfloat16 on cuda" in str(shared)


def test_tf32() -> None:
    single: dict[str, Any] = {"n": 4096, "t": 9, "device": "cuda", "dtype": "float32"}
    assert lt.explain(R.strided(), **single).tf32.startswith("not used: torch.backends.cuda.matmul.allow")
    exact = lt.explain(R.strided(), **single).forward_time
    assert exact is not None and exact.bound == "about"
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        rounded = lt.explain(R.strided(), **single)
        assert rounded.tf32.startswith("used: ")
        assert rounded.forward_time == replace(exact, bound="at most")  # costs are those of three products
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    assert lt.explain(R.strided(), n=9, t=1).tf32 == "not used: it is a format of GPUs, and q is on cpu"
    assert lt.explain(R.strided(), n=9, t=1, **GPU).tf32 == "not used: q is bfloat16"


def test_where_no_kernel_can_run_it() -> None:
    found = lt.explain(R.strided(), n=65536, t=9, dtype="float64", device="cuda")
    assert (found.kernel, found.executed, found.backward) == (None, None, None)
    assert found.refused.startswith("no kernel can run this. sdpa: it does not compute in float64")
    assert str(found).endswith("attention would raise: no kernel can run this")
    asked = lt.explain(R.strided(), n=64, t=9, kernel="cpu", device="cuda")
    assert asked.refused == 'kernel="cpu" cannot run this: it runs on the CPU, and q is on cuda'
    assert asked.picture().svg().startswith("<svg")


def test_a_gpu_elsewhere_is_asked_about_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where pip installed torch for a CPU."""
    from lattend.attend.kernels.triton import kernel

    asked: dict[str, Any] = {"n": 65536, "t": 300, **GPU}
    there = str(lt.explain(R.strided(), **asked))
    monkeypatch.setattr(kernel, "find_spec", lambda name: None)
    monkeypatch.setattr(torch.cuda, "is_available", bool)
    assert str(lt.explain(R.strided(), **asked)) == there
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert kernel.missing() == "Triton is not installed: pip install triton"


@pytest.mark.usefixtures("without_native")
def test_time() -> None:
    one, many = (lt.explain(R.strided(), n=65536, t=255, heads=h, batch=2, **GPU) for h in (1, 16))
    planned = plan(R.strided(), n=65536, t=255)
    seconds = 2e-9 * choose(planned, 0, "forward", 64, torch.bfloat16).nanoseconds
    assert one.forward_time.seconds == pytest.approx(seconds)
    assert many.forward_time.seconds == pytest.approx(16 * seconds)
    assert "on an H200" in many.time_text and "backward about" in many.time_text
    here = lt.explain(R.strided(), n=4096, t=255)
    assert here.forward_time.seconds and "threads of an EPYC" in here.time_text.replace(
        "one thread", "1 threads"
    )
    assert lt.explain(R.causal(), n=64).time_text == "not predicted"
    options: tuple[dict[str, Any], ...] = ({"bias": lt.Bias.alibi(8)}, {"softcap": 30.0}, {"dropout": 0.1})
    for more in options:  # of which no cost is known
        for where in ({}, GPU):
            asked = lt.explain(R.strided(), n=4096, t=255, **where, **more)
            assert asked.forward_time.bound == asked.backward_time.bound == "at least"


# What it takes


def test_nothing_of_the_size_of_q_is_made() -> None:
    tracemalloc.start()
    q = torch.empty(1, 16, 1_000_000, 64, dtype=torch.bfloat16, device="meta")
    found = lt.explain(R.strided(), like=q, t=255, device="cuda")
    assert (found.queries, found.dtype, found.kernel) == (1_000_000, "bfloat16", "triton")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


def test_like() -> None:
    q = torch.empty(2, 4, 12, 10, 32, dtype=torch.float64)
    image = lt.explain(R.neighbourhood(), like=q, r=2)
    assert (image.at, image.dtype) == ({"rows": 12, "cols": 10, "r": 2}, "float64")
    assert image.shapes[0] == (2, 4, 120, 32)
    flat = lt.explain(R.neighbourhood(), like=(2, 4, 120, 32), r=2, cols=10)
    assert (flat.needed, flat.at) == (image.needed, image.at)
    assert lt.explain(R.causal(), like=(1, 1, 7, 8), m=9).shapes[1:] == ((1, 1, 9, 8), (1, 1, 9, 8))
    assert lt.explain(R.causal()).at == {"n": 4096}
    assert lt.explain(R.axial()).at == {"rows": 64, "cols": 64}
    assert lt.explain(RULES["heads"][0], t=1).at == {"n": 4096, "heads": 8, "t": 1}
    with torch.autocast("cpu", torch.bfloat16):
        assert lt.explain(R.causal(), like=torch.empty(1, 1, 7, 8)).dtype == "bfloat16"


BAD: dict[str, tuple[type[LattendError], str, Any, dict[str, Any]]] = {
    "no rule": (TraceError, "a rule is a text or a function of q and k, got 3", 3, {}),
    "a missing parameter": (NamingError, "needs a value for t: give t=…", R.strided(), {}),
    "a misspelt one": (NamingError, "has no tt; it has n, t; did you mean t?", R.strided(), {"tt": 1}),
    "a kernel": (NamingError, "kernel is one of sdpa, triton, native, cpu", R.causal(), {"kernel": "gpu"}),
    "a dtype": (LattendError, "dtype is one of float16, bfloat16", R.causal(), {"dtype": "bf16"}),
    "a device": (LattendError, 'device is "cpu" or "cuda", not \'gpu\'', R.causal(), {"device": "gpu"}),
    "no head dimension": (DomainError, "head_dim must be at least 1, got 0", R.causal(), {"head_dim": 0}),
    "a float": (DomainError, "n must be an integer, got 4.0", R.causal(), {"n": 4.0}),
    "below zero": (DomainError, "n must be at least 0, got -1", R.causal(), {"n": -1}),
    "out of its domain": (DomainError, "needs l >= 1, got l = 0", R.sparse_strided(), {"l": 0}),
    "too long": (TooLarge, "10,000,000,000 positions have more tiles", R.causal(), {"n": 10**10}),
    "another size": (
        DomainError, "n = 5 is given, but the tensors have n = 7", R.causal(), {"like": (1, 1, 7, 8), "n": 5},
    ),
    "other heads": (
        DomainError, "heads = 3 is given, but like has 1", R.causal(), {"like": (1, 1, 7, 8), "heads": 3},
    ),
    "two tensors": (TensorError, "like is q, or (q, k, v)", R.causal(), {"like": (torch.zeros(1), 1)}),
    "three axes": (TensorError, "q has shape (1, 7, 8), and the rule", R.causal(), {"like": (1, 7, 8)}),
    "an argument's name": (
        NamingError, "batch is an argument of explain too; bind the", lt.rule("q - k <= batch"), {"batch": 3},
    ),
    "an array missing": (NamingError, "needs the array doc: give doc=tensor", R.documents(), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_one_clear_error(name: str) -> None:
    error, message, rule, options = BAD[name]
    with pytest.raises(error) as caught:
        lt.explain(rule, **options)
    assert message in str(caught.value)


# Words

STRIDED = """\
strided (n = 65,536, t = 255)
k <= q and q - k <= t
q (1, 8, 65536, 128), bfloat16 on cuda

                      needed  executed by triton          dense
pairs of a head   16,744,576"""


def test_text_of_a_band() -> None:
    text = str(lt.explain(R.strided(), n=65536, t=255, head_dim=128, **GPU))
    assert text.startswith(STRIDED)
    for line in ("of the executed pairs are needed", "  layout     in order", "  triton     yes, chosen"):
        assert line in text
    assert "  cpu        no: it runs on the CPU, and q is on cuda" in text
    assert "why" not in text


@pytest.mark.parametrize("width", [24, 40, 80, 120])
@pytest.mark.parametrize("name", RULES)
def test_lines_fit(name: str, width: int) -> None:
    for options in (GPU, {"kernel": "cpu", "device": "cuda"}, {}):
        assert max(map(len, explained(name, **options).text(width).splitlines())) <= width


def test_the_text_of_large_numbers_fits() -> None:
    found = lt.explain(R.causal(), n=1 << 26, **GPU)
    text = found.text(48)
    assert max(map(len, text.splitlines())) <= 48
    assert f"\n  dense: {1 << 52:,}\ntimes the needed\n" in text


def test_layouts_in_words() -> None:
    def layouts(name: str) -> list[str]:
        return [part.layout for part in explained(name, **GPU).parts]

    residues = "by residues of 17: positions that differ by a multiple of 17 lie together"
    assert layouts("sparse_strided") == ["in order", residues]
    assert layouts("sparse_fixed") == ["in order", "3 of every 16 keys"]
    assert layouts("some queries") == ["1 of every 4 queries"]
    assert layouts("neighbourhood") == ["boxes of 8 × 8 pixels"]
    assert layouts("dilated image")[0].startswith("by residues of 3 in y: positions that differ by a")
    assert layouts("volume") == ["boxes of 1 × 8 × 8 voxels"]
    shifted = lt.explain(lt.rule("(q - k) % 4 == 1"), n=64, **GPU).parts[0]
    assert shifted.layout.endswith("lie together, keys 3 residues further on")
    assert explained("longformer", **GPU).parts[0].tile_text.endswith("; q from 0 to 2")
    asked = explained("not affine", **GPU).parts[0]
    assert (asked.checked, asked.step_text.endswith(", each with a mask")) == ("k * k <= q", True)


def test_why_it_is_not_faster() -> None:
    assert lt.explain(R.strided(), n=4096, t=255).why == ""
    thin = lt.explain(R.strided(), n=4096, t=1, **GPU).why
    assert thin.endswith(
        "a query has 2.0 keys on average, and tiles of 64 queries by 32 keys are coarser than that"
    )
    asked = lt.explain(lt.rule("k*k <= q"), n=4096, **GPU).why
    assert asked.endswith('no layout was found for "k * k <= q", so each pair of its tiles is checked')
    near = lt.explain(lt.rule("k != q"), n=4096, kernel="cpu").why
    assert near.startswith("the rule attends to 99.976% of all pairs")
    image = lt.explain(R.neighbourhood(), rows=64, cols=64, r=1, **GPU).why
    assert image.endswith("and a box of 8 × 8 queries reads the keys of all of them")
    few = lt.explain(R.strided(), n=5, t=1, **GPU).why
    assert few.endswith("5 queries fill little of a tile of 64")
    many = " or ".join(f"q - k == {i * i * 90}" for i in range(1, 7))
    assert "6 parts, each with tiles of its own" in lt.explain(lt.rule(many), n=4096, **GPU).why


def test_what_cannot_be_counted_says_why() -> None:
    found = lt.explain(lt.rule("k*k <= q"), n=65536, **GPU)
    assert found.needed is None and found.useful is None and found.why == ""
    assert "not counted: 4,294,967,296 pairs are too many to enumerate" in str(found)


@pytest.mark.parametrize("name", RULES)
def test_json_round_trip(name: str) -> None:
    for options in (GPU, {}, {"kernel": "cpu", "device": "cuda"}):
        found = explained(name, **options)
        data = found.json()
        assert json.loads(json.dumps(found.json())) == data
        assert data["pairs"]["executed"] == found.executed
        assert list(data["kernels"]) == list(KERNELS)
        assert [part["executed"] for part in data["parts"]] == [part.executed for part in found.parts]


@pytest.mark.usefixtures("without_native")
def test_notebooks() -> None:
    found = explained("sparse_strided")
    html = found._repr_mimebundle_()["text/html"]
    assert html.count("<svg") == 1 and "k &lt;= q" in html
    assert repr(found).startswith("<Explanation sparse_strided (n = 300, l = 17): cpu, ")


# Pictures


@pytest.mark.parametrize("name", [name for name in RULES if name != "empty"])
@pytest.mark.parametrize("options", [GPU, {}, {"kernel": "dense"}], ids=["cuda", "cpu", "dense"])
def test_every_form_of_every_picture(name: str, options: dict[str, Any]) -> None:
    picture = explained(name, **options).picture()
    assert picture.svg().startswith("<svg")
    for width in (30, 80):
        assert max(map(len, picture.terminal(width=width, colour=False).splitlines())) <= max(width, 30)
    assert picture.legend


@pytest.mark.parametrize("options", [GPU, {}], ids=["cuda", "cpu"])
@pytest.mark.parametrize("name", ["strided", "sparse_strided", "sparse_fixed", "longformer", "heads"])
def test_cells_are_the_attended_pairs_and_the_tiles(name: str, options: dict[str, Any]) -> None:
    rule, _ = RULES[name]
    small: dict[str, Any] = {"n": 40, **dict.fromkeys(rule.parameters, 3)}
    found = lt.explain(rule, heads=2, **small, **options)
    panel = found.picture(size=40).panels[0]
    looks = np.array([[look.label for look in row] for row in panel.rows_of_looks()])
    attended = rule.mask(**small, **({"heads": 2} if rule.has_heads else {}))
    attended = attended[0] if rule.has_heads else attended
    painted = np.char.endswith(looks, "full tiles") | np.char.endswith(looks, "partial tiles")
    assert np.array_equal(painted, attended)
    assert (looks != EMPTY.label).sum() <= found.executed


def test_a_long_line_is_drawn_smaller_and_says_so() -> None:
    picture = lt.explain(R.strided(), n=65536, t=255, head_dim=128, **GPU).picture()
    said = picture.caption[1]
    assert said.startswith(
        "drawn with n = 64, t = 16 and tiles of 4 queries by 2 keys, in place of n = 65,536"
    )
    labels = [look.label for look in picture.legend]
    assert labels == ["full tiles", "partial tiles", "computed, not attended"]
    two = lt.explain(R.sparse_strided(), n=65536, l=256, **GPU).picture(title="two parts")
    assert two.title == "two parts"
    assert [panel.title for panel in two.panels] == ["positions in order", "part 2 in its own order"]
    assert "part 2: (q - k) % 256 == 0 and k <= q and q - k > 255" in two.subtitle
    fixed = lt.explain(lt.rule("k <= q and q - k <= 40"), n=4096, **GPU).picture()
    assert fixed.caption[1] == "drawn with n = 160 in place of n = 4,096"
    heads = lt.explain(RULES["heads"][0], n=4096, t=30, **GPU).picture()
    assert heads.caption[-1] == "head 0 of 8 is drawn"


def test_an_image_shows_the_keys_of_one_tile() -> None:
    picture = lt.explain(R.neighbourhood(), rows=256, cols=256, r=6, **GPU).picture()
    assert picture.caption == ("a tile of 8 × 8 queries reads 20 × 20 keys",)
    labels = [look.label for row in picture.panels[0].rows_of_looks() for look in row]
    assert labels.count("queries of the tile, shaded alike") == 64
    assert labels.count("keys of a tile, attended by few to all of its queries") == 400 - 64
    wide = lt.explain(R.neighbourhood(), rows=256, cols=256, r=6, head_dim=128, **GPU).picture()
    assert wide.caption == ("a tile of 16 × 4 queries reads 28 × 16 keys",)  # in boxes of 2 × 16
    volume = lt.explain(R.neighbourhood(axes=3), depth=16, rows=32, cols=32, r=3, **GPU).picture()
    assert volume.caption[0].startswith(
        "a tile of 4 × 4 × 4 queries reads 10 × 10 × 10 keys, in the slice z ="
    )


def test_nothing_to_draw() -> None:
    with pytest.raises(LattendError, match="there is nothing to draw: a size is 0"):
        lt.explain(R.causal(), n=0).picture()


def test_grouped_query_attention_by_numbers() -> None:
    found = lt.explain("strided", n=64, t=3, heads=8, kv_heads=2)
    assert found.shapes == ((1, 8, 64, 64), (1, 2, 64, 64), (1, 2, 64, 64))
    with pytest.raises(DomainError, match="leave it out"):
        lt.explain("causal", [(1, 8, 64, 64), (1, 4, 64, 64), (1, 4, 64, 64)], kv_heads=2)


@pytest.mark.parametrize(
    ("text", "n", "pairs"),
    [
        ("causal", 1024, 16 * 17 // 2 * 64 * 64),
        ("causal", 1000, 16 * 17 // 2 * 64 * 64),  # those over an edge are whole too
        ("windowed(16)", 1024, 16 * 64 * 64),
        ("full", 130, 3 * 3 * 64 * 64),
        ("strided(63)", 640, (1 + 9 * 2) * 64 * 64),
    ],
)
def test_executed_pairs_have_a_named_tile_and_are_the_same_everywhere(text: str, n: int, pairs: int) -> None:
    """One default tile for costs, models and explain; a kernel's own tiles are named by the kernel."""
    rule = lt.rule(text).at(n=n)
    assert plan(rule).executed() == pairs
    cost = lt.cost.attention(text, n=n, heads=1, D_i=1, D_hid=1, projections=None)
    assert cost.columns("exponentials")[1] == pairs
    assert "executed, 64 × 64 tiles" in str(cost)
    for kernel in ("cpu", "dense"):
        found = lt.explain(text, n=n, kernel=kernel, device="cpu")
        assert found.tiled == pairs and found.json()["pairs"]["tiled"] == pairs
        assert f"in 64 × 64 tiles, as lattend cost counts: {pairs:,} pairs" in str(found)
        assert f"executed by {kernel}" in str(found)


def test_measured_pairs_name_their_tiles_too() -> None:
    class Ruled(nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return lt.attention(q, q, q, "strided(3)")

    class Causal(nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)

    q = torch.zeros(1, 1, 1024, 64)
    kernel = lt.explain("strided", n=1024, t=3, device="cpu", heads=1).kernel
    for module, tiles in ((Ruled(), f"by {kernel}"), (Causal(), "64 × 64 tiles")):
        found = lt.cost.of(module, (q,))
        assert f"executed, {tiles}" in str(found) and found.json()["tiles"] == tiles
        with lt.cost.FlopCounter(display=False, count="executed") as counter:
            module(q)
        assert f"FLOP executed, {tiles}" in counter.get_table()
    causal = lt.cost.attention("causal", n=1024, heads=1, D_i=1, D_hid=1, projections=None)
    assert causal.columns("exponentials")[1] == found.multiply_adds.executed // (2 * 64)


def test_a_table_without_attention_names_no_tile() -> None:
    assert "tiles" not in str(lt.cost.rnn2d(n=8, h=3, c=2))
    assert "tiles" not in str(lt.cost.attention("causal"))  # not known while a size is open
