"""lattend conv: a kernel as heads, its leak, both prices, and what it says to wrong input."""

import json

import pytest


def test_text(lattend):
    ran = lattend("conv", "--channels", "16", "--out-channels", "32", "--alpha", "2", "--error", "1e-3")
    assert (ran.code, ran.err) == (0, "")
    for line in (
        "A 3 × 3 convolution as 9 heads",
        "an image of 8 × 8 pixels, stride 1, dilation 1, padding 1 (zeros)",
        "heads          3 × 3 = 9, one a tap, centres Δ from (−1, −1) to (1, 1)",
        "α = 2          at most 0.381 of a head's weight misses its pixel",
        "convolution    247,808 multiplies; 294,912 with the zeros of the padding",
        "heads, soft    1,389,312 multiplies: each head on all of 57,600 pairs",
        "−1 - - - - - - - - - -    −1 0 1 2 - - - - - - -",
        " 4 - · · · 3 4 5 · · -     4 - · · · · · · · · -",
    ):
        assert line in ran.out.splitlines()


def test_the_words_below_are_about_what_is_shown(lattend, monkeypatch):
    said = lattend("conv").out.split("\n\n")[-1]
    assert said == (
        "0–8: the head that takes this pixel, or a zero of the padding\n"
        "the query: pixel (4, 4) in the middle, pixel (0, 0) in the corner\n"
        "-  padding\n"
    )
    monkeypatch.setenv("COLUMNS", "24")  # one character a pixel, too few for two digits
    said = lattend("conv", "--kernel", "4", "--size", "14").out.split("\n\n")[-1]
    assert "▒▒ taken by a head" in said and "0–15" not in said


@pytest.mark.parametrize(
    ("kernel", "title"),
    [
        ("1", "A 1 × 1 convolution as 1 head"),
        ("8x1", "An 8 × 1 convolution as 8 heads"),
        ("11", "An 11 × 11 convolution as 121 heads"),
        ("1x18", "A 1 × 18 convolution as 18 heads"),
    ],
)
def test_grammar(lattend, kernel, title):
    out = lattend("conv", "--kernel", kernel, "--size", "20").out
    assert out.startswith(f"{title}\n")
    assert ("centre Δ (0, 0)" in out) == (kernel == "1")


def test_json(lattend):
    ran = lattend("conv", "--kernel", "2x3", "--stride", "2", "--padding", "1", "--size", "9x12", "--json")
    data = json.loads(ran.out)
    assert data["queries"] == [5, 6]
    assert data["centres"] == [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 0], [0, 1]]
    assert data["price"]["pairs"] == 9 * 17  # rows: 4 + 5 inside; columns: 5 + 6 + 6
    assert data["price"]["convolution"]["needed"] == data["price"]["hard"] == "153c_in*c_out"
    same = json.loads(lattend("conv", "--kernel", "4", "--padding", "same", "--error", "0.01", "--json").out)
    assert same["padding"] == [[1, 2], [1, 2]]
    assert (
        same["sharpness"]["smallest"] < same["sharpness"]["sufficient"] == pytest.approx(5.986446, abs=1e-6)
    )


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_files(lattend, tmp_path, ending, start):
    path = tmp_path / f"conv.{ending}"
    ran = lattend("conv", "--dilation", "2", "--padding-mode", "replicate", "--out", str(path))
    assert ran == (0, f"{path}: A 3 × 3 convolution as 9 heads\n", "")
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("columns", ["20", "40", "80"])
def test_narrow(lattend, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    for options in (("--error", "1e-6"), ("--kernel", "7", "--size", "100x60", "--stride", "2")):
        ran = lattend("conv", *options)
        assert ran.code == 0
        assert max(map(len, ran.out.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kernel", "x"), "--kernel is a whole number, or rows by columns as in 8x12"),
        (("--kernel", "0"), "kernel is a whole number from 1 up"),
        (("--padding", "full"), "--padding is same, valid, a whole number, or rows by columns as in 1x2"),
        (("--padding", "same", "--stride", "2"), "--padding same keeps the size of the image"),
        (("--padding-mode", "reflect"), 'padding_mode is "zeros" or "replicate", not "reflect"'),
        (("--size", "2", "--padding", "0"), "rows = 2 with padding 0 + 0 is less than the 3 the kernel"),
        (("--alpha", "0"), "α = 0: it must be positive and finite"),
        (("--error", "2"), "error = 2: a leak is a share"),
        (("--alpha", "sharp"), "--alpha is a number, got sharp"),
        (("--channels", "0"), "--channels must be at least 1, got 0"),
        (("--out", "/no/where/x.svg"), 'cannot save "/no/where/x.svg": there is no folder'),
        (("3",), "got unexpected extra argument"),
        (("--filter", "edges"), "--filter runs soft heads: say how sharp they are, as in --alpha 2"),
        (
            ("--filter", "blur", "--alpha", "2"),
            "filter is one of edges, average, sharpen, random, not 'blur'",
        ),
        (
            ("--filter", "edges", "--alpha", "2", "--size", "40"),
            "--filter runs 9 heads on 42 rows or columns",
        ),
        (("--prove",), "--prove needs numbers of channels: give --channels and --out-channels"),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("conv", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")


def test_heads_in_place_of_the_convolution(lattend):
    """Sharper heads are nearer, and none is farther than the bound."""
    found = [
        json.loads(lattend("conv", "--alpha", alpha, "--filter", "sharpen", "--json").out)["filter"]
        for alpha in ("1", "4", "16")
    ]
    assert [one["error"] for one in found] == sorted((one["error"] for one in found), reverse=True)
    assert all(0 < one["error"] <= one["bound"] for one in found)
    assert all(one["hard_error"] < 1e-14 for one in found)
    said = lattend("conv", "--alpha", "2", "--filter", "edges").out
    assert "filter edges  soft heads differ from the convolution by 0.101, at most 0.37;" in said


def test_the_same_price_is_proved(lattend):
    """3 × 3 taps × 2 × 5 channels; an 8 × 8 image with its padding meets (3·8 − 2)² taps."""
    ran = lattend("conv", "--channels", "2", "--out-channels", "5", "--prove")
    assert (ran.code, ran.err) == (0, "")
    said = " ".join(ran.out.split())
    everywhere = "of the convolution: holds for every image that the kernel fits; here"
    assert f"parameters of the heads = parameters {everywhere} 90 " in said
    assert f"multiplies {everywhere} {22 * 22 * 10:,} " in said
    data = json.loads(lattend("conv", "--channels", "2", "--out-channels", "5", "--prove", "--json").out)
    assert data["same_price"] == {"parameters": True, "multiplies": True, "adds": True}
