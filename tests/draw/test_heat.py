"""Scales of colour: even steps, order by lightness alone, and numbers at their colours."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lattend.draw.charts import chart
from lattend.draw.charts.chart import Scale
from lattend.draw.formats.palette import AMOUNTS, SIGNED, ink
from lattend.errors import DomainError
from lattend.report.numbers import format_number


def oklab(colour: str) -> tuple[float, float, float]:
    """Lightness, a and b of `#rrggbb`, by the forward matrices of OKLab."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    lms = (
        0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b,
        0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b,
        0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b,
    )
    long, middle, small = (cone ** (1 / 3) for cone in lms)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * small,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * small,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * small,
    )


def test_oklab_of_known_colours():
    assert oklab("#ffffff") == pytest.approx((1, 0, 0), abs=1e-3)
    assert oklab("#ff0000")[0] == pytest.approx(0.628, abs=1e-3)


def test_amounts_grow_darker_in_even_steps():
    colours = [oklab(look.fill) for look in AMOUNTS]
    falls = [a[0] - b[0] for a, b in itertools.pairwise(colours)]
    assert max(falls) < 2 * min(falls) and min(falls) > 0
    steps = [math.dist(a, b) for a, b in itertools.pairwise(colours)]
    assert max(steps) < 3 * min(steps)


def test_signs_are_equally_dark_and_of_two_hues():
    half = len(SIGNED) // 2
    colours = [oklab(look.fill) for look in SIGNED]
    for below, above in zip(colours[:half], reversed(colours[half + 1 :]), strict=True):
        assert below[0] == pytest.approx(above[0], abs=0.02)
        assert below[2] < 0 < above[2]  # blue and red
    assert all(a[0] > b[0] for a, b in itertools.pairwise(colours[half:]))
    assert math.hypot(*colours[half][1:]) < 0.01


def test_glyphs_tell_sizes_and_signs_without_colour():
    assert "".join(dict.fromkeys(look.glyph for look in AMOUNTS)) == "·░▒▓█"
    assert "".join(dict.fromkeys(look.glyph for look in SIGNED)) == "≡=~-·░▒▓█"
    for looks in (AMOUNTS, SIGNED):
        glyphs = {(look.glyph, look.plain) for look in looks}
        assert len({plain for _, plain in glyphs}) == len(glyphs)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.lists(st.floats(0, 1), min_size=1))
def test_a_number_has_the_nearest_colour(low, length, places):
    scale = Scale("x", low, low + length)
    values = np.array([low + length * place for place in places])
    for cell, place in zip(scale.cells(values).tolist(), places, strict=True):
        assert abs(cell / (len(AMOUNTS) - 1) - place) <= 0.5 / (len(AMOUNTS) - 1) + 1e-6


def test_zero_is_white_on_a_signed_scale():
    scale = chart.signed_scale("score", np.array([[-3.0, 1.0]]))
    assert (scale.low, scale.high) == (-3, 3)
    assert scale.looks[int(scale.cells(np.zeros(1))[0])].fill == SIGNED[len(SIGNED) // 2].fill
    assert scale.ticks() == ((0.0, "−3"), (0.5, "0"), (1.0, "3"))


def test_scales_of_nothing():
    assert chart.amount_scale("w", np.zeros((2, 2))).high == 1
    assert chart.signed_scale("w", np.zeros((2, 2))).high == 1
    for values in (np.array([[np.nan]]), np.array([[np.inf]]), np.zeros((0, 0))):
        with pytest.raises(DomainError, match="a heat map needs finite numbers, at least one"):
            chart.signed_scale("w", values)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.125, "0.125"),
        (-3, "−3"),
        (12.5, "12.5"),
        (1.2e-5, "1.2e−5"),
        (4e9, "4e9"),
        (1 / 3, "0.333"),
    ],
)
def test_short_numbers(number, text):
    assert format_number(number) == text


@pytest.mark.parametrize("looks", [AMOUNTS, SIGNED])
def test_words_are_read_on_every_colour(looks):
    for look in looks:
        light, dark = sorted((ink(look.fill), look.fill), key=lambda colour: -oklab(colour)[0])
        assert oklab(light)[0] - oklab(dark)[0] > 0.35
