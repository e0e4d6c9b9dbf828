"""Most kernels for a GPU, once or a few times at small sizes: for compute-sanitizer, which is slow.

    compute-sanitizer --tool racecheck python tests/attend/each_kernel.py       # `make gpu-check`
    python tests/attend/each_kernel.py                                          # the same, and quick

Attention forward and backward under rules that take all kinds of tiles, of heads of 64, 128 and 256 numbers,
on a line and on images; recurrent nets on a grid. Kernels of 8 bits, of data and of decoding are left out.
Which ran is printed at the end, and results are compared with plain attention in float32, since a tool that
finds nothing may have seen nothing.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from math import inf, isnan
from typing import Any

import torch
from torch import Tensor

import lattend as lt
from lattend.attend.kernels.triton import launch, launched

RULES: dict[str, dict[str, int]] = {
    "k <= q": {},
    "k <= q and q - k <= 300": {},
    "abs(q - k) <= 100": {},
    "q // 200 == k // 200": {},
    "k < 4 or k <= q and q - k <= 200": {},
    "k <= q and (q - k < 64 or (q - k) % 64 == 0)": {},
    "k <= q and (q + k) % 3 != 1": {},
    "neighbourhood(r=3)": {"rows": 30, "cols": 54},
}
SIZE, HEADS = 1620, (8, 8)
WRONG = 2e-2
RAN: Counter[str] = Counter()


def noted(tape: Any, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
    """Launches a kernel, and counts it."""
    RAN[getattr(kernel, "fn", kernel).__name__] += 1
    _LAUNCH(tape, kernel, programs, arguments, constants)


_LAUNCH = launched.launch


def error(found: Tensor, wanted: Tensor) -> float:
    off = float((found.detach().float() - wanted).norm() / wanted.norm().clamp(min=1e-9))
    return inf if isnan(off) else off


def attend(
    text: str, numbers: dict[str, int], head_dim: int, dtype: torch.dtype, heads: tuple[int, int]
) -> float:
    """The largest error of the output and of the gradients."""
    source = torch.Generator("cuda").manual_seed(head_dim)
    q, k, v, grad = (
        torch.randn(1, h, SIZE, head_dim, generator=source, device="cuda").to(dtype)
        for h in (heads[0], heads[1], heads[1], heads[0])
    )
    run: Any = lt.attention
    learned, exact = (
        [x.detach().to(kind).requires_grad_() for x in (q, k, v)] for kind in (dtype, torch.float32)
    )
    out = run(*learned, text, kernel="triton", **numbers)
    wanted = run(*exact, text, kernel="dense", **numbers)
    grads = torch.autograd.grad(out, learned, grad), torch.autograd.grad(wanted, exact, grad.float())
    return max(error(out, wanted.detach()), *(error(a, b) for a, b in zip(*grads, strict=True)))


def on_a_grid(cell: str) -> float:
    """A recurrent net on a grid, forward and backward, beside the same on the CPU."""
    torch.manual_seed(0)
    net = lt.nn.GridRNN(3, 128, cell=cell)
    image = torch.randn(2, 33, 20, 3)
    wanted = net(image)
    wanted.sum().backward()
    slopes = [p.grad.clone() for p in net.parameters() if p.grad is not None]
    net.zero_grad()
    moved = net.to("cuda", torch.bfloat16)
    found = moved(image.to("cuda", torch.bfloat16))
    found.sum().backward()
    got = [p.grad for p in moved.parameters() if p.grad is not None]
    return max(error(a.cpu(), b.detach()) for a, b in zip((found, *got), (wanted, *slopes), strict=True))


def main() -> int:
    if not torch.cuda.is_available():
        print("each_kernel.py: it needs a GPU", file=sys.stderr)
        return 1
    launched.launch = launch.launch = noted
    begin, worst = time.monotonic(), 0.0
    for text, numbers in RULES.items():
        for head_dim in (64, 128, 256):
            found = attend(text, numbers, head_dim, torch.bfloat16, HEADS)
            worst = max(worst, found)
            print(f"{text}, D = {head_dim}: {found:.1e}", flush=True)
    for dtype, heads in ((torch.float32, (8, 8)), (torch.float16, (8, 2))):
        worst = max(worst, attend("k <= q and q - k <= 300", {}, 64, dtype, heads))
    for cell in ("rnn", "lstm", "gru"):
        found = on_a_grid(cell)
        print(f"GridRNN, {cell}: {found:.1e}", flush=True)
        worst = max(worst, found / 5)  # bfloat16 weights through fifty steps
    torch.cuda.synchronize()
    print(f"{time.monotonic() - begin:.0f} s; kernels: {', '.join(f'{n} {RAN[n]}' for n in sorted(RAN))}")
    return int(worst > WRONG)


if __name__ == "__main__":
    sys.exit(main())
