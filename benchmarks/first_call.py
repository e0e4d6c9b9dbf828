"""The first call of a process: how long it takes, where the time goes, and what is loaded afterwards.

    python benchmarks/first_call.py                    # all cases, five processes each: a minute or two
    python benchmarks/first_call.py --only causal --imports

Each case runs in fresh processes, which load torch and take one product first. Milliseconds are the process's
own, without waiting for others: the median of several. With --imports, the time of loading modules is summed
by package, and by the parts of lattend. Bytecode is made before, as an installer makes it.
"""

from __future__ import annotations

import argparse
import compileall
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

CALL = "lt.attention(x, x, x, {})"
SDPA = "torch.nn.functional.scaled_dot_product_attention({}, is_causal=True)"
CASES = {
    "import torch": "import torch",
    "import lattend": "import lattend",
    "SDPA": SDPA.format("x, x, x"),
    "causal": CALL.format("'causal'"),
    "strided(255)": CALL.format("'strided(255)'"),
    "windowed(16)": CALL.format("'windowed(16)'"),
    "neighbourhood(3)": CALL.format("'neighbourhood(3)', rows=8"),
    "text rule": CALL.format("'k <= q and (q - k) % 4 == 0'"),
    "SDPA, training": SDPA.format("y, y, y") + ".sum().backward()",
    "strided(255), training": "lt.attention(y, y, y, 'strided(255)').sum().backward()",
    "explain": "lt.explain('strided(255)', n=4096)",
    "decoding step": (
        "lt.attention(x[:, :, :1], x[:, :, :1], x[:, :, :1], 'causal', "
        "cache=lt.KVCache('causal', batch=1, heads=4, head_dim=32))"
    ),
}
WARM = """
import torch
import lattend as lt
torch.set_num_threads(1)
x = torch.ones(1, 4, 64, 32)
y = torch.ones(1, 4, 64, 32, requires_grad=True)
(y @ y.mT).softmax(-1).sum().backward()
"""
WATCHED = ("islpy", "sympy", "triton", "torch._dynamo", "matplotlib")
PROGRAM = """
import sys, time
{before}
print("{mark}", file=sys.stderr)
begin = time.process_time()
{case}
took = 1e3 * (time.process_time() - begin)
print(took, *(name for name in {watched} if name in sys.modules))
"""
MARK = "the case begins"


class Run(NamedTuple):
    """Milliseconds, what is loaded, and what -X importtime printed while the case ran."""

    took: float
    loaded: tuple[str, ...]
    imports: str


def run(name: str, *options: str) -> Run:
    """One case in a fresh process."""
    before = "" if name.startswith("import") else WARM
    program = PROGRAM.format(before=before, mark=MARK, case=CASES[name], watched=WATCHED)
    found = subprocess.run(
        [sys.executable, *options, "-c", program], capture_output=True, text=True, check=True
    )
    took, *loaded = found.stdout.split()
    return Run(float(took), tuple(loaded), found.stderr.split(MARK)[1])


def modules(printed: str) -> Iterator[tuple[str, float]]:
    """Each module that was loaded, and its own milliseconds."""
    for line in printed.splitlines():
        own, _, name = (
            line.removeprefix("import time:").rsplit("|", 2) if line.count("|") == 2 else ("", "", "")
        )
        if own.strip().isdigit():
            yield name.strip(), int(own) / 1e3


def by_package(printed: str) -> Counter[str]:
    """Milliseconds of loading modules, by package; lattend by its parts."""
    found: Counter[str] = Counter()
    for name, own in modules(printed):
        found[".".join(name.split(".")[: 2 if name.startswith("lattend") else 1])] += own  # pyright: ignore
    return found


def main() -> None:
    """Print a line for each case."""
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("--only", choices=CASES)
    reader.add_argument("--runs", type=int, default=5)
    reader.add_argument("--imports", action="store_true", help="where the time of loading goes")
    given = reader.parse_args()
    spec = find_spec("lattend")
    if spec is not None and spec.origin is not None:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        compileall.compile_dir(Path(spec.origin).parent, quiet=2)
    print(f"{'first call':24} {'ms':>8}  loaded")
    for name in [given.only] if given.only else CASES:
        runs = [run(name) for _ in range(given.runs)]
        print(f"{name:24} {median(one.took for one in runs):8.1f}  {' '.join(runs[0].loaded) or '-'}")
        if given.imports:
            for package, took in by_package(run(name, "-X", "importtime").imports).most_common(8):
                print(f"    {package:28} {took:6.1f}")


if __name__ == "__main__":
    main()
