"""The price of the heads is counted from their rule, and is the convolution's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from nn.convolution.convolutions import convolutions
from torch import Tensor, nn

import lattend as lt
from lattend.errors import DomainError, NamingError
from lattend.nn.convolution import price

KERNELS: list[dict[str, Any]] = [
    {"kernel_size": 3, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1, "bias": False},
    {"kernel_size": (2, 5), "padding": (0, 3), "groups": 2},
    {"kernel_size": 4, "padding": "same"},
    {"kernel_size": 3, "dilation": 2, "stride": 3, "padding": 2},
    {"kernel_size": 5, "stride": 2, "padding": 2, "padding_mode": "replicate"},
    {"kernel_size": 7, "stride": 2, "padding": 3},
    {"kernel_size": 1},
]


@pytest.mark.parametrize("quantity", ["parameters", "multiplies", "adds"])
@pytest.mark.parametrize("options", KERNELS, ids=str)
def test_proved_for_all_rows_and_cols(options: dict[str, Any], quantity: str) -> None:
    verdict = lt.nn.from_conv(nn.Conv2d(4, 6, **options)).same_price(quantity)
    assert verdict.status == "holds", verdict


@given(convolutions())
@settings(max_examples=25)
def test_at_numbers_all_three_counts_agree(case: tuple[nn.Conv2d, Tensor]) -> None:
    """The rule's pairs one by one, the price, and lt.cost.conv."""
    conv, x = case
    layer, (rows, cols) = lt.nn.from_conv(conv), x.shape[2:]
    pairs = int(layer.rule(rows, cols).mask().sum())
    cost, theirs = layer.cost(rows=rows, cols=cols), price.of_conv(layer, rows, cols)
    assert cost.multiplies == pairs * conv.weight[0].numel() // layer.geometry.heads * conv.out_channels
    for quantity in ("parameters", "multiplies", "adds"):
        for way in ("needed", "dense"):
            mine, wanted = (getattr(getattr(c, way), quantity) for c in (cost, theirs))
            assert mine == wanted, (quantity, way)
    assert cost.parameters == sum(p.numel() for p in layer.parameters())


def test_the_formula_of_one_layer() -> None:
    cost = lt.nn.from_conv(nn.Conv2d(3, 8, 3, padding=1, bias=False)).cost()
    assert cost.claim("multiplies", "24(3rows - 2)(3cols - 2)").status == "holds"
    assert cost.dense.claim("multiplies", "216 rows cols").status == "holds"
    assert cost.claim("multiplies", "216 rows cols").status == "fails"
    assert cost.exponentials == 0 == cost.divisions


def test_another_kernel_has_another_price(monkeypatch: pytest.MonkeyPatch) -> None:
    other = lt.cost.conv(c_in=2, c_out=3, kernel=(3, 4), padding=1)
    monkeypatch.setattr(price, "of_conv", lambda *given: other)
    verdict = lt.nn.from_conv(nn.Conv2d(2, 3, 3, padding=1)).same_price()
    assert verdict.status == "fails" and verdict.counterexample is not None
    found = lt.nn.from_conv(nn.Conv2d(2, 3, 3, padding=1)).same_price("parameters")
    assert str(found) == (
        "parameters of the heads = parameters of the convolution: fails; they differ by -18"
    )  # 2*3 for each of 9 taps, not of 12


def test_what_is_asked_must_be_known() -> None:
    layer = lt.nn.from_conv(nn.Conv2d(2, 3, 3))
    with pytest.raises(NamingError, match="compared by parameters, multiplies, adds, not by 'flops'"):
        layer.same_price("flops")
    with pytest.raises(DomainError, match=r"rows = 2 with padding 0 \+ 0 is less than the 3 the"):
        layer.cost(rows=2, cols=5)
    with pytest.raises(DomainError, match="rows = 2 with padding"):
        layer.rule(2, 5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"padding_mode": "reflect"}, NamingError, "padding_mode is one of zeros, replicate, not 'reflect'"),
        ({"padding": "full"}, NamingError, 'padding is "same", "valid" or a number of pixels, not \'full\''),
        ({"padding": "same", "stride": 2}, DomainError, 'padding="same" needs stride 1, not 2'),
    ],
)
def test_the_price_of_a_convolution_knows_its_padding(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lt.cost.conv(**options)


@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (4, 1), (2, 3)])
def test_same_and_replicate_in_the_price_of_a_convolution(kernel: int, dilation: int) -> None:
    rows, cols = 5, 7
    total = dilation * (kernel - 1)
    pairs = {
        size: sum(0 <= o + dilation * t - total // 2 < size for o in range(size) for t in range(kernel))
        for size in (rows, cols)
    }
    same = {
        "rows": rows,
        "cols": cols,
        "c_in": 1,
        "c_out": 1,
        "kernel": kernel,
        "dilation": dilation,
        "padding": "same",
    }
    assert lt.cost.conv(**same).multiplies == pairs[rows] * pairs[cols]
    assert lt.cost.conv(**same, padding_mode="replicate").multiplies == rows * cols * kernel**2


@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize(("kernel", "dilation", "padding"), [(1, 1, 0), (2, 3, 1), (4, 1, 3), (1, 1, 2)])
def test_gradients_of_repeated_pixels_meet(stride: int, kernel: int, dilation: int, padding: int) -> None:
    """Going back, all products of a pixel but the first are added, and so are those of a weight."""
    options: dict[str, Any] = {"kernel": (kernel, 1), "stride": (stride, 1), "dilation": (dilation, 1)}
    options |= {"padding": (padding, 0), "padding_mode": "replicate"}
    cost = lt.cost.conv(cols=1, c_in=1, c_out=1, bias=False, **options)
    span = dilation * (kernel - 1) + 1
    for rows in range(max(1, span - 2 * padding), span + 7):
        outputs = (rows + 2 * padding - span) // stride + 1
        taps = [(o, t) for o in range(outputs) for t in range(kernel)]
        seen = {min(max(stride * o + dilation * t - padding, 0), rows - 1) for o, t in taps}
        assert cost.at(rows=rows).backward.adds == 2 * len(taps) - len(seen) - kernel
