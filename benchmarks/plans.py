"""How long a plan takes and how large it is, for the affine rules of the catalogue, at n = 2¹⁴ to 2²⁰.

Each plan is made anew, its tiles of 128 queries included; the process is warm. The peer is FlexAttention's
block mask, which is made from n² evaluations: with --flex it is timed at the smallest n. `--save` writes
results/plans.json, from which `make pictures` makes the table of docs/speed.md.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import report
from rich.console import Console
from rich.table import Table

import lattend as lt
from lattend.plans.plan import Plan, forget_plans, plan

R = lt.rules
RULES: dict[str, lt.Rule] = {
    "full": R.full(),
    "causal": R.causal(),
    "strided": R.strided(t=255),
    "windowed": R.windowed(w=256),
    "band": R.band(before=128, after=127),
    "dilated": R.dilated(t=64, step=16),
    "sparse_strided": R.sparse_strided(l=128),
    "sparse_fixed": R.sparse_fixed(l=128, c=8),
    "longformer": R.longformer(t=256, g=16),
    "bigbird": R.bigbird(w=64, t=1, g=1),
    "prefix_lm": R.prefix_lm(p=1000),
    "sinks": R.sinks(s=4, t=1000),
    "chunked": R.chunked(w=64, t=1),
    "neighbourhood": R.neighbourhood(r=3),
    "neighbourhood, step 2": R.neighbourhood(r=3, step=2),
    "neighbourhood, shifted edges": R.neighbourhood(r=3, edge="shift"),
    "axial": R.axial(),
    "swin": R.swin(w=8, shift=4),
    "raster": R.raster(),
}
POWERS = (14, 16, 18, 20)
SAVED = Path(__file__).parent / "results" / "plans.json"
SHAPES = {1: (128,), 2: (8, 16)}


def planned(rule: lt.Rule, n: int) -> tuple[Plan, int]:
    """A fresh plan with the tiles of all its parts, and their bytes."""
    forget_plans()
    side = round(n**0.5)
    sizes = {"n": n} if len(rule.axes) == 1 else {"rows": side, "cols": side}
    found = plan(rule, **sizes)
    tables = [found.tiles(place, SHAPES[len(rule.axes)]) for place in range(len(found.parts))]
    return found, sum(table.table.nbytes for table in tables)


def milliseconds(rule: lt.Rule, n: int) -> float:
    """The least of several rounds."""
    taken: list[float] = []
    for _ in range(9):
        begin = time.perf_counter()
        planned(rule, n)
        taken.append((time.perf_counter() - begin) * 1e3)
    return min(taken)


def measured(name: str) -> dict[str, Any]:
    """One rule: the parts of its plan, milliseconds at each n, and the bytes of its tables at the largest."""
    rule = RULES[name]
    found, size = planned(rule, 2 ** POWERS[-1])
    times = [round(milliseconds(rule, 2**power), 2) for power in POWERS]
    return {"rule": name, "parts": len(found.parts), "milliseconds": times, "bytes": size}


def flex(n: int) -> float:
    """Milliseconds of FlexAttention's block mask for the band, uncompiled, on a CPU; the least of three."""
    from torch.nn.attention.flex_attention import create_block_mask

    taken: list[float] = []
    for _ in range(3):
        begin = time.perf_counter()
        create_block_mask(lambda b, h, q, k: (k <= q) & (q - k <= 255), None, None, n, n, device="cpu")
        taken.append((time.perf_counter() - begin) * 1e3)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--flex", action="store_true", help="time FlexAttention's block mask too")
    parser.add_argument("--save", action="store_true", help="write results/plans.json, with FlexAttention's")
    chosen = parser.parse_args()
    rows = [measured(name) for name in RULES]
    table = Table(
        "rule", "parts", *(f"n = 2^{p}" for p in POWERS), "MiB at 2^20", title="plans, milliseconds"
    )
    for row in rows:
        times = [f"{one:.1f}" for one in row["milliseconds"]]
        table.add_row(row["rule"], str(row["parts"]), *times, f"{row['bytes'] / 2**20:.2f}")
    Console().print(table)
    if chosen.flex or chosen.save:
        block_mask = round(flex(2 ** POWERS[0]))
        print(f"FlexAttention's block mask of the band at n = 2^{POWERS[0]}: {block_mask} ms")
        if chosen.save:
            found = {
                "machine": report.machine(),
                "powers": POWERS,
                "rows": rows,
                "flex_milliseconds": block_mask,
            }
            SAVED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
