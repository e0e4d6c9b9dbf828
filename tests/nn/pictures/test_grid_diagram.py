"""The diagram of a 2-D RNN: an arrow for every product with a weight, between the right units."""

import itertools
import math
import re
from xml.etree import ElementTree

import pytest

import lattend as lt
from lattend.draw.formats.scene import Path, Text
from lattend.errors import DomainError, NamingError
from lattend.nn.pictures.grid_diagram import COLOURS, MOST_RISING, PALE, draw_diagram, plain

SIZES = [(1, 1), (1, 5), (4, 4), (6, 3), (5, 7), (12, 12)]


def arrows(picture, name):
    """Tail and tip of every arrow of these weights: its line, and after it the head that ends it."""
    items = picture.scene.items
    found = []
    for line, head in itertools.pairwise(items):
        if isinstance(line, Path) and len(line.points) == 2 and line.colour in (COLOURS[name], PALE[name]):
            assert isinstance(head, Path) and head.fill == line.colour
            found.append((line.points[0], head.points[0]))
    return found


def units(picture, rows, cols):
    """The centres of the states, row by row."""
    rings = [item for item in picture.scene.items if isinstance(item, Path) and len(item.points) == 48]
    assert len(rings) == rows * cols
    middles = [tuple(sum(axis) / 48 for axis in zip(*ring.points, strict=True)) for ring in rings]
    return {(at // cols, at % cols): middle for at, middle in enumerate(middles)}


def nearest(places, point):
    return min(places, key=lambda at: math.dist(places[at], point))


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_arrows_join_neighbours(rows, cols):
    picture = draw_diagram(rows, cols)
    centres = units(picture, rows, cols)
    cells = [(row, col) for row in range(rows) for col in range(cols)]
    for name, (dy, dx) in {"W_left": (0, -1), "W_top": (-1, 0)}.items():
        joined = {(nearest(centres, tail), nearest(centres, tip)) for tail, tip in arrows(picture, name)}
        wanted = {((r + dy, c + dx), (r, c)) for r, c in cells if (r + dy, c + dx) in centres}
        assert joined == wanted
    rising = arrows(picture, "W_in")
    assert all(tail[0] == tip[0] and tail[1] > tip[1] for tail, tip in rising)  # straight up
    lifted = {nearest(centres, tip) for _, tip in rising}
    assert len(rising) == len(lifted)
    if rows * cols <= MOST_RISING:
        assert lifted == set(cells)
    else:
        assert {cell for cell in cells if cell[0] == rows - 1} < lifted
        assert "W_in is drawn from the last row" in picture.drawn[0]


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (4, 4), (5, 7), (40, 3)])
def test_arrows_are_the_products_that_the_cost_counts(rows, cols):
    arrows_of = draw_diagram(rows, cols).data["arrows"]
    assert sum(arrows_of.values()) == lt.cost.rnn2d(rows=rows, cols=cols, c=1, h=1).multiplies
    assert arrows_of["W_in"] == rows * cols


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_the_equation_stands_beneath_in_every_form(cell):
    picture = lt.nn.draw_grid(4, diagram=True, cell=cell)
    lines = picture.data["equation"]
    formulas = [
        item for item in picture.scene.items if isinstance(item, Text) and item.formula and item.size > 14
    ]
    assert [plain(item.text) for item in formulas] == lines
    lowest = max(y for item in picture.scene.items if isinstance(item, Path) for _, y in item.points)
    assert all(item.y > lowest for item in formulas)
    terminal = picture.terminal(width=100, colour=False, encoding="utf-8")
    assert all(line in terminal for line in lines)
    assert terminal.count("○") + terminal.count("●") == 16 + 1  # one more in the words below
    for text in ElementTree.fromstring(picture.svg()).iter("{http://www.w3.org/2000/svg}text"):
        low = 0.0  # below the baseline: a subscript is small there, and what follows it is back
        for part in text:
            low += float(part.attrib["dy"])
            assert ("font-size" in part.attrib) == (low > 0)
    assert re.search(r"W(</tspan>)?<tspan [^>]*>left</tspan>", picture.svg())
    assert r"W\textsubscript{in}" in picture.tikz() and picture.tikz().isascii()
    assert picture.png().startswith(b"\x89PNG") and picture.pdf().startswith(b"%PDF")


def test_the_equation_of_the_plain_cell():
    assert draw_diagram(2, 2).data["equation"] == [
        "h[i, j] = σ(W_in x[i, j] + W_left h[i, j−1] + W_top h[i−1, j])"
    ]


def test_shapes_of_weights():
    facts = dict(lt.nn.draw_grid(4, diagram=True, c=3, h=64, cell="lstm").facts)
    assert facts["W_in"].startswith("320 × 3, from the pixel below: 16 arrows")  # 5 gates of 64
    assert facts["W_top"] == "320 × 64, from the state above: 12 arrows, none into row 0"
    net = lt.nn.GridRNN(2, 5)
    facts = dict(lt.nn.draw_grid(net, size=(3, 4), diagram=True).facts)
    assert facts["W_left"].startswith("5 × 5") and tuple(net.W_left[0].shape) == (5, 5)


def test_large_images_show_a_corner():
    picture = lt.nn.draw_grid((40, 9), diagram=True)
    assert picture.caption[0] == "shown: rows 0–7 and columns 0–7 of 40 × 9"
    assert len(units(picture, 8, 8)) == 64
    with pytest.raises(DomainError, match=r"pixel \(9, 1\) is not drawn: of more than 12 rows or columns"):
        lt.nn.draw_grid(40, diagram=True, pixel=(9, 1))
    with pytest.raises(NamingError, match="a diagram shows one direction, at no step"):
        lt.nn.draw_grid(4, diagram=True, frames=True)
    with pytest.raises(NamingError, match="a diagram shows one direction"):
        lt.nn.draw_grid(4, diagram=True, directions=2)


def test_the_bold_pixel_is_the_chosen_one():
    picture = draw_diagram(4, 5, pixel=(3, 1))
    centres = units(picture, 4, 5)
    bold = [
        item.points[0]
        for item in picture.scene.items
        if isinstance(item, Path) and len(item.points) == 2 and item.colour in COLOURS.values()
    ]
    assert len(bold) == 3
    tips = {nearest(centres, tip) for name in COLOURS for tail, tip in arrows(picture, name) if tail in bold}
    assert tips == {(3, 1)}


@pytest.mark.parametrize("width", [24, 40, 60])
def test_narrow_terminals(width):
    for size in (3, 12):
        text = draw_diagram(size, size).terminal(width=width, colour=False, encoding="ascii")
        assert max(map(len, text.splitlines())) <= width
        assert text.isascii() and "o > " in text
