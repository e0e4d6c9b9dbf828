"""Rules, biases and the modules that hold them, copied, saved, sent to other processes and exported."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import lattend as lt
from lattend.attend.operators.operator_arguments import OperatorCall, short
from lattend.errors import LattendError

BAND = "k <= q and q - k <= t"


def reloaded(made: Any) -> Any:
    file = io.BytesIO()
    torch.save(made, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES: list[Callable[[Any], Any]] = [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made)), reloaded]
HOWS = pytest.mark.parametrize("again", COPIES, ids=["deepcopy", "pickle", "torch.save"])


def numbers(*shape: int) -> Tensor:
    return torch.linspace(-3, 3, int(np.prod(shape))).view(shape).sin()


class Layer(nn.Module):
    """One that learns its bias and holds it, and holds its rule."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.make, self.how = nn.Linear(8, 24), how
        self.slope = nn.Parameter(torch.tensor([0.5, 0.25]))
        self.bias, self.rule = lt.Bias("-slope[head]*(q - k)", slope=self.slope), lt.rule(BAND)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.make(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4).unbind(0)
        return lt.attention(q, k, v, self.rule, t=2, bias=self.bias, **self.how).transpose(1, 2).flatten(2)


@HOWS
@pytest.mark.parametrize(
    "rule",
    [
        lt.rule(BAND),
        lt.rule("strided(3)"),
        lt.rule(lambda b, h, q, k: k <= q),
        lt.rule("ids[q] == ids[k]", data={"ids": np.arange(6) // 2}),
        lt.rule("ids[q] == ids[k]", data={"ids": None}),
        lt.rule("qy == ky").at(rows=3, cols=4),
    ],
    ids=str,
)
def test_rules(rule: lt.Rule, again: Callable[[Any], Any]) -> None:
    twin = again(rule)
    assert twin == rule
    assert (twin.key, twin.open, hash(twin)) == (rule.key, rule.open, hash(rule))


@HOWS
@pytest.mark.parametrize("rule", ["causal", "strided(3)", "sinks(2, 3)"])
def test_a_cache_goes_on(rule: str, again: Callable[[Any], Any]) -> None:
    first, last = numbers(1, 2, 6, 4), numbers(1, 2, 1, 4)
    cache = lt.KVCache(rule, batch=1, heads=2, head_dim=4)
    lt.attention(first, first, first, rule, cache=cache)
    twin = again(cache)
    found, wanted = (lt.attention(last, last, last, rule, cache=one) for one in (twin, cache))
    assert torch.equal(found, wanted)
    assert str(twin) == str(cache)


@HOWS
def test_a_module_keeps_its_bias_tied_to_its_parameter(again: Callable[[Any], Any]) -> None:
    torch.manual_seed(0)
    layer, x = Layer(), numbers(2, 16, 8)
    twin = again(layer)
    assert torch.equal(twin(x), layer(x))
    assert twin.bias.tensors["slope"] is twin.slope  # so an optimiser that moves one moves both
    twin(x).sum().backward()
    assert twin.slope.grad is not None
    assert layer.slope.grad is None


# Names in a state_dict are what a checkpoint of an earlier version has

NAMES: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "plain": (lambda: made(None), "W_q W_k W_v W_out b_out"),
    "biases": (lambda: made(None, bias=True), "W_q W_k W_v W_out b_q b_k b_v b_out"),
    "absolute": (lambda: made("absolute"), "W_q W_k W_v W_out b_out encoding.P"),
    "sinusoidal": (lambda: made("sinusoidal"), "W_q W_k W_v W_out b_out"),
    "tables": (lambda: made("tables"), "W_q W_k W_v W_out b_out encoding.table"),
    "relative": (lambda: made("relative"), "W_q W_k W_v W_out b_out encoding.W_r encoding.u encoding.v"),
    "quadratic": (lambda: made("quadratic"), "W_v W_out b_out encoding.centres encoding.root"),
    "conv": (lambda: lt.nn.from_conv(nn.Conv2d(3, 4, 3)), "weight bias alpha centres"),
    "grid": (lambda: lt.nn.GridRNN(3, 4), "W_in.0 W_left.0 W_top.0"),
    "holder": (Layer, "slope make.weight make.bias"),
}


def made(encoding: str | None, **options: Any) -> nn.Module:
    return lt.nn.MultiHeadAttention(
        4, 4, 4, 4, heads=2, rule="k <= q and q - k <= 2", encoding=encoding, n=6, **options
    )


@pytest.mark.parametrize(("make", "names"), NAMES.values(), ids=NAMES)
def test_state_dicts_are_stable_and_load_as_weights_only(make: Callable[[], nn.Module], names: str) -> None:
    module, other, file = make(), make(), io.BytesIO()
    assert list(module.state_dict()) == names.split()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, module.state_dict()[name])


@HOWS
@pytest.mark.parametrize("make", [make for make, _ in NAMES.values()], ids=NAMES)
def test_modules(make: Callable[[], nn.Module], again: Callable[[Any], Any]) -> None:
    module = make()
    twin = again(module)
    assert type(twin) is type(module)
    for name, tensor in twin.state_dict().items():
        assert torch.equal(tensor, module.state_dict()[name])


def test_what_weights_only_refuses() -> None:
    file = io.BytesIO()
    torch.save(lt.rule(BAND), file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"lattend\.rules"):
        torch.load(file, weights_only=True)


# Other processes and threads


class Rows(Dataset[Any]):
    """What a worker may do: attention, counts, a rule of its own."""

    def __init__(self) -> None:
        self.rule, self.bias = lt.rule(BAND), lt.Bias.alibi(2)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> tuple[Tensor, int, int]:
        x = numbers(1, 2, 24, 4) * (i + 1)
        own = lt.rule("k <= q and q - k <= t and (q - k) % s == 0").count(n=40 + i, t=9, s=3)
        return lt.attention(x, x, x, self.rule, t=3, bias=self.bias)[0], self.rule.count(n=20 + i, t=3), own


def same(found: list[Any], wanted: list[Any]) -> bool:
    return len(found) == len(wanted) and all(
        torch.equal(a[0], b[0]) and tuple(a[1:]) == tuple(b[1:]) for a, b in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_data_loader_workers(start: str) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {start} here")
    rows = Rows()
    wanted = [rows[i] for i in range(len(rows))]  # this process has its worker for sets before it forks
    loader = DataLoader(rows, batch_size=None, num_workers=2, multiprocessing_context=start, timeout=120)
    assert same(list(loader), wanted)
    assert same([rows[i] for i in range(len(rows))], wanted)


def test_threads() -> None:
    rows, found = Rows(), {}
    wanted = [rows[i] for i in range(len(rows))]

    def run(i: int) -> None:
        found[i] = rows[i % len(rows)]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same([found[i] for i in range(8)], wanted * 2)


# torch.export

RUN = """
import sys, torch
import lattend.attend                         # registers the operators
program = torch.export.load(sys.argv[1]).module()
x, longer = torch.load(sys.argv[2])
torch.save((program(x), program(longer)), sys.argv[3])
"""


def test_an_exported_program_runs_in_another_process(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer, x, longer = Layer().eval(), numbers(2, 16, 8), numbers(2, 33, 8)
    program = torch.export.export(
        layer, (x,), dynamic_shapes={"x": {1: torch.export.Dim("n", min=2, max=4096)}}
    )
    torch.export.save(program, tmp_path / "layer.pt2")
    torch.save((x, longer), tmp_path / "in.pt")
    files = [str(tmp_path / name) for name in ("layer.pt2", "in.pt", "out.pt")]
    subprocess.run([sys.executable, "-c", RUN, *files], check=True, timeout=120)
    found = torch.load(tmp_path / "out.pt")
    torch.testing.assert_close(found, (layer(x), layer(longer)))


# AOTInductor


class Shipped(nn.Module):
    """Every kind of call that can stand in a program: with lists of tensors and without."""

    def __init__(self) -> None:
        super().__init__()
        self.slope, self.sinks = nn.Parameter(torch.tensor([0.5, 0.25])), nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor, lengths: Tensor, cu: Tensor) -> tuple[Tensor, ...]:
        bias = lt.Bias("-slope[head]*(q - k)", slope=self.slope)
        packed = x[0].transpose(0, 1)
        return (
            lt.attention(x, x, x, BAND, t=2),
            lt.attention(x, x, x, BAND, t=2, bias=bias, padding=lengths, sinks=self.sinks, softcap=5.0),
            lt.attention(packed, packed, packed, "k <= q and k < 3", cu_seqlens=cu),
            lt.max_logits(x, x, "causal"),
        )


def shipped(n: int) -> tuple[Tensor, Tensor, Tensor]:
    return numbers(2, 2, n, 4), torch.tensor([n, 3]), torch.tensor([0, 5, 5, n])


LOADED = """
import sys, torch
import lattend.attend
run = torch._inductor.aoti_load_package(sys.argv[1])
torch.save([run(*given) for given in torch.load(sys.argv[2])], sys.argv[3])
"""


@pytest.mark.long  # a compiler of C++ takes half of the time
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch's own pickles
def test_an_ahead_of_time_program_runs_in_another_process(tmp_path: Path) -> None:
    model, given = Shipped().eval(), [shipped(16), shipped(33)]
    n = torch.export.Dim("n", min=2, max=4096)
    program = torch.export.export(model, given[0], dynamic_shapes=({2: n}, None, None))
    with torch.no_grad():
        file = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
    torch.save(given, tmp_path / "in.pt")
    files = [file, str(tmp_path / "in.pt"), str(tmp_path / "out.pt")]
    subprocess.run([sys.executable, "-W", "ignore", "-c", LOADED, *files], check=True, timeout=120)
    for found, one in zip(torch.load(tmp_path / "out.pt"), given, strict=True):
        torch.testing.assert_close(tuple(found), tuple(x.detach() for x in model(*one)))


def test_no_list_of_tensors_is_an_empty_one() -> None:
    """AOTInductor's runtime passes None for an empty list."""
    x = numbers(1, 2, 9, 4)
    _, text, sizes = short(OperatorCall(lt.rule("k <= q").key, [9], [], None, []))
    for operator, tensors in (
        (torch.ops.lattend.attention, (x, x, x)),
        (torch.ops.lattend.max_logits, (x, x)),
    ):
        empty, none = (operator.default(*tensors, some, text, sizes) for some in ([], None))
        torch.testing.assert_close(none, empty, rtol=0, atol=0)


# Exporters that are refused


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kernel", [None, "dense"])
def test_torch_onnx_export_is_refused(
    strict: bool, kernel: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What torch.onnx.export does without onnxscript: tracing with its flag up."""
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    with pytest.raises(Exception, match=r"torch\.onnx\.export cannot export it: use torch\.export"):
        torch.export.export(Layer(kernel=kernel), (numbers(2, 16, 8),), strict=strict)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_torch_jit_trace_is_refused_with_a_cache_too() -> None:
    class Decoding(torch.nn.Module):
        def forward(self, x: Tensor) -> Any:
            return lt.attention(x, x, x, "causal", cache=lt.KVCache("causal", batch=1, heads=2, head_dim=8))

    with pytest.raises(LattendError, match=r"torch\.jit\.trace and torch\.onnx\.export cannot export"):
        torch.jit.trace(Decoding(), (torch.randn(1, 2, 1, 8),))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_torch_jit_trace_is_refused() -> None:
    with pytest.raises(LattendError, match=r"torch\.jit\.trace and torch\.onnx\.export cannot export"):
        torch.jit.trace(Layer().eval(), (numbers(2, 16, 8),))
