"""Long tiles of keys cut into chunks, and parts that join another: what is chosen, and what comes of it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rules import affine
from torch import Tensor

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton import launch
from lattend.attend.kernels.triton.shapes import arranged, choose, on_hopper
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import Plan, plan
from lattend.plans.tables.adjacency import in_order
from lattend.plans.tables.chunks import chunk_counts, chunked, steps_of
from lattend.plans.tables.fused_parts import joined_parts, with_joined
from lattend.plans.tables.tile_costs import TileShape

RULES = (
    "k <= q",
    "k < 4 or k <= q and q - k <= 70",
    "k % 16 >= 12 or q // 16 == k // 16",  # keys of which some have sums of an earlier part
    "k < 40 or q < 9",
)
TRITON, HOPPER = TileShape((64,), 32), TileShape((128,), 64, hopper=True, several=True)


def planned(text: str, n: int, t: int) -> Plan:
    rule = lt.rule(text)
    return plan(rule, n=n, **({"t": t} if "t" in rule.parameters else {}))


def drawn_counts(found: Any, shape: TileShape, seed: int) -> Any:
    """Any number of chunks for each tile."""
    steps = steps_of(found, shape)
    return np.minimum(steps, np.random.default_rng(seed).integers(1, 5, len(steps)))


@settings(max_examples=80, deadline=None)
@given(
    text=affine(), n=st.sampled_from([40, 130, 300]), t=st.integers(0, 90), seed=st.integers(0, 99),
    shape=st.sampled_from([TRITON, HOPPER]),
)  # fmt: skip
def test_chunks_have_the_slots_of_their_tile_once(
    text: str, n: int, t: int, seed: int, shape: TileShape
) -> None:
    found = planned(text, n, t)
    for place, part in enumerate(found.transposed):
        tiles = found.tiles(place, shape.outer, transposed=True)
        if not tiles.table.shape[1]:
            continue
        made = chunked(part, tiles, drawn_counts(tiles, shape, seed), shape)
        assert sorted(made.table[0, :, -1]) == [*range(made.table.shape[1])]
        for whole, (slot, base, first, count) in zip(tiles.table[0], made.tiles, strict=True):
            own = sorted(
                (row for row in made.table[0] if first <= row[-1] < first + count), key=lambda row: row[-1]
            )
            assert [*whole[:3]] == [slot, base, whole[2]] == [*own[0][:3]]
            assert own[0][3] == whole[3] and own[-1][4] == whole[4]
            for one, other in pairwise(own):
                assert one[4] == other[3]
                if shape.hopper and one[4] < whole[4]:  # which copies numbers from multiples of four on
                    at = one[4] + (one[2] if part.axes[0].inner_order.period == 1 else 0)
                    assert at % 4 == 0
                elif one[4] < whole[4]:
                    assert (one[4] - whole[3]) % shape.step == 0
            full = {slot for row in own for slot in range(row[5], row[6])}
            assert full == set(range(whole[5], whole[6]))


def test_which_tiles_are_cut() -> None:
    """Those of few keys that meet many queries, where the chip would be idle."""
    found = plan(lt.rules.sinks(s=4, t=1023), n=32_768)
    sinks, window = (
        chunk_counts(part, found.tiles(place, (64,), transposed=True), TileShape((64,), 64), 16)
        for place, part in enumerate(found.transposed)
    )
    assert window is None and sinks is not None and 16 * sinks.sum() >= 132
    causal = plan(lt.rule("k <= q"), n=8192)
    tiles = causal.tiles(0, (128,), transposed=True)
    assert chunk_counts(causal.transposed[0], tiles, HOPPER, 16) is None
    assert chunk_counts(causal.transposed[0], tiles, HOPPER, 1) is not None
    data = plan(lt.rule("doc[q] == doc[k]", data={"doc": None}), n=8192)  # tiles that the plan does not know
    assert chunk_counts(data.transposed[0], data.tiles(0, (128,), transposed=True), HOPPER, 1) is None


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")  # Triton's interpreter
@pytest.mark.parametrize("text", RULES)
def test_gradients_with_chunks(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside float64, and the same bits on every run."""
    cut: list[int] = []

    def counts(part: Any, tiles: Any, shape: TileShape, *given: int) -> Any:
        cut.append(int((found := drawn_counts(tiles, shape, 7)).sum()) - len(found))
        return found

    monkeypatch.setattr(launch, "chunk_counts", counts)
    n, rule, dtype = 112, lt.rule(text), torch.float32
    source = torch.Generator().manual_seed(3)
    q, k, v, grad = (torch.randn(1, h, n, 16, generator=source) for h in (4, 2, 2, 4))
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    attend: Any = lt.attention
    out, lse = attend(*exact, rule, kernel="dense", return_lse=True)
    wanted = torch.autograd.grad((out * grad).sum(), exact)
    inputs = BackwardInputs(grad, None, q, k, v, out.detach().to(dtype), lse.detach().float())
    call = AttentionCall(rule, 0.25)

    def gradients() -> tuple[Tensor, ...]:
        runner = launch.PlanExecutor(plan(rule, n=n), q.device)
        return runner.backward(Recorder(), call, inputs, {})[:3]

    found, again = gradients(), gradients()
    assert sum(cut) > 0
    for got, same, want in zip(found, again, wanted, strict=True):
        assert (got - want).norm() <= TOLERANCE[dtype] * want.norm()
        assert torch.equal(got, same)


@settings(max_examples=60, deadline=None)
@given(text=affine(), n=st.sampled_from([40, 130, 300]), t=st.integers(0, 90))
def test_a_part_that_joins_has_the_same_rows(text: str, n: int, t: int) -> None:
    found = planned(text, n, t)
    shape = next(on_hopper("forward", 128, torch.bfloat16)).shape

    def shape_of(place: int) -> TileShape:
        ours = choose(found, place, "forward", 128, torch.bfloat16).shape
        return shape if in_order(found.parts[place]) else ours

    joined = joined_parts(found, shape_of)
    assert len({*joined, *joined.values()}) == 2 * len(joined)
    for place, guest in joined.items():
        own, theirs = (found.tiles(x, shape.outer) for x in (place, guest))
        table = with_joined(own, theirs)
        assert np.array_equal(table[..., :7], np.broadcast_to(own.table, (len(table), *own.table.shape[1:])))
        rows = {int(row[0] + row[1]): (row[2] + row[3], row[4] - row[3]) for row in theirs.table[-1]}
        for row in table[-1]:
            assert (row[-2], row[-1]) == rows[int(row[0] + row[1])]


def test_sinks_join_a_wide_window() -> None:
    for t, joins in ((1023, {1: 0}), (15, {})):  # a narrow one takes the Triton kernels
        found = plan(lt.rules.sinks(s=4, t=t), n=32_768)
        made = arranged(found, "forward", 128, torch.bfloat16, hopper=(True, True))
        assert made.joined == joins
        assert not arranged(found, "forward", 128, torch.bfloat16, hopper=(False, False)).joined
    many = plan(lt.rules.sinks(s=200, t=1023), n=32_768)  # two steps of 128 keys
    assert arranged(many, "forward", 128, torch.bfloat16, hopper=(True, True)).joined == {1: 0}
    most = plan(lt.rules.sinks(s=2049, t=4095), n=32_768)  # seventeen
    assert not arranged(most, "forward", 128, torch.bfloat16, hopper=(True, True)).joined


def test_explain_says_what_joins_and_what_is_cut() -> None:
    size: dict[str, Any] = {"heads": 16, "head_dim": 128, "device": "cuda", "dtype": "bfloat16"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lattend.attend.kernels.triton.kernel._interpreted", lambda: False)
        said = lt.explain(lt.rules.sinks(s=4, t=1023), n=32_768, **size)
        sinks, window = said.parts
        assert sinks.joins == window.condition and not window.joins
        assert f'its steps are taken by the programs of "{window.condition}"' in sinks.tile_text
        assert (sinks.steps, sinks.full) == (256, 0)  # 32,768 / 128 tiles, one step each
        assert said.backward_text.endswith("; tiles of keys that meet many queries are cut into 16 chunks")
        # on an H200 0.543 ms forward, 0.739 + 0.953 backward
        assert said.forward_time.seconds == pytest.approx(0.543e-3, rel=0.15)
        assert said.backward_time.seconds == pytest.approx(1.692e-3, rel=0.15)
