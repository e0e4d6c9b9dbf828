"""The host's compiled part beside its twins in Python: kinds that are told apart, calls with addresses."""

from __future__ import annotations

import ctypes
import sysconfig
from array import array
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
from lattend.attend import host, kinds
from lattend.attend.kernels.native import build, library
from lattend.attend.kernels.triton import driver
from lattend.attend.record import RECORDS

compiled = pytest.mark.skipif(host.module() is None, reason="the host's part was not built")
KINDS = [kinds.plain_by_python, pytest.param(kinds.kind_of_plain, marks=compiled)]


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
        (kinds.kind_of_tensors, kinds.tensors_by_python),
        (lambda *x: kinds.kind_of_plain(options[:1], *x), lambda *x: kinds.plain_by_python(options[:1], *x)),
    ):
        with torch.set_grad_enabled(grad):
            assert (ours(*first) == ours(*second)) == (python(*first) == python(*second))
            assert ours(*first) == ours(*first)
    one, other = ((option,) for option in options)
    same = kinds.kind_of_plain(one, *first) == kinds.kind_of_plain(other, *first)
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


@pytest.mark.skipif(library.missing() is not None, reason="the native kernel was not built")
def test_compiled_code_is_called_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = (torch.randn(1, 2, 40, 16, requires_grad=True) for _ in range(3))

    def step() -> list[Tensor]:
        RECORDS.clear()
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
