"""Shapes, numbers, curves and scales of a figure, in every form."""

import math
import re
import zlib
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lattend.draw.charts.axes import DrawnChart
from lattend.draw.charts.chart import Chart, Dots, Scale, Stroke, curves
from lattend.draw.formats.page import png
from lattend.draw.formats.palette import AMOUNTS, SIGNED
from lattend.draw.formats.scene import Path, Rect, Scene, Text, text_width
from lattend.draw.formats.terminal import types_labels
from lattend.draw.formats.tikz import tikz
from lattend.draw.grid import marks
from lattend.draw.grid.marks import Label, Shape, box, clipped, ellipse, inside
from lattend.draw.grid.panel import Panel, cell_side
from lattend.draw.picture import Below, Picture

SVG = "{http://www.w3.org/2000/svg}"
SQUARE = ((10.0, 10.0), (30.0, 10.0), (30.0, 30.0), (10.0, 30.0))
PAGE = Rect(0, 0, 40, 40, "#ffffff")


@pytest.mark.parametrize("text", ["7", "42", "100"])
@pytest.mark.parametrize("cols", [3, 9, 20, 50])
def test_words_below_follow_what_a_terminal_has_room_for(text, cols):
    sides = cell_side("row", 2), cell_side("column", cols)
    marks_ = (Label(0.5, 1.5, text),)
    panel = Panel(np.zeros((2, cols), np.uint8), AMOUNTS, *sides, "", marks_)
    result = Picture("t", (panel,), labelled=Below(("with words",)), bare=Below(("without",)))
    for width in range(10, 130):
        lines = result.terminal(width, colour=False, encoding="utf-8").splitlines()
        row = next(line for line in lines if line.startswith("0 "))
        assert types_labels(panel, width) == (text in row[2:])
        assert ("with words" in lines) == (text in row[2:]) != ("without" in lines)


def heat_panel(rows=3, cols=4, labels=True):
    scale = Scale("weight", 0.0, 1.0)
    values = np.linspace(0, 1, rows * cols).reshape(rows, cols)
    numbers = [
        Label(row + 0.5, col + 0.5, f"{row}{col}") for row in range(rows) for col in range(cols) if labels
    ]
    sides = cell_side("row", rows), cell_side("column", cols)
    return Panel(scale.cells(values), AMOUNTS, *sides, "a map", tuple(numbers)), scale


def figure(**more):
    panel, scale = heat_panel()
    line = ("worst", ((1.0, 0.1), (2.0, 0.01), (3.0, 1e-3)))
    chart = Chart("Leak", "α", "weight", curves([line]), log_y=10, size=(120.0, 60.0))
    return Picture(
        "A figure",
        (panel,),
        ("a caption",),
        facts=(("tokens", "14 × 14 = 196"), ("α", "at least 2")),
        table=(("head", "row"), ("0", "−1")),
        charts=(chart,),
        scales=(scale,),
        data={"tokens": 196},
        **more,
    )


def test_an_area_in_png_is_blended_with_what_lies_below():
    scene = Scene(40, 40, (PAGE, Path(SQUARE, fill="#000000", opacity=0.5)))
    pixels = np.asarray(Image.open(BytesIO(png(scene, 1.0))).convert("RGB"))
    assert abs(int(pixels[20, 20, 0]) - 127) <= 1
    assert pixels[5, 5].tolist() == [255, 255, 255]


def test_a_closed_line_in_png_has_all_its_sides():
    scene = Scene(40, 40, (PAGE, Path(SQUARE, "#000000", 2, closed=True)))
    pixels = np.asarray(Image.open(BytesIO(png(scene, 2.0))).convert("L")) < 128
    for y, x in ((20, 40), (60, 40), (40, 20), (40, 60)):
        assert pixels[y - 1 : y + 1, x - 1 : x + 1].all()
    assert not pixels[40, 40]
    open_ = Scene(40, 40, (PAGE, Path(SQUARE, "#000000", 2)))
    assert not (np.asarray(Image.open(BytesIO(png(open_, 2.0))).convert("L"))[39:41, 20] < 128).any()


def test_paths_in_text_forms():
    scene = Scene(40, 40, (PAGE, Path(SQUARE, "#112233", 2, "#445566", 0.25, closed=True)))
    result = figure()
    object.__setattr__(result, "__dict__", {**result.__dict__, "scene": scene})
    path = ElementTree.fromstring(result.svg()).find(f"{SVG}path")
    assert path is not None
    assert path.attrib["d"] == "M10 10L30 10L30 30L10 30Z"
    assert (path.attrib["fill"], path.attrib["fill-opacity"], path.attrib["stroke"]) == (
        "#445566",
        "0.25",
        "#112233",
    )
    text = tikz(scene)
    assert "fill opacity=0.25] (10,10) -- (30,10) -- (30,30) -- (10,30) -- cycle;" in text
    assert "line width=1.5bp, line join=round] (10,10) -- (30,10) -- (30,30) -- (10,30) -- cycle;" in text
    assert "{HTML}{112233}" in text and "{HTML}{445566}" in text
    data = result.pdf()
    assert b"/ca 0.25" in data
    streams = re.findall(rb"stream\n(.*?)\nendstream", data, re.DOTALL)
    drawn = b"".join(zlib.decompress(stream) for stream in streams if stream[:1] == b"x")
    assert b"7.5 22.5 m" in drawn  # (10, 10) of 40, three quarters of a point each, from below


def test_signs_in_tikz():
    scene = Scene(40, 40, (PAGE, Text(0, 10, "vᵀ r_δ ≥ −α‖Δ‖²…", 10, "#000000")))
    (node,) = [line for line in tikz(scene).splitlines() if line.startswith(r"\node")]
    assert node.isascii()
    assert r"\ensuremath{\alpha}\ensuremath{\Vert}\ensuremath{\Delta}" in node


def test_every_form_of_a_figure(tmp_path):
    result = figure()
    for ending, start in (("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("tex", b"% needs")):
        assert result.save(tmp_path / f"f.{ending}").read_bytes().startswith(start)
    assert result._repr_svg_() == result.svg()
    assert "<desc>tokens: 14 × 14 = 196. α: at least 2. Leak. a caption</desc>" in result.svg()
    assert result.json() == {"title": "A figure", "tokens": 196}
    assert repr(result) == "<Picture A figure: a caption>"


TEXT = """\
A figure

tokens  14 × 14 = 196
α       at least 2

head  row
   0   −1

a map
row down, column across
  0  1  2  3
0 00 01 02 03
1 10 11 12 13
2 20 21 22 23

Leak
weight up, α across
  0.1 │⠉⠒⠤⣀
      │    ⠉⠒⠢⢄⡀
 0.01 │        ⠈⠑⠢⢄⡀
      │            ⠈⠑⠢⠤⣀
0.001 │                 ⠉⠒⠤⣀
      └─────────────────────
       1         2         3
⠤⠤ worst

a caption
0 ·░▒▓█ 1  weight"""


def test_text():
    assert figure().terminal(80, False, "utf-8") == TEXT
    spelt = figure().terminal(80, False, "ascii")
    assert "14 x 14 = 196\nalpha   at least 2" in spelt and "0 .:+%# 1  weight" in spelt


def test_numbers_leave_the_cells_where_there_is_no_room():
    panel, scale = heat_panel(3, 12)
    result = Picture("f", (panel,), (), scales=(scale,))
    assert "0 ·░" in result.terminal(16, False, "utf-8")
    assert "011" in result.terminal(80, False, "utf-8")


@pytest.mark.parametrize("looks", [AMOUNTS, SIGNED])
def test_merged_heat_maps_keep_their_mean(looks):
    cells = np.arange(60, dtype=np.uint8).reshape(1, 60)
    panel = Panel(cells, looks, cell_side("row", 1), cell_side("column", 60))
    merged = panel.merged(1, 3)
    assert merged.looks is looks
    assert merged.cells.tolist() == [list(range(1, 60, 3))]


places = st.tuples(st.floats(-5, 15), st.floats(-5, 15))
precisions = st.tuples(st.floats(0.05, 5), st.floats(-0.9, 0.9), st.floats(0.05, 5)).map(
    lambda p: (p[0], p[1] * math.sqrt(p[0] * p[2]), p[2])
)


@given(places, precisions, st.floats(0.1, 3))
def test_an_ellipse_is_where_the_form_has_its_level(centre, precision, level):
    a, b, c = precision
    for y, x in ellipse(centre, precision, level):
        dy, dx = y - centre[0], x - centre[1]
        assert a * dy * dy + 2 * b * dy * dx + c * dx * dx == pytest.approx(level)


@given(places, precisions)
def test_clipped_areas_are_what_lies_inside(centre, precision):
    points = ellipse(centre, precision, 1.0)
    cut = clipped(points, 8, 10)
    assert all(-1e-9 <= y <= 8 + 1e-9 and -1e-9 <= x <= 10 + 1e-9 for y, x in cut)
    a, b, c = precision
    for y, x in cut:  # corners lie in the whole area, which is convex
        dy, dx = y - centre[0], x - centre[1]
        assert a * dy * dy + 2 * b * dy * dx + c * dx * dx <= 1 + 1e-6
    if all(0 <= y <= 8 and 0 <= x <= 10 for y, x in points):
        assert cut == points
    runs = list(inside(points, 8, 10))
    assert {place for run in runs for place in run} <= set(points)


def test_marks_are_placed_in_cells():
    label, shape = Label(0.5, 1.5, "7"), box(0, 0, 1, 2, "#000000", 1.5)
    text, path = marks.items([label, shape], left=100, top=50, height=20, width=10)
    assert isinstance(text, Text) and isinstance(path, Path)
    assert (text.x, text.anchor) == (115, "middle")
    assert text_width("7", text.size) <= 0.86 * 10 + 1e-9
    assert path.points == ((100, 50), (120, 50), (120, 70), (100, 70))
    assert path.closed and path.width == 1.5
    assert list(marks.items([Label(0, 0, "much too long")], 0, 0, 5, 5)) == []
    assert isinstance(Shape(((0, 0), (1, 1)), "#000000"), Shape)


def test_a_chart_has_its_numbers_where_they_belong():
    line = ((1.0, 1e-1), (2.0, 1e-2), (3.0, 1e-4))
    dots = Dots([(2.0, 1e-2)], shape="square", size=3, labels=["here"])
    chart = Chart("", "α", "leak", (Stroke(line, "worst", "#0072b2"),), (dots,), log_y=10)
    items = list(DrawnChart(chart, legend=True).items(0, 0))
    path = next(item for item in items if isinstance(item, Path) and item.colour == "#0072b2")
    (x1, y1), (x2, y2), (x3, y3) = path.points
    assert x2 - x1 == pytest.approx(x3 - x2)
    assert y3 - y2 == pytest.approx(2 * (y2 - y1))  # two decades, and one
    (dot,) = [item for item in items if isinstance(item, Path) and item.fill == "#0072b2"]
    assert np.mean(dot.points, axis=0) == pytest.approx((x2, y2), abs=0.5)
    texts = {item.text for item in items if isinstance(item, Text)}
    assert {"0.1", "0.01", "0.001", "0.0001", "1", "2", "3", "α", "leak", "here", "worst"} <= texts


def test_a_linear_chart_may_pass_below_0():
    line = ((0.0, -1.0), (1.0, 0.0), (2.0, 3.0))
    items = list(DrawnChart(Chart("", "β", "score", curves([("key", line)])), legend=False).items(0, 0))
    path = next(item for item in items if isinstance(item, Path) and item.colour == "#0072b2")
    (_, y1), (_, y2), (_, y3) = path.points
    assert y2 - y3 == pytest.approx(3 * (y1 - y2))  # three up, and one
    texts = {item.text for item in items if isinstance(item, Text)}
    assert {"−1", "0", "1", "2", "3"} <= texts and "key" not in texts


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 4), st.sampled_from([0, 120, 300]))
def test_nothing_leaves_the_page(rows, cols, panels, grid):
    panel, scale = heat_panel(rows, cols)
    result = Picture(
        "f",
        panels * (panel,),
        ("c",),
        facts=(("name", "said " * 30),),
        scales=(scale, scale),
        charts=figure().charts,
        grid=grid,
    )
    scene = result.scene
    for item in scene.items:
        if isinstance(item, Rect):
            assert item.x + item.width <= scene.width + 1e-6 and item.y + item.height <= scene.height + 1e-6
        if isinstance(item, Path):
            assert all(0 <= x <= scene.width and 0 <= y <= scene.height for x, y in item.points)
        if isinstance(item, Text) and not item.turned:
            before = {"start": 0, "middle": 0.5, "end": 1}[item.anchor]
            wide = text_width(item.text, item.size, item.bold)
            assert item.x - before * wide >= 0 and item.x + (1 - before) * wide <= scene.width
