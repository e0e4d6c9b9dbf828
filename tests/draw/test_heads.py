"""Heads as places: weights by the definition, ellipses that hold their share, and what the picture says."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lattend.draw.formats.scene import Text
from lattend.draw.grid.marks import Label, Shape
from lattend.errors import DomainError, NamingError
from lattend.nn.attention.gaussian_heads import (
    Head,
    from_covariance,
    isotropic,
    kernel_heads,
    shifts,
    softmax,
)
from lattend.nn.pictures.heads import HALF, MOST, draw_heads, make_heads

centres = st.tuples(st.floats(-3, 3), st.floats(-3, 3))
precisions = st.tuples(st.floats(0.2, 4), st.floats(-0.8, 0.8), st.floats(0.2, 4)).map(
    lambda p: (p[0], p[1] * math.sqrt(p[0] * p[2]), p[2])
)


@given(centres, precisions, st.integers(0, 4), st.integers(0, 6))
def test_weights_are_the_softmax_by_hand(centre, precision, y, x):
    a, b, c = precision
    weights = Head(centre, precision).weights(5, 7, (y, x))
    terms = {}
    for row in range(5):
        for col in range(7):
            dy, dx = row - y - centre[0], col - x - centre[1]
            terms[row, col] = math.exp(-(a * dy**2 + 2 * b * dy * dx + c * dx**2))
    total = sum(terms.values())
    for place, term in terms.items():
        assert weights[place] == pytest.approx(term / total, rel=1e-9)


def test_the_sharpest_weight_on_the_plane():
    # 1/(1 + 2e^-2 + 2e^-8 + ...)^2
    theta = 1 + 2 * sum(math.exp(-2 * k * k) for k in range(1, 10))
    assert isotropic((0, 0), 2.0).sharpest() == pytest.approx(theta**-2, rel=1e-12)
    assert isotropic((3, -70), 2.0).sharpest() == pytest.approx(theta**-2, rel=1e-12)
    wide = isotropic((0, 0), 1e-5)  # the sum is the integral π/α
    assert wide.sharpest() == pytest.approx(1e-5 / math.pi, rel=1e-9)
    assert isotropic((0, 0), 1e-3).sharpest() == pytest.approx(1e-3 / math.pi, rel=1e-9)
    assert Head((0, 0), (1, 1, 1)).sharpest() == 0  # flat along dy = -dx


@given(precisions)
def test_the_lines_hold_half_and_nine_tenths_of_the_weight(precision):
    a, b, c = precision
    reach = 5 / math.sqrt(Head((0, 0), precision).curvatures[1])
    fine = np.linspace(-reach, reach, 801)
    y, x = np.meshgrid(fine, fine, indexing="ij")
    form = a * y * y + 2 * b * y * x + c * x * x
    weights = np.exp(-form)
    for level, share in ((HALF, 0.5), (MOST, 0.9)):
        assert weights[form <= level].sum() / weights.sum() == pytest.approx(share, abs=0.02)


def test_widths_are_standard_deviations():
    head = from_covariance((1, 2), (0.5, 0.2, 1.0))
    variances = np.linalg.eigvalsh([[0.5, 0.2], [0.2, 1.0]])
    assert head.widths == pytest.approx(tuple(np.sqrt(variances)))
    fine = np.arange(-10, 10, 0.05)
    y, x = np.meshgrid(fine, fine, indexing="ij")
    weights = softmax(head.scores(np.float64(1) + y, np.float64(2) + x))
    assert (weights * y * x).sum() == pytest.approx(0.2, abs=1e-6)
    assert isotropic((0, 0), 2).widths == (0.5, 0.5)


def test_the_heads_of_a_kernel():
    assert [head.centre for head in kernel_heads(3)] == [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    assert [head.centre for head in kernel_heads((1, 3), (1, 4))] == [(0, -4), (0, 0), (0, 4)]
    assert [head.centre for head in kernel_heads(2)] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    with pytest.raises(DomainError, match="dilation must be at least 1, got 0"):
        kernel_heads(3, 0)


@pytest.mark.parametrize("alpha", [0, -1, math.inf, math.nan])
def test_alpha_is_positive(alpha):
    with pytest.raises(DomainError, match="alpha must be above 0"):
        isotropic((0, 0), alpha)


def test_covariances_are_positive():
    with pytest.raises(DomainError, match=r"\(1, 2, 1\) is no covariance \(yy, yx, xx\)"):
        from_covariance((0, 0), (1, 2, 1))


def test_shifts_are_keys_minus_queries():
    dy, dx = shifts(3, 4, (1, 2))
    assert dy[:, 0].tolist() == [-1, 0, 1] and dx[0].tolist() == [-2, -1, 0, 1]


def labels(panel):
    return {mark.text: (mark.row, mark.col) for mark in panel.marks if isinstance(mark, Label)}


def test_numbers_stand_at_the_centres():
    result = draw_heads(kernel_heads(3, alpha=2), size=(9, 12), pixel=(4, 5))
    assert labels(result.panels[0])["0"] == (3.5, 4.5)
    assert labels(result.panels[0])["8"] == (5.5, 6.5)
    assert result.subtitle == ("an image of 9 × 12 pixels, the query at (4, 5)",)
    shared = draw_heads([isotropic((0, 1), 1), isotropic((0, 1), 2), isotropic((2, 2), 1)])
    assert set(labels(shared.panels[0])) == {"0,1", "2"}


def test_ellipses_are_drawn_inside_the_image_alone():
    result = draw_heads(kernel_heads(3, alpha=0.1), size=(6, 6), pixel=(0, 0))
    shapes = [mark for mark in result.panels[0].marks if isinstance(mark, Shape)]
    assert shapes
    for shape in shapes:
        assert all(-1e-9 <= y <= 6 + 1e-9 and -1e-9 <= x <= 6 + 1e-9 for y, x in shape.points)


def test_layers_stand_side_by_side():
    result = draw_heads({"low": kernel_heads(3), "high": [isotropic((4, 4), 0.2)]})
    assert [panel.title for panel in result.panels] == ["low", "high"]
    assert result.table[0] == ("layer", "head", "row", "column", "width px", "own weight")
    assert result.table[-1][:4] == ("high", "0", "4", "4")
    assert result.data["layers"]["high"][0]["precision"] == [0.2, 0, 0.2]


def test_flat_heads_are_named():
    result = draw_heads([Head((0, 1), (2, 0, 0)), isotropic((0, 0), 1)])
    assert result.caption == ("flat along an axis, drawn by their centre alone: 1 of the heads",)
    assert result.table[1][3:] == ("0.5 to flat", "0")
    assert result.data["layers"][""][0]["widths"] == [0.5, None]


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (([],), NamingError, "there is no head to draw"),
        (([isotropic((0, 0), 1)], None, (1, 1)), NamingError, "give its size too"),
        (
            ([isotropic((0, 0), 1)], (4, 4), (4, 0)),
            DomainError,
            r"pixel \(4, 0\) lies outside an image",
        ),
        (
            ([isotropic((0, 0), 1)], (257, 4)),
            DomainError,
            "an image has 1 to 256 rows and columns here, got 257 × 4",
        ),
        (([isotropic((0, 0), 1)], (0, 4)), DomainError, "size is a whole number from 1 up"),
        (([Head((math.nan, 0), (1, 0, 1))],), DomainError, "head 0 is not finite"),
        ((5000 * [isotropic((0, 0), 1)],), DomainError, "5,000 heads are more than a picture shows"),
    ],
)
def test_wrong_input(arguments, error, said):
    with pytest.raises(error, match=said):
        draw_heads(arguments[0], **dict(zip(("size", "pixel"), arguments[1:], strict=False)))


def test_wide_heads_have_panels_of_their_own():
    wide = draw_heads(make_heads(kernel=3, alpha=[0.2]))
    assert [panel.title for panel in wide.panels] == [f"head {number}" for number in range(9)]
    assert [panel.labels() for panel in wide.panels] == [
        {(5 + dy, 5 + dx): str(number)}
        for number, (dy, dx) in enumerate((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
    ]
    lines = [[mark for mark in panel.marks if isinstance(mark, Shape) and mark.fill] for panel in wide.panels]
    assert [len(areas) for areas in lines] == [1] * 9
    assert len({areas[0].fill for areas in lines}) == 9  # nine colours
    assert wide.columns == 3 and "a panel for each head, since they overlap" in wide.drawn
    narrow = draw_heads(make_heads(kernel=3, alpha=[2]))
    assert len(narrow.panels) == 1 and "a panel for each head, since they overlap" not in narrow.drawn


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=5, max_size=9, unique=True))
def test_numbers_of_crowded_layers_stand_apart(centres):
    heads = make_heads(centres=centres, alpha=[0.1])  # half of each lies within 2.6 pixels
    picture = draw_heads({"one": heads, "two": heads})
    assert len(picture.panels) == 2
    labels = [mark for mark in picture.panels[0].marks if isinstance(mark, Label)]
    assert sorted(label.text for label in labels) == [str(number) for number in range(len(centres))]
    assert not any(mark.fill for mark in picture.panels[0].marks if isinstance(mark, Shape))
    for at, label in enumerate(labels):
        nearest = min(
            math.dist((label.row, label.col), (o.row, o.col)) for o in labels[:at] + labels[at + 1 :]
        )
        assert nearest > 0.5


def test_numbers_of_layers_side_by_side_stay_in_the_frame():
    near = make_heads(centres=[(0, 0), (0, 0.1), (0.1, 0), (0.1, 0.1)], alpha=[1])
    far = make_heads(centres=[(0, -2.4), (2.4, 0)], alpha=[0.2])  # half of each within 1.9 pixels, cut off
    picture = draw_heads({"crowded": near, "apart": far}, reach=2)
    for panel, heads in zip(picture.panels, (near, far), strict=True):  # one look for both
        labels = [mark for mark in panel.marks if isinstance(mark, Label)]
        assert sorted(label.text for label in labels) == [str(number) for number in range(len(heads))]
        assert not any(mark.fill for mark in panel.marks if isinstance(mark, Shape))
    assert picture.drawn == (
        "outlined: the query",
        "line: half of a head's Gaussian lies inside, on the plane without pixels",
    )


def test_ticks_that_would_touch_are_left_out_evenly():
    picture = draw_heads(make_heads(kernel=3, alpha=[0.2]))
    top = min(item.y for item in picture.scene.items if isinstance(item, Text) and item.text == "−4")
    named = [
        item.text
        for item in picture.scene.items
        if isinstance(item, Text) and item.y == top and item.size == 9
    ]
    assert named == 3 * ["−4", "−2", "0", "2", "4"]
