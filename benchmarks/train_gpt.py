"""A small GPT with a sliding window, trained with ours, SDPA and a mask, and compiled FlexAttention.

The same weights, the same batches of bytes (this project's own docs) and the same optimizer; in bfloat16
(autocast) on a GPU. Printed for each: how long the first step takes from a standing start (mask, plan and
compiling included), tokens a second after that, the greatest memory, and how far the losses are from SDPA's.

    python benchmarks/train_gpt.py --length 2048 --window 256 --batch 4 --steps 60
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

import lattend as lt

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1)
        )
        x = x + self.out(attend(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, length: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, ids: Tensor, attend: Attend) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x, attend)
        return self.head(self.norm(x))


def ours(n: int, window: int) -> Attend:
    rule = lt.rules.strided(t=window - 1)
    return lambda q, k, v: lt.attention(q, k, v, rule)


def sdpa(n: int, window: int) -> Attend:
    places = torch.arange(n, device=DEVICE)
    mask = (places[:, None] >= places) & (places[:, None] - places < window)
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, attn_mask=mask)


def flex(n: int, window: int) -> Attend:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def mask_mod(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (q >= k) & (q - k < window)

    blocks = torch.compile(create_block_mask)(mask_mod, None, None, n, n, device=DEVICE)
    run = torch.compile(flex_attention)
    return lambda q, k, v: run(q, k, v, block_mask=blocks)


def batches(length: int, batch: int, steps: int) -> list[Tensor]:
    """Stretches of the docs, at random places that a seed fixes."""
    root = Path(__file__).parents[1]
    text = b"\n".join(path.read_bytes() for path in sorted((root / "docs").glob("*.md")))
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    source = torch.Generator().manual_seed(1)
    starts = torch.randint(len(data) - length - 1, (steps, batch), generator=source)
    return [torch.stack([data[s : s + length + 1] for s in row]).to(DEVICE) for row in starts.tolist()]


def trained(
    make: Callable[[int, int], Attend], args: argparse.Namespace
) -> tuple[list[float], float, float, float]:
    """Losses, seconds of the first step, tokens a second after it, and the greatest memory in GiB."""
    torch.manual_seed(0)
    model = Gpt(args.length, args.width, args.heads, args.layers).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    losses: list[Tensor] = []
    data = batches(args.length, args.batch, args.steps)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    begun = time.perf_counter()
    attend, first = make(args.length, args.window), 0.0
    for i, ids in enumerate(data):
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=DEVICE == "cuda"):
            logits = model(ids[:, :-1], attend)
        loss = cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if i == 0:
            losses[0].item()
            first = time.perf_counter() - begun
        if i == 2:
            losses[2].item()
            begun = time.perf_counter()
    found = [float(loss) for loss in losses]
    rate = args.batch * args.length * (args.steps - 3) / (time.perf_counter() - begun)
    return found, first, rate, torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, number in (("length", 2048), ("window", 256), ("batch", 4), ("steps", 40)):
        parser.add_argument(f"--{name}", type=int, default=number)
    for name, number in (("width", 512), ("heads", 8), ("layers", 6)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--only", nargs="*", default=["sdpa", "ours", "flex"])
    args = parser.parse_args()
    print(vars(args), DEVICE, flush=True)
    losses: dict[str, list[float]] = {}
    for name, make in (("sdpa", sdpa), ("ours", ours), ("flex", flex)):
        if name not in args.only:
            continue
        losses[name], first, rate, memory = trained(make, args)
        known = losses.get("sdpa", losses[name])
        away = max(abs(a - b) for a, b in zip(losses[name], known, strict=True))
        ends = f"loss {losses[name][0]:.3f} -> {losses[name][-1]:.3f}, at most {away:.4f} from SDPA's"
        print(
            f"{name:5} first step {first:6.2f} s, then {rate:9,.0f} tokens/s, {memory:5.1f} GiB; {ends}",
            flush=True,
        )


if __name__ == "__main__":
    main()
