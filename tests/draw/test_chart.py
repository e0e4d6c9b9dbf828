"""Lines, dots, arrows and bars of charts, read back from every form."""

import math
import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.draw.charts.axes import DrawnChart
from lattend.draw.charts.bars import Bars
from lattend.draw.charts.braille import BRAILLE, _cut, ansi
from lattend.draw.charts.chart import (
    Arrows,
    Chart,
    Dots,
    Stroke,
    classes,
    curves,
    legend,
    round_numbers,
)
from lattend.draw.formats.scene import Path, Text
from lattend.draw.picture import Picture
from lattend.errors import DomainError

SVG = "{http://www.w3.org/2000/svg}"
ANSI = re.compile(r"\x1b\[[\d;]*m")
numbers = st.floats(-5, 5).map(lambda value: round(value, 3))
points = st.tuples(numbers, numbers)


def shown(*charts):
    return Picture("Charts", charts=charts)


def square(**more):
    """A chart of one unit on both axes, from -6 to 6."""
    return Chart(**{"x": (-6, 6), "y": (-6, 6), "equal": True, **more})


def paths(chart, colour):
    """The outlines and areas of this colour, as they are drawn from the corner (0, 0)."""
    result = DrawnChart(chart, legend=False).items(0, 0)
    return [item for item in result if isinstance(item, Path) and colour in (item.colour, item.fill)]


def place(chart, x, y):
    """Where a point is drawn, from two points of a line that is drawn with it."""
    (left, right), (bottom, top) = chart.ends()
    line = Stroke([(left, bottom), (right, top)], colour="#123456")
    ((x0, y0), (x1, y1)) = paths(replace(chart, lines=(*chart.lines, line)), "#123456")[0].points
    return x0 + (x1 - x0) * (x - left) / (right - left), y0 + (y1 - y0) * (y - bottom) / (top - bottom)


def rows(plane, width=60, encoding="utf-8"):
    """The characters between the axes."""
    text = shown(plane).terminal(width, colour=False, encoding=encoding)
    return [re.split("[│|]", line, maxsplit=1)[1] for line in text.splitlines() if "│" in line or "|" in line]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12))
def test_ticks_are_round_and_between_the_ends(low, span, most):
    result = round_numbers(low, low + span, most)
    assert len(result) <= most + 1
    assert all(low - 1e-6 * span <= place <= low + 1.000001 * span for place in result)
    steps = [b - a for a, b in pairwise(result)]
    if steps:
        digits = steps[0] / 10 ** math.floor(math.log10(steps[0]) + 1e-6)
        assert min(abs(digits - lead) for lead in (1, 2, 5, 10)) < 1e-3


@given(points, points)
def test_a_stretch_is_cut_at_the_ends_and_only_there(a, b):
    x, y = (-2.0, 3.0), (-1.0, 2.5)
    cut = _cut(a, b, x, y)
    assert all(x[0] - 1e-9 <= p <= x[1] + 1e-9 and y[0] - 1e-9 <= q <= y[1] + 1e-9 for p, q in cut)
    # The oracle walks the stretch in small steps and measures those whose middle is inside
    middles = np.array(a) + np.outer((np.arange(2000) + 0.5) / 2000, np.subtract(b, a))
    held = (middles >= (x[0], y[0])) & (middles <= (x[1], y[1]))
    walked = held.all(axis=1).mean() * math.dist(a, b)
    assert (math.dist(*cut) if cut else 0.0) == pytest.approx(walked, abs=0.05)


def test_ends_hold_all_points_with_one_unit_on_both_axes():
    chart = Chart(lines=(Stroke([(0, 0), (10, 1)]),), equal=True)
    (left, right), (bottom, top) = chart.ends()
    assert (left, right) == pytest.approx((-0.6, 10.6))
    assert top - bottom == pytest.approx((right - left) / 3)  # no flatter than that
    wide, high = chart.sides()
    assert wide / (right - left) == pytest.approx(high / (top - bottom))
    free = Chart(lines=chart.lines)
    assert free.ends() == ((0, 10), pytest.approx((-0.06, 1.06)))
    assert free.sides() == (252, 168)
    assert Chart().ends() == ((-1, 1), (-1, 1))


def test_logarithmic_scales_end_at_powers():
    chart = Chart(lines=(Stroke([(3, 0.02), (100, 7)]),), log_x=2, log_y=10)
    assert chart.ends() == ((2, 128), (pytest.approx(0.01), 10))
    texts = [item.text for item in DrawnChart(chart, legend=False).items(0, 0) if isinstance(item, Text)]
    assert {"2", "8", "32", "128", "0.01", "0.1", "1", "10"} <= set(texts)
    assert "0.01 │" in shown(chart).terminal(80, colour=False, encoding="utf-8")


@settings(max_examples=20)
@given(points)
def test_a_point_is_drawn_where_its_numbers_say(point):
    chart = square(dots=(Dots([point], colour="#654321", shape="square", size=2),))
    (dot,) = paths(chart, "#654321")
    assert np.mean(dot.points, axis=0) == pytest.approx(place(chart, *point), abs=0.01)


@given(points)
def test_a_terminal_shows_a_dot_at_its_place(point):
    result = rows(square(dots=(Dots([point]),)))
    (row,) = [at for at, line in enumerate(result) if "●" in line]
    assert (len(result), row) == (22, min(21, int((6 - point[1]) / 12 * 87 / 4)))
    assert result[row].index("●") == min(43, int((point[0] + 6) / 12 * 87 / 2))


def test_braille_points_follow_a_line():
    result = rows(square(x=(0, 1), y=(0, 1), lines=(Stroke([(0, 0), (1, 1)]),)))
    places = [
        (4 * row + int(down), 2 * col + int(across))
        for row, line in enumerate(result)
        for col, sign in enumerate(line.rstrip())
        for down, across, bit in zip("01201233", "00011101", range(8), strict=True)
        if sign != " " and (ord(sign) - BRAILLE) >> bit & 1
    ]
    assert sorted(places) == [(at, 87 - at) for at in range(88)]


@pytest.mark.parametrize(
    ("tip", "sign", "plain"),
    [((1, 0), "→", ">"), ((0, 1), "↑", "^"), ((-1, -1), "↙", "/"), ((0, 0), "·", ".")],
)
def test_arrows_point_as_they_go(tip, sign, plain):
    chart = square(x=(-2, 2), y=(-2, 2), arrows=(Arrows([((0, 0), tip)], colour="#654321"),))
    assert "".join(rows(chart)).replace(" ", "") == sign
    assert "".join(rows(chart, encoding="ascii")).replace(" ", "") == plain
    (arrow,) = paths(chart, "#654321")
    if tip != (0, 0):
        assert min(math.dist(corner, place(chart, *tip)) for corner in arrow.points) < 0.5


def test_what_lies_outside_is_left_out():
    far = Chart(
        x=(0, 1),
        y=(0, 1),
        lines=(Stroke([(2.5, 2), (3, 3)]),),
        dots=(Dots([(5, 5)], labels=["far"]),),
        arrows=(Arrows([((1.5, 1.5), (2, 2))]),),
    )
    empty = Chart(x=(0, 1), y=(0, 1))
    assert list(DrawnChart(far, legend=False).items(0, 0)) == list(
        DrawnChart(empty, legend=False).items(0, 0)
    )
    assert rows(far) == rows(empty)


def test_a_line_is_cut_at_the_frame():
    chart = square(lines=(Stroke([(-60, 0), (60, 0)], colour="#654321"),))
    (line,) = paths(chart, "#654321")
    assert line.points == (pytest.approx(place(chart, -6, 0)), pytest.approx(place(chart, 6, 0)))


def test_the_legend_has_each_name_once():
    line, dots = Stroke([(0, 0), (1, 1)], "orbit"), Dots([(0, 0)], "orbit")
    planes = Chart(lines=(line, line), dots=(dots,)), Chart(lines=(line,), dots=(Dots([(1, 1)]),))
    assert [(name, list(map(type, marks))) for name, marks in legend(planes)] == [("orbit", [Stroke, Dots])]
    texts = [item.text for item in shown(*planes).scene.items if isinstance(item, Text)]
    assert texts.count("orbit") == 1  # the second chart has nothing new
    lines = shown(*(replace(plane, equal=True) for plane in planes)).terminal(60, False, "utf-8").splitlines()
    assert lines[-1] == "⠤⠤● orbit"


def test_lines_of_a_chart_have_letters_in_a_terminal():
    chart = Chart(
        lines=curves([("rises", [(0, 0), (1, 0.5), (2, 1)]), ("falls", [(0, 1), (1, 0.5), (2, 0)])])
    )
    text = shown(chart).terminal(60, colour=False, encoding="utf-8")
    assert "⠤a rises   ⠤b falls" in text
    assert sum(line.count("a") for line in rows(chart)) == sum(line.count("b") for line in rows(chart)) == 1


def test_classes_have_looks_of_their_own():
    result = classes([(at, at) for at in range(20)], [at % 10 for at in range(20)])
    assert [dots.name for dots in result] == list("0123456789")
    assert len({(dots.colour, dots.shape) for dots in result}) == 10
    assert "".join(rows(Chart(dots=result))).count("7") == 2


def test_numpy_points_are_written_as_plain_numbers():
    cloud = np.random.default_rng(0).normal(size=(5, 2))
    picture = shown(Chart("A cloud", dots=(Dots(cloud),), lines=(Stroke(cloud),)))
    drawn = ElementTree.fromstring(picture.svg())
    assert len([path for path in drawn.iter(f"{SVG}path") if path.attrib["fill"] == "#0072b2"]) == 5
    assert "np." not in picture.svg() + picture.tikz()
    assert picture.pdf() == shown(*picture.charts).pdf()
    assert picture.png()[:4] == b"\x89PNG"


@pytest.mark.parametrize("width", [16, 20, 40, 80, 132])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_a_terminal_is_never_overrun(width, encoding):
    plane = Chart(
        "A plane with a rather long title",
        "across α",
        "up",
        dots=(Dots([(-1000, 2)], "name"),),
        lines=(Stroke([(0, 0), (1, 9)]),),
    )
    text = shown(plane, plane).terminal(width, colour=False, encoding=encoding)
    assert max(map(len, text.splitlines())) <= width
    text.encode(encoding)
    assert ANSI.sub("", shown(plane, plane).terminal(width, colour=True, encoding=encoding)) == text


def test_labels_stand_beside_their_dots():
    chart = square(dots=(Dots([(1, 0), (-1, 0)], labels=["east", "west"]),))
    texts = {
        item.text: item for item in DrawnChart(chart, legend=False).items(0, 0) if isinstance(item, Text)
    }
    assert (texts["east"].anchor, texts["west"].anchor) == ("start", "end")
    assert texts["east"].x > place(chart, 1, 0)[0] and texts["west"].x < place(chart, -1, 0)[0]


def test_headed_lines_have_a_head_on_each_stretch():
    chart = square(lines=(Stroke([(0, 0), (1, 0), (1, 1)], colour="#654321", headed=True),))
    assert len([path for path in paths(chart, "#654321") if path.fill]) == 2


def test_the_same_chart_is_drawn_whatever_the_settings_of_matplotlib():
    chart = Chart("A line", lines=curves([("one", [(0, 0), (1, 1)])]))
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9}):
        loud = shown(chart).svg()
        assert mpl.rcParams["font.size"] == 30
    assert shown(chart).svg() == loud


COLOURS = {"needed": "#10386b", "dense": "#b8c9dd"}
BARS = Bars("", (("causal", {"needed": 10, "dense": 16}), ("full", {"needed": 16})), COLOURS)


def test_bars_are_as_long_as_their_numbers():
    result = [item for item in DrawnChart(BARS, legend=False).items(0, 0) if isinstance(item, Path)]
    long = [np.ptp(np.array(item.points)[:, 0]) for item in result if item.fill in COLOURS.values()]
    assert long == pytest.approx([440 * 10 / 16, 440, 440])
    texts = [item.text for item in DrawnChart(BARS, legend=True).items(0, 0) if isinstance(item, Text)]
    assert sorted(texts) == ["10", "16", "16", "causal", "dense", "full", "needed"]


def test_bars_in_a_terminal():
    assert Picture("Pairs", bars=(BARS,)).terminal(26, colour=False, encoding="utf-8").splitlines()[2:] == [
        "causal",
        "needed 10 ██████████",
        "dense  16 ████████████████",
        "full",
        "needed 16 ████████████████",
    ]
    assert "dense  16 ################" in Picture("Pairs", bars=(BARS,)).terminal(
        26, colour=False, encoding="ascii"
    )


def test_ends_and_points_must_be_numbers():
    with pytest.raises(DomainError, match=re.escape("x of a chart is (least, greatest), not (1, 1)")):
        Chart(x=(1, 1))
    with pytest.raises(DomainError, match=r"finite numbers, and \(nan, 1.0\) is among them; leave it out"):
        Chart(dots=(Dots([(math.nan, 1.0)]),))


def test_colours_of_a_terminal_are_the_nearest():
    assert [ansi(colour) for colour in ("#000000", "#808080", "#00ff00", "#0072b2")] == [16, 244, 46, 25]


def test_small_dots_are_points_of_braille():
    result = "".join(rows(square(x=(0, 1), y=(0, 1), dots=(Dots([(0, 1), (1, 0)], size=1),))))
    assert result.replace(" ", "") == chr(BRAILLE + 0x01) + chr(BRAILLE + 0x80)  # upper left, lower right
    plain = "".join(rows(Chart(dots=(Dots([(0, 1)], size=1),)), encoding="ascii"))
    assert plain.replace(" ", "") == "."


def test_a_logarithmic_scale_has_no_0():
    with pytest.raises(DomainError, match=r"needs numbers above 0, and \(1.0, 0.0\) is among them"):
        Chart(dots=(Dots([(1.0, 0.0)]),), log_y=10)


def test_contours_are_told_apart_without_colour():
    lines = [Stroke([(0, y), (9, y)], name, under=True) for y, name in ((1, "low"), (2, "same"), (3, "high"))]
    picture = Picture("Levels", charts=(Chart("", "x", "y", tuple(lines), equal=True),))
    for encoding in ("utf-8", "ascii"):
        text = picture.terminal(width=60, colour=False, encoding=encoding)
        *rows, legend = text.splitlines()
        assert "-- low   == same   ++ high" in legend or "-- low   == same   ++ high" in text
        result = [set(row.partition("│" if encoding == "utf-8" else "|")[2]) - {" "} for row in rows]
        result = [signs for signs in result if signs]
        assert result == [{"+"}, {"="}, {"-"}]  # from the top
    assert "⠂" in picture.terminal(width=60, colour=True) or "⠄" in picture.terminal(width=60, colour=True)
