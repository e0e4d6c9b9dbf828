"""Soft execution is the theorem's attention, and its error stays below the bound at every pixel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn.convolution.convolutions import convolutions
from torch import Tensor, nn
from torch.nn.functional import pad

import lattend as lt
from lattend.errors import DomainError, NamingError
from lattend.nn.convolution import trial

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
F64 = torch.float64


def plain(layer: lt.nn.ConvAttention, x: Tensor) -> Tensor:
    """Softmax over all pixels of −α‖k − stride·q − Δ‖², then W^(h), head by head with nothing shared."""
    y, across = layer.geometry.y, layer.geometry.x
    zeros = layer.geometry.mode == "zeros"
    rows, cols = layer.geometry.outputs(*x.shape[2:])
    first = (-y.before, -across.before) if zeros else (0, 0)
    if zeros:
        x = pad(x, (across.before, across.after, y.before, y.after))
    keys = torch.cartesian_prod(torch.arange(x.shape[2]) + first[0], torch.arange(x.shape[3]) + first[1])
    queries = torch.cartesian_prod(y.stride * torch.arange(rows), across.stride * torch.arange(cols))
    out = x.new_zeros(len(x), rows * cols, layer.c_out)
    for head, matrix in enumerate(layer.split()):
        apart = keys[None] - queries[:, None] - layer.centres[head]
        weights = (-layer.alpha[head] * apart.square().sum(-1)).softmax(-1)
        out = out + (weights @ x.flatten(2).mT) @ matrix
    out = out if layer.bias is None else out + layer.bias
    return out.mT.unflatten(2, (rows, cols))


@given(convolutions(), st.data())
@settings(max_examples=40)
def test_outputs_and_gradients_are_those_of_plain_attention(
    case: tuple[nn.Conv2d, Tensor], data: st.DataObject
) -> None:
    """Of α and the centres too, which may lie anywhere."""
    conv, x = case
    heads = conv.kernel_size[0] * conv.kernel_size[1]
    alpha = torch.tensor(data.draw(st.lists(st.floats(0.1, 4), min_size=heads, max_size=heads)), dtype=F64)
    layer = lt.nn.from_conv(conv, alpha, learn=True)
    assert layer.execution == "soft"
    with torch.no_grad():
        layer.centres += 0.3 * torch.randn(heads, 2, dtype=F64)
    x = x.requires_grad_()
    wanted = [x, *layer.parameters()]
    both: list[list[Tensor]] = []
    for out in (layer(x), plain(layer, x)):
        both.append([out, *torch.autograd.grad(out.sin().sum(), wanted)])
    for mine, theirs in zip(*both, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)


@given(convolutions(), st.floats(0.3, 12), st.floats(0, 3))
@settings(max_examples=60)
def test_the_error_stays_below_its_bound(case: tuple[nn.Conv2d, Tensor], least: float, spread: float) -> None:
    conv, x = case
    alpha = least + spread * torch.rand(conv.kernel_size[0] * conv.kernel_size[1], dtype=F64)
    layer = lt.nn.from_conv(conv, alpha)
    error = torch.linalg.vector_norm(layer(x) - conv(x), dim=1)
    bound = lt.nn.error_bound(layer, x)
    assert bound.shape == error.shape
    assert (error <= bound * (1 + 1e-12) + 1e-13).all()
    if x.shape[2] * x.shape[3] > 1 and least < 2:
        assert bound.max() > 1e-6


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_the_bound_is_reached(alpha: float) -> None:
    """One pixel is 1 and the rest 0: what leaks from it is what the bound says there, and no more."""
    conv = nn.Conv2d(1, 1, 1, bias=False, dtype=F64)
    nn.init.constant_(conv.weight, 3.0)
    image = torch.zeros(1, 1, 4, 5, dtype=F64)
    image[0, 0, 1, 2] = 1.0
    layer = lt.nn.from_conv(conv, alpha)
    error = (layer(image) - conv(image)).abs()[0, 0, 1, 2].item()
    assert error == pytest.approx(3 * lt.nn.sharpness(alpha, rows=4, cols=5, query=(1, 2)).leak, rel=1e-12)
    assert lt.nn.error_bound(layer, image)[0, 1, 2].item() == pytest.approx(error, rel=1e-12)


@given(st.integers(0, 3), st.integers(0, 4), st.integers(-6, 6), st.integers(-6, 6), st.floats(0.1, 5))
def test_leaks_are_those_of_sharpness(qy: int, qx: int, dy: int, dx: int, alpha: float) -> None:
    """The weight that a single replicated tap puts on the pixel it stands for, off the image as well."""
    conv = nn.Conv2d(1, 1, (13, 13), padding=6, padding_mode="replicate", bias=False, dtype=F64)
    with torch.no_grad():
        conv.weight.zero_()[0, 0, dy + 6, dx + 6] = 1.0
    layer = lt.nn.from_conv(conv, alpha)
    image = torch.zeros(1, 1, 4, 5, dtype=F64)
    image[0, 0, min(max(qy + dy, 0), 3), min(max(qx + dx, 0), 4)] = 1.0
    told = lt.nn.sharpness(alpha, rows=4, cols=5, query=(qy, qx), centre=(dy, dx))
    assert layer(image)[0, 0, qy, qx].item() == pytest.approx(told.weight, rel=1e-11)
    assert lt.nn.error_bound(layer, image)[0, qy, qx].item() == pytest.approx(told.leak, rel=1e-11)


def test_the_default_is_as_sharp_as_the_dtype_can_tell() -> None:
    conv = nn.Conv2d(2, 3, 3, padding=1, dtype=F64)
    layer = lt.nn.from_conv(conv, execution="soft")
    x = torch.randn(1, 2, 5, 5, dtype=F64)
    assert lt.nn.sharpness(layer.alpha[0].item()).leak <= torch.finfo(F64).eps
    torch.testing.assert_close(layer(x), conv(x), rtol=0, atol=1e-13)


def test_far_shifts_keep_their_digits() -> None:
    """α‖Δ‖² is 4·10⁸ here, where float32 steps by 32: more than any difference between neighbours."""
    torch.manual_seed(0)
    conv = nn.Conv2d(1, 1, (3, 1), dilation=(2500, 1), bias=False)
    x = torch.randn(1, 1, 5003, 1)
    found = lt.nn.from_conv(conv, execution="soft")(x)
    torch.testing.assert_close(found, conv(x), rtol=0, atol=1e-5)


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_floats_keep_their_centres(dtype: torch.dtype, learn: bool) -> None:
    """bfloat16 has 256 and 258 but no 257; float16 loses odd numbers from 2049 on."""
    step = 257 if dtype == torch.bfloat16 else 2049
    conv = nn.Conv2d(1, 1, (2, 1), dilation=(step, 1), bias=False).to(dtype)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([0.0, 1.0]).view(1, 1, 2, 1))
    x = torch.zeros(1, 1, step + 3, 1, dtype=dtype)
    x[0, 0, step:, 0] = torch.tensor([1.0, 2.0, 4.0])
    layer = lt.nn.from_conv(conv, execution="soft", learn=learn)
    torch.testing.assert_close(layer(x), conv(x), rtol=0.02, atol=0.02)
    assert layer(x).dtype == dtype


def test_distances_are_taken_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = lt.nn.from_conv(nn.Conv2d(2, 3, 3, padding=1, dtype=F64), 2.0)
    x = torch.randn(2, 2, 4, 5, dtype=F64)
    whole, sizes, cdist = lt.nn.error_bound(layer, x), list[int](), torch.cdist

    def counted(*given: Any, **options: Any) -> Tensor:
        sizes.append(cdist(*given, **options).numel())
        return cdist(*given, **options)

    monkeypatch.setattr(torch, "cdist", counted)
    monkeypatch.setattr(trial, "AT_ONCE", 300)
    assert torch.equal(lt.nn.error_bound(layer, x), whole)
    assert max(sizes) <= 300 and sum(sizes) == 2 * 42 * 42  # with its padding the image has 6 · 7 pixels
    assert lt.nn.error_bound(layer, x[:0]).shape == (0, 4, 5)


def test_larger_alpha_is_nearer() -> None:
    torch.manual_seed(3)
    conv, x = nn.Conv2d(2, 3, 3, padding=1, dtype=F64), torch.randn(1, 2, 6, 6, dtype=F64)
    errors = [(lt.nn.from_conv(conv, alpha)(x) - conv(x)).abs().max().item() for alpha in (1.0, 4.0, 16.0)]
    assert errors[0] > 5 * errors[1] > 5e4 * errors[2] > 0


def test_soft_heads_can_be_trained() -> None:
    layer = lt.nn.from_conv(nn.Conv2d(1, 1, 2), 2.0, learn=True)
    assert {name for name, _ in layer.named_parameters()} == {"weight", "bias", "alpha", "centres"}
    layer(torch.randn(1, 1, 4, 4)).square().sum().backward()
    assert layer.alpha.grad is not None and layer.alpha.grad.abs().max() > 0
    assert layer.centres.grad is not None and layer.centres.grad.abs().max() > 0


def test_what_the_bound_is_for() -> None:
    with pytest.raises(NamingError, match="error_bound is for layers that from_conv made, not Conv2d"):
        lt.nn.error_bound(nn.Conv2d(1, 1, 1), torch.zeros(1, 1, 2, 2))  # pyright: ignore
    layer = lt.nn.from_conv(nn.Conv2d(1, 1, 3), 2.0)
    with pytest.raises(DomainError, match="rows = 2 with padding"):
        lt.nn.error_bound(layer, torch.zeros(1, 1, 2, 2))
    assert lt.nn.error_bound(layer, torch.zeros(1, 4, 5)).shape == (2, 3)
