"""Records: a call is repeated only by one that differs in nothing that matters."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn.grid.grids import NAMES, forget, model, some, states_for, tensors_of
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from lattend.errors import TensorError
from lattend.nn.grid import cpu
from lattend.nn.grid.rnn import GridRNN
from lattend.nn.grid.scan import CHECKED, RECORDS


@pytest.fixture(autouse=True)
def no_records() -> Iterator[None]:
    forget()
    yield
    forget()


class Call(NamedTuple):
    """One call of a module, and what is asked of it."""

    cell: str = "lstm"
    directions: int = 1
    sizes: tuple[int, int, int] = (2, 3, 4)  # batch, rows, cols
    bias: bool = False
    masked: bool = False
    begun: bool = False
    recompute: bool = False
    strided: bool = False
    double: bool = True
    wanted: str = "all"  # "all", "x", "weights", "nothing"
    mode: str = "plain"  # "plain", "no_grad", "inference", "autocast"
    seed: int = 0

    def run(self) -> list[Tensor]:
        """The output and the gradients that are wanted."""
        net = model(2, 3, self.cell, self.directions, bias=self.bias, recompute=self.recompute, kernel="cpu")
        net = net.requires_grad_(self.wanted in ("all", "weights"))
        x = some(*self.sizes, 2, seed=self.seed)
        states = states_for(net, x, self.seed) if self.begun else None
        mask = some(*self.sizes, seed=self.seed) > -0.5 if self.masked else None
        if self.strided:
            x = x.transpose(1, 2).contiguous().transpose(1, 2)
        if not self.double:
            net, x = net.float(), x.float()
        x = x.requires_grad_(self.wanted in ("all", "x"))
        with self._mode():
            found = net(x, states, mask)
        if not found.requires_grad:
            return [found.clone()]
        asked = [t for t in (x, *net.parameters(), *tensors_of(states)) if t.requires_grad]
        return [found.detach(), *torch.autograd.grad(found.float().square().sum(), asked)]

    def _mode(self) -> AbstractContextManager[Any]:
        if self.mode == "no_grad":
            return torch.no_grad()
        if self.mode == "inference":
            return torch.inference_mode()
        return torch.autocast("cpu", torch.float16) if self.mode == "autocast" else nullcontext()


CALLS = st.builds(
    Call,
    cell=st.sampled_from(NAMES),
    directions=st.sampled_from([1, 2]),
    sizes=st.sampled_from([(2, 3, 4), (2, 4, 3), (1, 3, 4)]),
    bias=st.booleans(),
    masked=st.booleans(),
    begun=st.booleans(),
    recompute=st.booleans(),
    strided=st.booleans(),
    double=st.booleans(),
    wanted=st.sampled_from(["all", "x", "weights", "nothing"]),
    mode=st.sampled_from(["plain", "plain", "no_grad", "inference", "autocast"]),
    seed=st.integers(0, 3),
)


def fresh(call: Call) -> list[Tensor]:
    forget()
    cpu._forward_rooms.cache_clear()
    cpu._backward_rooms.cache_clear()
    return call.run()


def same(found: list[Tensor], wanted: list[Tensor]) -> None:
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


@settings(max_examples=60, deadline=None)
@given(CALLS, CALLS)
def test_two_calls_one_after_the_other(one: Call, two: Call) -> None:
    wanted = [fresh(call) for call in (one, two)]
    for call, exact in zip((one, two) * 2, wanted * 2, strict=True):
        same(call.run(), exact)


@settings(max_examples=40, deadline=None)
@given(CALLS, st.data())
def test_two_calls_that_differ_in_one_thing(one: Call, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(Call._fields))
    two = one._replace(**{name: getattr(data.draw(CALLS), name)})
    wanted = [fresh(call) for call in (one, two)]
    for call, exact in zip((one, two) * 2, wanted * 2, strict=True):
        same(call.run(), exact)


def test_a_call_like_another_takes_its_record() -> None:
    for seed in range(3):
        Call(seed=seed).run()
    assert len(RECORDS) == 1
    (record,) = RECORDS.values()
    assert record.steps is not None and len(record.backward_steps) == 1
    Call(wanted="x").run()
    assert len(RECORDS) == 1 and len(record.backward_steps) == 2


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("cell", NAMES)
def test_large_images_are_worked_on_where_they_are(
    cell: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [Call(cell, 2, masked=True, begun=True, recompute=r) for r in (False, True)]
    wanted = [fresh(call) for call in calls]
    monkeypatch.setattr(cpu, "SMALL", 0 if large else 1 << 40)
    monkeypatch.setattr("lattend.nn.grid.cpu_room.ONE_THREAD", 0)  # all products are torch's
    for call, exact in zip(calls, wanted, strict=True):
        torch.testing.assert_close(fresh(call), exact)


def test_backward_twice_and_after_other_calls() -> None:
    """What a call saved is its own, whatever runs in the same room later."""
    net, x, y = model(2, 3, "gru"), some(2, 4, 3, 2), some(2, 4, 3, 2, seed=5)
    out = net(x)
    net(y)
    first = torch.autograd.grad(out.square().sum(), list(net.parameters()), retain_graph=True)
    torch.autograd.grad(net(y).sum(), list(net.parameters()))
    again = torch.autograd.grad(out.square().sum(), list(net.parameters()))
    same(list(again), list(first))
    out = net(x)
    same(list(torch.autograd.grad(out.square().sum(), list(net.parameters()))), list(first))


def test_threads_do_not_share_a_room() -> None:
    calls = [Call("lstm", 2, (2, 5, 6), seed=seed) for seed in range(8)]
    wanted = [call.run() for call in calls]
    with ThreadPoolExecutor(4) as pool:
        for found, exact in zip(pool.map(Call.run, calls * 5), wanted * 5, strict=True):
            same(found, exact)


@pytest.mark.parametrize("cell", NAMES)
def test_under_a_checkpoint(cell: str) -> None:
    net, x = model(2, 3, cell), some(2, 4, 3, 2)
    wanted = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
    for _ in range(2):
        out = checkpoint(net, x, use_reentrant=False)
        assert isinstance(out, Tensor)
        same(list(torch.autograd.grad(out.square().sum(), list(net.parameters()))), list(wanted))


def test_weights_changed_in_place_are_seen() -> None:
    net, x = model(2, 3), some(2, 4, 3, 2)
    net(x)
    with torch.no_grad():
        net.W_left[0].mul_(2)
        found = net(x)
        forget()
        assert torch.equal(found, net(x))


def test_whoever_watches_sees_the_products() -> None:
    """A dispatch mode counts every product of the input: 2·24 pixels · c·h multiply-adds."""
    net, x = GridRNN(2, 3), torch.randn(2, 4, 3, 2)
    net(x)
    with FlopCounterMode(display=False) as counter:
        net(x)
    assert counter.get_total_flops() >= 2 * 24 * 2 * 3
    assert len(RECORDS) == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("cell", NAMES)
def test_the_gpu_kernel_again(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under Triton's interpreter where there is no GPU: a second call repeats the steps of the first."""
    pytest.importorskip("triton")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        monkeypatch.setattr("lattend.nn.grid.gpu.backend.ROW_BLOCK", 2)
    exact = model(2, 3, cell, kernel="diagonals")
    net = model(2, 3, cell, kernel="gpu").to(device, torch.float32)
    for seed in range(2):
        x = some(1, 3, 2, 2, seed=seed)
        out, wanted = net(x.to(device, torch.float32)), exact(x)
        torch.testing.assert_close(out.cpu().double(), wanted, atol=1e-5, rtol=1e-4)
        found = torch.autograd.grad(out.square().sum(), list(net.parameters()))
        grads = torch.autograd.grad(wanted.square().sum(), list(exact.parameters()))
        for a, b in zip(found, grads, strict=True):
            torch.testing.assert_close(a.cpu().double(), b, atol=1e-5, rtol=1e-4)
    (record,) = RECORDS.values()
    assert record.steps is not None and len(record.backward_steps) == 1


# Calls that are not checked again


def outputs(net: GridRNN, x: Tensor, grad: Tensor | None = None) -> list[Tensor]:
    out = net(x)
    asked = [t for t in (x, *net.parameters()) if t.requires_grad]
    return [out.detach(), *torch.autograd.grad(out, asked, torch.ones_like(out) if grad is None else grad)]


def test_a_known_call_and_one_that_is_wrong() -> None:
    net, x = model(2, 3), some(2, 4, 3, 2)
    for _ in range(2):
        net(x)
    assert len(CHECKED) == 1
    for wrong, message in [
        (some(2, 4, 3, 5), "with c = 2, got float64"),
        (x.float(), "x is float32 .* and the weights are torch.float64"),
        (x[0], r"write x\[None\] for a batch of one"),
    ]:
        with pytest.raises(TensorError, match=message):
            net(wrong)
    assert len(CHECKED) == 1


@pytest.mark.parametrize("frozen", [(0,), (1,), (), (0, 1)])
def test_layers_that_do_not_learn(frozen: tuple[int, ...]) -> None:
    """Which layers want gradients is part of a kind, whatever ran before."""
    net, x = model(2, 3, "lstm", layers=2), some(2, 4, 3, 2)
    outputs(net, x)
    net(x.requires_grad_())
    for layer in frozen:
        for weights in (net.W_in, net.W_left, net.W_top):
            weights[layer].requires_grad_(False)
    found = [outputs(net, x) for _ in range(2)]
    forget()
    for one in found:
        same(one, outputs(net, x))


def test_kinds_are_told_apart_by_what_is_no_tensor() -> None:
    x = some(2, 4, 3, 2)
    changes: list[dict[str, Any]] = [{}, {"activation": "relu"}, {"recompute": True}, {"kernel": "cpu"}]
    changes += [{"bias": True}, {"directions": 2}]
    for changed in changes:
        net = model(2, 3, **changed)
        for _ in range(2):
            net(x)
    assert len(CHECKED) == 6
    with torch.no_grad():
        model(2, 3)(x)
    assert len(CHECKED) == 7


class Doubled(torch.nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


def test_weights_that_are_no_parameters() -> None:
    net, other, x = model(2, 3), model(2, 3), some(2, 4, 3, 2)
    net(x)
    torch.nn.utils.parametrize.register_parametrization(net.W_left, "0", Doubled())
    with torch.no_grad():
        other.W_left[0].mul_(2)
    for _ in range(2):
        same([net(x)], [other(x)])


def test_a_gradient_that_was_saved_itself() -> None:
    """Its record would take one for the other, so there is none."""
    net, x, y = model(3, 3), some(2, 4, 3, 3).requires_grad_(), some(2, 4, 3, 3, seed=1)
    for _ in range(2):
        same(outputs(net, x, x.detach()), outputs(net, x, x.detach().clone()))
        same(outputs(net, x, x), outputs(net, x, x.detach().clone()))
        same(outputs(net, x, y), outputs(net, x, y.clone()))
    forget()
    same(outputs(net, x, x), outputs(net, x, x.detach().clone()))


def test_backward_under_autocast() -> None:
    net, x = model(2, 3).float(), some(2, 4, 3, 2).float()
    wanted = outputs(net, x)
    for _ in range(2):
        out = net(x)
        with torch.autocast("cpu", torch.bfloat16):
            found = torch.autograd.grad(out, list(net.parameters()), torch.ones_like(out))
        same(list(found), wanted[1:])
