"""What ranks do in tests of nets on a grid: strips of rows beside the whole image in one process."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
import torch.distributed as dist
from gloo_ranks import counted

import lattend as lt
from lattend.nn.grid.over_ranks import border_bytes, grid_rnn

COLS, C, H = 21, 3, 5


def over_ranks(
    group: Any, cell: str, layers: int, rows: list[int], columns: int | None, masked: bool, shift: bool,
    h: int = H, **kind: Any,
) -> list[float]:  # fmt: skip
    """Errors of states and of the gradients of pixels and weights, and bytes that are not those counted.

    `kind` is a dtype and a device; errors are relative to float64 on the same device.
    """
    torch.manual_seed(0)
    kind = {"dtype": torch.float64, "device": "cpu"} | kind
    item = kind["dtype"].itemsize
    net = lt.nn.GridRNN(C, h, cell=cell, layers=layers, bias=True, shift=shift).to(**kind)
    image = torch.randn(2, sum(rows), COLS, C, dtype=torch.float64).to(**kind)
    slopes = torch.randn(2, sum(rows), COLS, h, dtype=torch.float64).to(**kind)
    mask = (torch.rand(2, sum(rows), COLS) < 0.8).to(kind["device"]) if masked else None
    exact, whole = deepcopy(net).double(), image.double().requires_grad_()
    wanted = exact(whole, mask=mask)
    wanted.backward(slopes.double())
    grads = [p.grad for p in exact.parameters() if p.grad is not None]
    rank = dist.get_rank(group)
    own = slice(sum(rows[:rank]), sum(rows[: rank + 1]))
    mine = image[:, own].clone().requires_grad_()
    expected = border_bytes(net, (2, COLS), rows, item)[rank]
    with counted() as down:
        found = grid_rnn(net, mine, mesh=group, mask=None if mask is None else mask[:, own], columns=columns)
    with counted() as up:
        if rows[rank]:
            found.backward(slopes[:, own])
    below = any(rows[rank + 1 :]) and rows[rank] > 0
    moved = [
        down["messages"] - expected,
        up["messages"] - (max(border_bytes(net, (2, COLS), [1, 1], item)) * below),
    ]
    errors = [
        _far(found, wanted[:, own]),
        _far(mine.grad, None if whole.grad is None else whole.grad[:, own]),
    ]
    for parameter, one in zip(net.parameters(), grads, strict=True):
        share = (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).double().cpu()
        dist.all_reduce(share, group=group)
        errors.append(_far(share, one.cpu()))
    return [*errors, *map(float, moved)]


def _far(found: Any, wanted: Any) -> float:
    if found is None or found.numel() == 0:
        return 0.0
    away = found.detach().double() - wanted.detach()
    return float(away.norm() / wanted.detach().norm().clamp(min=1e-30))


def refused(group: Any) -> str:
    """What is said where one rank has another net."""
    rank = dist.get_rank(group)
    net = lt.nn.GridRNN(C, H if rank else H + 1)
    try:
        grid_rnn(net, torch.zeros(1, 2, COLS, C), mesh=group)
    except lt.errors.RankError as error:
        return str(error)
    return ""
