"""The Triton kernels against the reference, outputs and gradients; under the interpreter where no GPU is.

A tile takes the interpreter some 12 ms, so the cases are small and odd rather than many.
"""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
import torch

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.kernels import reference
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton import shapes
from lattend.attend.kernels.triton.kernel import arrays
from lattend.attend.kernels.triton.launch import PlanExecutor
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan
from lattend.plans.tables.tile_costs import TileShape
from lattend.rules.language.parser import parse_term
from lattend.rules.rule import Rule

R = lt.rules
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LINE, SPLIT, TMA = (
    TileShape((16,), 16),
    TileShape((16,), 16, split=True),
    TileShape((16,), 16, tma=True, split=True),
)
BOX = TileShape((4, 4), 16)
TMA_BOXES = [TileShape((4, 4), 16, tma=True, inner=(2, 8)), TileShape((2, 8), 32, tma=True, inner=(1, 32))]

pytestmark = [  # of the interpreter: its NumPy warns of log 0, and of scalars in arrays
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def tensors(rule: Rule, batch: int, heads: int, kv_heads: int, size: int, wide: int) -> list[torch.Tensor]:
    queries = prod(rule.values[axis.queries] for axis in rule.axes)
    keys = prod(rule.values[axis.keys] for axis in rule.axes)
    source = torch.Generator().manual_seed(1)
    shapes = [
        (heads, queries, size),
        (kv_heads, keys, size),
        (kv_heads, keys, wide),
        (heads, queries, wide),
    ]
    return [torch.randn(batch, *shape, generator=source) for shape in shapes]


def check(
    rule: Rule,
    shape: TileShape = LINE,
    *,
    batch: int = 1,
    heads: int = 2,
    kv_heads: int = 2,
    size: int = 16,
    wide: int = 16,
    dtype: torch.dtype = torch.float32,
    data: dict[str, torch.Tensor] | None = None,
    bias: tuple[str, dict[str, torch.Tensor]] | None = None,
) -> None:
    q, k, v, grad = (x.to(dtype) for x in tensors(rule, batch, heads, kv_heads, size, wide))
    term, added = (None, {}) if bias is None else (parse_term(bias[0]), bias[1])
    call = AttentionCall(rule, 0.3, data=data or {}, term=term, bias=added)
    exact = [x.double() for x in (q, k, v, grad)]
    out, lse = reference.forward(call, *exact[:3])
    grad_lse = torch.randn(lse.shape, generator=torch.Generator().manual_seed(2)).double()
    grads = reference.backward(
        call, BackwardInputs(exact[3], grad_lse, exact[0], exact[1], exact[2], out, lse)
    )
    expected = [out, lse, *grads[:3], *grads[3]]
    runner = PlanExecutor(
        plan(rule), DEVICE, shapes=lambda kernel, place: shape, term=term, tensors=tuple(added)
    )
    q, k, v, grad = (x.to(DEVICE) for x in (q, k, v, grad))
    given = arrays(Recorder(), call, DEVICE)
    out, lse = runner.forward(Recorder(q, k, v), call, q, k, v, given)
    inputs = BackwardInputs(grad, grad_lse.float().to(DEVICE), q, k, v, out, lse)
    *grads, biases = runner.backward(Recorder(), call, inputs, given)
    limit = TOLERANCE[dtype]
    results = [x.cpu().double() for x in (out, lse, *grads, *biases)]
    for found, wanted in zip(results, expected, strict=True):
        assert torch.equal(found == -torch.inf, wanted == -torch.inf)
        inside = wanted != -torch.inf
        error = (found - wanted)[inside].norm() / (wanted[inside].norm() + 1e-9)
        assert error < limit, f"{rule}: off by {error:.1e}"


LINES = [
    R.causal().at(n=37),
    R.strided(t=5).at(n=37),
    R.windowed(w=10).at(n=37),
    R.dilated(t=3, step=3).at(n=37),
    R.sparse_strided(l=5).at(n=37),
    R.sparse_fixed(l=6, c=2).at(n=37),
    R.longformer(t=3, g=2).at(n=37),
    R.sinks(s=2, t=4).at(n=37),
    R.strided(t=5).at(n=20, m=40),
    R.strided(t=5).at(n=40, m=20),
    lt.rule("(q + k) % 3 == 1 or k*k <= q").at(n=21),
    lt.rule("q % 4 == 0 and k <= q").at(n=21),
    lt.rule("k <= q and q - k <= 4*head + 1").at(n=37, heads=2),
    lt.rule("head == 0 and k <= q").at(n=21, heads=2),
    lt.rule("k > n").at(n=9),
]
IMAGES = [
    R.neighbourhood(r=1).at(rows=5, cols=7),
    R.neighbourhood(r=1, step=2).at(rows=5, cols=7),
    R.neighbourhood(r=1, edge="shift").at(rows=5, cols=7),
    R.axial().at(rows=4, cols=5),
    R.swin(w=3, shift=1).at(rows=5, cols=7),
    lt.rule("abs(qy - ky) + abs(qx - kx) <= 2").at(rows=5, cols=7),
]


@pytest.mark.parametrize("rule", LINES, ids=str)
def test_lines(rule: Rule) -> None:
    check(rule, SPLIT)


@pytest.mark.parametrize("rule", IMAGES, ids=str)
def test_images(rule: Rule) -> None:
    check(rule, BOX, heads=1, kv_heads=1)


@pytest.mark.parametrize("shape", TMA_BOXES, ids=lambda shape: "x".join(map(str, shape.inner)))
@pytest.mark.parametrize("rule", IMAGES, ids=str)
def test_images_in_boxes(rule: Rule, shape: TileShape) -> None:
    check(rule, shape, kv_heads=1, size=8, wide=12)


def test_boxes_of_images_that_differ_along_heads_and_the_batch() -> None:
    rule = lt.rule("abs(qy - ky) <= head and kx <= qx and near[qy] == near[ky]", data={"near": None})
    near = torch.tensor([[0, 1, 0, 0, 1], [1, 1, 0, 1, 1]])
    check(rule.at(rows=5, cols=11, heads=2), TMA_BOXES[0], batch=2, data={"near": near})
    check(R.neighbourhood(r=1).at(rows=5, cols=6), TMA_BOXES[1], dtype=torch.float16, size=18, wide=22)
    table = torch.randn(3, 3, generator=torch.Generator().manual_seed(5))
    bias = ("table[qy - ky + 1, qx - kx + 1]", {"table": table})
    check(R.neighbourhood(r=1).at(rows=5, cols=7), TMA_BOXES[0], heads=1, kv_heads=1, bias=bias)


def test_volumes() -> None:
    rule = lt.rule("abs(qz - kz) <= 1 and abs(qy - ky) <= 1 and kx <= qx").at(depth=3, rows=3, cols=5)
    check(rule, TileShape((2, 2, 4), 16), heads=1, kv_heads=1)


@pytest.mark.parametrize("shape", [LINE, SPLIT, TMA], ids=["masked", "split", "tma"])
def test_heads_that_share_keys_and_sizes_that_are_no_power_of_two(shape: TileShape) -> None:
    size, wide = (32, 16) if shape.tma else (24, 40)
    check(R.strided(t=9).at(n=37), shape, batch=2, heads=4, kv_heads=2, size=size, wide=wide)


def test_rows_that_the_copy_engine_does_not_take() -> None:
    check(R.strided(t=9).at(n=21), TMA, size=18, wide=22, dtype=torch.float16)  # 36 and 44 bytes


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_numbers(dtype: torch.dtype) -> None:
    check(R.strided(t=9).at(n=37), SPLIT, dtype=dtype)
    check(R.sparse_strided(l=5).at(n=21), SPLIT, dtype=dtype)


def test_documents_that_differ_along_the_batch() -> None:
    ids = torch.tensor([[0] * 9 + [1] * 3 + [2] * 25, [4] * 30 + [3] * 7])
    check(lt.rules.documents(causal=True).at(n=37), SPLIT, batch=2, data={"doc": ids})
    scattered = torch.tensor([[0, 1, 2] * 7])
    check(lt.rules.documents().at(n=21), SPLIT, data={"doc": scattered})


def blocks(*shape: int) -> torch.Tensor:
    """A random table of blocks, its third row empty."""
    table = torch.rand(*shape, generator=torch.Generator().manual_seed(4)) < 0.4
    table[..., 2, :] = False
    return table


@pytest.mark.parametrize("n", [40, 37])
def test_random_blocks(n: int) -> None:
    check(R.bigbird(w=8, t=1, g=1, random=2, n=n), TMA, heads=1, kv_heads=1)


def test_tables_of_blocks_given_at_call_time() -> None:
    rule = lt.rule("chosen[q // 4, k // 4]", data={"chosen": None})
    check(rule.at(n=21), SPLIT, batch=2, data={"chosen": blocks(2, 6, 6)})
    rule = lt.rule("chosen[q // 4, k // 8] > 0 and k <= q", data={"chosen": None})
    check(rule.at(n=21, m=19), SPLIT, data={"chosen": blocks(7, 5).to(torch.uint8)})
    rule = lt.rule("chosen[head, k // 1, q // 5] and doc[q] == doc[k]", data={"chosen": None, "doc": None})
    ids = torch.tensor([[0] * 9 + [1] * 12, [0] * 15 + [1] * 6])
    data = {"chosen": blocks(2, 21, 5), "doc": ids}
    check(rule.at(n=21, heads=2), SPLIT, batch=2, kv_heads=1, data=data)


@pytest.mark.parametrize("shape", [LINE, SPLIT, TMA], ids=["masked", "split", "tma"])
def test_listed_blocks_of_whole_steps(shape: TileShape) -> None:
    rule = lt.rule("chosen[head, q // 32, k // 16] > 0 and k <= q", data={"chosen": None})
    data = {"chosen": blocks(2, 4, 7).to(torch.int32)}
    check(rule.at(n=100, heads=2), shape, batch=2, kv_heads=1, data=data)
    rule = lt.rule(
        "chosen[q // 16, k // 32] and q - k <= 40 and doc[q] == doc[k]", data={"chosen": None, "doc": None}
    )
    ids = torch.tensor([[0] * 9 + [1] * 61, [5] * 65 + [1] * 5])
    check(rule.at(n=70), shape, batch=2, data={"chosen": blocks(2, 5, 3), "doc": ids})


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int8, torch.int16, torch.bool, torch.uint16, torch.uint32], ids=str
)
@pytest.mark.parametrize(
    "text", ["seg[q] - seg[k] <= 0", "100*seg[q] >= 150*seg[k]", "seg[seg[q]] == seg[k]"]
)
def test_entries_of_narrow_arrays_do_not_wrap_around(text: str, dtype: torch.dtype) -> None:
    rule = lt.rule(text, data={"seg": None})
    check(rule.at(n=8), heads=1, kv_heads=1, data={"seg": (torch.arange(8) % 3).to(dtype)})


@pytest.mark.parametrize("text", ["134217728 * k <= 134217727 * q", "k * 100000000 <= q * 99999999"])
def test_products_of_numbers_and_positions_beyond_32_bits(text: str) -> None:
    check(lt.rule(text).at(n=40), heads=1, kv_heads=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_few_keys_that_many_heads_share(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each query head has gradients of its own first; they are added up in float32, whatever the parts."""
    monkeypatch.setattr(shapes, "MANY_ROWS", 1)
    shares: list[int] = []
    alone = PlanExecutor._dkdv  # pyright: ignore[reportPrivateUsage]

    def noted(
        self: PlanExecutor, recorder: Recorder, call: AttentionCall, given: BackwardInputs, *how: Any
    ) -> Any:
        shares.append(given.q.shape[1] // given.k.shape[1])
        return alone(self, recorder, call, given, *how)

    monkeypatch.setattr(PlanExecutor, "_dkdv", noted)
    for rule in (R.strided(t=9).at(n=37), R.sparse_strided(l=5).at(n=37), lt.rule("q % 4 == 0").at(n=21)):
        check(rule, batch=2, heads=4, kv_heads=2, dtype=dtype)
    monkeypatch.setattr(shapes, "FEW_KEYS", 1)
    check(R.strided(t=9).at(n=37), batch=2, heads=4, kv_heads=2, dtype=dtype)
    assert shares == [1, 1, 1, 2]


@pytest.mark.parametrize("rule", [R.strided(t=5), R.sparse_strided(l=5), lt.rule("q % 4 == 0")], ids=str)
def test_gradients_lie_as_their_tensors_do(rule: Rule) -> None:
    """Heads inside positions or outside, for keys otherwise than for queries; one part and several."""
    rule = rule.at(n=37)
    call, runner = AttentionCall(rule, 0.3), PlanExecutor(plan(rule), DEVICE)
    outside = [x.to(DEVICE) for x in tensors(rule, 2, 4, 2, 16, 16)]
    inside = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in outside]
    expected: list[torch.Tensor] = []
    for q, k, v, grad in (outside, inside, (*outside[:2], *inside[2:])):
        out, lse = runner.forward(Recorder(), call, q, k, v, {})
        *grads, _ = runner.backward(Recorder(), call, BackwardInputs(grad, None, q, k, v, out, lse), {})
        if str(rule)[0] != "q":  # a part that covers all rows ends it, and writes the gradients itself
            assert [x.stride() for x in grads] == [x.stride() for x in (q, k, v)]
        expected = expected or grads
        assert all(torch.equal(a, b) for a, b in zip(grads, expected, strict=True))


def test_steps_follow_the_attended_blocks() -> None:
    rule = lt.rule("chosen[q // 16, k // 16]", data={"chosen": None}).at(n=512)
    table = torch.eye(32, dtype=torch.int64)[None].to(DEVICE)
    q = torch.zeros(1, 1, 512, 16, device=DEVICE)
    runner = PlanExecutor(plan(rule), DEVICE)
    for kernel in ("forward", "backward_dq", "backward_dkdv"):
        ready = runner.part(Recorder(), kernel, 0, q, q, {"chosen": table})
        assert ready.shape.rows == 16
        assert (ready.table[..., 4] - ready.table[..., 3]).sum() == 512  # one block of 16 keys each
    assert not runner.prepared  # the table may change
    changed = runner.part(Recorder(), "forward", 0, q, q, {"chosen": 1 - table})
    assert (changed.table[..., 4] - changed.table[..., 3]).sum() == 512 * 31


def test_large_numbers_take_64_bits() -> None:
    check(lt.rule("k <= q and q - k <= t").at(n=21, t=1 << 40), SPLIT)


def test_a_learned_bias_gets_its_gradients() -> None:
    source = torch.Generator().manual_seed(3)
    slope, table = torch.randn(2, generator=source), torch.randn(2, 11, generator=source)
    term = "-slope[head]*abs(q - k) + table[head, k - q + 5]*slope[head] + scalar*q"
    bias = {"slope": slope, "table": table, "scalar": torch.tensor(0.1)}
    check(R.strided(t=5).at(n=37), SPLIT, batch=2, bias=(term, bias))
    check(
        R.sparse_strided(l=4).at(n=21),
        SPLIT,
        bias=(
            "row[head, q] + column[k]",
            {"row": torch.randn(2, 21, generator=source), "column": torch.randn(21, generator=source)},
        ),
    )
    around = "-a[head]*((kx - qx - x[head])*(kx - qx - x[head]) + (ky - qy)*(ky - qy))"
    check(
        R.neighbourhood(r=1).at(rows=5, cols=7),
        BOX,
        heads=1,
        kv_heads=1,
        bias=(around, {"a": torch.tensor([0.3]), "x": torch.tensor([0.5])}),
    )
