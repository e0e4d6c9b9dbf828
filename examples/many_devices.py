"""A small language model trained on one long sequence, cut over ranks: each has a shard and gets its halo.

    torchrun --nproc-per-node 4 examples/many_devices.py                # four processes on this machine
    torchrun --nproc-per-node 4 examples/many_devices.py --length 65536 --window 1024

The text repeats itself within the window. First rank 0 says what each rank will get of the others, from the
rule alone; at the end the loss of the whole sequence in one process is compared with that over ranks.
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.functional import cross_entropy

import lattend as lt

SYMBOLS, D, HEADS = 32, 64, 4


class Block(nn.Module):
    """Attention in a sliding window, then a feed-forward layer; it knows nothing of ranks."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.rule = f"sliding_window({window})"
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.feed = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))
        self.norm = nn.LayerNorm(D)

    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        found = lt.attention(rotated(q, places), rotated(k, places), v, self.rule)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        return x + self.feed(x)


class Model(nn.Module):
    def __init__(self, window: int) -> None:
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, D)
        self.blocks = nn.ModuleList(Block(window) for _ in range(2))
        self.head = nn.Linear(D, SYMBOLS)

    def forward(self, ids: Tensor, places: Tensor) -> Tensor:
        x = self.symbols(ids)
        for block in self.blocks:
            x = block(x, places)
        return self.head(x)


def rotated(x: Tensor, places: Tensor) -> Tensor:
    """Rotary position embeddings, at the positions of the shard."""
    half = x.shape[-1] // 2
    angles = places[:, None] * 100.0 ** -(torch.arange(half) / half)
    a, b = x.chunk(2, -1)
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1)


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--length", type=int, default=4096, help="positions, over all ranks")
    said.add_argument("--window", type=int, default=128, help="keys of a query, its own among them")
    said.add_argument("--steps", type=int, default=60)
    asked = said.parse_args()
    if not dist.is_torchelastic_launched():
        said.error("start it with torchrun: torchrun --nproc-per-node 4 examples/many_devices.py")
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("sequence",))
    torch.manual_seed(0)  # the same weights and text everywhere
    model = Model(asked.window)
    period = max(1, asked.window // 2)
    text = torch.randint(SYMBOLS, (1, period)).repeat(1, -(-asked.length // period) + 1)[
        :, : asked.length + 1
    ]
    ids, targets = (lt.parallel.shard(x, mesh, dim=1) for x in (text[:, :-1], text[:, 1:]))
    places = lt.parallel.positions(asked.length, mesh)
    if dist.get_rank() == 0 and mesh.size() > 1:
        plan = lt.parallel.plan(
            f"sliding_window({asked.window})", n=asked.length, ranks=mesh.size(), heads=HEADS,
            head_dim=D // HEADS, dtype="float32", cut="contiguous",
        )  # fmt: skip
        print(f"{plan.title}: a layer brings a rank at most {plan.chosen.forward:,} bytes of others' keys")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def loss_of_shard() -> Tensor:
        with lt.parallel.sharded(mesh):
            scores = model(ids, places)
        return cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum") / asked.length

    total = torch.zeros(())
    for step in range(asked.steps + 1):
        loss = loss_of_shard()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)  # each rank has its share; DistributedDataParallel would add them
        total = loss.detach().clone()
        dist.all_reduce(total)
        if dist.get_rank() == 0 and step % 20 == 0:
            print(f"step {step:4}  loss {float(total):.4f}", flush=True)
        if step < asked.steps:
            optimizer.step()
    if dist.get_rank() == 0:
        with torch.no_grad():
            scores = model(text[:, :-1], torch.arange(asked.length))
        alone = float(cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten()))
        print(f"in one process    {alone:.4f}, off by {abs(alone - float(total)):.1e}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
