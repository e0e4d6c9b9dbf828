"""Looks, shades, ticks, shares and the layout of a page."""

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lattend.draw.formats import palette
from lattend.draw.formats.palette import ATTENDED, BOTH, EMPTY, LEVELS, MIXED, ONLY_A, ONLY_B, OWN, SHADES
from lattend.draw.formats.scene import Rect, Segment, Text, patch, spelt, text_width, wrapped
from lattend.draw.grid.layout import cell_size
from lattend.draw.grid.panel import Side, cell_side, compared_tiles, squares, tile_side, tiles
from lattend.draw.grid.titles import clipped
from lattend.draw.grid.view import edges, tile_sizes
from lattend.draw.picture import Picture
from lattend.report.numbers import compact, percent

SIDE = Side("query", 1)


def luminance(colour: str) -> float:
    """The relative luminance of `#rrggbb`, 0 for black and 1 for white (WCAG 2)."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    """The contrast ratio of WCAG 2, 1 to 21."""
    light, dark = sorted((luminance(a.fill), luminance(b.fill)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_luminance_of_known_colours():
    assert luminance("#000000") == 0
    assert luminance("#ffffff") == pytest.approx(1)
    assert luminance("#808080") == pytest.approx(0.2159, abs=1e-4)


def test_looks_differ_in_grey():
    assert contrast(EMPTY, ATTENDED) > 4
    assert contrast(ATTENDED, OWN) > 2.5
    assert contrast(EMPTY, SHADES[1]) > 1.7  # a sliver is seen beside nothing
    for a, b in itertools.combinations((EMPTY, ONLY_A, ONLY_B, BOTH), 2):
        assert contrast(a, b) > 1.7


def test_looks_differ_without_colour():
    for group in ((EMPTY, ATTENDED, OWN, palette.HERE), (EMPTY, ONLY_A, ONLY_B, BOTH, MIXED)):
        for name in ("glyph", "plain"):
            assert len({getattr(look, name) for look in group}) == len(group)
    assert len({look.hatch for look in (EMPTY, ONLY_A, ONLY_B, BOTH, MIXED)}) == 5
    assert [look.ink != look.fill for look in (ONLY_A, ONLY_B, BOTH, MIXED)] == [True] * 4


def test_fuller_is_darker():
    levels = [luminance(look.fill) for look in SHADES]
    assert all(light > dark for light, dark in itertools.pairwise(levels))
    assert [look.glyph for look in SHADES] == ["·"] + 5 * ["░"] + 5 * ["▒"] + 5 * ["▓"] + 5 * ["█"]


@given(st.lists(st.tuples(st.integers(0, 10**30), st.integers(1, 10**30)), min_size=1))
def test_shade_is_the_share_rounded_up(pairs):
    counts = np.array([[min(pair) for pair in pairs]], dtype=object)
    areas = np.array([[max(pair) for pair in pairs]], dtype=object)
    cells = tiles(counts, areas, SIDE, SIDE).cells[0]
    for level, count, area in zip(cells.tolist(), counts[0], areas[0], strict=True):
        assert level - 1 < Fraction(LEVELS * count, area) <= level


def test_one_square_in_a_huge_tile_is_seen():
    counts = np.array([[0, 1, 10**24]], dtype=object)
    assert tiles(counts, np.full((1, 3), 10**24, object), SIDE, SIDE).cells.tolist() == [[0, 1, LEVELS]]


def test_tiles_with_several_classes_have_their_own_look():
    only_a, only_b, both = np.array([[[0, 3, 0, 0, 1, 1]], [[0, 0, 3, 0, 1, 0]], [[0, 0, 0, 3, 0, 1]]])
    assert compared_tiles(only_a, only_b, both, SIDE, SIDE).cells.tolist() == [[0, 1, 2, 3, 4, 4]]


def test_merging_keeps_several_classes():
    only_a, only_b, both = np.array([[[1, 0, 1, 0, 0, 0]], [[1, 0, 0, 0, 2, 2]], [[0, 0, 0, 3, 0, 0]]])
    panel = compared_tiles(only_a, only_b, both, Side("query", 1), Side("key", 6))
    assert panel.cells.tolist() == [[4, 0, 1, 3, 2, 2]]
    assert panel.merged(1, 2).cells.tolist() == [[4, 4, 2]]


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 9), st.randoms(use_true_random=False))
def test_merging_keeps_the_mean(size, rows, cols, random):
    marked = np.array([[random.random() < 0.5 for _ in range(size)] for _ in range(size)])
    merged = squares(marked, cell_side("query", size), cell_side("key", size)).merged(rows, cols)
    assert merged.cells.shape == (-(-size // rows), -(-size // cols))
    for (i, j), level in np.ndenumerate(merged.cells.astype(int)):
        part = marked[i * rows : (i + 1) * rows, j * cols : (j + 1) * cols]
        assert level - 1 < Fraction(LEVELS * int(part.sum()), part.size) <= level


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (1500, "1.5k"),
        (1250, "1250"),
        (250_000, "250k"),
        (2_500_000, "2.5M"),
        (10**9, "1G"),
        (5 * 10**14, "500T"),
        (10**18, "1e18"),
        (25 * 10**17, "2.5e18"),
    ],
)
def test_compact_numbers(number, text):
    assert compact(number) == text


def test_ticks_stand_at_their_positions():
    assert cell_side("key", 3).ticks == ((0.5, "0"), (1.5, "1"), (2.5, "2"))
    assert [text for _, text in cell_side("key", 100).ticks] == ["0", "20", "40", "60", "80"]
    assert cell_side("key", 5, start=98, every=2).ticks[2] == (2.5, "100")
    assert cell_side("key", 5, every=2).heavy == (2, 4)
    assert tile_side("key", 1000, 16).ticks[-1] == (62.5, "1k")
    assert tile_side("key", 1000, 16).length == 62.5


@given(st.integers(1, 10**15), st.integers(1, 10**15))
def test_tiles_cover_the_grid(queries, keys):
    for length, tile in zip((queries, keys), tile_sizes(queries, keys), strict=True):
        cut = edges(length, tile)
        assert (cut[0], cut[-1]) == (0, length) and len(cut) - 1 <= 64
        assert {b - a for a, b in itertools.pairwise(cut[:-1])} <= {tile}
        assert 0 < cut[-1] - cut[-2] <= tile


def test_tiles_are_square_unless_one_side_is_far_longer():
    assert tile_sizes(1_000_000, 1_000_000) == (15_625, 15_625)
    assert tile_sizes(100, 800) == (13, 13)
    assert tile_sizes(1, 1_000_000) == (1, 15_625)


@given(st.integers(1, 256), st.integers(1, 256))
def test_cells_fit_the_page(rows, cols):
    height, width = cell_size(rows, cols)
    assert min(height, width) >= 2 and max(height, width) <= min(22, 6 * min(height, width))
    assert max(height * rows, width * cols) <= 512
    if rows == cols:
        assert height == width


@given(st.integers(0, 10**30), st.integers(1, 10**30))
def test_share_is_exact_to_its_digits(count, total):
    count = min(count, total)
    text = percent(count, total)
    assert (text == "0%") == (count == 0)
    assert (text == "100%") == (count == total)
    if text == "under 0.000001%":
        assert Fraction(100 * count, total) < Fraction(1, 10**6)
    elif text == "over 99.999999%":
        assert Fraction(100 * (total - count), total) < Fraction(1, 10**6)
    else:
        digits = Decimal(text.rstrip("%"))
        half = Fraction(1, 2 * 10 ** len(text.rstrip("%").partition(".")[2]))
        assert abs(Fraction(digits) - Fraction(100 * count, total)) <= half
        assert (0 < digits < 100) or count in (0, total)


@pytest.mark.parametrize(
    ("count", "total", "text"),
    [
        (21, 64, "32.8%"),
        (1, 8, "12.5%"),
        (1, 1000, "0.10%"),
        (255, 10**6, "0.026%"),
        (10**6 - 1, 10**6, "99.99990%"),
        (1, 10**9, "under 0.000001%"),
        (10**9 - 1, 10**9, "over 99.999999%"),
        (0, 0, "0%"),
        (0, 5, "0%"),
        (5, 5, "100%"),
    ],
)
def test_share_text(count, total, text):
    assert percent(count, total) == text


def test_long_text_is_cut():
    assert clipped("a\tb\n\x00c") == "a b ?c"
    assert len(clipped("word " * 1000)) <= 245
    lines = wrapped("word " * 1000, 11, 340)
    assert len(lines) == 3 and lines[-1].endswith(" ...")
    assert all(text_width(line, 11) <= 340 for line in lines)
    assert wrapped("aaaaaaaaaaaaa t = 3", 10, 100) == ["aaaaaaaaaaaaa", "t = 3"]


def test_spelling():
    assert spelt("n × n − 1 ≤ 2…", "ascii") == "n x n - 1 <= 2..."
    assert spelt("ünï", "ascii") == "?n?"
    assert spelt("ü × 2", "latin-1") == "ü × 2"


def hatch(rect, look, spacing):
    first, *rest = patch(rect, look, spacing, (0.0, 0.0), (spacing, spacing))
    assert first == rect
    return [item for item in rest if isinstance(item, Segment)]


@given(st.integers(-5, 50), st.integers(-5, 50), st.integers(1, 60), st.integers(1, 60), st.integers(2, 11))
def test_hatches_stay_inside_and_continue(x, y, width, height, spacing):
    for look in (ONLY_A, ONLY_B, BOTH, MIXED):
        lines = hatch(Rect(x, y, width, height, look.fill), look, spacing)
        for line in lines:
            assert x <= line.x1 <= x + width and x <= line.x2 <= x + width
            assert y - 1e-9 <= min(line.y1, line.y2) and max(line.y1, line.y2) <= y + height + 1e-9
        assert lines or min(width, height) <= spacing
    for look, sign in ((ONLY_A, 1), (ONLY_B, -1)):
        lines = hatch(Rect(x, y, width, height, look.fill), look, spacing)
        levels = [line.x1 + sign * line.y1 for line in lines]
        low, high = sorted((sign * y, sign * (y + height)))
        steps = (spacing * (i + 0.5) for i in range(-100, 200))
        assert levels == pytest.approx([step for step in steps if x + low < step < x + width + high])


def box(text: Text):
    """Left, top, right and bottom of a text."""
    width = text_width(text.text, text.size, text.bold)
    before = {"start": 0, "middle": 0.5, "end": 1}[text.anchor] * width
    if text.turned:
        return text.x - 0.75 * text.size, text.y + before - width, text.x + 0.22 * text.size, text.y + before
    return text.x - before, text.y - 0.75 * text.size, text.x - before + width, text.y + 0.22 * text.size


@given(
    st.integers(1, 256),
    st.integers(1, 256),
    st.sampled_from(["", "query", "query pixel, row by row"]),
    st.integers(1, 6),
    st.text("abc de", max_size=300),
    st.text("abc de", max_size=300),
)
def test_nothing_overlaps_or_leaves_the_page(rows, cols, label, panels, title, caption):
    panel = squares(np.ones((rows, cols), bool), cell_side(label, rows), cell_side(label, cols), None, "head")
    picture = Picture(
        clipped(title), panels * (panel,), (clipped(caption),), ("under",), (ATTENDED, OWN, *SHADES)
    )
    scene = picture.scene
    grids = [item for item in scene.items if isinstance(item, Rect)][1:]
    boxes = [box(item) for item in scene.items if isinstance(item, Text)]
    boxes += [(r.x, r.y, r.x + r.width, r.y + r.height) for r in grids if r.fill == EMPTY.fill]
    for left, top, right, bottom in boxes:
        assert left >= 0 and top >= 0 and right <= scene.width and bottom <= scene.height
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
