"""draw: what is drawn of a rule, at which numbers, and what is written beside it."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.draw import draw
from lattend.draw.formats.palette import ATTENDED, HERE, LEVELS, MIXED, OWN, SHADES
from lattend.draw.grid import view
from lattend.draw.grid.bind import bound
from lattend.errors import DomainError, LattendError, NamingError, TooLarge
from lattend.rules.catalogue.entry import RuleInfo
from lattend.rules.reader import rule
from lattend.rules.rule import Rule

CAUSAL = rule("k <= q")
BAND = rule("k <= q and q - k <= t")
WINDOWED = rule("k <= q and q // w == k // w")
SQUARE = rule("abs(qy - ky) <= r and abs(qx - kx) <= r")
CUBE = rule("abs(qz - kz) <= r and abs(qy - ky) <= r and abs(qx - kx) <= r")
HEADED = rule("k <= q and q - k <= head")


def named(it: Rule, name: str) -> Rule:
    return Rule(it.condition, it.axes, it.where, it.values, it.data, RuleInfo(name, "", "", ""))


def counted(it, query_edges, key_edges):
    """tile_counts by looking at every square."""
    assert not it.free
    mask = it.mask().astype(int)
    return np.add.reduceat(np.add.reduceat(mask, query_edges[:-1], 0), key_edges[:-1], 1)


@settings(max_examples=30)
@given(st.integers(1, 30), st.integers(0, 9), st.integers(1, 9), st.integers(1, 7))
def test_tiles_of_two_rules_hold_only_a_only_b_and_both(n, t, w, tile):
    first, second = BAND.at(n=n, t=t), WINDOWED.at(n=n, w=w)
    rows, cols = view.edges(n, tile), view.edges(n, tile + 1)
    a, b = first.mask(), second.mask()
    wanted = [only.astype(int) for only in (a & ~b, b & ~a, a & b)]
    result = view.tile_classes([first, second], counted, rows, cols)
    for tiles, mask in zip(result, wanted, strict=True):
        by_rows = np.add.reduceat(mask, rows[:-1], 0)
        assert (tiles == np.add.reduceat(by_rows, cols[:-1], 1)).all()
    assert view.tile_areas(rows, cols).sum() == n * n


def test_areas_of_tiles_are_whole_numbers_of_any_size():
    assert view.tile_areas([0, 10**18], [0, 10**18, 3 * 10**18]).tolist() == [[10**36, 2 * 10**36]]


def marked(picture, panel=0):
    return picture.panels[panel].cells > 0


# One cell a square


@given(st.integers(1, 24), st.integers(0, 24))
def test_cells_are_the_mask(n, t):
    picture = draw(BAND, n=n, t=t)
    mask = BAND.mask(n=n, t=t)
    assert (marked(picture) == mask).all()
    assert ((picture.panels[0].cells == 2) == np.eye(n, dtype=bool)).all()
    assert picture.caption[0].startswith(f"{mask.sum():,} of {n * n:,} pairs, ")


def test_the_figures_of_sparse_transformers():
    assert draw(CAUSAL, n=12).caption == ("78 of 144 pairs, 54.2%",)  # 12 * 13 / 2
    assert draw(BAND, n=8, t=2).caption == ("21 of 64 pairs, 32.8%",)  # 1 + 2 + 6*3
    assert draw(WINDOWED, n=16, w=4).caption == ("40 of 256 pairs, 15.6%",)  # 4 windows of 4*5/2
    picture = draw(BAND, n=12, t=3)
    assert (picture.title, picture.subtitle) == ("k <= q and q - k <= t", ("n = 12, t = 3",))
    assert picture.legend == (ATTENDED, OWN)
    assert [panel.rows.label for panel in picture.panels] == ["query"]
    assert [panel.cols.label for panel in picture.panels] == ["key"]


def test_titles():
    strided = named(BAND, "strided")
    picture = draw(strided, n=12, t=3)
    assert (picture.title, picture.subtitle) == ("strided (n = 12, t = 3)", ("k <= q and q - k <= t",))
    picture = draw(strided, n=12, t=3, title="mine\nown")
    assert picture.title == "mine own"
    assert picture.subtitle == ("strided (n = 12, t = 3)", "k <= q and q - k <= t")
    picture = draw(strided.at(t=3), compare=named(WINDOWED, "windowed"), n=1200 // 100, w=4)
    assert picture.title == "strided and windowed (n = 12), compared"
    assert picture.subtitle == (
        "A: strided (t = 3): k <= q and q - k <= t",
        "B: windowed (w = 4): k <= q and q // w == k // w",
    )


def test_sizes_have_defaults_and_parameters_do_not():
    assert draw(CAUSAL).panels[0].cells.shape == (12, 12)
    assert draw(rule("k <= q", cross=True), n=5).panels[0].cells.shape == (5, 5)
    assert draw(SQUARE, r=1).panels[0].cells.shape == (64, 64)
    assert len(draw(HEADED).panels) == 4
    with pytest.raises(NamingError, match="needs a value for t: give t=…"):
        draw(BAND, n=12)
    with pytest.raises(NamingError, match="has no s; it has n, t"):
        draw(BAND, n=12, t=3, s=4)
    with pytest.raises(NamingError, match="t already has the value 3; bind it once"):
        draw(BAND.at(t=3), n=12, t=3)
    with pytest.raises(DomainError, match="n >= 0, got n = -1"):
        draw(CAUSAL, n=-1)


def test_keys_of_their_own_number():
    picture = draw(CAUSAL, n=3, m=5)
    assert (marked(picture) == np.tri(3, 5, dtype=bool)).all()
    assert OWN not in picture.legend  # query 1 and key 1 are not the same token
    assert picture.caption == ("6 of 15 pairs, 40.0%",)


@pytest.mark.parametrize("sizes", [{"n": 0}, {"n": 0, "m": 5}, {"n": 5, "m": 0}])
def test_empty_grids_say_so(sizes):
    picture = draw(CAUSAL, **sizes)
    zero = next(name for name, value in sizes.items() if value == 0)
    assert picture.caption == (f"the grid is empty: {zero} = 0",)
    assert f"the grid is empty: {zero} = 0" in picture.svg()
    assert picture.png().startswith(b"\x89PNG") and picture.pdf().startswith(b"%PDF")
    assert str(picture).splitlines()[-1] == f"the grid is empty: {zero} = 0"


def test_no_heads_is_an_empty_grid():
    assert draw(HEADED, n=4, heads=0).caption == ("the grid is empty: heads = 0",)


def test_nothing_marked():
    picture = draw(rule("k < q and q < k"), n=3)
    assert picture.caption == ("0 of 9 pairs, 0%",)
    assert picture.legend == () and not marked(picture).any()


# Heads


def test_one_panel_a_head():
    picture = draw(HEADED, n=6, heads=3)
    masks = HEADED.mask(n=6, heads=3)
    assert [panel.title for panel in picture.panels] == ["head 0", "head 1", "head 2"]
    assert all((marked(picture, head) == masks[head]).all() for head in range(3))
    assert picture.caption == (f"{masks.sum()} of 108 pairs, 29.6%",)  # 6 + 11 + 15 = 32


def test_heads_beyond_eight_are_named():
    picture = draw(HEADED, n=6, heads=20)
    total = HEADED.mask(n=6, heads=20)[:8].sum()
    assert len(picture.panels) == 8
    assert picture.caption[0].startswith(f"{total} of 288 pairs, ")
    assert picture.caption[1:] == ("heads 0 to 7 of 20 are drawn and counted",)


def test_heads_at_large_sizes():
    seen = view.tiles(bound([HEADED], {"n": 300, "heads": 2}), counted)
    assert seen.counts == (300 + 599,) and seen.total == 2 * 300**2
    assert [panel.title for panel in seen.panels] == ["head 0", "head 1"]


# Comparisons


@given(st.integers(1, 16), st.integers(0, 16), st.integers(1, 16))
def test_comparison_classes_and_counts(n, t, w):
    picture = draw(BAND, compare=WINDOWED, n=n, t=t, w=w)
    a, b = BAND.mask(n=n, t=t), WINDOWED.mask(n=n, w=w)
    assert (picture.panels[0].cells == (a & ~b) + 2 * (b & ~a) + 3 * (a & b)).all()
    counts = (a & ~b).sum(), (b & ~a).sum(), (a & b).sum()
    assert [look.label for look in picture.legend] == [
        f"{name}: {count}" for name, count in zip(("only A", "only B", "both"), counts, strict=True)
    ]
    assert [look.hatch for look in picture.legend] == ["/", "\\", "x"]


def test_comparison_text():
    picture = draw(BAND, compare=WINDOWED, n=16, t=3, w=4)
    assert picture.title == "A and B (n = 16), compared"
    assert picture.subtitle == ("A: k <= q and q - k <= t (t = 3)", "B: k <= q and q // w == k // w (w = 4)")
    assert picture.caption == ("A attends to 58 (22.7%) and B to 40 (15.6%) of 256 pairs",)


def test_comparison_binds_each_rule_on_its_own():
    picture = draw(BAND.at(t=1), compare=BAND, n=6, t=2)
    assert [look.label for look in picture.legend] == ["only A: 0", "only B: 4", "both: 11"]
    assert draw(CAUSAL.at(n=5), compare=BAND, t=1).panels[0].cells.shape == (5, 5)
    assert draw(CAUSAL, compare=rule("k <= q + 1", cross=True), n=4, m=6).panels[0].cells.shape == (4, 6)
    with pytest.raises(LattendError, match="n = 5 in A and n = 6 in B"):
        draw(CAUSAL.at(n=5), compare=CAUSAL.at(n=6))
    with pytest.raises(LattendError, match="different axes"):
        draw(CAUSAL, compare=SQUARE, n=4, r=1)
    with pytest.raises(NamingError, match="has no s"):
        draw(CAUSAL, compare=BAND, n=4, t=1, s=3)


def test_comparison_of_heads():
    picture = draw(HEADED, compare=BAND, n=6, t=1, heads=3)
    assert len(picture.panels) == 3
    assert [look.label for look in picture.legend] == ["only A: 4", "only B: 5", "both: 28"]


# Tiles


@settings(max_examples=20)
@given(st.integers(257, 400), st.integers(0, 400))
def test_tiles_are_shaded_by_their_counts(n, t):
    seen = view.tiles(bound([BAND], {"n": n, "t": t}), counted)
    mask, cells = BAND.mask(n=n, t=t), seen.panels[0].cells
    tile = -(-n // 64)
    for (i, j), level in np.ndenumerate(cells.astype(int)):
        part = mask[i * tile : (i + 1) * tile, j * tile : (j + 1) * tile]
        assert level == -(-LEVELS * int(part.sum()) // part.size)
    assert seen.counts == (int(mask.sum()),) and seen.total == n * n
    assert seen.legend == SHADES


def test_tiles_text():
    seen = view.tiles(bound([CAUSAL], {"n": 300}), counted)
    assert seen.caption == (
        "45,150 of 90,000 pairs, 50.2%",
        "each tile is 5 by 5 pairs, shaded by how full it is",
    )
    seen = view.tiles(bound([CAUSAL], {"n": 2, "m": 300}), counted)
    assert seen.caption[1] == "each tile is 1 by 5 pairs, shaded by how full it is"
    assert seen.panels[0].cells.shape == (2, 60)


@pytest.mark.parametrize("n", [257, 300])
def test_large_pictures_count_tiles_in_closed_form(n):
    for it, values in ((BAND, {"n": n, "t": 20}), (WINDOWED, {"n": n, "w": 7}), (CAUSAL, {"n": n, "m": 290})):
        picture = it.draw(**values)
        seen = view.tiles(bound([it], values), counted)
        assert (picture.panels[0].cells == seen.panels[0].cells).all()
        assert picture.caption == seen.caption


def test_a_million_positions():
    picture = draw(BAND, n=1_000_000, t=255)
    assert picture.caption == (
        "255,967,360 of 1,000,000,000,000 pairs, 0.026%",  # (2*10**6 - 255) * 256 / 2
        "each tile is 15,625 by 15,625 pairs, shaded by how full it is",
    )
    below = np.eye(64, k=-1, dtype=bool)
    assert (marked(picture) == (np.eye(64, dtype=bool) | below)).all()
    assert [text for _, text in picture.panels[0].rows.ticks] == ["0", "200k", "400k", "600k", "800k", "1M"]


def test_a_million_positions_compared():
    picture = draw(CAUSAL, compare=BAND, n=1_000_000, t=499_999)
    only = 500_000 * 500_001 // 2
    assert [look.label for look in picture.legend] == [
        f"only A: {only:,}",
        "only B: 0",
        f"both: {1_000_000 * 1_000_001 // 2 - only:,}",
        "several of these",
    ]


def test_compared_tiles():
    rules = bound([BAND, WINDOWED], {"n": 300, "t": 20, "w": 50})
    seen = view.tiles(rules, counted)
    a, b = BAND.mask(n=300, t=20), WINDOWED.mask(n=300, w=50)
    assert seen.counts == ((a & ~b).sum(), (b & ~a).sum(), (a & b).sum())
    for (i, j), look in np.ndenumerate(seen.panels[0].cells):
        at = np.s_[5 * i : 5 * i + 5, 5 * j : 5 * j + 5]
        present = {index for index, part in enumerate((a & ~b, b & ~a, a & b), 1) if part[at].any()}
        assert look == (0 if not present else present.pop() if len(present) == 1 else 4)
    assert seen.legend[-1] is MIXED
    assert seen.caption[1] == "each tile is 5 by 5 pairs, coloured by the pairs in it"


# Images


def test_small_image_is_drawn_row_by_row():
    picture = draw(SQUARE, rows=3, cols=4, r=1)
    assert (marked(picture) == SQUARE.mask(rows=3, cols=4, r=1).reshape(12, 12)).all()
    assert picture.panels[0].rows.heavy == (4, 8)
    assert picture.panels[0].rows.label == "query pixel, row by row"
    assert picture.caption == ("70 of 144 pairs, 48.6%",)  # (2+3+2) * (2+3+3+2)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 3), st.data())
def test_pixel_shows_its_keys(rows, cols, r, data):
    y, x = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, cols - 1))
    picture = draw(SQUARE, rows=rows, cols=cols, r=r, pixel=(y, x))
    keys = SQUARE.keys(y, x, rows=rows, cols=cols, r=r)
    assert [tuple(place) for place in np.argwhere(marked(picture)).tolist()] == keys
    assert picture.panels[0].looks[picture.panels[0].cells[y, x]] is OWN
    assert picture.caption[0].startswith(f"keys of pixel ({y}, {x}): {len(keys)} of {rows * cols} pixels, ")


def test_pixel_that_does_not_attend_to_itself():
    picture = draw(rule("abs(qy - ky) == 1 and qx == kx"), rows=5, cols=5, pixel=(2, 2))
    assert picture.panels[0].looks[picture.panels[0].cells[2, 2]] is HERE
    assert picture.legend == (ATTENDED, HERE)
    assert picture.caption == ("keys of pixel (2, 2): 2 of 25 pixels, 8.0%",)


def test_large_image_shows_the_centre_and_says_so():
    picture = draw(SQUARE, rows=20, cols=30, r=1)
    assert picture.panels[0].cells.shape == (20, 30)
    assert picture.caption == ("keys of the centre pixel (10, 15): 9 of 600 pixels, 1.5%",)


def test_larger_image_is_cut_to_the_neighbourhood():
    picture = draw(SQUARE, rows=100, cols=300, r=3, pixel=(1, 200))
    assert picture.caption == (
        "keys of pixel (1, 200): 35 of 30,000 pixels, 0.12%",  # rows 0 to 4, 7 columns
        "shown: rows 0 to 6 of 100, columns 195 to 205 of 300",
    )
    assert (marked(picture) == np.pad(np.ones((5, 7), bool), ((0, 2), (2, 2)))).all()
    assert picture.panels[0].cols.ticks[0] == (0.5, "195")


def test_wide_neighbourhood_is_tiled():
    picture = draw(rule("qy == ky"), rows=4, cols=130, pixel=(1, 64))
    assert picture.caption == (
        "keys of pixel (1, 64): 130 of 520 pixels, 25.0%",
        "each tile is 3 by 3 pixels, shaded by how full it is",
    )
    cells = picture.panels[0].cells
    assert cells.shape == (2, 44)
    assert (cells[0] == np.ceil(LEVELS / 3)).all() and not cells[1].any()


def test_one_panel_a_slice():
    picture = draw(CUBE, depth=4, rows=5, cols=5, r=1, pixel=(1, 2, 2))
    assert [panel.title for panel in picture.panels] == ["z = 0", "z = 1", "z = 2", "z = 3"]
    assert [int(marked(picture, z).sum()) for z in range(4)] == [9, 9, 9, 0]
    assert [OWN in panel.rows_of_looks()[2] for panel in picture.panels] == [False, True, False, False]
    assert picture.caption == ("keys of voxel (1, 2, 2): 27 of 100 voxels, 27.0%",)


def test_deep_volume_shows_the_slices_around():
    picture = draw(CUBE, depth=50, rows=5, cols=5, r=1, pixel=(20, 2, 2))
    assert [panel.title for panel in picture.panels] == ["z = 19", "z = 20", "z = 21"]
    assert picture.caption[1] == "shown: slices 19 to 21 of 50"
    picture = draw(CUBE, depth=50, rows=5, cols=5, r=30, pixel=(2, 2, 2))
    assert picture.caption[1] == "shown: slices 0 to 7 of 50"
    assert picture.caption[0].startswith("keys of voxel (2, 2, 2): 825 of 1,250 voxels")  # 33 slices of 25
    for z, shown in ((25, "21 to 28"), (49, "42 to 49")):
        picture = draw(CUBE, depth=50, rows=5, cols=5, r=30, pixel=(z, 2, 2))
        assert picture.caption[1] == f"shown: slices {shown} of 50"


def test_pixel_of_heads_and_of_two_rules():
    headed = rule("abs(qy - ky) <= head and qx == kx")
    picture = draw(headed, rows=5, cols=5, heads=2, pixel=(2, 2))
    assert [panel.title for panel in picture.panels] == ["head 0", "head 1"]
    assert picture.caption == ("keys of pixel (2, 2): 4 of 50 pixels, 8.0%",)
    picture = draw(SQUARE, compare=rule("qy == ky"), rows=5, cols=5, r=1, pixel=(2, 2))
    assert picture.caption == (
        "keys of pixel (2, 2): A attends to 9 (36.0%) and B to 5 (20.0%) of 25 pixels",
    )
    assert [look.label for look in picture.legend] == ["only A: 6", "only B: 2", "both: 3"]
    assert picture.panels[0].cells[2].tolist() == [2, 3, 3, 3, 2]


def test_pixel_errors():
    with pytest.raises(
        LattendError, match=re.escape('pixel=(1, 2) needs a rule on an image; "k <= q" lives')
    ):
        draw(CAUSAL, n=4, pixel=(1, 2))
    with pytest.raises(LattendError, match=re.escape("a pixel of this rule is (qy, qx), got (1, 2, 3)")):
        draw(SQUARE, r=1, pixel=(1, 2, 3))
    with pytest.raises(DomainError, match="qx = 8 lies outside 0 … 7"):
        draw(SQUARE, r=1, pixel=(0, 8))
    with pytest.raises(TooLarge, match="10,000 by 10,000 is 100,000,000 pixels"):
        draw(SQUARE, r=1, rows=10_000, cols=10_000)


def test_rule_draws_itself():
    assert BAND.draw(n=8, t=2).svg() == draw(BAND, n=8, t=2).svg()
    assert BAND.at(n=8, t=2)._repr_mimebundle_()["image/svg+xml"] == draw(BAND, n=8, t=2).svg()
