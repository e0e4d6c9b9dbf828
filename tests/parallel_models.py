"""What ranks do in tests of modules: layers, wrappers and Hugging Face models on shards."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.utils.checkpoint import checkpoint

import lattend as lt
from lattend.parallel.sharded_attention import attention, sharded
from lattend.parallel.sharding import positions, shard, unshard

N, WIDTH, RULE = 13, 8, "strided(4)"
ALONE: Any = lt.attention
SHARDED: Any = attention


class Layer(nn.Module):
    """Attention with its projections, over ranks where there is a group."""

    def __init__(self, group: Any = None) -> None:
        super().__init__()
        self.group, self.qkv, self.out = group, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (6, WIDTH // 2)).transpose(1, 2).chunk(3, 1)
        run: Any = lt.attention if self.group is None else attention
        found = run(q, k, v, RULE, **({} if self.group is None else {"mesh": self.group}))
        return self.out(found.transpose(1, 2).flatten(2))


class Net(nn.Module):
    """Two layers; `again` computes them again in the backward pass."""

    def __init__(self, group: Any = None, again: bool = False) -> None:
        super().__init__()
        self.layers, self.again = nn.ModuleList([Layer(group), Layer(group)]), again

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + (checkpoint(layer, x, use_reentrant=False) if self.again else layer(x))
        return x


def made(group: Any = None, **how: Any) -> tuple[Net, Tensor]:
    """The same net and input on every rank."""
    torch.manual_seed(0)
    return Net(group, **how).double(), torch.randn(2, N, WIDTH, dtype=torch.float64)


def alone() -> dict[str, Tensor]:
    """The gradients of one process."""
    net, x = made()
    net(x).square().sum().backward()
    return {name: one.grad for name, one in net.named_parameters() if one.grad is not None}


def trained(group: Any, wrapper: str) -> float:
    """How far gradients over ranks, added up, are from those of one process."""
    net, x = made(group, again=wrapper == "checkpoint")
    mine = shard(x, group, dim=1)
    model: Any = net
    if wrapper == "ddp":
        model = nn.parallel.DistributedDataParallel(net, process_group=group)
    elif wrapper == "fsdp":
        from torch.distributed.fsdp import fully_shard

        mesh = DeviceMesh.from_group(group, "cpu")
        for layer in net.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(net, mesh=mesh)
    elif wrapper == "compile":
        model = torch.compile(net, backend="aot_eager")
    for _ in range(2):
        net.zero_grad()
        model(mine).square().sum().backward()
    wanted = alone()
    worst = 0.0
    for name, one in net.named_parameters():
        grad: Any = one.grad
        if wrapper == "fsdp":
            grad = grad.full_tensor() * group.size()  # it gives the mean
        elif wrapper == "ddp":
            grad = grad * group.size()
        else:
            dist.all_reduce(grad, group=group)
        worst = max(worst, float((grad - wanted[name]).abs().max()))
    return worst


def distributed_tensors(group: Any) -> list[float]:
    """How far DTensors of attention and their gradients are from those of one process."""
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    mesh = DeviceMesh.from_group(group, "cpu")
    torch.manual_seed(1)
    whole = [torch.randn(2, 2, N, 4, dtype=torch.float64) for _ in range(3)]
    plain: list[Any] = [x.clone().requires_grad_() for x in whole]
    out = ALONE(*plain, RULE)
    out.square().sum().backward()
    given: list[Any] = [distribute_tensor(x, mesh, [Shard(2)]).detach().requires_grad_() for x in whole]
    found = SHARDED(*given, RULE)
    assert isinstance(found, DTensor)
    assert found.placements == (Shard(2),)
    assert found.shape == out.shape
    found.square().sum().backward()
    errors = [(found.full_tensor() - out).abs().max()]
    errors += [(x.grad.full_tensor() - y.grad).abs().max() for x, y in zip(given, plain, strict=True)]
    try:
        SHARDED(*(x.redistribute(placements=[Replicate()]) for x in given), RULE)
        raise AssertionError("DTensors that are whole were taken")
    except lt.errors.TensorError as error:
        assert "positions, axis 2, must be cut along one dimension" in str(error)
    return [float(x) for x in errors]


def blocks_of_an_image(group: Any) -> float:
    """How far DTensors cut into blocks, and tensors that shard() cuts, are from those of one process."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    assert dist.get_world_size(group) == 8
    mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("rows", "cols"))
    torch.manual_seed(1)
    whole = [torch.randn(1, 2, 9, 7, 4, dtype=torch.float64) for _ in range(3)]
    plain: list[Any] = [x.clone().requires_grad_() for x in whole]
    out = ALONE(*plain, "neighbourhood(2)")
    out.square().sum().backward()
    cut = [Shard(2), Shard(3)]
    given: list[Any] = [distribute_tensor(x, mesh, cut).detach().requires_grad_() for x in whole]
    found = SHARDED(*given, "neighbourhood(2)")
    assert (found.placements, found.shape) == (tuple(cut), out.shape)
    found.square().sum().backward()
    errors = [(found.full_tensor() - out).abs().max()]
    errors += [(x.grad.full_tensor() - y.grad).abs().max() for x, y in zip(given, plain, strict=True)]
    mine = [shard(x, mesh) for x in whole]
    assert torch.equal(unshard(mine[0], mesh), whole[0])
    places = positions((9, 7), mesh)
    assert torch.equal(whole[0].flatten(2, 3)[:, :, places], mine[0].flatten(2, 3))
    errors.append((unshard(SHARDED(*mine, "neighbourhood(2)", mesh=mesh), mesh) - out).abs().max())
    columns = init_device_mesh("cpu", (8,), mesh_dim_names=("cols",))
    strips = [shard(x, columns) for x in whole]
    back = unshard(SHARDED(*strips, "neighbourhood(2)", mesh=columns), columns)
    errors.append((back - out).abs().max())
    side = SHARDED(*(distribute_tensor(x, columns, [Shard(3)]) for x in whole), "neighbourhood(2)")
    errors.append((side.full_tensor() - out).abs().max())
    assert torch.equal(whole[0].flatten(2, 3)[:, :, positions((9, 7), columns)], strips[0].flatten(2, 3))
    return max(float(x) for x in errors)


def refused_blocks(group: Any) -> list[str]:
    """What is said where a mesh of blocks does not fit the call."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("rows", "cols"))
    x, line = torch.randn(1, 1, 3, 2, 4), torch.randn(1, 1, 6, 4)
    odd = x[:, :, : 1 if dist.get_rank(group) == 3 else 3]
    calls: list[Any] = [
        lambda: SHARDED(line, line, line, "k <= q", mesh=mesh),
        lambda: SHARDED(x, x, x, "abs(qz - kz) <= 1 and qy == ky and qx == kx", mesh=mesh),
        lambda: SHARDED(odd, odd, odd, "neighbourhood(1)", mesh=mesh),
        lambda: SHARDED(x, x, x, "neighbourhood(1)", mesh=mesh, strategy="ulysses"),
        lambda: SHARDED(x, x, x, "neighbourhood(1)", mesh=mesh, cut="zigzag"),
        lambda: shard(x, mesh, cut="zigzag"),
        lambda: positions(48, mesh),
        lambda: shard(x, init_device_mesh("cpu", (4, 2), mesh_dim_names=("cols", "rows"))),
        lambda: shard(x, DeviceMesh("cpu", torch.arange(7, -1, -1))),
        lambda: lt.parallel.KVCache("causal", mesh=mesh, heads=1),
        lambda: lt.parallel.grid_rnn(lt.nn.GridRNN(4, 2), x[0], mesh=mesh),
        lambda: SHARDED(
            x, x, x, "neighbourhood(1)",
            mesh=init_device_mesh("cpu", (4, 2), mesh_dim_names=("rows", "heads")),
        ),
    ]  # fmt: skip
    return [_error(call) for call in calls]


def _error(call: Any) -> str:
    try:
        call()
    except lt.errors.LattendError as error:
        return str(error)
    return ""


def second_derivative(group: Any) -> str:
    """What is said where one is asked for."""
    x = torch.randn(1, 1, 5, 4, requires_grad=True)
    out = SHARDED(x, x, x, "full", mesh=group, strategy="halo")
    return _error(lambda: torch.autograd.grad(out.square().sum(), x, create_graph=True))


def cache_in_a_mesh(group: Any) -> float:
    """How far a cache over the dimensions sequence and heads of a mesh is from one process."""
    from torch.distributed.device_mesh import init_device_mesh

    assert dist.get_world_size(group) == 8
    mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("data", "sequence", "heads"))
    torch.manual_seed(5 + mesh.get_local_rank("data"))
    q, k, v = (torch.randn(1, 2, 9, 4, dtype=torch.float64) for _ in range(3))
    cache = lt.parallel.KVCache("k <= q", mesh=mesh, heads=2)
    cache.fill(*(shard(x[:, :, :6], mesh) for x in (k, v)))
    found: Any = cache.attend(*(x[:, :, 6:] for x in (q, k, v)))
    return float((found - ALONE(q, k, v, "k <= q")[:, :, 6:]).abs().max())


def cut_and_put_together(group: Any) -> None:
    """Shards of a tensor, by every cut, are it again."""
    x = torch.arange(2 * 11).view(2, 11)
    for cut in (None, "zigzag"):
        mine = shard(x, group, cut=cut, dim=1)
        assert torch.equal(mine, x[:, positions(11, group, cut=cut)])
        assert torch.equal(unshard(mine, group, cut=cut, dim=1), x)


def hybrid(group: Any) -> float:
    """How far attention on meshes of data, heads and sequence is from that of one process."""
    from torch.distributed.device_mesh import init_device_mesh

    worst = 0.0
    for names, strategy in ((("data", "sequence", "heads"), None), (("heads", "data", "sequence"), "ring")):
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=names)
        torch.manual_seed(mesh.get_local_rank("data"))
        whole = [torch.randn(2, 4, 15, 4, dtype=torch.float64) for _ in range(3)]
        padding = torch.rand(2, 15) < 0.8
        for rule, how in (("strided(4)", {}), ("k <= q and q - k <= 3*head", {"dropout": 0.3})):
            plain = [x.clone().requires_grad_() for x in whole]
            torch.manual_seed(2)
            out = ALONE(*plain, rule, padding=padding, **how)
            out.square().sum().backward()
            mine = [shard(x, mesh, dim=2).requires_grad_() for x in whole]
            torch.manual_seed(2)
            found = SHARDED(
                *mine, rule, mesh=mesh, strategy=strategy, padding=shard(padding, mesh, dim=1), **how
            )
            found.square().sum().backward()
            pairs = [(found, out), *((x.grad, y.grad) for x, y in zip(mine, plain, strict=True))]
            worst = max([worst, *(float((x - shard(y, mesh, dim=2)).abs().max()) for x, y in pairs)])
    only = [shard(x, mesh["sequence"], dim=2) for x in whole]  # of a larger mesh, one dimension
    found = SHARDED(*only, "strided(4)", mesh=mesh["sequence"])
    wanted = shard(ALONE(*whole, "strided(4)"), mesh["sequence"])
    return max(worst, float((found - wanted).abs().max()))


def language_model(group: Any, kind: str, cut: str | None, padded: bool) -> float:
    """How far a Hugging Face model's logits and gradients over ranks are from those of one process."""
    import transformers

    import lattend.integrations.transformers  # noqa: F401

    small: dict[str, Any] = {
        **{"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
        **{"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64},
    }
    if kind == "Gemma3":
        config: Any = transformers.Gemma3TextConfig(**{**small, "num_hidden_layers": 6, "sliding_window": 5})
        build: Any = transformers.Gemma3ForCausalLM
    else:
        config, build = transformers.LlamaConfig(**small), transformers.LlamaForCausalLM
    config._attn_implementation = "lattend"
    torch.manual_seed(0)
    model = build(config).double()
    other = copy.deepcopy(model)
    ids = torch.randint(3, 64, (2, 17))
    mask = torch.ones(2, 17, dtype=torch.int64)
    mask[0, 12:] = 1 - padded  # on the last rank alone
    wanted = model(ids, attention_mask=mask, use_cache=False).logits
    (wanted * mask[..., None]).square().sum().backward()
    with sharded(group, cut=cut):
        mine = shard(ids, group, cut=cut, dim=1)
        own = shard(mask, group, cut=cut, dim=1)
        places = positions(17, group, cut=cut)[None].expand(2, -1)
        found = other(mine, attention_mask=own, position_ids=places, use_cache=False).logits
        (found * own[..., None]).square().sum().backward()
    worst = float(((found - shard(wanted, group, cut=cut, dim=1)) * own[..., None]).abs().max())
    for x, y in zip(model.parameters(), other.parameters(), strict=True):
        grad = y.grad
        dist.all_reduce(grad, group=group)
        worst = max(worst, float((grad - x.grad).abs().max()))
    return worst


def refused_by_models(group: Any) -> list[str]:
    """What a model says that goes on from a cache, or whose positions jump, on shards."""
    import transformers

    import lattend.integrations.transformers  # noqa: F401

    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4
    )
    config._attn_implementation = "lattend"
    model: Any = transformers.LlamaForCausalLM(config)
    said: list[str] = []
    with sharded(group, cut="zigzag"), torch.no_grad():
        places = positions(16, group, cut="zigzag")[None]
        for call in (
            lambda: model(torch.ones(1, 8, dtype=torch.int64), position_ids=places, use_cache=False),
            lambda: model.generate(torch.ones(1, 8, dtype=torch.int64), max_new_tokens=3, do_sample=False),
            lambda: ALONE(*[torch.ones(1, 2, 8, 4)] * 3, "k <= q", return_max_logit=True),
        ):
            try:
                call()
                said.append("nothing")
            except lt.errors.LattendError as error:
                said.append(str(error))
    return said
