"""The benchmarks' cases, peers, tables and charts; how long anything takes is no test."""

from __future__ import annotations

import importlib
import itertools
import json
import math
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lattend as lt

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # they are scripts: each finds the others beside it
report: Any = importlib.import_module("report")
cpu: Any = importlib.import_module("attention_cpu")
gpu: Any = importlib.import_module("attention_gpu")
everyday: Any = importlib.import_module("everyday")
calibrate: Any = importlib.import_module("calibrate_gpu")
calibrate_cpu: Any = importlib.import_module("calibrate_cpu")
crossovers_gpu: Any = importlib.import_module("calibrate_crossovers")
parallel_runs: Any = importlib.import_module("parallel_runs")
parallel_predictions: Any = importlib.import_module("parallel_predictions")
web_server: Any = importlib.import_module("web_server")
web_load: Any = importlib.import_module("web_load")
web_typing: Any = importlib.import_module("web_typing")

# The attended pairs, and the floors of an H200: bf16, 16 heads, D = 128
PEERS = {
    "causal": (134_225_920, 1.38),
    "strided-255": (16_744_576, 0.25),
    "strided-1023": (66_585_088, 0.68),
    "strided-4095": (260_048_896, 2.67),
    "windowed-256": (8_421_376, 0.25),
    "windowed-1024": (33_587_200, 0.34),
    "neighbourhood-7": (781_456, 0.062),
    "neighbourhood-13": (2_630_884, 0.062),
    "sparse-strided": (3_129_408, 0.062),
    "sparse-fixed": (9_379_840, 0.096),
    "sinks": (32_768 * 1028 - 1028 * 1027 // 2, 0.34),
    "prefix": (3000 * 3000 + 134_225_920 - 3000 * 3001 // 2, 1.42),
}


def row(name: str = "causal", work: str = "forward", **more: Any) -> Any:
    return report.Row(name, f"{name} <title>", 4096, 4, 64, work, 1000, 2.0, **more)


@pytest.mark.parametrize("name", report.NAMES)
def test_attended_pairs_are_those_of_the_rule(name: str) -> None:
    case = gpu.case_of(name)
    assert case.needed == PEERS[name][0]
    assert case.needed == case.rule.count(**(case.sizes or {"n": case.n}))


@pytest.mark.parametrize("name", report.NAMES)
def test_floor_is_that_of_the_peers(name: str) -> None:
    found = gpu.row_of(gpu.case_of(name), 128, "forward").floor
    assert abs(found - PEERS[name][1]) <= 0.006 * max(1, PEERS[name][1])


@pytest.mark.parametrize("name", report.NAMES)
def test_the_function_marks_what_the_rule_marks(name: str) -> None:
    case = report.case(name, 256)
    at = np.arange(case.n)
    mask = case.rule.mask(**(case.sizes or {"n": case.n})).reshape(case.n, case.n)
    assert (case.attended(at[:, None], at[None]) == mask).all()
    assert (case.keys(at) == mask.sum(1)).all()


def test_names_are_chosen_by_how_they_begin() -> None:
    assert report.chosen(["strided", "windowed-256"]) == [*report.NAMES[1:5]]
    assert report.chosen(None) == [*report.NAMES]
    with pytest.raises(SystemExit, match="no rule 'bands'; there are causal, strided-255"):
        report.chosen(["bands"])


def dense(case: Any) -> Any:
    """Plain attention under a case, every square looked at."""
    import torch

    at = torch.arange(case.n)
    mask = case.attended(at[:, None], at[None])

    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.mT * q.shape[-1] ** -0.5
        return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v

    return attend


def inputs(case: Any, **options: Any) -> list[Any]:
    import torch

    torch.manual_seed(0)
    return [torch.randn(1, cpu.HEADS, case.n, cpu.D, **options) for _ in range(3)]


@pytest.mark.parametrize(("name", "n"), [("strided-255", 1024), ("strided-255", 1000), ("windowed-256", 512)])
def test_chunks_by_hand_are_the_rule(name: str, n: int) -> None:
    import torch

    case = report.case(name, n)
    given = inputs(case, requires_grad=True)
    found, wanted = cpu.chunks(case)(*given), dense(case)(*given)
    assert cpu.relative(found, wanted) < 1e-5
    towards = torch.randn_like(found)
    both = [torch.autograd.grad(out, given, towards) for out in (found, wanted)]
    assert max(cpu.relative(a, b) for a, b in zip(*both, strict=True)) < 1e-5


def test_the_check_tells_right_from_wrong() -> None:
    case, other = report.case("strided-255", 512), report.case("causal", 512)
    given = inputs(case, requires_grad=True)
    assert cpu.errors(case, dense(case), *given).keys() == {"out", "gradients"}
    assert max(cpu.errors(case, dense(case), *given).values()) < 1e-5
    assert min(cpu.errors(case, dense(other), *given).values()) > 1e-2
    assert cpu.errors(case, dense(case), *inputs(case)).keys() == {"out"}


@pytest.mark.parametrize("name", ["strided-255", "neighbourhood-7", "sparse-fixed"])
@pytest.mark.parametrize("n", [1024, 900])
def test_block_masks_are_those_of_flex_attention(name: str, n: int) -> None:
    from torch.nn.attention.flex_attention import create_block_mask

    case = report.case(name, n)
    found = cpu.block_mask(case)
    wanted = create_block_mask(found.mask_mod, None, None, n, n, device="cpu")
    for part in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"):
        assert (getattr(found, part) == getattr(wanted, part)).all(), part
    assert found.shape == wanted.shape


def test_times_are_written_with_three_digits() -> None:
    values = [0.0624, 0.262, 1.0, 9.996, 42.13, 571.4, 12345.6]
    assert [report.short(v) for v in values] == ["0.0624", "0.262", "1.00", "10.0", "42.1", "571", "12,346"]


def test_a_cell_has_a_time_and_its_ratio() -> None:
    both = row(times={"lattend": 4.0, "peer": 10.0})
    assert report.cell(both, "lattend") == "4.00 (2.00× floor)"
    assert report.cell(both, "peer") == "10.0 (2.50×)"
    assert report.cell(both, "other") == "–"
    assert report.cell(row(times={"peer": 10.0}), "peer") == "10.0 (5.00× floor)"


def test_the_table_shows_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    times = {report.REFERENCE: 60.0, "peer": 10.0, "lattend": 4.0}
    rows = [row(times=times, aim=3.0, notes=["odd"]), row("strided-255", "training step", times=times)]
    report.table({"cpu": "fake", "triton": None}, rows)
    shown = capsys.readouterr().out
    for words in ("cpu fake", "causal <title>", "4.00 (2.00× floor)", "10.0 (2.50×)", "aim", "forward: odd"):
        assert words in shown
    assert "triton" not in shown
    assert shown.index("lattend") < shown.index("peer") < shown.index(report.REFERENCE)


def test_rows_come_back_from_a_file(tmp_path: Path) -> None:
    rows = [row(times={"lattend": 4.0}, errors={"lattend": 1e-7}), row(work="backward", aim=1.0)]
    report.save(tmp_path / "rows.json", {"cpu": "fake"}, rows)
    assert report.load(tmp_path / "rows.json") == ({"cpu": "fake"}, rows)
    assert json.loads((tmp_path / "rows.json").read_text())["rows"][0]["times"] == {"lattend": 4.0}


def test_the_chart_has_a_bar_a_contender_and_a_mark_at_the_floor(tmp_path: Path) -> None:
    rows = [
        row(times={"lattend": 4.0, "peer": 40.0}),
        row("strided-255", times={"lattend": 3.0}),
        row(work="training step", times={"lattend": 9.0}),
    ]
    written = report.draw(tmp_path / "chart.svg", {"cpu": "fake"}, rows, "Fake")
    assert [file.name for file in written] == ["chart.svg", "chart-training-step.svg"]
    drawn = written[0].read_text()
    assert "causal &lt;title&gt;" in drawn
    assert drawn.count(f"fill: {report.COLOURS[0]}") == 1 + 2  # the legend's, and one a row
    assert drawn.count(f"fill: {report.PEER_COLOURS[0]}") == 1 + 1
    (png,) = report.draw(tmp_path / "chart.png", {"cpu": "fake"}, rows[:2], "Fake")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_bars_end_at_their_times_and_the_floor_is_marked() -> None:
    (ax,) = report.chart([row(times={"lattend": 4.0, "peer": 40.0})], {"cpu": "fake"}, "Fake").axes
    assert [bar.get_width() for bar in ax.patches] == [4.0, 40.0]
    (floor,) = ax.collections
    assert {x for x, _ in floor.get_segments()[0]} == {2.0} and ax.get_xscale() == "log"


def test_without_a_gpu_one_line_says_so() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    script = str(BENCHMARKS / "attention_gpu.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "no CUDA device here: attention on a GPU is not timed\n"


def test_float32_has_rows_with_tf32_and_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    file = tmp_path / "rows.json"
    asked = ["--dry-run", "--no-peers", "--head-dim", "64", "--dtype", "float32", "TF32", "--json", str(file)]
    gpu.main([*asked, "--cases", "causal", "windowed"])  # windows have no row in float32
    _, rows = report.load(file)
    assert [(row.case, row.n, row.dtype, row.work) for row in rows] == [
        ("causal", 64, dtype, work) for dtype in ("float32", "TF32") for work in gpu.WORK
    ]
    assert max(error for row in rows for error in row.errors.values()) < 1e-6
    assert not torch.backends.cuda.matmul.allow_tf32
    assert "causal, TF32" in capsys.readouterr().out


def test_the_floor_in_float32_is_that_of_its_numbers_and_products() -> None:
    case = gpu.case_of("causal", gpu.TF32)
    pairs, heads, D = 4096 * 4097 // 2, 16, 128
    found = gpu.row_of(case, D, "forward", gpu.TF32, 400e12)
    assert found.floor == pytest.approx(1e3 * 2 * 2 * pairs * heads * D / 400e12)  # 0.172 ms
    assert (found.aim, found.dtype) == (None, "TF32")
    least = gpu.row_of(case, D, "forward", gpu.FLOAT32, 1e30).floor  # copies alone, of 4 bytes a number
    assert least == pytest.approx(1e3 * 4 * 4 * 4096 * heads * D / gpu.BANDWIDTH)


def test_sdpa_with_a_mask_is_the_rule() -> None:
    case = report.case("strided-255", 600)
    given = inputs(case)
    assert cpu.relative(gpu.efficient(case, "cpu")(*given), dense(case)(*given)) < 1e-5


def small(group: str, work: str = "forward") -> Any:
    """The first case of a group and a pass."""
    return next(case for case in everyday.cases() if (case.group, case.work) == (group, work))


@pytest.mark.parametrize("group", ["full", "causal", "cross-attention", "sliding window", "blocks", "random"])
@pytest.mark.parametrize("work", everyday.WORKS)
def test_everyday_both_sides_do_the_same(group: str, work: str) -> None:
    """The check before timing passes, and fails for another rule."""
    case = small(group, work)
    inputs, towards = everyday.tensors(case, "cpu")
    works = {
        name: partial(everyday.run, attend, inputs, towards)
        for name, attend in everyday.contenders(case, "cpu").items()
    }
    assert len(works["lattend"]()) == (1 if work == "forward" else 3)
    assert everyday.apart(works) < 6e-6
    other = everyday.contenders(small("causal" if group != "causal" else "full"), "cpu")["SDPA"]
    if case.n == case.m:
        works["SDPA"] = partial(everyday.run, other, inputs, towards)
        assert everyday.apart(works) > 1e-2


def test_everyday_counts_pairs_and_its_random_rules_are_on_no_other_list() -> None:
    drawn = everyday.random_rules()
    assert len(set(drawn)) == 20
    assert drawn == everyday.random_rules.__wrapped__()
    for group in ("full", "causal", "sliding window", "blocks", "random"):
        case = small(group)
        assert case.needed() == case.rule.count(n=case.n)
    listed = [case for case in everyday.cases() if case.group != "random"]
    assert not {str(lt.rule(text)) for text in drawn} & {str(case.rule) for case in listed}
    numbers = [{case.shape[at] for case in listed} for at in range(4)]
    assert {1, 8} == numbers[0] and {32, 256} <= numbers[3]
    assert {16, 65_536} <= {case.n for case in listed}


def test_everyday_prints_quartiles_and_the_worst_rows() -> None:
    def made(ratio: float, kernel: str) -> Any:
        times = {"lattend": ratio, "SDPA": 1.0}
        return everyday.Row(
            "full", kernel, 8, 8, (1, 1, 1, 8), "float32", "forward", 64, 0.5, True, kernel, times
        )

    rows = [made(ratio, f"kernel {ratio}") for ratio in (0.5, 1.0, 1.05, 2.0, 4.0)]
    assert everyday.distribution([row.ratio() for row in rows]).split() == (
        ["5", "0.500", "1.00", "1.05", "2.00", "4.00", "40%"]
    )
    shown = everyday.summary(rows, worst=2)
    assert "kernel 4.0" in shown and "kernel 2.0" in shown and "kernel 1.05" not in shown


def test_everyday_runs_and_saves_nothing_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["causal", "batch 1, 4 heads", "float32"]
    before = {*(BENCHMARKS / "results").iterdir()}
    everyday.main(["--device", "cpu", "--most-n", "16", "--most-seconds", "0.1", "--only", *words])
    shown = capsys.readouterr().out
    assert "2 of 2 cases" in shown and "causal, training step" in shown
    assert "deterministic False" in shown
    assert {*(BENCHMARKS / "results").iterdir()} == before
    with pytest.raises(SystemExit, match="no case has all of 'no such word'"):
        everyday.main(["--device", "cpu", "--only", "no such word"])


def test_everyday_may_be_nondeterministic_as_its_peer_is() -> None:
    case, args = small("causal", "training step"), everyday.argparse.Namespace(device="cpu")
    for deterministic in (False, True):
        ours = everyday.contenders(case, "cpu", deterministic)["lattend"]
        assert ours.keywords["deterministic"] == deterministic
    assert everyday.contenders(case, "cpu")["lattend"].keywords["deterministic"] is False
    args.deterministic = args.control = False
    assert everyday.Bench(args).about["deterministic"] is False


def test_everyday_has_sdpa_beside_itself_as_a_control() -> None:
    case = small("causal", "training step")
    ours, theirs = everyday.contenders(case, "cpu", control=True).values()
    assert ours is theirs
    assert ours.func is not everyday.lt.attention


def test_limits_of_a_gpu_have_the_least_cost() -> None:
    """Ours is twice as fast below 2,000 numbers and 10^6 products, and half as fast beyond either."""
    rows: list[Any] = []
    for heads, n, head_dim in itertools.product((4, 64), (16, 64, 256, 1024), (16, 64)):
        case = crossovers_gpu.Case("a group", "half", False, n, head_dim, heads, n)
        ahead = case.numbers < 2000 and case.products < 1e6
        rows.append((case, {"triton": 1.0 if ahead else 4.0, "sdpa": 2.0}))
    found = crossovers_gpu.fitted(rows)
    for case, times in rows:
        ours = case.numbers < found["numbers"] and case.products < found["products"]
        assert ours == (times["triton"] < times["sdpa"])
    assert crossovers_gpu.between([64, 256, 1024]) == [130, 510, math.inf]
    rows = [
        (crossovers_gpu.Case("hopper causal", "half", True, n, 128, heads, n), {"triton": t, "sdpa": 2.0})
        for heads in (4, 64)
        for n in (1024, 4096, 16_384)
        for t in (1.0 if n > 1024 and heads * n < 500_000 else 4.0,)
    ]
    limits = crossovers_gpu.fitted_hopper(rows)
    assert limits["keys"] == 4096 and 64 * 4096 < limits["rows"] < 64 * 16_384


def test_a_crossover_is_where_ratios_pass_one_for_good() -> None:
    assert calibrate_cpu.crossover({16: [2.0], 64: [0.5], 256: [2.0], 1024: [1.2]}) == 130
    assert calibrate_cpu.crossover({16: [0.5], 64: [1.5], 256: [0.9]}) is None
    assert calibrate_cpu.crossover({16: [1.5], 64: [1.1, 9.0, 0.3]}) == 16


def test_calibrating_a_cpu_prints_ratios_and_saves_nothing_unasked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    if (reason := calibrate_cpu.missing()) is not None:
        pytest.skip(reason)
    threads, before = torch.get_num_threads(), calibrate_cpu.FILE.read_text()
    monkeypatch.setattr(calibrate_cpu, "SHAPES", ((32, 1),))
    try:
        calibrate_cpu.main(["--most-n", "16"])
    finally:
        torch.set_num_threads(threads)
    shown = capsys.readouterr().out
    assert "float32 causal, n = 16, D = 32, threads 1: forward " in shown
    assert "backward, float16 full: " in shown
    assert calibrate_cpu.FILE.read_text() == before


def test_costs_are_found_from_times_and_never_negative() -> None:
    """Times made of known costs give these back; a column that could only be below 0 gets 0."""
    counts = np.array([[10, 40, 0], [10, 80, 20], [30, 60, 30], [5, 100, 10]], float)
    costs, error = calibrate.nearest(counts, counts @ np.array([7.0, 2.0, 0.5]))
    np.testing.assert_allclose(costs, [7.0, 2.0, 0.5])
    assert error < 1e-9
    costs, _ = calibrate.nearest(counts, counts @ np.array([7.0, 2.0, -0.5]))
    assert (costs >= 0).all()


def test_no_rule_of_a_table_calibrates_it() -> None:
    """What foretells the benchmark's rows was fitted on other rules."""
    tables = {str(report.case(name, 16_384).rule) for name in PEERS}
    used = {
        str(rule)
        for dtype in calibrate.DTYPES
        for kind in calibrate.KINDS
        for rule, _ in calibrate.rules(dtype, kind).values()
    }
    assert not tables & used


@pytest.mark.parametrize("text", [*web_load.RULES, *web_typing.RULES])
def test_what_people_type_into_the_page_is_a_rule_with_a_formula(text: str) -> None:
    from lattend.web.worker import reply

    question = json.dumps({"rule": text.format(a=9, b=4)}).encode()
    assert [reply(panel, "", question)[0] for panel in ("read", "count")] == [200, 200]


def test_keystrokes_that_fail_have_no_time_and_rules_are_told_from_other_texts() -> None:
    seen = web_load.Seen(since=10)
    for read, count in ((200, 200), (422, 422), (422, 0), (200, 504), (503, 200), (0, 0)):
        seen.key({"read": read, "count": count}, 10, 0.25)
    assert seen.waits == {True: [0.25], False: [0.25, 0.25]}
    assert seen.failures == {"count: 504": 1, "read: 503": 1, "read: no reply, count: no reply": 1}
    rows = web_load.rows_of(seen, [], 1, 0, 2)
    assert rows["keystrokes"] == "6 (3.0 a second)"
    assert rows["failed keystrokes"].startswith("3; ")
    seen.key({"read": 200, "count": 200}, 9, 5)  # begun in the warm-up
    assert seen.waits[True] == [0.25]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_is_that_of_all_descendants() -> None:
    import os

    alone = web_server.memory(os.getpid())
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    grandchild = "held = b'1' * 50_000_000; print('held', flush=True); input()"
    command = [sys.executable, "-c", child, grandchild]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None and started.stdout.readline() == "held\n"
        more = web_server.memory(os.getpid())
        started.communicate("\n")
    assert more.processes == alone.processes + 2
    assert more.megabytes > alone.megabytes + 45


def test_the_table_of_memory_has_the_start_the_middle_the_end_and_the_greatest() -> None:
    samples = [web_server.Memory(*pair) for pair in ((100, 5), (900, 7), (300, 9), (250, 6), (200, 6))]
    assert web_server.memory_rows(samples, 2) == {
        "memory, start": "100 MB in 5 processes",
        "memory, middle": "300 MB in 9 processes",
        "memory, end": "200 MB in 6 processes",
        "memory, greatest": "900 MB; most processes 9",
        "memory, sampled": "5 times, every 2 s",
    }


def test_bytes_of_collectives_are_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(parallel_runs.dist, "get_rank", lambda: 1)
    monkeypatch.setattr(parallel_runs.dist, "get_world_size", lambda: 4)
    x = torch.zeros(6)  # 24 bytes
    assert parallel_runs.received("c10d::recv_", ([x, x],)) == 48
    assert parallel_runs.received("c10d::allgather_", ([[x] * 4], [x])) == 72
    assert parallel_runs.received("c10d::reduce_scatter_", ([x], [[x] * 4])) == 72
    assert parallel_runs.received("_c10d_functional::all_gather_into_tensor", (x, 4)) == 72
    assert parallel_runs.received("_c10d_functional::all_to_all_single", (x, [0, 2, 4, 0])) == 16
    assert parallel_runs.received("cplib::flex_cp_allgather", (x, x)) == 144
    assert parallel_runs.received("c10d::send", ([x],)) == parallel_runs.received("aten::add", (x, x)) == 0
    with pytest.raises(NotImplementedError, match="bytes of c10d::scatter_ are not counted"):
        parallel_runs.received("c10d::scatter_", (x,))


def test_predictions_are_held_to_times_and_to_their_order() -> None:
    def row(strategy: str, measured: float, plan: float, own: float) -> Any:
        predicted = {"plan": plan, "own rate": own}
        return parallel_predictions.Compared("causal", strategy, "forward", predicted, measured, 0.0)

    rows = [row("halo", 2.0, 1.0, 2.0), row("ring", 4.0, 3.0, 4.4), row("gather", 5.0, 0.5, 5.0)]
    assert parallel_predictions.summary(rows, "plan") == (  # ratios 0.5, 0.75 and 0.1
        "plan: median of |predicted/measured - 1| 0.50; the quickest strategy of 0 of 1 passes, "
        "the order of 1 of 3 pairs of strategies"
    )
    assert "0.00; the quickest strategy of 1 of 1 passes, the order of 3 of 3" in (
        parallel_predictions.summary(rows, "own rate")
    )
