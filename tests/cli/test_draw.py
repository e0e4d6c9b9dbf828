"""lattend draw and lattend rules: pictures, tables and files."""

import json

import pytest

from lattend.rules import ALIASES, CATALOGUE

BAND = """\
strided (n = 4, t = 1)
k <= q and q - k <= t

query down, key across
  0 1 2 3
0 ██· · ·
1 ▒▒██· ·
2 · ▒▒██·
3 · · ▒▒██

7 of 16 pairs, 43.8%
▒▒ attended   ██ attended, own position
"""


def test_picture(lattend):
    assert lattend("draw", "strided", "--at", "n=4,t=1") == (0, BAND, "")


def test_compared_and_pixel(lattend):
    both = lattend("draw", "strided(3)", "--compare", "windowed(4)", "--at", "n=8")
    assert both.code == 0
    assert "A attends to 26 (40.6%) and B to 20 (31.3%) of 64 pairs" in both.out
    pixel = lattend("draw", "neighbourhood(1)", "--pixel", "0,0")
    assert "keys of pixel (0, 0): 4 of 64 pixels" in pixel.out


def test_three_rules_side_by_side_in_crosses_from_one(lattend):
    asked = ("draw", "causal", "strided(1)", "windowed(2)", "--at", "n=3", "--style", "cross", "--from", "1")
    ran = lattend(*asked, "--width", "90")
    assert ran.code == 0
    assert ran.out.splitlines()[4] == "the rule counts positions from 0, the axes from 1"
    assert ran.out.splitlines()[6:12] == [
        "causal                   strided (t = 1)          windowed (w = 2)",
        "query down, key across   query down, key across   query down, key across",
        "  1 2 3                    1 2 3                    1 2 3",
        "1 X · ·                  1 X · ·                  1 X · ·",
        "2 X X ·                  2 X X ·                  2 X X ·",
        "3 X X X                  3 · X X                  3 · · X",
    ]
    assert json.loads(lattend(*asked, "--json").out)["caption"] == [
        "causal: 6 of 9 pairs, 66.7%",
        "strided (t = 1): 5 of 9 pairs, 55.6%",
        "windowed (w = 2): 4 of 9 pairs, 44.4%",
    ]


@pytest.mark.parametrize("columns", ["16", "40"])
def test_narrow(lattend, columns):
    ran = lattend("draw", "causal", "--at", "n=30", "--width", columns)
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("tex", b"% needs")]
)
def test_files(lattend, tmp_path, ending, start):
    path = tmp_path / f"band.{ending}"
    ran = lattend("draw", "strided", "--at", "n=4,t=1", "--out", str(path))
    assert ran == (0, f"{path}: strided (n = 4, t = 1); 7 of 16 pairs, 43.8%\n", "")
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("strided",), 'rule "k <= q and q - k <= t" needs a value for t: give --at t=…'),
        (("causal", "--out", "x.bmp"), 'cannot save a picture as "x.bmp": the ending is not one of'),
        (
            ("causal", "--out", "/no/where/x.svg"),
            'cannot save "/no/where/x.svg": there is no folder "/no/where"',
        ),
        (("neighbourhood(1)", "--pixel", "3"), "a pixel of this rule is (qy, qx), got (3,)"),
        (("neighbourhood(1)", "--pixel", "a,b"), "--pixel must be an integer, got a"),
        (("causal", "--compare", "cusal"), 'rule "cusal": no rule is named cusal; did you mean causal?'),
        (("causal", "--width", "3"), "--width 3 is too narrow for a picture; it takes 16 columns or more"),
        (("causal", "--style", "x"), 'style is "colour" or "cross", not \'x\''),
        (("causal", "--from", "2"), "positions are numbered from 0 or from 1, not from 2"),
        (("causal", "--pixel", "1,2"), '--pixel 1,2 needs a rule on an image; "causal" lives on a line.'),
        (("causal", "n=12"), "n=12 gives numbers, and is no rule to draw; write --at n=12"),
        (("causal", "full", "--compare", "full"), "--compare draws a rule over one, and here are several"),
        ((), "draw needs RULE. RULE is a catalogue name"),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("draw", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_catalogue_at_every_width(lattend, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = lattend("rules")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= columns
    assert [name for name in CATALOGUE if f"\n{name}" not in f"\n{ran.out}"] == []
    assert "min(q, t) + 1" in ran.out
    listed = "".join(ran.out.split())  # a narrow table folds them
    assert [name for name in ALIASES if name not in listed] == []


def test_catalogue_as_json(lattend):
    found = {row["name"]: row for row in json.loads(lattend("rules", "--json").out)}
    assert list(found) == list(CATALOGUE)
    assert found["sparse_fixed"] == {
        "name": "sparse_fixed",
        "text": "k <= q and (q // l == k // l or k % l >= l - c)",
        "meaning": "causal inside blocks of l, and the last c positions of every block before",
        "keys": "q % l + 1 + q // l*c",
        "sizes": ["n"],
        "parameters": ["l", "c"],
        "domain": "n >= 0 and l >= 1 and 0 <= c and c <= l",
        "at": {},
        "aliases": ["fixed(l, c)"],
        "elsewhere": ["Sparse Transformers: fixed, of stride l and c summaries"],
        "reference": "Child et al. 2019, Generating Long Sequences with Sparse Transformers",
    }


@pytest.mark.parametrize("name", CATALOGUE)
def test_one_rule_in_full(lattend, name):
    ran = lattend("rules", name)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{name}: ")
    for title in ("rule", "sizes", "parameters", "defined", "keys", "reference", "count"):
        assert f"\n{title:<12}" in ran.out
    assert "attended" in ran.out  # the legend of its picture


def test_one_rule_with_numbers(lattend):
    ran = lattend("rules", "windowed(w=4)")
    assert "\ngiven        w = 4\n" in ran.out
    assert "\ncount        5n/2 " in ran.out
    assert "windowed (n = 12, w = 4)" in ran.out


def test_one_rule_by_a_name_from_elsewhere(lattend):
    ran = lattend("rules", "sliding_window")
    assert "\nalso called  sliding_window(window = t + 1)\n" in ran.out
    assert "\nelsewhere    Hugging Face and Mistral: sliding_window = t + 1; FlashAttention" in ran.out
    assert (
        lattend("count", "block_causal(4)", "--at", "n=8").out
        == lattend("count", "windowed(4)", "--at", "n=8").out
    )


def test_unknown_name(lattend):
    ran = lattend("rules", "windowd")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean windowed?" in ran.err
