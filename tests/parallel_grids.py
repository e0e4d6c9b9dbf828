"""What ranks do in tests of nets on a grid: strips of rows beside the whole image in one process."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from gloo_ranks import counted
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import lattend as lt
from lattend.nn.grid.over_ranks import border_bytes, grid_rnn

BATCH, C, H = 2, 3, 5


@dataclass(frozen=True)
class Case:
    """A net, and an image whose strips have so many rows."""

    rows: tuple[int, ...]
    cell: str = "rnn"
    directions: int = 1
    layers: int = 1
    columns: int | None = None
    masked: bool = False
    shift: bool = False
    cols: int = 21
    h: int = H
    dtype: torch.dtype = torch.float64
    device: str = "cpu"
    batch: int = BATCH

    @property
    def ranks(self) -> int:
        return len(self.rows)

    def net(self) -> lt.nn.GridRNN:
        """The same net on every rank."""
        torch.manual_seed(0)
        net = lt.nn.GridRNN(
            C, self.h, self.cell, self.directions, layers=self.layers, bias=True, shift=self.shift,
            dtype=torch.float64,
        )  # fmt: skip
        return net.to(self.device, self.dtype)

    def image(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """The whole image, slopes of its states, and where it has pixels."""
        shape = (self.batch, sum(self.rows), self.cols)
        image, slopes = (
            torch.randn(*shape, n, dtype=torch.float64).to(self.device, self.dtype)
            for n in (C, self.h * self.directions)
        )
        return image, slopes, (torch.rand(shape) < 0.8).to(self.device) if self.masked else None

    def strip(self, rank: int) -> slice:
        return slice(sum(self.rows[:rank]), sum(self.rows[: rank + 1]))


def over_ranks(group: Any, case: Case) -> tuple[list[float], list[int]]:
    """Errors of states and of the gradients of pixels and weights, and bytes beyond those predicted.

    Errors are relative to float64 in one process.
    """
    net, rank = case.net(), dist.get_rank(group)
    image, slopes, mask = case.image()
    exact, whole = deepcopy(net).double(), image.double().clone().requires_grad_()
    wanted = exact(whole, mask=mask)
    grads = torch.autograd.grad(wanted, [whole, *exact.parameters()], slopes.double())
    own = case.strip(rank)
    mine = image[:, own].clone().requires_grad_()
    with counted() as forward:
        found = grid_rnn(
            net, mine, mesh=group, mask=None if mask is None else mask[:, own], columns=case.columns
        )
    with counted() as backward:
        if case.rows[rank]:
            found.backward(slopes[:, own])
    errors = [_far(found, wanted[:, own]), _far(mine.grad, grads[0][:, own])]
    for parameter, one in zip(net.parameters(), grads[1:], strict=True):
        share = (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).double().cpu()
        dist.all_reduce(share, group=group)
        errors.append(_far(share, one.cpu()))
    sizes = (case.batch, case.cols), case.rows, case.dtype.itemsize
    predicted = [border_bytes(net, *sizes, back)[rank] for back in (False, True)]
    return errors, [forward["messages"] - predicted[0], backward["messages"] - predicted[1]]


def _far(found: Tensor | None, wanted: Tensor) -> float:
    if not wanted.numel():
        return 0.0
    if found is None:
        return torch.inf
    away = (found.double() - wanted.double()).detach()
    return float(away.norm() / wanted.detach().double().norm().clamp(min=1e-30))


def without_gradients(group: Any, case: Case) -> tuple[list[float], bool]:
    """Errors of states under no_grad and with frozen weights, and whether any of them has a gradient."""
    net, rank = case.net(), dist.get_rank(group)
    image = case.image()[0]
    wanted = net(image)[:, case.strip(rank)]
    mine = image[:, case.strip(rank)].clone()
    with torch.no_grad():
        quiet = grid_rnn(net, mine.clone().requires_grad_(), mesh=group)
    frozen = grid_rnn(net.requires_grad_(False), mine, mesh=group)
    return [_far(quiet, wanted), _far(frozen, wanted)], quiet.requires_grad or frozen.requires_grad


def some_gradients(group: Any, case: Case, wanted: str) -> list[float]:
    """Errors of the gradients that alone are asked for: of the pixels, or of one weight."""
    net, rank = case.net(), dist.get_rank(group)
    image, slopes, _ = case.image()
    whole, own = image.clone().requires_grad_(wanted == "x"), case.strip(rank)
    mine = image[:, own].clone().requires_grad_(wanted == "x")
    net.requires_grad_(wanted != "x")
    weight = None if wanted == "x" else net.get_parameter(wanted)
    one = torch.autograd.grad(net(whole), whole if weight is None else weight, slopes)[0]
    found = grid_rnn(net, mine, mesh=group, columns=case.columns)
    share = torch.autograd.grad(found, mine if weight is None else weight, slopes[:, own])[0]
    if weight is not None:
        dist.all_reduce(share, group=group)
    return [_far(share, one[:, own] if weight is None else one)]


def twice(group: Any, case: Case) -> str:
    """What is said where a second derivative is asked for."""
    x = case.image()[0][:, case.strip(dist.get_rank(group))].clone().requires_grad_()
    out = grid_rnn(case.net(), x, mesh=group)
    try:
        torch.autograd.grad(out.sum(), x, create_graph=True)
    except lt.errors.LattendError as error:
        return str(error)
    return ""


def checkpointed(group: Any, case: Case) -> list[float]:
    """Errors of the gradients of pixels where the states are computed again for the backward pass."""
    net, rank = case.net(), dist.get_rank(group)
    image, slopes, _ = case.image()
    whole, own = image.clone().requires_grad_(), case.strip(rank)
    mine = image[:, own].clone().requires_grad_()
    found: Any = checkpoint(lambda x: grid_rnn(net, x, mesh=group), mine, use_reentrant=False)
    found.backward(slopes[:, own])
    (grad,) = torch.autograd.grad(net(whole), whole, slopes)
    return [_far(mine.grad, grad[:, own])]


def on_a_mesh(group: Any) -> float:
    """How far strips over the heads and the sequence of a larger mesh are from the whole image."""
    from torch.distributed.device_mesh import init_device_mesh

    del group
    mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("data", "sequence", "heads"))
    case = Case((2, 1, 3, 1), "lstm", directions=4)
    net, image = case.net(), case.image()[0] * (1 + mesh.get_local_rank("data"))
    own = case.strip(2 * mesh.get_local_rank("sequence") + mesh.get_local_rank("heads"))
    mine = image[:, own].clone().requires_grad_()
    found = grid_rnn(net, mine, mesh=mesh["sequence", "heads"])
    found.sum().backward()
    whole = image.clone().requires_grad_()
    wanted = net(whole)
    grad = torch.autograd.grad(wanted.sum(), whole)[0]
    return max(_far(found, wanted[:, own]), _far(mine.grad, grad[:, own]))


def under_autocast(group: Any, case: Case) -> list[float]:
    """How far states and their gradients in bfloat16 are from those of one process in bfloat16."""
    net, rank = case.net().float(), dist.get_rank(group)
    image, slopes, _ = (None if x is None else x.float() for x in case.image())
    assert image is not None and slopes is not None
    whole, own = image.clone().requires_grad_(), case.strip(rank)
    mine = image[:, own].clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        wanted, found = net(whole), grid_rnn(net, mine, mesh=group, columns=case.columns)
    assert found.dtype == wanted.dtype == torch.bfloat16
    found.backward(slopes[:, own].bfloat16())
    (grad,) = torch.autograd.grad(wanted, whole, slopes.bfloat16())
    return [_far(found, wanted[:, own]), _far(mine.grad, grad[:, own])]


def refused(group: Any, wrong: str) -> str:
    """What is said where one rank has another net, or gives what does not fit."""
    rank = dist.get_rank(group)
    net, x, more = lt.nn.GridRNN(C, H, directions=4), torch.zeros(1, 2, 21, C), dict[str, Any]()
    if rank == 0 and wrong == "net":
        net = lt.nn.GridRNN(C, H + 1, directions=4)
    if rank == 0 and wrong == "dtype":
        x = x.double()
    if rank == 0 and wrong == "mask":
        more["mask"] = torch.ones(1, 2, 21)
    if rank == 0 and wrong == "kernel":
        net, x = lt.nn.GridRNN(C, H, kernel="native").double(), x.double()
    if rank == 0 and wrong == "columns":
        more["columns"] = 0
    try:
        grid_rnn(net, x, mesh=group, **more)
    except lt.errors.LattendError as error:
        return str(error)
    return ""
