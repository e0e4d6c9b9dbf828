"""Rules side by side, crosses instead of colours, and positions that are numbered from 1."""

import re
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lattend as lt
from lattend.draw import draw
from lattend.draw.formats.palette import SIGNS, TEXT
from lattend.draw.formats.scene import Rect, Segment, Text
from lattend.errors import DomainError, LattendError, NamingError, TooLarge

THREE = ("causal", "strided(3)", "windowed(4)")


def three(**options):
    first, *others = THREE
    return lt.rule(first).draw(beside=others, **options)


def stroked(picture):
    """How many lines its PDF draws."""
    stream = re.search(rb"stream\r?\n(.*?)\nendstream", picture.pdf(), re.DOTALL)
    assert stream is not None
    return zlib.decompress(stream[1]).split().count(b"S")


# Side by side


def test_three_rules_in_one_figure():
    picture = three(n=12)
    assert picture.title == "causal, strided and windowed (n = 12)"
    assert [panel.title for panel in picture.panels] == ["causal", "strided (t = 3)", "windowed (w = 4)"]
    for panel, name in zip(picture.panels, THREE, strict=True):
        assert ((panel.cells > 0) == lt.rule(name).mask(n=12)).all()
    assert picture.caption == (
        "causal: 78 of 144 pairs, 54.2%",  # 12*13/2
        "strided (t = 3): 42 of 144 pairs, 29.2%",  # 1 + 2 + 3 + 9*4
        "windowed (w = 4): 30 of 144 pairs, 20.8%",  # 3 windows of 4*5/2
    )
    titles = {panel.title for panel in picture.panels}
    assert (
        len({item.y for item in picture.scene.items if isinstance(item, Text) and item.text in titles}) == 1
    )


@given(st.integers(1, 20), st.integers(0, 20), st.integers(1, 20))
def test_every_rule_is_drawn_as_it_is_alone(n, t, w):
    picture = lt.rule("strided").draw(beside=["windowed", "q == k"], n=n, t=t, w=w)
    given = {"strided": {"t": t}, "windowed": {"w": w}, "q == k": {}}
    alone = [lt.rule(name).draw(n=n, **numbers) for name, numbers in given.items()]
    for panel, own, line in zip(picture.panels, alone, picture.caption, strict=True):
        assert (panel.cells == own.panels[0].cells).all()
        assert line == f"{panel.title}: {own.caption[0]}"


def test_names_of_rules_side_by_side():
    long = "k <= q and q - k <= t and q % 2 == k % 2"
    picture = lt.rule("k <= q").draw(beside=[long, "full"], n=4, t=2)
    assert picture.title == "3 rules (n = 4)"
    assert [panel.title for panel in picture.panels] == ["k <= q", "B", "full"]
    assert picture.subtitle == (f"B: {long} (t = 2)", "full: true")
    picture = lt.rule("causal").at(n=3).draw(beside=[lt.rule("causal").at(n=5)])
    assert [panel.title for panel in picture.panels] == ["causal (n = 3)", "causal (n = 5)"]
    assert picture.title == "causal"
    picture = lt.rule("causal").draw(beside=["full"], n=4, title="Mine")
    assert (picture.title, picture.subtitle[0]) == ("Mine", "causal and full (n = 4)")


def test_rules_of_different_kinds_stand_beside_each_other():
    picture = lt.rule("causal").draw(beside=["neighbourhood(1)", "k <= q + head"], n=6, rows=3, cols=3)
    assert [panel.cells.shape for panel in picture.panels] == [(6, 6), (9, 9), *[(6, 6)] * 4]
    assert picture.panels[2].title == "C, head 0"
    assert picture.subtitle[2] == "C: k <= q + head (n = 6, heads = 4)"
    picture = lt.rule("causal").draw(beside=["full"], n=0)
    assert picture.caption == ("causal: the grid is empty: n = 0", "full: the grid is empty: n = 0")


@pytest.mark.parametrize("width", [30, 60, 100])
def test_panels_wrap_to_the_terminal(width):
    lines = three(n=12).terminal(width=width, colour=False).splitlines()
    assert max(map(len, lines)) <= width
    heads = [line for line in lines if line.count("query down") >= 1]
    assert [line.count("query down") for line in heads] == {30: [1, 1, 1], 60: [2, 1], 100: [3]}[width]


def test_wrong_numbers_side_by_side():
    with pytest.raises(NamingError, match="none of the rules has s free; they have n"):
        three(n=12, s=3)
    with pytest.raises(NamingError, match="compare draws one rule over another, beside draws them apart"):
        lt.rule("causal").draw(compare="full", beside=["full"])
    with pytest.raises(LattendError, match="needs a value for t"):
        lt.rule("causal").draw(beside=["strided"], n=4)


# Crosses


@given(st.integers(1, 16), st.integers(0, 16))
def test_a_cross_has_two_strokes_in_its_cell(n, t):
    rule = lt.rule("k <= q and abs(q - k) <= t or q + k == 5")
    picture = rule.draw(n=n, t=t, style="cross")
    panel, mask = picture.panels[0], rule.mask(n=n, t=t)
    assert ((panel.cells > 0) == mask).all()
    _, ground, *_ = (item for item in picture.scene.items if isinstance(item, Rect))
    result = np.zeros(mask.shape, int)
    for line in picture.scene.items:
        if isinstance(line, Segment) and line.colour == TEXT and line.y1 < ground.y + ground.height:
            row, col = (line.y1 + line.y2) / 2 - ground.y, (line.x1 + line.x2) / 2 - ground.x
            result[int(row * n // ground.height), int(col * n // ground.width)] += 1
    assert (result == 2 * mask).all()


def test_crosses_in_every_form(tmp_path):
    picture = lt.rule("strided(1)").draw(n=4, style="cross")  # 1 + 3*2 = 7 pairs, and one in the legend
    assert picture.terminal(width=60, colour=False) == (
        "strided (n = 4, t = 1)\nk <= q and q - k <= t\n\nquery down, key across\n"
        "  0 1 2 3\n0 X · · ·\n1 X X · ·\n2 · X X ·\n3 · · X X\n\n7 of 16 pairs, 43.8%\nX  attended"
    )
    drawn = re.findall(r'd="([^"]*)" stroke="' + TEXT, picture.svg())
    assert sum(d.count("M") for d in drawn) == 2 * 8
    colour = re.search(rf"definecolor{{(\w+)}}{{HTML}}{{{TEXT[1:].upper()}}}", picture.tikz())
    assert colour is not None
    assert len(re.findall(rf"\\draw\[{colour[1]},", picture.tikz())) == 2 * 8
    assert picture.png().startswith(b"\x89PNG")
    coloured = lt.rule("strided(1)").draw(n=4)
    assert stroked(picture) - stroked(coloured) == 2 * 8


def test_crosses_of_two_rules_and_of_a_pixel():
    picture = lt.rule("strided(3)").draw(compare="windowed(4)", n=6, style="cross")
    assert [(look.sign, look.label) for look in picture.legend] == [
        ("/", "only A: 5"),  # 18 - 13
        ("\\", "only B: 0"),
        ("X", "both: 13"),  # 4*5/2 + 2*3/2
    ]
    picture = lt.rule("neighbourhood(1)").draw(pixel=(0, 0), style="cross")
    assert [look.sign for look in picture.legend] == ["X", "@"]
    assert "@ X ·" in picture.terminal(width=60, colour=False)
    assert set(SIGNS.values()) == {"", "X", "@", "o", "/", "\\", "+"}


def test_crosses_stand_for_single_pairs():
    with pytest.raises(TooLarge, match="a cross stands for one pair, and of more than 256 positions"):
        lt.rule("causal").draw(n=1000, style="cross")
    with pytest.raises(NamingError, match='style is "colour" or "cross", not \'x\''):
        lt.rule("causal").draw(style="x")


# Positions from 1


def test_positions_from_one():
    panel = lt.rule("causal").draw(n=4, first=1).panels[0]
    for side in (panel.rows, panel.cols):
        assert side.ticks == ((0.5, "1"), (1.5, "2"), (2.5, "3"), (3.5, "4"))
    assert (panel.cells == lt.rule("causal").draw(n=4).panels[0].cells).all()
    tiles = lt.rule("causal").draw(n=1000, first=1).panels[0]
    assert {label: at for at, label in tiles.rows.ticks}["200"] == 199 / 16
    with pytest.raises(DomainError, match="positions are numbered from 0 or from 1, not from 2"):
        lt.rule("causal").draw(n=4, first=2)


def test_a_pixel_counted_from_one():
    rule = lt.rule("neighbourhood(1)")
    from_one, from_zero = rule.draw(pixel=(1, 2), first=1), rule.draw(pixel=(0, 1))
    assert (from_one.panels[0].cells == from_zero.panels[0].cells).all()
    assert from_one.caption[0] == "keys of pixel (1, 2): 6 of 64 pixels, 9.4%"
    assert from_one.panels[0].rows.ticks[0] == (0.5, "1")
    with pytest.raises(DomainError, match="qy = 0 lies outside 1 … 8"):
        draw(rule, pixel=(0, 2), first=1)


def test_the_last_number_of_a_terminal_grid_is_there():
    lines = lt.rule("causal").draw(n=12).terminal(width=60, colour=False).splitlines()
    assert lines[4:6] == ["                       1 1", "   0 1 2 3 4 5 6 7 8 9 0 1"]
    lines = lt.rule("causal").draw(n=1_000_000).terminal(width=80, colour=False).splitlines()
    assert lines[4].split() == ["0", "200k", "400k", "600k", "800k", "1M"]
    assert lines[4].endswith("1M") and len(lines[4]) == len(lines[5])
