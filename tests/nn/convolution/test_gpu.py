"""The Triton kernels of hard heads against conv2d in float64; under the interpreter where no GPU is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import lattend as lt
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.nn.convolution.geometry import Along
from lattend.nn.convolution.gpu import axis_taps, record

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
pytestmark = [  # of the interpreter: its NumPy warns of scalars in arrays
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels take every tensor, and float32 is not rounded to TF32."""
    monkeypatch.setattr(record, "has_kernels", lambda device: True)
    monkeypatch.setattr(record, "rounds_to_tf32", lambda: False)
    if DEVICE.type == "cpu":  # the interpreter runs programs one after another
        monkeypatch.setattr(axis_taps, "PROGRAMS", 4)


@st.composite
def wide_convolutions(draw: st.DrawFn) -> tuple[nn.Conv2d, Tensor]:
    """A convolution with channels enough for the kernels, and images."""
    pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, dilation, groups = draw(pairs), draw(pairs), draw(st.sampled_from([1, 1, 2]))
    padding = draw(st.sampled_from(["same", "valid", 1, (2, 0), (0, 4)]))
    conv = nn.Conv2d(
        groups * draw(st.sampled_from([16, 20, 40])),
        groups * draw(st.sampled_from([16, 33])),
        kernel,
        stride=1 if padding == "same" else draw(pairs),
        dilation=dilation,
        padding=padding,
        groups=groups,
        bias=draw(st.booleans()),
    )
    sizes = [d * (k - 1) + 1 + draw(st.integers(0, 4)) for d, k in zip(dilation, kernel, strict=True)]
    x = torch.randn(draw(st.integers(1, 2)), conv.in_channels, *sizes)
    return conv, x.contiguous(
        memory_format=draw(st.sampled_from([torch.channels_last, torch.contiguous_format]))
    )


def outputs_and_gradients(module: nn.Module, x: Tensor, by: Tensor) -> list[Tensor]:
    x = x.detach().requires_grad_()
    out = module(x)
    return [out.detach(), *torch.autograd.grad(out, [x, module.weight, *_bias(module)], by.to(out))]  # pyright: ignore


def _bias(module: nn.Module) -> list[Tensor]:
    return [] if module.bias is None else [module.bias]  # pyright: ignore


def agree(conv: nn.Conv2d, x: Tensor, dtype: torch.dtype) -> None:
    """Outputs and gradients of the kernels are those of the convolution in float64, twice in a row."""
    exact, x = conv.to(DEVICE, dtype).double(), x.to(DEVICE, dtype)
    layer = lt.nn.from_conv(exact).to(dtype)
    by = torch.randn_like(exact(x.double())).to(dtype)
    wanted = outputs_and_gradients(exact, x.double(), by)
    for _ in range(2):  # the second time, from a record
        found = outputs_and_gradients(layer, x, by)
        assert found[1].stride() == x.stride()
        if DEVICE == "cpu":  # on a GPU torch keeps no order of channels in float64
            assert found[0].stride() == exact(x.double()).stride()
        found[2] = found[2].permute(2, 1, 0).reshape(conv.weight.shape)
        for mine, theirs in zip(found, wanted, strict=True):
            assert mine.dtype == dtype
            assert (mine.double() - theirs).norm() <= TOLERANCE[dtype] * theirs.norm().clamp(min=1e-6)


@given(wide_convolutions(), st.sampled_from(DTYPES))
@settings(max_examples=8)
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_outputs_and_gradients_are_those_of_torch(case: tuple[nn.Conv2d, Tensor], dtype: torch.dtype) -> None:
    agree(*case, dtype)


@given(wide_convolutions(), st.sampled_from(DTYPES))
@settings(max_examples=300)
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.long
def test_many_outputs_and_gradients(case: tuple[nn.Conv2d, Tensor], dtype: torch.dtype) -> None:
    agree(*case, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "options",
    [
        {"padding": 1},
        {"stride": 2},  # a pixel that is no key has no gradient
        {"padding": 4, "padding_mode": "replicate"},
        {"padding": 3, "dilation": 2, "stride": (3, 2), "groups": 2},
    ],
)
def test_the_kinds_of_convolution(options: Any, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    agree(
        nn.Conv2d(32, 64, (3, 1) if options == {"stride": 2} else 3, **options),
        torch.randn(2, 32, 7, 9),
        dtype,
    )


def test_a_gradient_that_is_one_number_everywhere() -> None:
    """As of a sum: all of it lies at one place in memory."""
    conv, x = nn.Conv2d(16, 16, 3, padding=1).to(DEVICE), torch.randn(2, 16, 5, 5, device=DEVICE)
    layer = lt.nn.from_conv(conv)
    conv(x).sum().backward()
    layer(x).sum().backward()
    assert conv.weight.grad is not None and layer.weight.grad is not None
    mine = layer.weight.grad.permute(2, 1, 0).reshape(conv.weight.shape)
    torch.testing.assert_close(mine, conv.weight.grad, rtol=1e-4, atol=1e-4)


def test_the_gradient_of_the_weights_alone() -> None:
    conv, x = nn.Conv2d(16, 16, 3).to(DEVICE), torch.randn(2, 16, 5, 5, device=DEVICE)
    layer = lt.nn.from_conv(conv).bfloat16()
    layer(x.bfloat16()).square().sum().backward()
    conv(x).square().sum().backward()
    assert conv.weight.grad is not None and layer.weight.grad is not None
    mine = layer.weight.grad.float().permute(2, 1, 0).reshape(conv.weight.shape)
    assert (mine - conv.weight.grad).norm() < 0.02 * conv.weight.grad.norm()


@pytest.mark.parametrize("stride", [1, 2])
def test_second_derivatives(stride: int) -> None:
    torch.manual_seed(0)
    conv, x = nn.Conv2d(16, 16, 3, stride, 1).to(DEVICE), torch.randn(1, 16, 4, 5, device=DEVICE)
    layer, found = lt.nn.from_conv(conv), list[list[Tensor]]()
    for module in (layer, conv):
        given, weight = x.clone().requires_grad_(), module.weight
        first = torch.autograd.grad(module(given).sin().sum(), [given, weight], create_graph=True)  # pyright: ignore
        total = sum(one.square().sum() for one in first)
        found.append([*torch.autograd.grad(total, [given, weight])])  # pyright: ignore
    mine, theirs = found
    mine[1] = mine[1].permute(2, 1, 0).reshape(conv.weight.shape)
    for one, other in zip(mine, theirs, strict=True):
        assert (one - other).norm() < 1e-5 * other.norm()


def test_who_watches_sees_products_of_torch() -> None:
    """torch.func, and tensors without numbers: there the kernels do not run."""
    layer, x = (
        lt.nn.from_conv(nn.Conv2d(16, 16, 3, padding=1)).to(DEVICE),
        torch.randn(2, 16, 4, 4, device=DEVICE),
    )
    each = torch.func.vmap(layer)(x[:, None])[:, 0]
    torch.testing.assert_close(each, layer(x), rtol=1e-4, atol=1e-5)
    meta = lt.nn.from_conv(nn.Conv2d(16, 16, 3, padding=1)).to("meta")
    assert meta(torch.empty(2, 16, 4, 4, device="meta")).shape == (2, 16, 4, 4)


@pytest.mark.parametrize(
    "along", [Along(3, 2, 1, 1, 1), Along(4, 3, 2, 5, 0), Along(1, 2), Along(5, 1, 3, 6, 6)]
)
def test_looking_back_is_looking_forward_from_the_other_side(along: Along) -> None:
    size = 11
    pairs = {
        (along.stride * query + along.dilation * tap - along.before, tap, query)
        for query in range(along.outputs(size))
        for tap in range(along.taps)
    }
    found = {
        (look.first + look.every * at, look.tap + look.next * u, look.by * at + look.begin + look.step * u)
        for look in axis_taps.backward(along, size)
        for at in range(look.outputs)
        for u in range(look.taps)
    }
    outputs = range(along.outputs(size))
    assert {p for p in pairs if 0 <= p[0] < size} == {f for f in found if f[2] in outputs}
