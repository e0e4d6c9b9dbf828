"""The table of profiles is made of what ncu writes; ncu itself needs a GPU."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
profile: Any = importlib.import_module("profile_gpu")

ABOUT = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size"]
ABOUT += ["Grid Size", "Device", "CC"]
WAITS = ("long_scoreboard", "gmma", "barrier")
UNITS = {"time": "ns", "registers": "register/thread", "gigabytes": "byte"}


def line(*cells: object) -> str:
    return ",".join(f'"{cell}"' for cell in cells) + "\n"


def written(*launches: tuple[str, dict[str, str]]) -> str:
    """A table as `ncu --csv --page raw --print-units base` prints it, its messages around it.

    Columns that nobody asked for are there too: about the device, and the least and most of each metric.
    """
    stalls = [f"smsp__warp_issue_stalled_{one}_per_warp_active.pct" for one in WAITS]
    names = ["device__attribute_chip", *profile.METRICS.values(), "gpu__time_duration.max", *stalls]
    units = ["", *(UNITS.get(name, "%") for name in profile.METRICS), "ns", *("%" for _ in WAITS)]
    text = "==WARNING== Note: Running with unmodified GPU clocks.\n"
    text += "==PROF== Connected to process 812 (/usr/bin/python3.12)\n"
    text += "==PROF== Disconnected from process 812\n"
    text += line(*ABOUT, *names) + line(*("" for _ in ABOUT), *units)
    for at, (name, values) in enumerate(launches):
        found = [values.get(key, "10.5") for key in profile.METRICS]
        waits = [values.get(key, "10.5") for key in WAITS]
        about = (at, 812, "python3.12", "127.0.0.1", name, 1, 7, "(128, 1, 1)", "(132, 1, 1)", 0, "9.0")
        text += line(*about, 384, *found, "9,999,999", *waits)
    return text


FORWARD = {
    "time": "1,234,560",
    "gigabytes": "1,500,000,000",
    "tensor": "51.49",
    "dram": "n/a",
    "registers": "168",
    "gmma": "60.2",
}
TEXT = written(
    ("at::<unnamed>::spin_kernel(long)", {"time": "1,000"}),
    ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NTN", {"time": "2,000,000", "tensor": "97.0"}),
    ("at::<unnamed>::spin_kernel(long)", {"time": "1,000"}),
    ("attention_fwd_hopper_kernel", FORWARD),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, T2, T3)", {}),
)
RULES = [profile.PRODUCT, "strided-255"]


def test_launches_are_read_with_their_rule_their_shares_and_why_they_wait() -> None:
    product, forward, fill = profile.profiles(TEXT, RULES)
    assert (product.rule, product.kernel, product.microseconds) == (profile.PRODUCT, "cuBLAS", 2000)
    assert (forward.rule, forward.kernel) == ("strided-255", "attention_fwd_hopper")
    assert (forward.microseconds, forward.tensor, forward.dram, forward.registers) == (
        1234.56,
        51.49,
        None,
        168,
    )
    assert next(iter(forward.stalls.items())) == ("gmma", 60.2)
    assert fill.kernel == "torch vectorized_elementwise"


def test_tables_have_a_row_a_launch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, saved = tmp_path / "ncu.csv", tmp_path / "profile.json"
    file.write_text(TEXT)
    profile.main(["strided-255", "--csv", str(file), "--json", str(saved), "--markdown"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| rule | kernel | µs | tensor % |") and len(lines) == 2 + 3
    assert lines[3] == (
        "| strided-255 | attention_fwd_hopper | 1,235 | 51 | 10 | 10 | | 1.50 | 10 | 168 | "
        "a tensor core 60%, memory 10%, other warps 10% |"
    )
    assert [row["kernel"] for row in json.loads(saved.read_text())][:2] == ["cuBLAS", "attention_fwd_hopper"]
    profile.main(["strided-255", "--csv", str(file)])
    assert "strided-255          attention_fwd_hopper          1,235" in capsys.readouterr().out


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ncu wrote no table: ==ERROR== ERR_NVGPUCTRPERM"):
        profile.profiles("==ERROR== ERR_NVGPUCTRPERM", RULES)
    with pytest.raises(ValueError, match="ncu saw 2 of 3 rules"):
        profile.profiles(TEXT, [*RULES, "causal"])
    with pytest.raises(ValueError, match="did not measure how long attention_fwd_hopper_kernel takes"):
        profile.profiles(TEXT.replace("1,234,560", "n/a"), RULES)


def test_ncu_is_told_what_to_measure() -> None:
    command = profile.command(["strided-255"], 64)
    metrics = command[command.index("--metrics") + 1].split(",")
    assert command[0] == "ncu" and command[-4:] == ["strided-255", "--head-dim", "64", "--launch"]
    assert len(metrics) == len({*metrics}) == len(profile.METRICS) + len(profile.STALLS)
