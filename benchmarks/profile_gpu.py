r"""One launch of each kernel for a rule, for a profiler to look at: what limits it, and by how much.

ncu --clock-control none --kernel-name regex:attention --section SpeedOfLight --section Occupancy \
    python benchmarks/profile_gpu.py strided-255
"""

from __future__ import annotations

import sys

import report
import torch

import lattend as lt


def main(names: list[str]) -> None:
    for name in names or ["strided-255", "strided-4095", "neighbourhood-7", "sparse-fixed"]:
        case = report.case(name, 65_536 if name.startswith(("strided", "windowed")) else 16_384)
        q, k, v, grad = (
            torch.randn(1, 16, case.n, 128, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            for _ in range(4)
        )
        out = lt.attention(q, k, v, case.rule, **case.sizes)
        out.backward(grad)
        torch.cuda.synchronize()
        print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
