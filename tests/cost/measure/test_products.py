"""Products: convolutions against sums of ones, recurrent layers against their matrices, torch's counter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from lattend.cost.measure.measure import FlopCounter, of
from lattend.cost.measure.operators import grouped_on_meta, inside

SMALL, SOME = st.integers(1, 4), st.integers(2, 5)


def theirs(run: Any) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def ours(run: Any, **options: Any) -> int:
    with FlopCounter(display=False, **options) as counter:
        run()
    return counter.get_total_flops()


@given(st.integers(1, 9), SMALL, SMALL, st.integers(0, 4), SMALL)
def test_taps_inside(size: int, kernel: int, stride: int, padding: int, dilation: int) -> None:
    reach = dilation * (kernel - 1) + 1
    out = (size + 2 * padding - reach) // stride + 1
    positions = [o * stride - padding + t * dilation for o in range(max(0, out)) for t in range(kernel)]
    result = inside(size, max(0, out), kernel, stride, padding, dilation)
    assert result == sum(0 <= position < size for position in positions)


@st.composite
def convolutions(draw: Any) -> tuple[nn.Module, torch.Tensor]:
    axes, groups = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    kernel, stride, dilation = draw(SMALL), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    padding = draw(st.integers(0, dilation * (kernel - 1)))
    transposed = draw(st.booleans())
    kinds = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d) if transposed else (
        nn.Conv1d, nn.Conv2d, nn.Conv3d)  # fmt: skip
    module = kinds[axes - 1](
        groups * draw(SMALL), groups * draw(SMALL), kernel, stride=stride, padding=padding,
        dilation=dilation, groups=groups, bias=draw(st.booleans()),
    )  # fmt: skip
    least = dilation * (kernel - 1) + 1
    sizes = [draw(st.integers(least, least + 3)) for _ in range(axes)]
    return module, torch.ones(draw(SMALL), module.in_channels, *sizes)


@pytest.mark.parametrize(
    ("left", "right", "groups", "needed"),
    [
        ((24, 16), (3, 16, 32), 3, 24 * 16 * 32),  # rows of each expert
        ((3, 8, 16), (3, 16, 32), 0, 3 * 8 * 16 * 32),  # a batch
        ((8, 24), (24, 32), 3, 8 * 24 * 32),  # what is summed over is cut: gradients of the experts
        ((3, 8, 16), (16, 24), 3, 8 * 16 * 24),  # columns
    ],
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_grouped_products(
    dtype: torch.dtype, left: tuple[int, ...], right: tuple[int, ...], groups: int, needed: int
) -> None:
    """The product of a mixture's experts, which multiplies every row with one matrix."""
    ends = torch.arange(1, groups + 1, dtype=torch.int32, device="meta") * 8 if groups else None

    class Experts(nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return torch.ops.aten._grouped_mm(x, w, ends)

    given = [torch.zeros(shape, dtype=dtype, device="meta") for shape in (left, right)]
    result = of(Experts(), tuple(given))
    assert (result.multiply_adds, result.unknown) == ((needed, needed, needed), {})
    on_cpu = [torch.zeros(one.shape, dtype=dtype) for one in given]
    theirs = torch.ops.aten._grouped_mm(
        *on_cpu, None if ends is None else torch.arange(8, 8 * groups + 1, 8, dtype=torch.int32)
    )
    ours = grouped_on_meta(given[0], given[1], ends)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)


@settings(max_examples=25)
@given(convolutions())
def test_convolutions(drawn: tuple[nn.Module, torch.Tensor]) -> None:
    """Ones through a kernel of ones: the outputs add up to the products that are not with padding."""
    module, x = drawn
    for parameter in module.parameters():
        nn.init.constant_(parameter, float(parameter.dim() > 1))
    result = of(module, x)
    assert result.multiply_adds.needed == int(module(x).sum())
    assert 2 * result.multiply_adds.dense == theirs(lambda: module(x)) == ours(lambda: module(x))
    assert 2 * result.multiply_adds.needed == ours(lambda: module(x), padding=False)
    both = of(module, x.requires_grad_(), backward=True)
    assert both.forward == result.forward
    assert both.backward.needed == 2 * result.multiply_adds.needed  # of the input and of the weight
    if module.groups == 1:  # torch counts the weight's gradient of every group with all channels
        assert 2 * both.multiply_adds.dense == theirs(lambda: module(x).sum().backward())


@settings(max_examples=30)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_linear(tokens: int, inputs: int, outputs: int, bias: bool) -> None:
    module, x = nn.Linear(inputs, outputs, bias), torch.ones(2, tokens, inputs, requires_grad=True)
    result = of(module, x, backward=True)
    assert result.forward.needed == 2 * tokens * inputs * outputs
    assert result.backward.needed == 2 * result.forward.needed
    assert result.forward.adds == 2 * tokens * outputs * bias
    assert 2 * result.multiply_adds.needed == theirs(lambda: module(x).sum().backward())


@settings(max_examples=20)
@given(SOME, SOME, SOME, SOME)
def test_batched_products(batch: int, n: int, k: int, m: int) -> None:
    a, b, c = torch.ones(batch, n, k), torch.ones(batch, k, m), torch.ones(batch, n, m)
    for run in (lambda: a @ b, lambda: torch.baddbmm(c, a, b), lambda: torch.einsum("bnk,bkm->bnm", a, b)):
        assert ours(run) == theirs(run) == 2 * batch * n * k * m
    assert ours(lambda: a[0] @ b[0, :, 0]) == 2 * n * k  # torch counts no product with a vector
    assert ours(lambda: a[0, 0] @ b[0, :, 0]) == 2 * k
    assert ours(lambda: torch.addbmm(c[0], a, b)) == 2 * batch * n * k * m


def test_bilinear() -> None:
    result = of(nn.Bilinear(3, 4, 5), ((2, 3), (2, 4)))
    assert result.multiply_adds.needed == 2 * 5 * 3 * 4
    assert not result.unknown


# Recurrent layers


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_lstm_that_counters_miss(device: str) -> None:
    result = of(nn.LSTM(4, 5, device=device), (7, 1, 4))
    assert (
        result.multiply_adds.needed
        == result.multiply_adds.executed
        == result.multiply_adds.dense
        == 7 * 4 * (5 * 4 + 5 * 5)
        == 1260
    )
    assert result.parameters == 4 * (5 * 4 + 5 * 5 + 2 * 5)
    assert result.forward.functions == 7 * 5 * 5  # three σ and two tanh a unit
    assert result.forward.multiplies == 7 * 5 * 3


@settings(max_examples=12)
@given(
    st.sampled_from([(nn.RNN, 1), (nn.LSTM, 4), (nn.GRU, 3)]),
    SMALL, SMALL, SMALL, SMALL, st.integers(1, 2), st.booleans(), st.booleans(),
)  # fmt: skip
def test_recurrent(
    kind: Any, steps: int, batch: int, inputs: int, hidden: int, layers: int, both: bool, asked: bool
) -> None:
    """On a CPU, where a library may run a layer whole, and where torch takes it apart."""
    make, gates = kind
    result = {}
    for device in ("cpu", "meta"):
        module = make(inputs, hidden, layers, bidirectional=both, device=device)
        x = torch.zeros(steps, batch, inputs, device=device, requires_grad=asked)
        result[device] = of(module, x, backward=True)
    ways = 1 + both
    first = gates * hidden * (inputs + hidden)
    later = gates * hidden * (ways * hidden + hidden)
    assert result["cpu"].forward.needed == steps * batch * ways * (first + (layers - 1) * later)
    assert result["cpu"].forward.needed == result["meta"].forward.needed
    assert result["cpu"].backward.needed == result["meta"].backward.needed
    starts = batch * layers * ways * gates * hidden**2  # no gradient of the states they start from
    unasked = 0 if asked else steps * batch * ways * gates * hidden * inputs
    assert result["cpu"].backward.needed == 2 * result["cpu"].forward.needed - starts - unasked


def test_packed_sequences() -> None:
    module = nn.LSTM(4, 5)
    packed = nn.utils.rnn.pack_padded_sequence(torch.zeros(7, 2, 4), torch.tensor([7, 3]))
    with FlopCounter(display=False) as counter:
        module(packed)
    assert counter.get_total_flops() == 2 * (7 + 3) * 4 * (5 * 4 + 5 * 5)


def test_cells() -> None:
    for kind, gates in ((nn.RNNCell, 1), (nn.LSTMCell, 4), (nn.GRUCell, 3)):
        assert of(kind(4, 5), (3, 4)).multiply_adds.needed == 3 * gates * (5 * 4 + 5 * 5)


# What is done beside the products


def test_norms_and_softmax() -> None:
    n, d = 6, 8
    result = of(nn.LayerNorm(d), (n, d)).forward
    assert (result.multiplies, result.divisions, result.functions) == (3 * n * d, 3 * n, n)
    assert result.adds == n * ((d - 1) + d + (d - 1) + 1 + d)  # mean, centred, variance, ε, bias
    result = of(nn.RMSNorm(d), (n, d)).forward
    assert result.multiplies == 3 * n * d
    result = of(nn.Softmax(-1), (n, d)).forward
    assert (result.exponentials, result.adds, result.divisions) == (n * d, n * (d - 1), n * d)
    result = of(nn.GELU(), (n, d)).forward
    assert (result.functions, result.dense) == (n * d, 0)
    result = of(nn.AvgPool2d(2), (1, 1, 4, 4)).forward
    assert (result.adds, result.divisions) == (4 * 3, 4)
    result = of(nn.MaxPool2d(2), (1, 1, 4, 4)).forward
    assert result.comparisons == 4 * 3


def test_positions_and_masks_are_not_counted() -> None:
    class Masked(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            place = torch.arange(x.shape[0]) * 2 + 1
            return functional.relu(x.masked_fill(place > 3, 0.0))

    assert of(Masked(), (5,)).forward.others == {"functions": 5}
