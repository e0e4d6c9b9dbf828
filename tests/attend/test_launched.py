"""What explain counts is what is launched: programs, steps and chunks, over rules, heads and dtypes.

Passes run on meta tensors up to the launch, in whose place stands one that counts: no GPU is needed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.explain.prediction import choices, executed_work, format_gradients
from lattend.attend.kernels.triton import launch, launch_replay
from lattend.attend.kernels.triton.launch_arguments import LaunchArguments
from lattend.attend.kernels.triton.shapes import steps
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan
from lattend.plans.tables.image_tables import steps_met
from lattend.plans.tables.tile_costs import TileShape
from lattend.plans.tiles import INNER_END, INNER_FIRST, Tiles

R = lt.rules
ON_A_LINE: dict[str, lt.Rule] = {
    "full": R.full(),
    "causal": R.causal(),
    "strided": R.strided(255),
    "wide strided": R.strided(4095),
    "windowed": R.windowed(256),
    "sparse_strided": R.sparse_strided(64),
    "sparse_fixed": R.sparse_fixed(64, 8),
    "longformer": R.longformer(t=64, g=2),
    "bigbird": R.bigbird(w=64, t=1, g=1),
    "prefix_lm": R.prefix_lm(p=300),
    "sinks": R.sinks(s=4, t=1023),
    "dilated": R.dilated(t=63, step=8),
    "few keys": lt.rule("k < 4"),
    "few queries": lt.rule("q >= n - 4"),
    "by head": lt.rule("k <= q and q - k <= 64*(head + 1)"),
    "large numbers": lt.rule("k <= q and 3000000000*(q - k) <= 900000000000"),
}
ON_AN_IMAGE = {"neighbourhood": R.neighbourhood(3), "axial": R.axial(), "swin": R.swin(8, 4)}
HEADS = ((1, 1, 1), (1, 16, 16), (2, 8, 2), (1, 32, 1), (1, 64, 4))  # batch, heads, kv heads
KINDS = (
    ((64, 64), torch.bfloat16), ((128, 128), torch.bfloat16), ((256, 256), torch.bfloat16),
    ((64, 128), torch.bfloat16), ((128, 64), torch.float16), ((72, 72), torch.float16),
    ((36, 36), torch.bfloat16), ((64, 64), torch.float32), ((320, 64), torch.bfloat16),
)  # fmt: skip


class Launched(NamedTuple):
    """A launch of one part: what it was made ready for, programs, and steps of all of them."""

    ready: LaunchArguments
    programs: int
    steps: int
    guests: int  # steps of a part that joins


def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[int, Launched]]:
    """By kernel and place, what is launched from now on."""
    found: dict[str, dict[int, Launched]] = defaultdict(dict)
    waiting: list[tuple[str, int, LaunchArguments]] = []
    real = launch.PlanExecutor.part

    def part(
        self: Any, recorder: Recorder, kernel: str, place: int, *given: Any, **how: Any
    ) -> LaunchArguments:
        ready = real(self, recorder, kernel, place, *given, **how)
        waiting.append((kernel, place, ready))
        return ready

    def count(members: int) -> None:
        kernel, place, ready = waiting.pop()
        table = ready.table.numpy().astype(np.int64)  # [batch or 1, heads or 1, tiles, columns]
        keys = table[..., -1] if ready.joined is not None else np.zeros(1, np.int64)
        guests = int((-(-keys // ready.shape.step)).sum())
        each = members // (table.shape[0] * table.shape[1])
        steps = int(steps_of(ready, table).sum()) * each
        found[kernel][place] = Launched(ready, ready.tiles * members, steps, guests * each)

    def by_triton(recorder: Recorder, kernel: Any, programs: int, *rest: Any) -> None:
        if waiting:  # not the sums of chunks, which come behind
            members = programs // waiting[-1][2].tiles
            assert members * waiting[-1][2].tiles == programs
            count(members)

    class ByHopper:
        def forward(
            self, recorder: Recorder, ready: LaunchArguments, scale: float, q: Tensor, *rest: Any
        ) -> None:
            assert ready.shape.hopper
            count(q.shape[:2].numel())

        def backward_dq(
            self, recorder: Recorder, ready: LaunchArguments, scale: float, given: BackwardInputs, *rest: Any
        ) -> None:
            assert ready.shape.hopper
            count(given.q.shape[:2].numel())

        def backward_dkdv(
            self, recorder: Recorder, ready: LaunchArguments, scale: float, given: BackwardInputs, *rest: Any
        ) -> None:
            assert ready.shape.hopper
            count(given.k.shape[:2].numel())

        images_forward, images_dq, images_dkdv = forward, backward_dq, backward_dkdv

        def processors(self, device: torch.device) -> int:
            return 132

    monkeypatch.setattr("lattend.attend.kernels.triton.kernel._interpreted", lambda: False)
    monkeypatch.setattr(launch.PlanExecutor, "part", part)
    monkeypatch.setattr(launch, "launch", by_triton)
    monkeypatch.setattr(launch_replay, "launch", by_triton)
    monkeypatch.setattr(launch, "_on_hopper", ByHopper)
    return found


def steps_of(ready: LaunchArguments, table: Any) -> Any:
    """The steps of each tile, from the table that a kernel reads."""
    if ready.shape.strips:
        return steps_met(table[0].astype(np.int32))
    if len(ready.part.axes) == 1:
        return -(-(table[..., INNER_END] - table[..., INNER_FIRST]) // ready.shape.step)
    tiles = Tiles(ready.shape.outer, table[0].astype(np.int32))
    return np.array(round(sum(steps(tiles, ready.part, ready.shape)) * len(tiles.table)))


def asked(rule: lt.Rule, heads: tuple[int, int, int], kind: Any, n: int) -> tuple[Any, ...]:
    (batch, own, shared), ((width, value_width), dtype) = heads, kind
    if len(rule.axes) > 1:
        rule = rule.at(rows=n // 64, cols=64)
    else:
        rule = rule.at(n=n, **({"heads": own} if rule.has_heads else {}))
    shapes = ((batch, own, n, width), (batch, shared, n, width), (batch, shared, n, value_width))
    q, k, v = (torch.empty(shape, dtype=dtype, device="meta") for shape in shapes)
    return AttentionCall(rule, 1.0), q, k, v


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", [*ON_A_LINE, *ON_AN_IMAGE])
def test_explain_counts_what_is_launched(name: str, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for heads in HEADS:
        check((ON_A_LINE | ON_AN_IMAGE)[name], heads, kind, 2048, monkeypatch)


def check(
    rule: lt.Rule, heads: tuple[int, int, int], kind: Any, n: int, monkeypatch: pytest.MonkeyPatch
) -> dict[str, dict[int, Launched]]:
    """Holds explain to what is launched, and gives that."""
    with monkeypatch.context() as patch:
        found = counted(patch)
        call, q, k, v = asked(rule, heads, kind, n)
        run = launch.PlanExecutor(plan(call.rule), torch.device("cpu"))
        out, lse = run.forward(Recorder(), call, q, k, v, {})
        given = BackwardInputs(torch.empty_like(out), None, q, k, v, out, lse)
        run.backward(Recorder(), call, given, {})
        of_queries(call, q, v, found, f"{rule}, {heads}, {kind}")
        of_keys(call, q, v, found["backward_dkdv"], f"{rule}, {heads}, {kind}")
    return found


def of_queries(
    call: AttentionCall, q: Tensor, v: Tensor, found: dict[str, dict[int, Launched]], where: str
) -> None:
    """Tiles and steps of the forward pass, of all heads of all batch elements; shapes of both."""
    told = executed_work("triton", call, q, v, None).parts
    members = q.shape[:2].numel() // (q.shape[1] if call.rule.has_heads else 1)
    ran = found["forward"]
    for place, work in enumerate(told):
        if work.cut.joins is not None:
            assert work.steps * members == ran[work.cut.joins].guests, where
            continue
        assert work.cut.shape is not None
        assert work.cut.shape == launched_shape(ran[place], work.cut.shape), where
        assert work.steps * members == ran[place].steps, where
        assert work.tiles * members <= ran[place].programs, where  # some may have nothing to do
    assert {*ran} == {place for place, work in enumerate(told) if work.cut.joins is None}, where
    made = choices("backward", call, q, v)["backward_dq"]
    ran = found["backward_dq"]
    assert {*ran} == {*range(len(made.choices))} - {*made.joined.values()}, where
    for place, one in ran.items():
        shape = made.choices[place].shape
        assert shape == launched_shape(one, shape), where
        assert (place in made.joined) == (one.ready.joined is not None), where


def of_keys(call: AttentionCall, q: Tensor, v: Tensor, ran: dict[int, Launched], where: str) -> None:
    """Shapes and chunks of the gradients of keys, and what is said of them."""
    told = choices("backward", call, q, v)["backward_dkdv"].choices
    for place, choice in enumerate(told):
        ready = ran[place].ready
        assert choice.shape == launched_shape(ran[place], choice.shape), where
        assert choice.chunks == (0 if ready.chunks is None else ready.tiles), where
    text = format_gradients(call, q, v)
    chunks = sum(one.ready.tiles for one in ran.values() if one.ready.chunks is not None)
    assert (f"cut into {chunks:,} chunks" in text) == (chunks > 0), where
    by_hopper = any(one.ready.shape.hopper for one in ran.values())
    assert ("keys by the kernels for Hopper" in text) == by_hopper, where


def test_all_ways_are_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that join, chunks by either kernel, and heads that have gradients of keys of their own first."""
    wide = (128, 128), torch.bfloat16
    sinks = check(R.sinks(s=4, t=1023), (1, 16, 16), wide, 8192, monkeypatch)
    assert sinks["forward"][1].guests > 0 and 0 not in sinks["forward"]
    assert sinks["backward_dkdv"][0].ready.chunks is not None
    alone = check(R.causal(), (1, 1, 1), wide, 8192, monkeypatch)["backward_dkdv"][0]
    assert alone.ready.chunks is not None and not alone.ready.shape.hopper
    apart = check(R.causal(), (1, 32, 1), wide, 4096, monkeypatch)["backward_dkdv"][0]
    assert apart.programs == apart.ready.tiles * 32
    together = check(R.causal(), (1, 32, 1), wide, 16_384, monkeypatch)["backward_dkdv"][0]
    assert together.programs == together.ready.tiles and together.ready.chunks is not None
    assert together.ready.shape.hopper


def launched_shape(one: Launched, told: TileShape) -> TileShape:
    """The shape of a launch; where TMA cannot copy rows, the launcher says so and explain does not."""
    return replace(one.ready.shape, tma=told.tma)
