"""Machines that announce AMX and stop a process at its first instruction of it: found out, and said."""

import subprocess
import sys

import pytest
import torch

import lattend as lt
from lattend import amx
from lattend.errors import LattendError

PLAIN = "processor : 0\nflags : fpu avx512f avx512_bf16\n"
ANNOUNCED = "processor : 0\nflags : fpu avx512f amx_bf16 avx512_bf16 amx_tile amx_int8\n"


def never() -> bool:
    raise AssertionError("no child is needed")


@pytest.mark.parametrize(
    ("environ", "cpuinfo", "work", "limited"),
    [
        ({}, "", never, False),
        ({}, PLAIN, never, False),
        ({}, ANNOUNCED, lambda: True, False),
        ({}, ANNOUNCED, lambda: False, True),
        ({"ONEDNN_MAX_CPU_ISA": "AVX2"}, ANNOUNCED, never, False),
    ],
)
def test_when_onednn_is_limited(environ, cpuinfo, work, limited):
    assert amx.needs_limit(environ, cpuinfo, work) is limited


def test_the_variable_is_set_once(monkeypatch):
    monkeypatch.setattr(amx, "_cpuinfo", lambda: ANNOUNCED)
    monkeypatch.setattr(amx.needs_limit, "__defaults__", (lambda: False,))
    environ: dict[str, str] = {}
    amx.limit(environ)
    assert environ == {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
    amx.limit(environ)
    assert environ == {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}


@pytest.mark.parametrize(
    ("products", "work"),
    [
        (amx.PRODUCTS, True),  # here, where the tests run, conftest has seen to it
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", False),
        ("import warnings; warnings.simplefilter('error'); warnings.warn('oneDNN has no AMX')", False),
    ],
)
def test_a_child_that_dies_or_warns(monkeypatch, products, work):
    monkeypatch.setattr(amx, "PRODUCTS", products)
    assert amx.products_work() is work


def test_a_person_is_told(monkeypatch):
    monkeypatch.setattr(amx, "_ends", lambda: True)
    x = torch.ones(1, 1, 4, 8)
    for run in (
        lambda x: lt.attention(x, x, x, lt.rule("k <= q")),
        lambda x: lt.nn.GridRNN(8, 3).to(x.dtype)(x),
    ):
        run(x)  # float32
        with pytest.raises(LattendError, match="bfloat16 products end the process there: set ONEDNN_MAX"):
            run(x.bfloat16())
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(LattendError, match="or use float32"):
        lt.nn.GridRNN(8, 3)(x)


def test_nothing_is_loaded_to_find_out():
    """The tests' set-up asks before torch is loaded."""
    code = "import os, sys; from lattend import amx; amx.limit(os.environ); print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout == "False\n"
