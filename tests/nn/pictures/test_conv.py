"""A kernel as heads: the pixels taken are torch's, prices are counted pair by pair, leaks by the softmax."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.draw.formats.scene import Text, text_width
from lattend.draw.grid.marks import Label, Shape
from lattend.errors import DomainError, NamingError
from lattend.nn.convolution.geometry import read_geometry
from lattend.nn.pictures.conv import TAKEN, ZERO, KernelHeads, draw_conv
from lattend.nn.pictures.leaks import Leaks


def seen(rows, cols, output, **options):
    """The pixels that one output of torch's convolution depends on, by its gradient."""
    image = torch.zeros(1, 1, rows, cols, requires_grad=True)
    conv = torch.nn.Conv2d(1, 1, bias=False, **options)
    torch.nn.init.ones_(conv.weight)
    conv(image)[0, 0][output].backward()
    assert image.grad is not None
    return {tuple(place) for place in image.grad[0, 0].nonzero().tolist()}


cases = st.fixed_dictionaries(
    {
        "kernel_size": st.tuples(st.integers(1, 4), st.integers(1, 4)),
        "stride": st.integers(1, 3),
        "dilation": st.integers(1, 2),
        "padding": st.tuples(st.integers(0, 2), st.integers(0, 2)),
        "padding_mode": st.sampled_from(["zeros", "replicate"]),
    }
)


@settings(max_examples=40)
@given(st.integers(7, 9), st.integers(7, 9), cases, st.data())
def test_heads_take_what_the_convolution_takes(rows, cols, options, data):
    kernel = KernelHeads(
        read_geometry(
            options["kernel_size"],
            options["stride"],
            options["dilation"],
            options["padding"],
            options["padding_mode"],
        ),
        rows,
        cols,
    )
    output = data.draw(st.tuples(*(st.integers(0, size - 1) for size in kernel.outputs)))
    inside = {(y, x) for y, x in kernel.taken(output) if 0 <= y < rows and 0 <= x < cols}
    assert inside == seen(rows, cols, output, **options)
    pairs = [
        (head, row, col)
        for row, col in itertools.product(*map(range, kernel.outputs))
        for head, (y, x) in enumerate(kernel.taken((row, col)))
        if 0 <= y < rows and 0 <= x < cols
    ]
    assert kernel.pairs() == len(pairs) == kernel.cost(1, 1).multiplies


def test_the_price_of_both():
    facts = dict(draw_conv(3, size=8, c_in=16, c_out=32).facts)
    # 22 = 3*8 - 2 pairs of output and tap along an axis; without the edge 24
    assert (
        facts["convolution"] == f"{22**2 * 512:,} multiplies; {24**2 * 512:,} with the zeros of the padding"
    )
    assert (
        facts["heads, hard"]
        == f"484 pairs × 16 × 32 = {22**2 * 512:,} multiplies: those the convolution needs"
    )
    # 9 heads, 64 queries, 10*10 keys: 3 for the score and 16 to mix; then 16*32 a query and head
    soft = 9 * 64 * (100 * (3 + 16) + 512)
    assert facts["heads, soft"] == f"{soft:,} multiplies: each head on all of 57,600 pairs"
    formulas = dict(draw_conv(3, size=8, padding="valid").facts)
    assert formulas["convolution"] == "324c_in*c_out multiplies"


@pytest.mark.parametrize("mode", ["zeros", "replicate"])
@pytest.mark.parametrize(("stride", "padding"), [(1, 1), (2, 1), (3, 0)])
def test_the_worst_pixel_leaks_most(mode, stride, padding):
    rows, cols = 6, 7
    kernel = KernelHeads(read_geometry(3, stride, 1, padding, mode), rows, cols)
    keys = kernel.geometry.keys(rows, cols)
    places = itertools.product(*kernel.geometry.centres(rows, cols))
    inside = [(y, x) for y, x in places if 0 <= y < keys[0] and 0 <= x < keys[1]]
    leaks = Leaks.of(keys, kernel.geometry.centres(rows, cols))
    y, x = np.indices(keys)
    for alpha in (0.1, 1.0, 3.0):
        every = []
        for centre in inside:
            scores = np.exp(-alpha * ((y - centre[0]) ** 2 + (x - centre[1]) ** 2))
            every.append(1 - scores[centre] / scores.sum())
        assert leaks.worst.at(alpha).leak == pytest.approx(max(every))
        if stride == 1:
            assert leaks.corner.at(alpha).leak == pytest.approx(min(every))


def test_where_every_head_looks_beyond_the_edge():
    found = draw_conv(2, size=3, dilation=10, padding=5, padding_mode="replicate", alpha=1.0)
    assert "α = 1" in str(found)


def test_alpha_and_error():
    found = draw_conv(3, size=64, alpha=2.0, error=1e-3)
    theta = 1 + 2 * sum(math.exp(-2 * k * k) for k in range(1, 9))
    assert found.data["sharpness"]["leak"] == pytest.approx(1 - theta**-2)
    facts = dict(found.facts)
    assert facts["α = 2"] == "at most 0.381 of a head's weight misses its pixel"
    assert facts["leak of 0.001"].startswith("α ≥ 8.293")
    (curve,) = found.charts
    assert [dots.labels for dots in curve.dots] == [["α = 2"], ["leak 0.001"]]
    bound, worst, corner = (np.array(line.points) for line in curve.lines)
    assert (corner[:, 1] <= worst[:, 1] + 1e-15).all() and (worst[:, 1] <= bound[:, 1]).all()
    assert bound[:, 1] == pytest.approx(1 / np.cosh(bound[:, 0] / 2) ** 2)
    sharp = draw_conv(3, size=8, alpha=5000.0)
    assert sharp.charts[0].dots == () and dict(sharp.facts)["α = 5e3"].startswith(
        "at most 1.35e−2171 "
    )  # 4e^-5000


def test_the_panels():
    found = draw_conv(3, size=8)
    middle, corner = found.panels
    assert [panel.title for panel in found.panels] == ["in the middle", "in the corner"]
    texts = {mark.text for mark in corner.marks if isinstance(mark, Label)}
    assert texts == {str(head) for head in range(9)}
    used = {look for row in corner.rows_of_looks() for look in row}
    assert {TAKEN, ZERO} <= used
    assert ZERO not in {look for row in middle.rows_of_looks() for look in row}
    assert any(isinstance(mark, Shape) for mark in middle.marks)
    assert len(draw_conv(3, size=3, padding=0).panels) == 1


def test_same_padding_of_an_even_kernel_is_torchs():
    found = draw_conv(4, size=9, padding="same")
    assert found.data["padding"] == [[1, 2], [1, 2]]
    assert found.data["queries"] == [9, 9]
    assert found.data["centres"][0] == [-1, -1]
    assert draw_conv(4, size=9).data["padding"] == [[1, 2], [1, 2]]
    assert draw_conv(5, size=9, stride=2).data["padding"] == [[2, 2], [2, 2]]
    assert "padding [1, 1] before and [2, 2] after (zeros)" in found.subtitle[0]


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (3, {"padding": 1, "stride": 2}),
        ((3, 5), {"dilation": 2, "padding": "same", "padding_mode": "replicate"}),
    ],
)
def test_a_module(kernel, options):
    conv = torch.nn.Conv2d(4, 6, kernel, **options)
    told = draw_conv(kernel, size=9, c_in=4, c_out=6, **options)
    for module in (conv, lt.nn.from_conv(conv)):
        found = draw_conv(module, size=9)
        assert found.svg() == told.svg() and found.json() == told.json()
    assert draw_conv(lt.nn.from_conv(torch.nn.Conv2d(1, 1, 4, padding="same"))).data["padding"][0] == [1, 2]


@pytest.mark.parametrize(
    ("module", "options", "said"),
    [
        (torch.nn.Conv1d(1, 1, 3), {}, "draws a Conv2d, not a Conv1d"),
        (torch.nn.ConvTranspose2d(1, 1, 3), {}, "not a ConvTranspose2d"),
        (torch.nn.Conv2d(4, 4, 3, groups=2), {}, "one group of channels, and this module has 2"),
        (torch.nn.Conv2d(1, 1, 3), {"stride": 2}, "a module has its own stride; leave it out"),
    ],
)
def test_modules_that_are_not_drawn(module, options, said):
    with pytest.raises(NamingError, match=said):
        draw_conv(module, **options)


@pytest.mark.parametrize("size", [8, 32, 36, (8, 40)])
def test_numbers_are_spoken_of_where_they_are_drawn(size):
    found = draw_conv(3, size=size, padding=0)
    drawn = [item for item in found.scene.items if isinstance(item, Text) and item.text == "8"]
    ticks = draw_conv(1, size=size, padding=0).scene.items  # its one head is number 0
    most = sum(isinstance(item, Text) and item.text == "8" for item in ticks)
    assert (len(drawn) > most) == ("numbers are those of the heads" in found.drawn[0])


def test_the_public_name():
    assert lt.nn.draw_conv is draw_conv


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"padding_mode": "reflect"}, NamingError, 'padding_mode is "zeros" or "replicate", not "reflect"'),
        ({"padding": "full"}, NamingError, 'padding is a number, "same" or "valid", not "full"'),
        ({"padding": "same", "stride": 2}, DomainError, 'padding="same" keeps the size of the image'),
        ({"kernel": 0}, DomainError, "kernel is a whole number from 1 up"),
        ({"kernel": "33"}, DomainError, r"kernel is a whole number from 1 up, or \(rows, cols\), got '33'"),
        ({"kernel": torch.nn.ReLU()}, DomainError, r"or \(rows, cols\), got ReLU\(\)"),
        ({"padding": -1}, DomainError, "padding is a whole number from 0 up"),
        ({"kernel": 9, "padding": 0}, DomainError, "is less than the 9 the kernel spans"),
        ({"kernel": 99}, DomainError, "9,801 heads are more than a picture shows; give at most 1,024"),
        ({"size": 10**9}, DomainError, "an image has 1 to 4,096 rows and columns here"),
        ({"padding": 10**6}, DomainError, "padding=1000000: with it an image has at most 4,096 rows"),
        ({"alpha": 0.0}, DomainError, "it must be positive and finite"),
        ({"error": 1.0}, DomainError, "a leak is a share"),
    ],
)
def test_wrong_input(options, error, said):
    with pytest.raises(error, match=said):
        draw_conv(**options)


@pytest.mark.parametrize("alpha", [0.3, 2.0, 15.0])
def test_the_name_of_a_dot_lies_inside_the_chart(alpha):
    picture = draw_conv(3, alpha=alpha)
    (name,) = [
        item for item in picture.scene.items if isinstance(item, Text) and item.text.startswith("α = ")
    ][:1]
    title = next(
        item for item in picture.scene.items if isinstance(item, Text) and item.text.startswith("Leak")
    )
    assert name.y - name.size > title.y + 2  # below the title, with room
    side = text_width(name.text, name.size)
    left = name.x - {"start": 0, "middle": 0.5, "end": 1}[name.anchor] * side
    assert title.x <= left and left + side <= picture.scene.width - 8
