"""The example of many devices, as torchrun starts it on two ranks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "many_devices.py"


def test_the_loss_over_ranks_is_that_of_one_process() -> None:
    small = ["--length", "65", "--window", "8", "--steps", "20"]
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*start, str(EXAMPLE), *small],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert (
        "a layer brings a rank at most 3,584 bytes" in done.stdout
    )  # 7 keys of 4 heads * 2 * 16 numbers * 4 bytes
    first, last = (float(x) for x in re.findall(r"step +\d+ +loss ([\d.]+)", done.stdout))
    assert last < first
    off = re.search(r"off by (\S+)", done.stdout)
    assert off is not None and float(off[1]) < 1e-5
