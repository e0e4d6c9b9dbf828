"""One attention in one process and over ranks, and the bytes that it must move, by enumeration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import gloo_ranks
import numpy as np
import torch

import lattend as lt
from lattend.parallel.layout import Cut, contiguous, of_lengths, zigzag
from lattend.rules.reader import arrays_in, read_rule


@dataclass(frozen=True)
class Case:
    """A call; every tensor in it is whole, and cut where it runs."""

    rule: Any
    ranks: int
    n: int = 23
    heads: int = 4
    kv_heads: int = 2
    batch: int = 2
    width: int = 4
    value_width: int = 3
    cut: str | tuple[int, ...] | None = None  # a name, or how many positions each rank has
    strategy: str | None = None
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    bias: Any = None  # a text and its tensors, or a table
    padding: Any = None
    sinks: Any = None
    shape: tuple[int, ...] = ()  # of an image; its rows are cut
    blocks: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])  # or these axes
    gradient_of_lse: bool = True
    dtype: torch.dtype = torch.float64
    device: str = "cpu"
    kernel: str | None = None  # that ranks are to take
    cluster: Any = None  # described to them

    @property
    def wide(self) -> torch.dtype:
        """The dtype of log-sum-exps, and of biases and sinks."""
        return torch.promote_types(self.dtype, torch.float32)

    @property
    def pieces(self) -> Cut:
        if isinstance(self.cut, tuple):
            return of_lengths(self.cut)
        unit = int(np.prod(self.shape[1:])) if self.shape else 1
        if unit > 1:
            return of_lengths(
                [unit * contiguous(self.n // unit, self.ranks).length(r) for r in range(self.ranks)]
            )
        return zigzag(self.n, self.ranks) if self.cut == "zigzag" else contiguous(self.n, self.ranks)

    def places(self, rank: int) -> torch.Tensor:
        if self.blocks:
            return torch.from_numpy(np.arange(self.n).reshape(self.shape)[self.block(rank)].reshape(-1))
        found = [torch.arange(a, b) for a, b in self.pieces.pieces[rank]]
        return torch.cat(found) if found else torch.zeros(0, dtype=torch.int64)

    def block(self, rank: int) -> tuple[slice, ...]:
        """The rows and columns of a rank."""
        mesh = [len(lengths) for lengths in self.blocks.values()]
        place = dict(zip(self.blocks, np.unravel_index(rank, mesh), strict=True))
        found: list[slice] = []
        for name in ("depth", "rows", "cols")[-len(self.shape) :]:
            first = sum(self.blocks[name][: place[name]]) if name in place else 0
            found.append(
                slice(first, first + self.blocks[name][place[name]]) if name in place else slice(None)
            )
        return tuple(found)

    def own_shape(self, rank: int) -> tuple[int, ...]:
        """The sizes of a rank's image."""
        if self.blocks:
            return np.empty(self.shape, bool)[self.block(rank)].shape
        return (-1, *self.shape[1:])

    def on_device(self, x: Any) -> Any:
        return x.to(self.device) if isinstance(x, torch.Tensor) else x

    def tensors(self) -> list[torch.Tensor]:
        """q, k, v and the gradients of the output and of the log-sum-exp."""
        torch.manual_seed(self.n)
        kind: Any = {"dtype": torch.float64}
        q, k = (torch.randn(self.batch, h, self.n, self.width, **kind) for h in (self.heads, self.kv_heads))
        v = torch.randn(self.batch, self.kv_heads, self.n, self.value_width, **kind)
        out = torch.randn(self.batch, self.heads, self.n, self.value_width, **kind)
        lse = torch.randn(self.batch, self.heads, self.n, **kind)
        return [*(x.to(self.device, self.dtype) for x in (q, k, v, out)), lse.to(self.device, self.wide)]

    def learned(self) -> dict[str, torch.Tensor]:
        """The tensors of the bias and the sinks, as leaves."""
        found = (
            {}
            if self.bias is None
            else dict(self.bias[1])
            if isinstance(self.bias, tuple)
            else {"table": self.bias}
        )
        found |= {} if self.sinks is None else {"sinks": self.sinks}
        return {name: x.to(self.device, self.wide, copy=True).requires_grad_() for name, x in found.items()}

    def bias_of(self, learned: dict[str, torch.Tensor]) -> Any:
        if isinstance(self.bias, tuple):
            return lt.Bias(self.bias[0], **{name: learned[name] for name in self.bias[1]})
        return learned.get("table")


def _results(case: Case, found: Any, leaves: list[torch.Tensor], learned: Any, grads: Any) -> list[Any]:
    out, lse = found
    flat = out.flatten(2, -2) if case.shape else out
    lse = lse.flatten(2) if case.shape else lse
    known = lse.masked_fill(lse == -torch.inf, 0)
    loss = (flat * grads[0]).sum() + (known * grads[1]).sum() * case.gradient_of_lse
    loss.backward()
    return [flat.detach(), known.detach(), *(x.grad for x in leaves), *(x.grad for x in learned.values())]


def alone(case: Case, dtype: torch.dtype = torch.float64, kernel: str | None = None) -> list[Any]:
    """The output, the log-sum-exp and all gradients of one process: exact, or in another dtype."""
    *qkv, out, lse = (x.to(dtype) for x in case.tensors())
    leaves = [x.requires_grad_() for x in qkv]
    learned = {name: x.detach().to(dtype).requires_grad_() for name, x in case.learned().items()}
    torch.manual_seed(3)
    shaped = [x.unflatten(2, case.shape) if case.shape else x for x in leaves]
    attend: Any = lt.attention
    found = attend(
        *shaped, case.rule, bias=case.bias_of(learned), sinks=learned.get("sinks"),
        padding=case.on_device(case.padding), return_lse=True, kernel=kernel, **case.options,
        **{name: case.on_device(x) for name, x in case.values.items()},
    )  # fmt: skip
    return _results(case, found, leaves, learned, (out, lse))


_MESHES: dict[Any, Any] = {}  # to make one takes all ranks


def mesh_of(case: Case) -> Any:
    """The mesh of the world that has the blocks of a case, once or several times."""
    from torch.distributed.device_mesh import init_device_mesh

    counts = {name: len(lengths) for name, lengths in case.blocks.items()}
    key = tuple(counts.items())
    if key not in _MESHES:
        again = torch.distributed.get_world_size() // case.ranks
        _MESHES[key] = init_device_mesh(
            "cpu", (again, *counts.values()), mesh_dim_names=("data", *counts.keys())
        )
    return _MESHES[key]


def over_ranks(group: Any, case: Case) -> dict[str, Any]:
    """The same on one rank of several, of its own positions, and the bytes that came to it."""
    from lattend.parallel.ranks import ranks_of
    from lattend.parallel.sharded_attention import attention

    mesh = mesh_of(case) if case.blocks else group
    rank = ranks_of(mesh).rank
    places = case.places(rank)
    *qkv, out, lse = (x[:, :, places.to(case.device)] for x in case.tensors())
    leaves = [x.clone().requires_grad_() for x in qkv]
    learned = case.learned()
    if "table" in learned:
        learned["table"] = learned["table"].detach()[..., places.to(case.device), :].clone().requires_grad_()
    padding = case.padding
    if padding is not None:
        padding = case.on_device(padding[:, places] if padding.dim() == 2 else padding)
    shaped = [x.unflatten(2, case.own_shape(rank)) if case.shape else x for x in leaves]
    torch.manual_seed(3 if rank == 0 else 4 + rank)  # the first rank's seed counts
    cut = None if case.cut is None or isinstance(case.cut, tuple) else case.cut
    attend: Any = attention
    with gloo_ranks.counted() as forward:
        found = attend(
            *shaped, case.rule, mesh=mesh, cut=cut, strategy=case.strategy, cluster=case.cluster,
            bias=case.bias_of(learned), sinks=learned.get("sinks"), padding=padding, return_lse=True,
            kernel=case.kernel, **case.options,
            **{name: case.on_device(x) for name, x in case.values.items()},
        )  # fmt: skip
    with gloo_ranks.counted() as backward:
        results = _results(case, found, leaves, learned, (out, lse))
    execution = [*ranks_of(mesh).executions.values()][-1]
    return {
        "results": results,
        "forward": forward["messages"],
        "backward": backward["messages"],
        "strategy": execution.schedule.strategy if execution.heads is None else "ulysses",
    }


def check(case: Case, found: list[dict[str, Any]]) -> None:
    """Raises unless the ranks gave what one process gives, to 1e-9, and moved the bytes that were counted."""
    wanted = alone(case)
    for rank, one in enumerate(found):
        places = case.places(rank)
        for mine, whole in zip(one["results"][:5], wanted[:5], strict=True):
            torch.testing.assert_close(mine, whole[:, :, places], rtol=1e-9, atol=1e-9)
    for at in range(5, len(wanted)):
        parts = [one["results"][at] for one in found]
        if case.bias is not None and not isinstance(case.bias, tuple) and at == 5:  # rows of a table
            for rank, part in enumerate(parts):
                torch.testing.assert_close(part, wanted[at][..., case.places(rank), :], rtol=1e-9, atol=1e-9)
        else:
            torch.testing.assert_close(sum(parts), wanted[at], rtol=1e-9, atol=1e-9)
    for rank, one in enumerate(found):
        assert (one["forward"], one["backward"]) == bytes_of(case, rank, one["strategy"]), one["strategy"]


def bytes_of(case: Case, rank: int, strategy: str) -> tuple[int, int]:
    """What a rank gets in the forward and in the backward pass, from the table of all pairs."""
    both, padded = case.width + case.value_width, case.padding is not None and case.padding.dim() == 2
    if strategy == "ulysses":
        return _by_heads(case, rank, padded)
    needs = _needs(case, strategy)
    row, mine = case.dtype.itemsize * case.batch * case.kv_heads * both, needs[rank].sum()
    lent = sum(needs[other][case.places(rank).numpy()].sum() for other in range(case.ranks) if other != rank)
    again = mine if strategy == "ring" else 0
    return int(mine * (row + case.batch * padded)), int((lent + again) * row)


def _by_heads(case: Case, rank: int, padded: bool) -> tuple[int, int]:
    heads = case.heads // case.ranks
    kv_heads = max(1, case.kv_heads // case.ranks)
    own, item, both = case.pieces.length(rank), case.dtype.itemsize, case.width + case.value_width
    other = case.n - own
    answer = case.value_width * item + case.wide.itemsize  # of a query: its output and log-sum-exp
    ins = other * (heads * case.width + kv_heads * both) * item
    outs = own * (case.heads - heads) * answer
    back = other * heads * answer
    home = own * ((case.heads - heads) * case.width + kv_heads * (case.ranks - 1) * both) * item
    return case.batch * (ins + outs + other * padded), case.batch * (back + home)


def _needs(case: Case, strategy: str) -> list[np.ndarray[Any, Any]]:
    """For each rank, which keys of others it must get."""
    rule = read_rule(case.rule, arrays_in(case.values))
    found: list[np.ndarray[Any, Any]] = []
    for rank in range(case.ranks):
        places = case.places(rank).numpy()
        mask: Any = np.full(case.n, len(places) > 0)
        if strategy != "gather":
            mask = _attended(case, rule)[places].any(0)
        mask[places] = False
        found.append(mask)
    return found


def _attended(case: Case, rule: Any) -> np.ndarray[Any, Any]:
    """Which pairs are attended, in some head and some element of the batch, [n, m]."""
    numbers = {name: value for name, value in case.values.items() if name not in rule.open}
    if case.shape:
        numbers = {**dict(zip(rule.sizes, case.shape, strict=False)), **numbers}
    sizes = {name: {"n": case.n, "m": case.n, "heads": case.heads}.get(name) for name in rule.sizes}
    numbers |= {name: size for name, size in sizes.items() if name not in numbers and size is not None}
    numbers = {name: value for name, value in numbers.items() if name not in rule.values}
    whole = np.zeros((case.n, case.n), bool)
    arrays = {name: case.values[name].numpy() for name in rule.open}
    for element in range(case.batch):
        own = {name: x[element] if x.ndim > 1 else x for name, x in arrays.items()}
        mask = replace(rule, data={**rule.data, **own}, open=()).mask(**numbers)
        whole |= mask.reshape(-1, case.n, case.n).any(0)
    return whole


def moved_on_blocks(group: Any, rule: str, strategy: str, case: Case) -> tuple[int, int]:
    """The bytes that come to a rank of a mesh of blocks in both passes."""
    del group  # the mesh has all ranks
    found = over_ranks(None, replace(case, rule=rule, strategy=strategy))
    return found["forward"], found["backward"]


def moved(group: Any, rule: str, strategy: str, n: int) -> tuple[int, int]:
    """The bytes that come to a rank in both passes, of 4 heads on 2, D = 4 and Dv = 3, a batch of 2."""
    import torch.distributed as dist

    length = contiguous(n, dist.get_world_size(group)).length(dist.get_rank(group))
    q, k, v = (
        torch.randn(2, heads, length, width, dtype=torch.float64, requires_grad=True)
        for heads, width in ((4, 4), (2, 4), (2, 3))
    )
    with gloo_ranks.counted() as forward:
        out: Any = lt.parallel.attention(q, k, v, rule, mesh=group, strategy=strategy)
    with gloo_ranks.counted() as backward:
        out.sum().backward()
    return forward["messages"], backward["messages"]
