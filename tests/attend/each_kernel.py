"""Each kernel for a GPU, once or a few times at small sizes: for compute-sanitizer, which is slow.

    python tests/attend/each_kernel.py                          # all parts, one after another: quick
    python tests/attend/each_kernel.py --only d64 grid
    python tests/attend/each_kernel.py --processes 8 --under "compute-sanitizer --tool racecheck"

Attention forward and backward under rules that take all kinds of tiles, of heads of 64, 128 and 256 numbers,
on a line and on images, with documents and chosen blocks, with tiles in chunks; of 8 bits; largest scores;
steps of decoding; recurrent nets on a grid. Results are compared with plain attention in float32, since a
tool that finds nothing may have seen nothing, and kernels that did not run are named at the end. `--under`
runs each part in a process of its own, behind that command; `make gpu-check` does.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from math import inf, isnan
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from races import not_listed, sorted_by_kind, unknown
from torch import Tensor

import lattend as lt
from lattend.attend import quantize

PACKAGES = ("lattend.attend.kernels.triton", "lattend.attend.kernels.triton.hopper", "lattend.nn.grid.gpu")
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
BF16 = torch.bfloat16
WRONG, EIGHT_BITS, GRID = 2e-2, 5e-2, 1e-1  # bfloat16 weights of a grid go through fifty steps
MARK = "kernels that ran: "
COMPLAINS = 9  # how compute-sanitizer ends where it has something to report, as the Makefile asks it to
Check = Callable[[], float]


# What is run: errors relative to float32


def error(found: Tensor, wanted: Tensor) -> float:
    off = float((found.detach().float() - wanted).norm() / wanted.norm().clamp(min=1e-9))
    return inf if isnan(off) else off


def drawn(heads: tuple[int, int], n: int, head_dim: int, dtype: torch.dtype) -> list[Tensor]:
    """q, k, v and a gradient of the output."""
    source = torch.Generator("cuda").manual_seed(head_dim)
    shapes = [(1, h, n, head_dim) for h in (heads[0], heads[1], heads[1], heads[0])]
    return [torch.randn(shape, generator=source, device="cuda").to(dtype) for shape in shapes]


def attend(
    text: str, head_dim: int, dtype: torch.dtype = BF16, heads: tuple[int, int] = HEADS, n: int = SIZE,
    **numbers: Any,
) -> float:  # fmt: skip
    """The largest error of the output and of the gradients."""
    q, k, v, grad = drawn(heads, n, head_dim, dtype)
    run: Any = lt.attention
    learned, exact = (
        [x.detach().to(kind).requires_grad_() for x in (q, k, v)] for kind in (dtype, torch.float32)
    )
    out = run(*learned, text, kernel="triton", **numbers)
    wanted = run(*exact, text, kernel="dense", **numbers)
    grads = torch.autograd.grad(out, learned, grad), torch.autograd.grad(wanted, exact, grad.float())
    return max(error(out, wanted.detach()), *(error(a, b) for a, b in zip(*grads, strict=True)))


def documents(rule: str, head_dim: int, longer: int = 1, heads: tuple[int, int] = HEADS) -> float:
    """Five documents, of lengths that no tile has."""
    lengths = longer * torch.tensor([300, 20, 700, 1, 599])
    ids = torch.repeat_interleave(torch.arange(5), lengths).cuda()
    return attend(rule, head_dim, heads=heads, n=len(ids), doc=ids)


def blocks(head_dim: int) -> float:
    """A third of all blocks of 64, others for each head."""
    source = torch.Generator().manual_seed(0)
    side = -(-SIZE // 64)
    table = (torch.rand(HEADS[0], side, side, generator=source) < 1 / 3) | torch.eye(side).bool()
    return attend("blocks[head, q // 64, k // 64] and k <= q", head_dim, blocks=table.cuda())


def eight_bits(text: str, head_dim: int) -> float:
    """Attention of 8 bits beside that of what its numbers stand for; it has no gradients."""
    given = [quantize(x.float()) for x in drawn(HEADS, SIZE, head_dim, BF16)[:3]]
    run: Any = lt.attention
    found = run(*(x for x, _ in given), text, scales=[scale for _, scale in given], kernel="triton")
    return error(
        found, run(*(x.float() * scale[..., None, None] for x, scale in given), text, kernel="dense")
    )


def largest(head_dim: int) -> float:
    """The largest score of each query under a window, beside those of all pairs."""
    q, k, _, _ = drawn(HEADS, SIZE, head_dim, BF16)
    found = lt.max_logits(q, k, "k <= q and q - k <= 300", kernel="triton")
    apart = torch.arange(SIZE, device="cuda")[:, None] - torch.arange(SIZE, device="cuda")
    scores = q.float() @ k.float().mT * head_dim**-0.5
    return error(found, scores.masked_fill((apart < 0) | (apart > 300), -inf).amax(-1))


def decoded(text: str, head_dim: int, static: bool) -> float:
    """Three steps after a prompt, beside attention on all tokens at once."""
    q, k, v, _ = drawn((8, 2), 200, head_dim, BF16)
    run: Any = lt.attention
    options: dict[str, Any] = {"static": True, "capacity": 200} if static else {}
    cache = lt.KVCache(
        text, batch=1, heads=8, kv_heads=2, head_dim=head_dim, dtype=BF16, device="cuda", **options
    )
    lse = {"return_lse": True}  # with it no step is left to torch
    run(*(x[:, :, :197] for x in (q, k, v)), text, cache=cache)
    steps = [
        run(*(x[:, :, at : at + 1] for x in (q, k, v)), text, cache=cache, **lse) for at in (197, 198, 199)
    ]
    wanted = run(q.float(), k.float(), v.float(), text, kernel="dense")[:, :, 197:]
    return error(torch.cat([out for out, _ in steps], 2), wanted)


def on_a_grid(cell: str, size: int, height: int, width: int, directions: int = 1) -> float:
    """A recurrent net on a grid, forward and backward, beside the same on the CPU."""
    torch.manual_seed(0)
    net = lt.nn.GridRNN(3, size, cell=cell, directions=directions)
    image = torch.randn(2, height, width, 3)
    wanted = net(image)
    wanted.sum().backward()
    slopes = [p.grad.clone() for p in net.parameters() if p.grad is not None]
    net.zero_grad()
    moved = net.to("cuda", BF16)
    found = moved(image.to("cuda", BF16))
    found.sum().backward()
    got = [p.grad for p in moved.parameters() if p.grad is not None]
    return max(error(a.cpu(), b.detach()) for a, b in zip((found, *got), (wanted, *slopes), strict=True))


def rules(head_dim: int) -> dict[str, Check]:
    return {text: partial(attend, text, head_dim, **numbers) for text, numbers in RULES.items()}


def parts() -> dict[str, dict[str, Check]]:
    """What is run, by the part that a process takes."""
    band, same = "k <= q and q - k <= 300", "doc[q] == doc[k]"
    return {
        "d64": rules(64),
        "d128": rules(128),
        "d256": rules(256),
        "types": {
            "float32": partial(attend, band, 64, torch.float32),
            "float16, 8 heads on 2": partial(attend, band, 64, torch.float16, (8, 2)),
            "largest scores": partial(largest, 64),
            "8 bits, D = 64": partial(eight_bits, "k <= q", 64),
            "8 bits, D = 128": partial(eight_bits, band, 128),
        },
        "data": {
            **{f"documents, D = {D}": partial(documents, same, D) for D in (64, 128, 256)},
            "documents, causal": partial(documents, f"{same} and k <= q", 128),
            "documents of many tiles": partial(documents, same, 64, 6, (1, 1)),
            "blocks, D = 64": partial(blocks, 64),
            "blocks, D = 128": partial(blocks, 128),
        },
        "chunks": {
            "causal, 1 head": partial(attend, "k <= q", 256, heads=(1, 1), n=2048),
            "200 keys of all, 8 heads on 4": partial(attend, "k < 200", 128, heads=(8, 4), n=4096),
            "4 keys of all": partial(attend, "k < 4 or q == k", 128, n=2048),
            "4 keys of all, float32": partial(attend, "k < 4 or q == k", 64, torch.float32, n=2048),
        },
        "decoding": {
            "steps": partial(decoded, "k <= q", 64, static=False),
            "steps of a window": partial(decoded, "k <= q and q - k <= 63", 128, static=False),
            "steps, static": partial(decoded, "k <= q", 128, static=True),
        },
        "grid": {
            **{f"GridRNN, {cell}": partial(on_a_grid, cell, 128, 33, 20) for cell in ("rnn", "lstm", "gru")},
            "GridRNN, lstm of 96": partial(on_a_grid, "lstm", 96, 33, 20),
            "GridRNN, small image": partial(on_a_grid, "gru", 64, 9, 8, directions=4),
        },
    }


LIMITS = {"float32": 1e-5, "8 bits": EIGHT_BITS, "GridRNN": GRID}  # by how a check's name begins


# Which kernels there are, and which ran


def kernels() -> Iterator[str]:
    """The names of all kernels, as their modules define them."""
    for package in map(import_module, PACKAGES):
        for found in iter_modules(package.__path__, f"{package.__name__}."):
            module = import_module(found.name)
            for name, x in vars(module).items():
                if name.endswith("_kernel") and getattr(x, "fn", x).__module__ == module.__name__:
                    yield name


def counted() -> Counter[str]:
    """Counts from now on how often Triton launches each kernel; what the host repeats is not in it."""
    from triton.runtime.jit import JITFunction

    ran: Counter[str] = Counter()
    run = JITFunction.run

    def noted(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        ran[self.fn.__name__] += not warmup
        return run(self, *args, grid=grid, warmup=warmup, **kwargs)

    JITFunction.run = noted  # pyright: ignore
    return ran


def checked(names: list[str]) -> tuple[bool, set[str]]:
    """Runs these parts here: whether all was right, and the kernels that ran."""
    ran, right = counted(), True
    for name in names:
        for what, check in parts()[name].items():
            begin, limit = time.monotonic(), next((x for y, x in LIMITS.items() if what.startswith(y)), WRONG)
            found = check()
            torch.cuda.synchronize()
            right &= found <= limit
            wrong = "" if found <= limit else f", above {limit}: WRONG"
            print(f"{name}: {what}: {found:.1e}{wrong}, {time.monotonic() - begin:.1f} s", flush=True)
    print(f"{MARK}{', '.join(f'{kernel} {ran[kernel]}' for kernel in sorted(ran))}")
    return right, {kernel for kernel in ran if ran[kernel]}


def behind(command: list[str], name: str) -> tuple[bool, set[str]]:
    """Runs a part in a process behind a command, whose lines are printed as they come.

    It is right where the command says so, or complains of races alone, all of which are known to be ordered.
    """
    here = [*command, sys.executable, __file__, "--only", name]
    begin, ran, lines = time.monotonic(), set[str](), list[str]()
    with subprocess.Popen(here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            print(line if line.startswith(name) else f"{name}: {line}", end="", flush=True)
            lines.append(line)
            if line.startswith(MARK):
                ran = {one.split()[0] for one in line.removeprefix(MARK).split(", ") if one.strip()}
    races, unseen = sorted_by_kind(lines), not_listed(lines)
    said = "".join(f", {count} of {kind}" for kind, count in races.items())
    print(
        f"{name}: {time.monotonic() - begin:.0f} s, ended with {process.returncode}; reports of races: "
        f"{sum(races.values())}{said}{f', {unseen} not listed' if unseen else ''}",
        flush=True,
    )
    ordered = process.returncode == COMPLAINS and bool(races) and not unknown(races) and not unseen
    wrong = not ran or any(": WRONG" in line for line in lines)
    return not wrong and (process.returncode == 0 or ordered), ran


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=list(parts()), metavar="PART", help=", ".join(parts()))
    parser.add_argument(
        "--under", type=shlex.split, metavar="COMMAND", help="run each part behind this command"
    )
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="so many parts at a time")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("each_kernel.py: it needs a GPU", file=sys.stderr)
        return 1
    names = args.only or list(parts())
    if args.under or args.processes > 1:
        with ThreadPoolExecutor(args.processes) as pool:
            found = list(pool.map(partial(behind, args.under or []), names))
        right, ran = all(fine for fine, _ in found), set[str]().union(*(some for _, some in found))
    else:
        right, ran = checked(names)
    if not args.only:
        missing = sorted({*kernels()} - ran)
        print(f"did not run: {', '.join(missing) or 'none, all kernels ran'}")
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
