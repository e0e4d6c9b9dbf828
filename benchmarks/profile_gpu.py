"""What limits the kernels of a rule, by Nsight Compute: bf16, batch 1, 16 heads, both passes, one table.

    python benchmarks/profile_gpu.py strided-255 neighbourhood-7            # rows of attention_gpu.py
    python benchmarks/profile_gpu.py causal --head-dim 64 --json profile.json --markdown

It starts itself under `ncu`, which needs the right to read counters (root, most often). Each kernel is
launched several times, since not all counters are read at once, with empty caches and the clock as it is.
Shares are of what the chip could do: tensor cores and issue slots while a multiprocessor is busy, L2 and
DRAM all the time. GB are read from DRAM or written to it. Warps are those that are there, of 64 that a
multiprocessor could hold. A warp that does not issue has a reason; the three most frequent are given, as
shares of all warps' time. In the kernels for Hopper three of twelve warps have nothing to do, a quarter that
counts as waiting for other warps. A product of matrices stands first, to show what a share of the tensor
cores' time means.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path

from attention_gpu import HEADS, case_of
from report import chosen, short

PRODUCT = "product of matrices"
SIDE = 8192  # of the matrices
ROWS = (
    *("strided-255", "strided-4095", "windowed-1024", "neighbourhood-7", "neighbourhood-13"),
    *("sparse-strided", "sparse-fixed"),
)
ACTIVE, ELAPSED = (f"avg.pct_of_peak_sustained_{kind}" for kind in ("active", "elapsed"))
METRICS = {
    "time": "gpu__time_duration.sum",  # nanoseconds
    "tensor": f"sm__pipe_tensor_cycles_active.{ACTIVE}",
    "issue": f"sm__inst_issued.{ACTIVE}",
    "l2": f"lts__throughput.{ELAPSED}",
    "dram": f"dram__throughput.{ELAPSED}",
    "gigabytes": "dram__bytes.sum",
    "warps": f"sm__warps_active.{ACTIVE}",
    "registers": "launch__registers_per_thread",
}
STALLED, OF_WARPS = "smsp__warp_issue_stalled_", "_per_warp_active.pct"
STALLS = {  # as ncu names them, and what they are
    "long_scoreboard": "memory",
    "short_scoreboard": "shared memory or exponentials",
    "gmma": "a tensor core",
    "barrier": "other warps",
    "sleeping": "sleep",
    "wait": "a fixed latency",
    "math_pipe_throttle": "a busy pipe",
    "mio_throttle": "a full queue to shared memory",
    "lg_throttle": "a full queue to memory",
    "no_instruction": "instructions",
    "not_selected": "another warp's turn",
    "branch_resolving": "a branch",
    "membar": "a memory fence",
    "dispatch_stall": "dispatch",
    "drain": "writes at the end",
    "imc_miss": "constants",
    "tex_throttle": "a full texture queue",
    "misc": "something else",
}
MARK = "spin_kernel"  # torch.cuda._sleep, between one rule and the next


@dataclass(frozen=True)
class Profile:
    """One launch of a kernel: microseconds, percentages, and why warps did not issue, most frequent first."""

    rule: str
    kernel: str
    microseconds: float
    tensor: float | None
    issue: float | None
    l2: float | None
    dram: float | None
    gigabytes: float | None  # read from DRAM or written to it
    warps: float | None
    registers: int | None
    stalls: dict[str, float]


def launches(text: str) -> Iterator[dict[str, str]]:
    """The launches in what `ncu --csv --page raw` wrote; a line of units follows the names."""
    lines = text.splitlines()
    begin = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        raise ValueError(f"ncu wrote no table: {' '.join(lines[-5:]) or 'it wrote nothing'}")
    table = [line for line in lines[begin:] if line.startswith('"')]
    yield from list(csv.DictReader(StringIO("\n".join(table))))[1:]


def number(cell: str | None) -> float | None:
    """A cell as a number, or None where ncu could not measure it.

    >>> number("1,234.5"), number("n/a")
    (1234.5, None)
    """
    try:
        return float((cell or "").replace(",", ""))
    except ValueError:
        return None


def kernel_name(name: str) -> str:
    """A kernel as its users know it.

    >>> (
    ...     kernel_name("attention_fwd_hopper_kernel"),
    ...     kernel_name("cudnn_generated_fort_native_sdpa_sm90_knob_3"),
    ... )
    ('attention_fwd_hopper', 'cuDNN')
    >>> kernel_name("void at::native::vectorized_elementwise_kernel<4, at::FillFunctor<float>>(int, T2)")
    'torch vectorized_elementwise'
    """
    plain = name.replace("<unnamed>::", "").partition("<")[0].partition("(")[0].removeprefix("void ")
    if plain.startswith("cudnn"):
        return "cuDNN"
    if plain.startswith("nvjet") or "gemm" in plain:
        return "cuBLAS"
    last = plain.rpartition("::")[2].removesuffix("_kernel")
    return f"torch {last}" if plain.startswith("at::") else last


def profiles(text: str, rules: Sequence[str]) -> list[Profile]:
    """The launches of each rule; a mark stands before the first of each."""
    found: list[Profile] = []
    place = -1
    for launch in launches(text):
        if MARK in launch["Kernel Name"]:
            place += 1
            continue
        values = {name: number(launch.get(metric)) for name, metric in METRICS.items()}
        stalls = {reason: number(launch.get(f"{STALLED}{reason}{OF_WARPS}")) or 0.0 for reason in STALLS}
        most = sorted((reason for reason in stalls if stalls[reason]), key=lambda reason: -stalls[reason])
        time, registers, moved = (values.pop(name) for name in ("time", "registers", "gigabytes"))
        if time is None:
            raise ValueError(f"ncu did not measure how long {launch['Kernel Name']} takes")
        found.append(
            Profile(
                rules[place], kernel_name(launch["Kernel Name"]), time / 1e3, **values,
                gigabytes=None if moved is None else moved / 1e9,
                registers=None if registers is None else int(registers),
                stalls={reason: stalls[reason] for reason in most},
            )
        )  # fmt: skip
    if place != len(rules) - 1:
        raise ValueError(f"ncu saw {place + 1} of {len(rules)} rules")
    return found


def cells(one: Profile) -> list[str]:
    tensor, issue, l2, dram, warps = (
        "" if share is None else f"{share:.0f}"
        for share in (one.tensor, one.issue, one.l2, one.dram, one.warps)
    )
    why = [f"{STALLS[reason]} {share:.0f}%" for reason, share in list(one.stalls.items())[:3]]
    return [
        one.rule, one.kernel, short(one.microseconds), tensor, issue, l2, dram,
        "" if one.gigabytes is None else short(one.gigabytes), warps,
        "" if one.registers is None else str(one.registers), ", ".join(why),
    ]  # fmt: skip


HEAD = [
    "rule",
    "kernel",
    "µs",
    "tensor %",
    "issue %",
    "L2 %",
    "DRAM %",
    "GB",
    "warps %",
    "registers",
    "waits for",
]


def markdown(found: Iterable[Profile]) -> str:
    """The table for a page of docs."""
    lines = [HEAD, ["---"] * len(HEAD), *map(cells, found)]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in lines)


def plain(found: Iterable[Profile]) -> str:
    """The table for a terminal."""
    lines = [HEAD, *map(cells, found)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def command(names: Sequence[str], head_dim: int) -> list[str]:
    """What starts this file once more, under ncu."""
    metrics = [*METRICS.values(), *(f"{STALLED}{reason}{OF_WARPS}" for reason in STALLS)]
    return [
        *("ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv", "--page", "raw"),
        *("--print-units", "base", "--metrics", ",".join(metrics)),
        *(sys.executable, __file__, *names, "--head-dim", str(head_dim), "--launch"),
    ]


def launch_all(names: Sequence[str], head_dim: int) -> None:
    """What ncu looks at: a product of matrices, then both passes of each rule, a mark before each."""
    import torch

    import lattend as lt

    a, b = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    works = [lambda: a @ b]
    for name in names:
        case = case_of(name)
        q, k, v, grad = (
            torch.randn(1, HEADS, case.n, head_dim, device="cuda", dtype=torch.bfloat16) for _ in range(4)
        )
        learned = [x.requires_grad_() for x in (q, k, v)]

        def both(case=case, learned=learned, grad=grad):  # pyright: ignore
            out = lt.attention(*learned, case.rule, **case.sizes)  # pyright: ignore
            return torch.autograd.grad(out, learned, grad)

        works.append(both)
    for work in (*works, *works):  # the first two calls compile, plan and note what is launched
        work()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for work in works:
        torch.cuda._sleep(1000)
        work()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"rows of attention_gpu.py; {', '.join(ROWS)}"
    )
    parser.add_argument("--head-dim", type=int, default=128, choices=[64, 128, 256])
    parser.add_argument("--json", metavar="FILE", help="save the table here")
    parser.add_argument("--markdown", action="store_true", help="print it as Markdown")
    parser.add_argument("--csv", metavar="FILE", help="read what ncu wrote earlier instead of starting it")
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    names = chosen(args.names or ROWS)
    if args.launch:
        return launch_all(names, args.head_dim)
    if args.csv:
        text = Path(args.csv).read_text()
    elif shutil.which("ncu") is None:
        parser.exit(1, "profile_gpu.py: it needs ncu, which is part of the CUDA toolkit\n")
    else:
        text = run(command(names, args.head_dim))
    found = profiles(text, [PRODUCT, *names])
    print((markdown if args.markdown else plain)(found))
    if args.json:
        Path(args.json).write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    return None


def run(command: Sequence[str]) -> str:
    """What a command printed; ncu's own messages go there too."""
    with tempfile.TemporaryFile("w+") as out:
        done = subprocess.run(command, stdout=out, check=False)
        out.seek(0)
        text = out.read()
    if done.returncode:
        raise SystemExit(f"ncu ended with {done.returncode}:\n{text[-2000:]}")
    return text


if __name__ == "__main__":
    main()
