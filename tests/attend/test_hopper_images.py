"""Images by the kernels for Hopper, run without one: in an emulator, against float64."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import gluon_emulator as emulator
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.kernels import reference
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton.fixed_point import FixedPointSums
from lattend.attend.kernels.triton.hopper import launches
from lattend.attend.kernels.triton.launch import PlanExecutor
from lattend.attend.kernels.triton.shapes import apart, choose
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan
from lattend.plans.tables.image_tables import KEPT, dealt, image_table, steps_met
from lattend.plans.tables.tile_costs import TileShape
from lattend.rules.rule import Rule

R, DTYPE, PROGRAMS = lt.rules, torch.bfloat16, 3
Cut = tuple[tuple[int, ...], tuple[int, ...]]
CUTS = (((16, 8), (4, 16)), ((16, 8), (8, 8)), ((32, 4), (4, 16)), ((32, 4), (2, 32)), ((16, 8), (2, 16)))
EVERY = ("forward", "backward_dq", "backward_dkdv")
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds from which schedules are drawn: the last one."""
    found = [0]

    def instead(recorder: Recorder, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        emulator.launch(kernel, programs, arguments, constants, found[-1])

    monkeypatch.setattr(launches.launch_replay, "launch", instead)
    monkeypatch.setattr(launches, "processors", lambda device: PROGRAMS)
    return found


def check(
    rule: Rule, cut: Cut, heads: int = 2, kv_heads: int = 2, wide: int = 32, stages: int = 3,
    kernels: tuple[str, ...] = EVERY,
) -> None:  # fmt: skip
    """Outputs and gradients against the reference in float64; memory is full of NaN before."""
    outer, inner = cut
    shape = TileShape(outer, inner[0] * inner[1], 12, stages, True, inner=inner, hopper=True)
    n, source = rule.values["rows"] * rule.values["cols"], torch.Generator().manual_seed(1)
    sizes = ((heads, 32), (kv_heads, 32), (kv_heads, wide), (heads, wide))
    q, k, v, grad = (torch.randn(2, h, n, size, generator=source).to(DTYPE) for h, size in sizes)
    call, exact = AttentionCall(rule, 0.3), [x.double() for x in (q, k, v, grad)]
    out, lse = reference.forward(call, *exact[:3])
    grad_lse = torch.randn(lse.shape, generator=source).double()
    inputs = BackwardInputs(exact[3], grad_lse, exact[0], exact[1], exact[2], out, lse)
    dq, dk, dv, _ = reference.backward(call, inputs)
    assert all(part.exact for part in plan(rule).transposed) or "backward_dkdv" not in kernels
    runner = PlanExecutor(plan(rule), q.device, shapes=lambda kernel, place: shape)
    inputs = BackwardInputs(grad, grad_lse.float(), q, k, v, out.to(DTYPE), lse.float())
    delta = (out * exact[3]).sum(-1) - grad_lse
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    found: list[tuple[torch.Tensor, torch.Tensor]] = []
    if "forward" in kernels:
        made, sums = runner.forward(Recorder(), call, q, k, v, {})
        assert torch.equal(sums == -torch.inf, lse == -torch.inf)
        found += [(made, out), (sums.nan_to_num(neginf=0.0), lse.nan_to_num(neginf=0.0))]
    if "backward_dq" in kernels:
        fixed, rows = (
            FixedPointSums.of(Recorder(), runner.plan, call, {}, inputs),
            torch.empty_like(lse.float()),
        )
        found += [(runner.backward_dq(Recorder(), call, inputs, rows, {}, fixed), dq), (rows, delta)]
    if "backward_dkdv" in kernels and heads == kv_heads:
        found += [
            *zip(runner.backward_dkdv(Recorder(), call, inputs, delta.float(), {}), (dk, dv), strict=True)
        ]
    torch.use_deterministic_algorithms(before)
    for one, other in found:
        error = (one.double() - other).norm() / (other.norm() + 1e-9)
        assert error < TOLERANCE[DTYPE], f"{rule}, {cut}: off by {error:.1e}"


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_neighbourhoods(cut: Cut, seeds: list[int]) -> None:
    check(R.neighbourhood(r=3).at(rows=37, cols=17), cut)


@pytest.mark.parametrize("stages", [3, 5])
def test_a_strip_of_many_tiles(stages: int, seeds: list[int]) -> None:
    seeds.append(stages)
    check(R.neighbourhood(r=3).at(rows=130, cols=9), CUTS[0], heads=1, kv_heads=1, stages=stages)


@pytest.mark.parametrize(
    "rule",
    [
        R.swin(w=12, shift=5).at(rows=28, cols=20),
        lt.rule("abs(qy - ky) <= 1 and kx <= qx and qy > 7").at(rows=20, cols=12),  # keys that nobody sees
        lt.rule("abs(qy - ky) <= head and abs(qx - kx) <= 2").at(rows=17, cols=9, heads=2),
        lt.rule("ky > qy + 90 and kx <= qx").at(rows=17, cols=9),  # nobody sees any
        lt.rule("ky <= qy and kx <= qx").at(rows=40, cols=9),  # some tiles are heavy
    ],
    ids=str,
)
def test_other_rules(rule: Rule, seeds: list[int]) -> None:
    check(rule, CUTS[0])


COLUMN_BY_COLUMN = "abs(ky - qy - qx) <= 3"  # a strip's last keys lie above the next one's first


def test_strips_that_a_program_takes_one_after_another(seeds: list[int]) -> None:
    """Nothing is kept of the strip before: in another order another one comes next."""
    rule = lt.rule(COLUMN_BY_COLUMN).at(rows=16, cols=64)
    check(rule, CUTS[0], stages=5, kernels=EVERY[:2])
    check(
        lt.rule("abs(ky - qx) <= 12 and abs(kx - qy) <= 3").at(rows=32, cols=64), CUTS[0], heads=1, kv_heads=1
    )


DISTANCES = (
    "qy - ky",
    "abs(qy - ky)",
    "abs(qx - kx)",
    "kx - qx",
    "abs(ky - qx)",
    "abs(ky - qy - qx)",
    "ky - 2*qx",
)


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.tuples(st.sampled_from(DISTANCES), st.integers(0, 12)), min_size=1, max_size=2),
    size=st.sampled_from([(16, 64), (32, 128), (40, 30), (9, 200)]),
    cut=st.sampled_from(CUTS),
    stages=st.sampled_from([3, 5, 8]),
    members=st.integers(1, 40),
    programs=st.integers(1, 132),
)
def test_what_is_kept_is_of_the_tile_before(
    parts: list[tuple[str, int]], size: tuple[int, int], cut: Cut, stages: int, members: int, programs: int
) -> None:
    """Steps that stay in shared memory are those of the tile that the program takes next."""
    rule = lt.rule(" and ".join(f"{distance} <= {most}" for distance, most in parts))
    found = plan(rule, rows=size[0], cols=size[1])
    assume(len(found.parts) == 1 and not apart(found.parts[0]))
    table = image_table(found, 0, *cut, stages, transposed=False)
    begins, order = dealt(table, members, programs)
    kept = table[0, order % table.shape[1], KEPT]
    goes_on = np.append(np.diff(order) == 1, False)
    within = ~np.isin(np.arange(1, len(order) + 1), begins)  # what a program keeps at its end nobody reads
    assert not (kept[within] > 0)[~goes_on[within]].any()


def test_windows_that_shift_at_the_edge(seeds: list[int]) -> None:
    rule = R.neighbourhood(r=3, edge="shift").at(rows=37, cols=17)
    check(rule, CUTS[0], heads=1, kv_heads=1, kernels=EVERY[:2])


def test_heads_that_share_keys(seeds: list[int]) -> None:
    check(R.neighbourhood(r=2).at(rows=20, cols=17), CUTS[0], heads=4, kv_heads=2)


@given(
    up=st.integers(-9, 9), down=st.integers(-9, 9), left=st.integers(-9, 9), right=st.integers(-9, 9),
    rows=st.integers(1, 70), cols=st.integers(1, 24), cut=st.sampled_from(CUTS), stages=st.integers(3, 6),
    seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=12, deadline=None, suppress_health_check=SLOW)
def test_random_rectangles(
    up: int, down: int, left: int, right: int, rows: int, cols: int, cut: Cut, stages: int, seed: int,
    seeds: list[int],
) -> None:  # fmt: skip
    seeds.append(seed)
    text = f"ky - qy >= {up} and ky - qy <= {down} and kx - qx >= {left} and kx - qx <= {right}"
    rule = lt.rule(text).at(rows=rows, cols=cols)
    if plan(rule).parts:
        check(rule, cut, heads=1, kv_heads=1, wide=24, stages=stages)


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("r", [1, 3, 6])
def test_tables_say_which_steps_a_box_meets(r: int, cut: Cut) -> None:
    """Against the mask: all pairs lie in steps that their box meets, and each of these has some."""
    (down, across), (lines, columns) = cut
    rule = R.neighbourhood(r=r).at(rows=75, cols=21)
    mask = rule.mask().reshape(75, 21, 75, 21)
    pairs = np.zeros(mask.shape, bool)
    met = 0
    for y, x, first, left, side, _, _, *boxes in image_table(plan(rule), 0, *cut, 5, transposed=False)[0]:
        for box in range(2):
            begin, end = boxes[4 * box : 4 * box + 2]
            rows = slice(min(y + box * down // 2, 75), y + (box + 1) * down // 2)
            met += end - begin if rows.start < 75 else 1
            for step in range(begin, end):
                above, beside = first + step // side * lines, left + step % side * columns
                keys = (slice(max(above, 0), max(above + lines, 0)), slice(beside, beside + columns))
                block = (rows, slice(x, x + across), *keys)
                assert mask[block].any() or columns * side >= 2 * columns or rows.start >= 75
                pairs[block] |= mask[block]
    assert np.array_equal(pairs, mask)
    assert met == steps_met(image_table(plan(rule), 0, *cut, 5, transposed=False)).sum()


def test_programs_have_about_as_many_steps() -> None:
    rule = lt.rule("ky <= qy and kx <= qx").at(rows=128, cols=128)
    table = image_table(plan(rule), 0, *CUTS[0], 5, transposed=False)
    ends, order = dealt(table, 12, 132)
    weights = np.tile(steps_met(table), (12, 1)).ravel()[order]
    each = np.add.reduceat(weights, ends[:-1])
    assert ends[0] == 0 and ends[-1] == len(weights) and each.max() < 1.6 * each.mean()


@pytest.mark.parametrize("cols", [128, 150])
@pytest.mark.parametrize(("members", "programs"), [(16, 132), (1, 132), (3, 7), (5, 1), (64, 132)])
def test_neighbours_are_taken_at_the_same_time(members: int, programs: int, cols: int) -> None:
    """All tiles once, strips whole; and where programs have some whole strips each, those beside each other
    begin at about the same time.
    """
    table = image_table(plan(R.neighbourhood(r=3), rows=128, cols=cols), 0, *CUTS[0], 5, transposed=False)
    begins, order = dealt(table, members, programs)
    assert sorted(order.tolist()) == list(range(members * table.shape[1]))
    assert (np.diff(order.reshape(-1, 8)) == 1).all()  # a strip has eight tiles
    assert begins[0] == 0 and begins[-1] == len(order) and len(begins) == programs + 1
    if (members, cols) == (16, 150):  # 2.3 strips each
        assert (np.diff(order) == 1).all()
    if (members, cols) == (16, 128):  # 1.94
        place = np.argsort(order)[::8]  # of each strip's first tile
        when = place - begins[np.searchsorted(begins, place, side="right") - 1]
        assert (np.diff(order) != 1).any() and np.median(np.abs(np.diff(when))) <= 1


def test_it_is_chosen_where_it_can_run() -> None:
    def taken(rule: Rule, **options: Any) -> list[bool]:
        found = plan(rule, rows=128, cols=128)
        return [choose(found, 0, name, 128, torch.bfloat16, **options).shape.hopper for name in EVERY]

    assert all(taken(R.neighbourhood(r=3), hopper=True))
    assert not any(taken(R.neighbourhood(r=3)))
    assert not any(taken(R.neighbourhood(r=3, step=2), hopper=True))
    assert taken(R.neighbourhood(r=3, edge="shift"), hopper=True) == [True, True, False]
    assert not any(taken(lt.rule("abs(qy - ky) + abs(qx - kx) <= 3"), hopper=True))


# What the emulator finds: kernels that are wrong in one place


KERNELS = {
    "images_forward": "attention_fwd_images_kernel",
    "images_dq": "attention_bwd_dq_images_kernel",
    "images_dkdv": "attention_bwd_dkdv_images_kernel",
}
WRONG = {
    "values are not waited for": ("images_forward", "            arrived(v_ready, last, STAGES)\n", ""),
    "values are given back though the next tile has them too": (
        "images_forward", "mbarrier.arrive(v_free.index(last % STAGES), count=1, pred=end <= free_end)",
        "mbarrier.arrive(v_free.index(last % STAGES), count=1)",
    ),
    "steps of the last tile are loaded again": (
        "images", "for index in range(had, tile[6])", "for index in range(tile[6])"
    ),
    "queries are freed while the output is written": (
        "images_forward", "give_back(q_free, turn + 1, turn > 0)",
        "mbarrier.arrive(q_free.index((turn + 1) % TILES), count=1, pred=turn > 0)",
    ),
    "keys are given back before they are read": (
        "images_dq", "mbarrier.arrive(k_free.index(last % STAGES), count=1, pred=index <= free_end)",
        "mbarrier.arrive(k_free.index(now % STAGES), count=1, pred=index < free_end)",
    ),
    "what the last tile gave back is passed over": (
        "images", "gl.where(turn > 0, tile[at + 3], 0)", "0 * turn"
    ),
    "steps at the end are not passed over": (
        "images_dkdv", "pass_over(done + end, done + free_end, q_ready", "pass_over(done, done, q_ready"
    ),
    "a sum goes on from tile to tile": ("images_dkdv", "dv, index > begin,", "dv, True,"),
    "boxes of the next line begin at the left of the last": (
        "images", "return y + gl.where(ends, BY, 0), gl.where(ends, 0, x + BX)",
        "return y + gl.where(ends, BY, 0), x + BX",
    ),
    "bits of a line are not those of its box": (
        "images", "gl.maximum(low_x[:, None] - x, 0)", "low_x[:, None]"
    ),
}  # fmt: skip


def broken(name: str, right: str, wrong: str, folder: Path) -> dict[str, Any]:
    """The kernels by name, where one place in the source of a module is changed."""
    sources = {
        each: Path(launches.__file__).with_name(f"{each}.py").read_text() for each in ("images", *KERNELS)
    }
    assert sources[name].count(right) == 1, f"{right} is there {sources[name].count(right)} times"
    sources[name] = sources[name].replace(right, wrong)
    package = f"broken_{uuid4().hex}"
    (folder / package).mkdir()
    for each, source in sources.items():
        moved = source.replace("lattend.attend.kernels.triton.hopper.images", f"{package}.images")
        (folder / package / f"{each}.py").write_text(moved)
    sys.path.insert(0, str(folder))
    try:
        return {
            kernel: getattr(import_module(f"{package}.{each}"), kernel) for each, kernel in KERNELS.items()
        }
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize("what", WRONG)
def test_a_kernel_that_is_wrong_is_found(
    what: str, seeds: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, kernel in broken(*WRONG[what], tmp_path).items():
        monkeypatch.setattr(launches, name, kernel)
    monkeypatch.setattr(emulator, "MOST_IDLE", 500)
    monkeypatch.setattr(sys.modules[__name__], "PROGRAMS", 1)  # which takes all tiles
    with pytest.raises((AssertionError, emulator.Emulated)):
        for seed in range(12):
            seeds.append(seed)
            r, rows, cols, cut = ((3, 48, 18, CUTS[1]), (6, 50, 9, CUTS[0]))[seed % 2]
            check(R.neighbourhood(r=r).at(rows=rows, cols=cols), cut, heads=1, kv_heads=1)
