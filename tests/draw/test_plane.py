"""Lines, dots and arrows of a plane, read back from every form."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lattend.draw.charts.plane import Arrows, Dots, Plane, Stroke, classes, inside, legend
from lattend.draw.charts.plane_block import Block
from lattend.draw.charts.plane_terminal import BRAILLE, ansi
from lattend.draw.charts.ticks import round_numbers
from lattend.draw.figure import Figure
from lattend.draw.formats.scene import Line, Path, Text
from lattend.errors import DomainError

SVG = "{http://www.w3.org/2000/svg}"
ANSI = re.compile(r"\x1b\[[\d;]*m")
numbers = st.floats(-5, 5).map(lambda value: round(value, 3))
points = st.tuples(numbers, numbers)


def shown(*planes):
    return Figure("Planes", (), (), planes=planes)


def rows(plane, width=60, encoding="utf-8"):
    """The characters between the axes."""
    text = shown(plane).terminal(width, colour=False, encoding=encoding)
    return [re.split("[│|]", line, maxsplit=1)[1] for line in text.splitlines() if "│" in line or "|" in line]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12))
def test_ticks_are_round_and_between_the_ends(low, span, most):
    found = round_numbers(low, low + span, most)
    assert len(found) <= most + 1
    assert all(low - 1e-6 * span <= place <= low + 1.000001 * span for place in found)
    steps = [b - a for a, b in pairwise(found)]
    if steps:
        digits = steps[0] / 10 ** math.floor(math.log10(steps[0]) + 1e-6)
        assert min(abs(digits - lead) for lead in (1, 2, 5, 10)) < 1e-3


@given(st.lists(points, min_size=2, max_size=6))
def test_a_line_is_cut_at_the_ends_and_only_there(line):
    x, y = (-2.0, 3.0), (-1.0, 2.5)
    parts = list(inside(line, x, y))
    seen = [point for part in parts for point in part]
    assert all(x[0] - 1e-9 <= a <= x[1] + 1e-9 and y[0] - 1e-9 <= b <= y[1] + 1e-9 for a, b in seen)
    length = sum(math.dist(a, b) for part in parts for a, b in pairwise(part))
    # The oracle walks the line in small steps and measures those whose middle is inside
    walked = 0.0
    for a, b in pairwise(line):
        middles = np.array(a) + np.outer((np.arange(2000) + 0.5) / 2000, np.subtract(b, a))
        held = (middles >= (x[0], y[0])) & (middles <= (x[1], y[1]))
        walked += held.all(axis=1).mean() * math.dist(a, b)
    assert length == pytest.approx(walked, abs=0.05)


def test_a_line_inside_stays_whole():
    line = [(0.1, 0.2), (0.3, 0.7), (1.0, 1.0)]
    assert list(inside(line, (0, 1), (0, 1))) == [line]


def test_ends_hold_all_points_with_one_unit_on_both_axes():
    plane = Plane(lines=(Stroke([(0, 0), (10, 1)]),))
    (left, right), (bottom, top) = plane.ends()
    assert (left, right) == pytest.approx((-0.6, 10.6))
    assert top - bottom == pytest.approx((right - left) / 3)  # no flatter than that
    wide, high = plane.sides()
    assert wide / (right - left) == pytest.approx(high / (top - bottom))
    free = Plane(lines=plane.lines, equal=False)
    assert free.ends()[1] == pytest.approx((-0.06, 1.06))
    assert free.sides() == (252, 252)
    assert Plane().ends() == ((-1, 1), (-1, 1))


@given(points)
def test_a_point_is_drawn_where_its_numbers_say(point):
    plane = Plane(x=(-6, 6), y=(-6, 6), dots=(Dots([point], shape="square", size=2),))
    block = Block(plane)
    square = [item for item in block.items(100, 50) if isinstance(item, Path) and item.fill][-1]
    x = sum(corner[0] for corner in square.points) / 4
    y = sum(corner[1] for corner in square.points) / 4
    assert x == pytest.approx(100 + block.left + 252 * (point[0] + 6) / 12)
    assert y == pytest.approx(50 + block.head + 252 * (6 - point[1]) / 12)


@given(points)
def test_a_terminal_shows_a_dot_at_its_place(point):
    found = rows(Plane(x=(-6, 6), y=(-6, 6), dots=(Dots([point]),)))
    (row,) = [at for at, line in enumerate(found) if "●" in line]
    assert (len(found), row) == (22, min(21, int((6 - point[1]) / 12 * 87 / 4)))
    assert found[row].index("●") == min(43, int((point[0] + 6) / 12 * 87 / 2))


def test_braille_points_follow_a_line():
    found = rows(Plane(x=(0, 1), y=(0, 1), lines=(Stroke([(0, 0), (1, 1)]),)))
    places = [
        (4 * row + int(down), 2 * col + int(across))
        for row, line in enumerate(found)
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
    plane = Plane(x=(-2, 2), y=(-2, 2), arrows=(Arrows([((0, 0), tip)]),))
    assert "".join(rows(plane)).replace(" ", "") == sign
    assert "".join(rows(plane, encoding="ascii")).replace(" ", "") == plain
    heads = [item for item in Block(plane).items(0, 0) if isinstance(item, Path) and item.fill]
    if tip != (0, 0):
        place = Block(plane)._place(tip, Block(plane).left, Block(plane).head)
        assert heads[0].points[0] == pytest.approx(place)


def test_what_lies_outside_is_left_out():
    far = Plane(
        x=(0, 1),
        y=(0, 1),
        lines=(Stroke([(2, 2), (3, 3)]),),
        dots=(Dots([(5, 5)], labels=["far"]),),
        arrows=(Arrows([((0.5, 0.5), (2, 2))]),),
    )
    empty = Plane(x=(0, 1), y=(0, 1))
    assert list(Block(far).items(0, 0)) == list(Block(empty).items(0, 0))
    assert rows(far) == rows(empty)


def test_the_legend_has_each_name_once():
    line, dots = Stroke([(0, 0), (1, 1)], "orbit"), Dots([(0, 0)], "orbit")
    planes = Plane(lines=(line, line), dots=(dots,)), Plane(lines=(line,), dots=(Dots([(1, 1)]),))
    assert [(name, list(map(type, marks))) for name, marks in legend(planes)] == [("orbit", [Stroke, Dots])]
    texts = [item.text for item in shown(*planes).scene.items if isinstance(item, Text)]
    assert texts.count("orbit") == 1
    assert shown(*planes).terminal(60, colour=False, encoding="utf-8").splitlines()[-1] == "⠤⠤● orbit"


def test_classes_have_looks_of_their_own():
    found = classes([(at, at) for at in range(20)], [at % 10 for at in range(20)])
    assert [dots.name for dots in found] == list("0123456789")
    assert len({(dots.colour, dots.shape) for dots in found}) == 10
    assert "".join(rows(Plane(dots=found))).count("7") == 2


def test_numpy_points_are_written_as_plain_numbers():
    cloud = np.random.default_rng(0).normal(size=(5, 2))
    picture = shown(Plane("A cloud", dots=(Dots(cloud),), lines=(Stroke(cloud),)))
    drawn = ElementTree.fromstring(picture.svg())
    assert len([path for path in drawn.iter(f"{SVG}path") if path.attrib["fill"] == "#0072b2"]) == 5
    assert "np." not in picture.svg() + picture.tikz()
    assert picture.pdf() == shown(*picture.planes).pdf()
    assert picture.png()[:4] == b"\x89PNG"


@pytest.mark.parametrize("width", [16, 20, 40, 80, 132])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_a_terminal_is_never_overrun(width, encoding):
    plane = Plane(
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
    plane = Plane(x=(-2, 2), y=(-2, 2), dots=(Dots([(1, 0), (-1, 0)], labels=["east", "west"]),))
    block = Block(plane)
    texts = {item.text: item for item in block.items(0, 0) if isinstance(item, Text)}
    east, west = (block._place((x, 0), block.left, block.head)[0] for x in (1, -1))
    assert texts["east"].x > east
    assert texts["west"].x < west


def test_headed_lines_have_a_head_on_each_stretch():
    plane = Plane(lines=(Stroke([(0, 0), (1, 0), (1, 1)], headed=True),))
    assert len([item for item in Block(plane).items(0, 0) if isinstance(item, Path) and item.fill]) == 2


def test_grid_lines_stand_at_the_ticks():
    block = Block(Plane(x=(-1, 1), y=(-1, 1)))
    upright = sorted(item.x1 for item in block.items(0, 0) if isinstance(item, Line) and item.x1 == item.x2)
    assert upright == pytest.approx([block.left + 252 * (tick + 1) / 2 for tick in block.ticks[0]])


def test_ends_and_points_must_be_numbers():
    with pytest.raises(DomainError, match=re.escape("x of a plane is (least, greatest), not (1, 1)")):
        Plane(x=(1, 1))
    with pytest.raises(DomainError, match=r"finite numbers, and \(nan, 1.0\) is among them; leave it out"):
        Plane(dots=(Dots([(math.nan, 1.0)]),))


def test_colours_of_a_terminal_are_the_nearest():
    assert [ansi(colour) for colour in ("#000000", "#808080", "#00ff00", "#0072b2")] == [16, 244, 46, 25]


def test_small_dots_are_points_of_braille():
    found = "".join(rows(Plane(x=(0, 1), y=(0, 1), dots=(Dots([(0, 1), (1, 0)], size=1),))))
    assert found.replace(" ", "") == chr(BRAILLE + 0x01) + chr(BRAILLE + 0x80)  # upper left, lower right
    plain = "".join(rows(Plane(dots=(Dots([(0, 1)], size=1),)), encoding="ascii"))
    assert plain.replace(" ", "") == "."
