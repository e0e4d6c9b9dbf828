"""The host's compiled part beside its twins in Python: kinds that are told apart, calls with addresses."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import sysconfig
from array import array
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

import lattend as lt
from lattend.attend.call.options import AttentionOptions
from lattend.attend.kernels.native import build, library
from lattend.attend.kernels.triton import driver
from lattend.attend.replay import host, plain_call, signature
from lattend.attend.replay.compiled_call import COMPILED_CALLS

compiled = pytest.mark.skipif(host.module() is None, reason="the host's part was not built")
KINDS = [signature.plain_signature_by_python, pytest.param(signature.plain_signature, marks=compiled)]


def test_where_there_is_a_compiler_there_is_the_module() -> None:
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    built = build.compiler() is not None and headers.exists()
    assert not built or host.module() is not None, "make setup builds it"


DTYPES = st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int64])
SHAPES = st.sampled_from([(2, 3), (3, 2), (6,), (2, 1, 3), ()])
OPTIONS = st.sampled_from([None, 1, True, 1.0, 0, "cpu", False])


@st.composite
def tensors(draw: st.DrawFn) -> list[Tensor]:
    """Some tensors that lie in memory in several ways, one of them perhaps twice."""
    found: list[Tensor] = []
    for _ in range(draw(st.integers(1, 3))):
        shape, first = draw(SHAPES), draw(st.sampled_from([0, 1, 4]))
        x = torch.zeros(64, dtype=draw(DTYPES))[first:][: torch.Size(shape).numel()].view(shape)
        x = x.mT if draw(st.booleans()) and x.dim() > 1 else x
        learns = draw(st.booleans()) and x.is_floating_point()
        found.append(nn.Parameter(x) if learns else x)
    return [*found, found[0]] if draw(st.booleans()) else found


@compiled
@given(first=tensors(), second=tensors(), options=st.tuples(OPTIONS, OPTIONS), grad=st.booleans())
@settings(max_examples=300, deadline=None)
def test_compiled_kinds_tell_apart_what_pythons_do(
    first: list[Tensor], second: list[Tensor], options: tuple[Any, Any], grad: bool
) -> None:
    for ours, python in (
        (signature.tensor_signature, signature.tensor_signature_by_python),
        (
            lambda *x: signature.plain_signature(options[:1], *x),
            lambda *x: signature.plain_signature_by_python(options[:1], *x),
        ),
    ):
        with torch.set_grad_enabled(grad):
            assert (ours(*first) == ours(*second)) == (python(*first) == python(*second))
            assert ours(*first) == ours(*first)
    one, other = ((option,) for option in options)
    same = signature.plain_signature(one, *first) == signature.plain_signature(other, *first)
    assert same == (type(options[0]) is type(options[1]))


class Watched(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Mine(Tensor):
    pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.jit.trace
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_remembered_has_no_kind(kind: Any) -> None:
    x = torch.ones(2, 3)
    assert kind((None, 1), x) is not None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert kind((), x) is None
        assert kind((), x.bfloat16()) is not None
        assert kind((), x.bfloat16(), x) is None
    for strange in (x.to("meta"), x.as_subclass(Mine), [1.0], None):
        assert kind((), strange) is None and kind((), x, strange) is None
    assert kind(([],), x) is None and kind((torch.ones(1),), x) is None
    with Watched():
        assert kind((), x) is None
    with forward_ad.dual_level():
        assert kind((), x) is None
    seen: list[Any] = []
    torch.func.vmap(lambda x: (seen.append(kind((), torch.ones(2))), x)[1])(x)
    torch.jit.trace(lambda x: (seen.append(kind((), x)), x + 1)[1], x, check_trace=False)  # pyright: ignore
    assert seen and not any(seen)


@pytest.mark.parametrize("kind", KINDS)
def test_what_torch_is_told_belongs_to_a_kind(kind: Any) -> None:
    x, learned = torch.ones(2, 3), torch.ones(2, 3, requires_grad=True)
    assert kind((), x) != kind((), learned)
    half = x.bfloat16()
    with torch.no_grad():
        assert kind((), x) == kind((), learned)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        told = kind((), half)
    assert told != kind((), half)


# Signatures of calls. Each of these, if a signature did not hold it, would give another call's result


def signature_of(*qkv: Any, rule: Any = "causal", values: Any = None, **options: Any) -> Any:
    read = AttentionOptions(**options)
    return plain_call.call_signature(qkv, rule, read.in_signature, read.bias, read.sinks, values or {})


X, Y, Z = (torch.ones(2, 3) for _ in range(3))
OTHER_TENSORS: dict[str, Any] = {
    "a leading axis": X[None],
    "alignment": torch.ones(7)[1:].view(2, 3),
    "device": X.to("meta"),
    "dtype": X.double(),
    "requires_grad": X.clone().requires_grad_(),
    "sign in memory": torch._neg_view(X),  # pyright: ignore
    "size": X[:1],
    "sparse": X.to_sparse(),
    "strides": torch.ones(2, 4)[:, :3],
    "subclass": X.as_subclass(Mine),
    "which tensors are the same": Y,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OTHER_TENSORS)
def test_a_signature_holds_all_of_a_tensor_but_its_numbers(
    name: str, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_call, "plain_signature", kind)
    known, other = signature_of(X, Y, Z), OTHER_TENSORS[name]
    assert known is not None and known == signature_of(Z, Y, torch.zeros(2, 3))
    for place in range(3):
        tensors = [X, Z, Z.clone()] if other is Y else [X, Y, Z]
        tensors[place] = other
        if other is Y:
            tensors[place - 1] = Y
        assert signature_of(*tensors) != known


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.jit.trace
def test_a_signature_holds_what_is_done_around_a_call(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_call, "plain_signature", kind)
    known, learned, half = signature_of(X, Y, Z), X.clone().requires_grad_(), X.bfloat16()
    with Watched():
        assert signature_of(X, Y, Z) is None
    with forward_ad.dual_level():
        assert signature_of(X, Y, Z) is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert signature_of(X, Y, Z) is None  # they are cast first
        cast = signature_of(half, half, half)
    with torch.autocast("cpu", dtype=torch.float16):
        assert signature_of(half, half, half) is None
    assert cast is not None and signature_of(half, half, half) != cast
    with torch.no_grad():
        assert signature_of(learned, Y, Z) == known != signature_of(half, Y, Z)
    assert signature_of(learned, Y, Z) != known
    seen: list[Any] = []
    torch.func.vmap(lambda w: (seen.append(signature_of(X, Y, Z)), w)[1])(X)
    torch.func.grad(lambda w: (seen.append(signature_of(X, Y, Z)), w.sum())[1])(X)
    torch.jit.trace(lambda w: (seen.append(signature_of(X, Y, Z)), w + 1)[1], X, check_trace=False)  # pyright: ignore
    assert len(seen) >= 3 and not any(seen)
    assert signature_of(X, Y, Z) == known


@dataclass
class OnGpu:
    """A tensor as a signature sees it, on a GPU that need not be there."""

    dtype: torch.dtype = torch.float32
    is_cuda: bool = True
    device: str = "cuda:0"
    shape: tuple[int, ...] = (2, 3)

    def stride(self) -> tuple[int, ...]:
        return 3, 1

    def data_ptr(self) -> int:
        return 0


def test_a_signature_holds_what_torch_may_run_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"flash": True, "efficient": True, "cudnn": True, "TF32": False}
    asked = tuple(partial(settings.__getitem__, name) for name in ("flash", "efficient", "cudnn"))
    monkeypatch.setattr(signature, "TOLD", asked)
    monkeypatch.setattr(signature, "uses_tf32", lambda: settings["TF32"])
    x: Any = OnGpu()
    half: Any = OnGpu(torch.bfloat16)
    known, known_half = signature.tensor_signature_by_python(x), signature.tensor_signature_by_python(half)
    for name, value in [*settings.items()]:
        settings[name] = not value
        assert signature.tensor_signature_by_python(x) != known, name
        assert (signature.tensor_signature_by_python(half) == known_half) == (name == "TF32")
        settings[name] = value
    assert signature.tensor_signature_by_python(x) == known


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["flash", "mem_efficient", "cudnn"])
def test_so_does_the_compiled_one(kind: Any, name: str) -> None:
    x = torch.ones(2, 3, device="cuda")
    known, enable = kind((), x), getattr(torch.backends.cuda, f"enable_{name}_sdp")
    enable(False)
    try:
        assert kind((), x) != known
    finally:
        enable(True)


def test_a_signature_holds_values_and_options_with_their_types() -> None:
    values: list[dict[str, Any]] = [{}, {"t": 1}, {"t": 2}, {"u": 1}, {"t": 1, "u": 2}]
    options: list[dict[str, Any]] = [
        {},
        *({"scale": x} for x in (1, True, 1.0, 0.5)),
        *({"softcap": x} for x in (1, 1.0)),
        *({"kernel": x} for x in ("cpu", "native")),
        {"deterministic": False},
        {"return_lse": True},
        {"bias": torch.zeros(2, 3)},
        {"bias": lt.Bias("b*(q - k)", b=torch.zeros(()))},
        {"bias": lt.Bias("b*(k - q)", b=torch.zeros(()))},
        {"sinks": torch.zeros(2, 3)},
    ]
    known = [signature_of(X, Y, Z, values=v, **o) for v in values for o in options]
    assert len(known) == len({*known}) and None not in known
    assert signature_of(X, Y, Z, values={"t": True}) is None is signature_of(X, Y, Z, values={"t": 1.0})
    for anew in ("padding", "cu_seqlens", "dropout", "return_max_logit"):
        assert signature_of(X, Y, Z, **{anew: True}) is None


def test_a_rule_that_changes_has_another_signature() -> None:
    rule = replace(lt.rules.strided(3), values={"t": 3})
    known = signature_of(X, Y, Z, rule=rule)
    assert known == signature_of(X, Y, Z, rule=replace(rule))
    rule.values["t"] = 4  # pyright: ignore
    for other in (rule, rule.key, lt.rules.causal()):
        assert signature_of(X, Y, Z, rule=other) != known


@pytest.mark.parametrize("lse", [False, True])
def test_repeated_calls_on_images_are_prepared_too(lse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(1, 2, 3, 5, 4)
    plain_call.PREPARED.clear()
    first = lt.attention(x, x, x, "ky <= qy", return_lse=lse)
    monkeypatch.setattr("lattend.attend.attention.check_call", None)
    second = lt.attention(x, x, x, "ky <= qy", return_lse=lse)
    assert type(second) is type(first)
    assert all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(second, first, strict=True))


def test_a_repeated_call_loads_no_compiler() -> None:
    text = (
        "import sys, torch, lattend as lt; x = torch.ones(1, 2, 8, 4)\n"
        "for _ in range(4): lt.attention(x, x, x, 'causal')\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


@pytest.mark.skipif(library.missing() is not None, reason="the native kernel was not built")
def test_compiled_code_is_called_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = (torch.randn(1, 2, 40, 16, requires_grad=True) for _ in range(3))

    def step() -> list[Tensor]:
        COMPILED_CALLS.clear()
        plain_call.PREPARED.clear()
        out, lse = lt.attention(q, k, v, "strided(5)", kernel="native", return_lse=True)
        return [out, lse, *torch.autograd.grad(out.sin().sum() + lse.sum(), (q, k, v))]

    wanted = step()
    monkeypatch.setattr(host, "module", lambda: None)
    assert all(map(torch.equal, step(), wanted))


@pytest.mark.parametrize("module", [None, pytest.param(host.module(), marks=compiled)])
@pytest.mark.parametrize("failed", [0, 201])
def test_a_launch_hands_over_addresses_and_descriptors(
    module: Any, failed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def launched(*given: Any) -> int:
        block = ctypes.cast(given[10], ctypes.POINTER(ctypes.c_uint64 * 5)).contents
        size = ctypes.c_uint64.from_address(block[3]).value
        seen.append((given[:9], [block[0], block[2], block[4]], ctypes.string_at(block[1], size)))
        return failed

    whole, number = ctypes.c_void_p, ctypes.c_uint
    launch = ctypes.CFUNCTYPE(ctypes.c_int, whole, *[number] * 7, whole, whole, whole)(launched)
    again: list[tuple[Tensor, ...]] = []
    x, y = torch.ones(2), torch.ones(3)
    found: Any = driver.DriverLaunch.__new__(driver.DriverLaunch)
    words = array("Q", [7] * 20)
    ready = bytes(range(128))
    found.__dict__ |= {
        "words": words, "size": array("Q", [160]), "addresses": [(1, 0, 0), (2, 1, 8)], "launch": launch,
        "described": [(4, 1, Described(ready))], "function": 5, "shape": (11, 128, 64), "device": 3,
        "stream": lambda device: 1000 + device, "otherwise": lambda *tensors: again.append(tensors),
    }  # fmt: skip
    monkeypatch.setattr(host, "module", lambda: module)
    run = found.compiled(2)
    assert (run is found) == (module is None)
    run(x, y)
    run(x, y)
    assert seen[0] == seen[1]
    shape, signs, block = seen[0]
    assert shape == (5, 11, 1, 1, 128, 1, 1, 64, 1003) and signs == [1, 2, 0]
    wanted = array("Q", [7, x.data_ptr(), y.data_ptr() + 8, 7, *array("Q", ready)])
    assert array("Q", block) == wanted
    assert len(again) == (2 if failed else 0)


class Described:
    """Descriptors that are all alike."""

    def __init__(self, ready: bytes) -> None:
        self.ready, self.known = ready, dict[int, bytes]()

    def __call__(self, address: int) -> bytes:
        self.known[address] = self.ready
        return self.ready
