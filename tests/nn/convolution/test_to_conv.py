"""Heads back to a convolution: exact round trips, and heads that are none."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from nn.convolution.convolutions import convolutions
from torch import Tensor, nn

import lattend as lt
from lattend.errors import DomainError, NamingError

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
F64 = torch.float64


@given(convolutions())
@settings(max_examples=60)
def test_there_and_back_is_the_same_convolution(case: tuple[nn.Conv2d, Tensor]) -> None:
    conv, x = case
    for execution in ("hard", "soft"):
        again = lt.nn.to_conv(lt.nn.from_conv(conv, execution=execution))
        assert torch.equal(again.weight, conv.weight)
        assert torch.equal(again(x), conv(x))
        assert (again.stride, again.dilation, again.groups) == (conv.stride, conv.dilation, conv.groups)


def trained() -> tuple[nn.Module, Tensor, Tensor]:
    """A small net that tells bars across from bars down and diagonal ones, and images it has not seen."""
    torch.manual_seed(0)

    def images(count: int) -> tuple[Tensor, Tensor]:
        label, at = torch.randint(0, 3, (count,)), torch.randint(1, 7, (count,))
        rows, cols = torch.arange(8)[:, None], torch.arange(8)
        kinds = [
            rows - at[:, None, None] + 0 * cols,
            cols - at[:, None, None] + 0 * rows,
            (rows + cols) % 8 - at[:, None, None],
        ]
        bars = torch.stack(kinds)[label, torch.arange(count)] == 0
        return (bars + 0.3 * torch.randn(count, 8, 8))[:, None].double(), label

    net = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(6, 8, 4, stride=2, padding=1, padding_mode="replicate"),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=2, dilation=1, padding="same", bias=False),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 3),
    ).double()
    steps = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(100):
        x, label = images(64)
        steps.zero_grad()
        nn.functional.cross_entropy(net(x), label).backward()
        steps.step()
    return net.eval(), *images(200)


def test_a_trained_net_keeps_its_predictions() -> None:
    net, x, label = trained()
    with torch.no_grad():
        logits = net(x)
        right = (logits.argmax(1) == label).double().mean()
        assert right > 0.8  # it has learned something
        heads = lt.nn.from_conv(net)
        soft = lt.nn.from_conv(net, lt.nn.sharpness().for_error(1e-13).sufficient)
        for model in (heads, soft, lt.nn.to_conv(heads), lt.nn.to_conv(soft)):
            assert (model(x) - logits).abs().max() < 1e-10
            assert torch.equal(model(x).argmax(1), logits.argmax(1))
        back = lt.nn.to_conv(heads)
        assert [type(module) for module in back.modules()] == [type(module) for module in net.modules()]
        assert all(torch.equal(a, b) for a, b in zip(back.parameters(), net.parameters(), strict=True))


def test_heads_may_come_in_any_order_and_share_a_shift() -> None:
    conv, x = nn.Conv2d(2, 3, 3, padding=1, dtype=F64), torch.randn(1, 2, 5, 5, dtype=F64)
    layer = lt.nn.from_conv(conv, 40.0)
    order = torch.randperm(9)
    layer.centres, layer.weight = layer.centres[order], nn.Parameter(layer.weight[order])
    torch.testing.assert_close(layer(x), conv(x), rtol=0, atol=1e-12)
    assert torch.equal(lt.nn.to_conv(layer).weight, conv.weight)
    # a tenth head beside another, each with half of its matrix
    matrix = layer.weight.detach()
    halves = torch.cat([0.5 * matrix[:1], matrix[1:], 0.5 * matrix[:1]])
    layer.weight, layer.alpha = nn.Parameter(halves), layer.alpha.new_full((10,), 40.0)
    layer.centres = torch.cat([layer.centres, layer.centres[:1]])
    torch.testing.assert_close(lt.nn.to_conv(layer).weight, conv.weight)


def test_what_is_no_convolution() -> None:
    layer = lt.nn.from_conv(nn.Conv2d(1, 1, 3, padding=1), 2.0, learn=True)
    with pytest.raises(DomainError) as told:
        lt.nn.to_conv(layer)
    assert str(told.value) == (
        "head 0 leaks 0.381 of its weight at α = 2, more than the tolerance 1e-06; α = 15.202 would do"
    )
    with torch.no_grad():
        layer.alpha.fill_(15.202)
    assert lt.nn.to_conv(layer).kernel_size == (3, 3)
    with torch.no_grad():
        layer.centres[4] = torch.tensor([0.5, 0.0])
    with pytest.raises(
        DomainError,
        match=r"the centre of head 4 is \(0.5, 0\), and a tap stands on a pixel: round it to \(0, 0\) first",
    ):
        lt.nn.to_conv(layer)
    with torch.no_grad():
        layer.centres[4] = torch.tensor([1.0, 1.0])
        layer.centres[5] = torch.tensor([1.0, 1.0])
    with pytest.raises(
        DomainError,
        match=r"do not cover a 3 × 3 kernel: none attends to \(0, 0\), \(0, 1\); add a head there",
    ):
        lt.nn.to_conv(layer)
    with torch.no_grad():
        layer.centres[4] = torch.tensor([0.0, 2.0])
    with pytest.raises(
        DomainError, match=r"head 4 attends to \(0, 2\), which is no shift of the 3 × 3 kernel: \(-1, -1\)"
    ):
        lt.nn.to_conv(layer)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_centre_that_is_no_place(value: float) -> None:
    layer = lt.nn.from_conv(nn.Conv2d(1, 1, 1), 20.0, learn=True)
    with torch.no_grad():
        layer.centres[0, 0] = value
    with pytest.raises(DomainError, match=rf"the centre of head 0 is \({value}, 0\), which is no place"):
        lt.nn.to_conv(layer)


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    "make", [lambda: lt.nn.from_conv(nn.Conv2d(2, 3, 3)), lambda: attention([(0, 0)], alpha=40.0)]
)
def test_frozen_stays_frozen(make: Any, trained: bool) -> None:
    layer = make().requires_grad_(trained).train(trained)
    with torch.no_grad():
        conv = lt.nn.to_conv(layer)
    assert [p.requires_grad for p in conv.parameters()] == [trained, trained]
    assert conv.training is trained and all(p.is_leaf for p in conv.parameters())


def test_a_centre_beside_its_pixel_leaks_more() -> None:
    """2 % off: e^{−α(1 − 0.04)} to the nearer neighbour; the α that is named is enough there."""
    layer = lt.nn.from_conv(nn.Conv2d(1, 1, 1, bias=False, dtype=F64), 15.3, learn=True)
    with torch.no_grad():
        layer.weight.fill_(1.0)
        layer.centres[0] = torch.tensor([0.02, -0.02])
    with pytest.raises(DomainError, match=r"leaks 1.67e-06 of its weight at α = 15.3, .* 15.836 would do"):
        lt.nn.to_conv(layer)
    with torch.no_grad():
        layer.alpha.fill_(15.836)
    conv = lt.nn.to_conv(layer)
    image = torch.zeros(1, 1, 9, 9, dtype=F64)
    image[0, 0, 4, 4] = 1.0
    assert (layer(image) - conv(image)).abs().max() <= 1e-6


def attention(centres: list[tuple[int, int]], **options: Any) -> lt.nn.MultiHeadAttention:
    """Attention of the quadratic encoding with these centres, and biases everywhere."""
    torch.manual_seed(0)
    rule = options.pop("rule", "full")
    encoding = lt.nn.Quadratic(len(centres), centres=centres, **options)
    layer = lt.nn.MultiHeadAttention(2, 4, 5, 3, len(centres), rule, encoding, bias=True).double()
    assert layer.b_v is not None and layer.b_out is not None
    nn.init.normal_(layer.b_v)
    nn.init.normal_(layer.b_out)
    return layer


@pytest.mark.parametrize(
    ("rows", "cols"), [((-1, 0, 1), (-2, 0, 2)), ((0,), (0, 1)), ((-1, 1), (-1, 0, 1, 2))], ids=str
)
@pytest.mark.parametrize("narrow", [False, True])
def test_attention_with_sharp_heads(rows: tuple[int, ...], cols: tuple[int, ...], narrow: bool) -> None:
    """On the image alone, sharp heads are a convolution with the nearest pixel for padding."""
    centres = [(y, x) for y in rows for x in cols]
    widths: dict[str, Any] = {"precision": [(33.0, 0.0, 50.0)] * len(centres)} if narrow else {"alpha": 36.0}
    layer = attention(centres, **widths)
    conv = lt.nn.to_conv(layer)
    assert conv.kernel_size == (len(rows), len(cols)) and conv.padding_mode == "replicate"
    x = torch.randn(2, 5, 6, 2, dtype=F64)
    found = conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    torch.testing.assert_close(found, layer(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: attention([(0, 0), (0, 2)], alpha=40.0),
            DomainError,
            r"1 × 3 kernel: none attends to \(0, -2\)",
        ),
        (lambda: attention([(0, 0)], alpha=3.0), DomainError, "head 0 leaks 0.173 of its weight at α = 3"),
        (lambda: attention([(0, 0)], precision=[(40, 1, 40)]), DomainError, "head 0 is tilted, precision"),
        (
            lambda: attention([(0, 0)], alpha=40.0, content=True),
            NamingError,
            "attend by what pixels hold too",
        ),
        (
            lambda: attention([(0, 0)], alpha=40.0, rule="neighbourhood(r=1)"),
            NamingError,
            'keeps pixels from some queries, and a convolution does not: take "full"',
        ),
        (
            lambda: lt.nn.MultiHeadAttention(2, 4, 5, 3, 1, encoding=lt.nn.Quadratic(1, axes=1, alpha=40.0)),
            NamingError,
            "heads attend from the pixels of an image to the same image",
        ),
        (lambda: lt.nn.MultiHeadAttention(2, 4, 5, 3, 1), NamingError, "by queries and keys; a convolution"),
        (lambda: nn.Linear(2, 2), NamingError, "to_conv found no layer made by from_conv in Linear"),
        (lambda: "conv", NamingError, "to_conv found no layer made by from_conv: str is no torch module"),
    ],
)
def test_layers_that_are_no_convolution(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lt.nn.to_conv(make())


def test_the_tolerance_is_a_share() -> None:
    with pytest.raises(DomainError, match="tolerance = 0: a leak is a share, so ask for one between 0 and 1"):
        lt.nn.to_conv(lt.nn.from_conv(nn.Conv2d(1, 1, 1)), tolerance=0.0)
