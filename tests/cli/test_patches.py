"""lattend patches: tokens, what is left over, the price, and what it says to wrong input."""

import json

import pytest

SMALL = """\
10 × 14 pixels in patches of 4 × 4

tokens       3 × 5 = 15
a patch      4 × 4 = 16 pixels, one every 3
overlap      1 row and 1 column with the next patch
zeros added  2 columns at the end

row down, column across
              1 1 1 1
  0 3 4 6 7 9 0 2 3 4
0 ░░▒▒░░▒▒░░▒▒░░▒▒░░--
3 ▒▒▓▓▒▒▓▓▒▒▓▓▒▒▓▓▒▒--
4 ░░▒▒░░▒▒░░▒▒░░▒▒░░--
6 ▒▒▓▓▒▒▓▓▒▒▓▓▒▒▓▓▒▒--
7 ░░▒▒░░▒▒░░▒▒░░▒▒░░--

░░ in one patch   ▒▒ in 2 patches   ▓▓ in 4 patches   -- zeros that are added
"""


def test_text(lattend):
    assert lattend("patches", "10x14", "4", "--stride", "3", "--padding", "zeros") == (0, SMALL, "")


def test_a_vision_transformer(lattend):
    ran = lattend("patches", "224", "16", "--channels", "3", "--width", "768")
    assert ran.code == 0
    assert "\ntokens     14 × 14 = 196\n" in ran.out
    assert "\na token    16 × 16 × 3 = 768 numbers, made 768\n" in ran.out
    assert "\nembedding  590,592 parameters, 115,605,504 multiplies\n" in ran.out
    assert "\n208 182 183 184" in ran.out


def test_the_words_below_are_about_what_is_shown(lattend, monkeypatch):
    options = ("patches", "224", "16", "--stride", "20", "--padding", "crop")
    monkeypatch.setenv("COLUMNS", "120")
    said = lattend(*options).out.split("\n\n")[-1]
    assert said == "patches are numbered row by row\n·  in no patch\n"
    monkeypatch.setenv("COLUMNS", "80")
    assert lattend(*options).out.split("\n\n")[-1] == "░▒ patches, in turn   ·  in no patch\n"
    assert "1 × 1 = 1 pixel, one" in lattend("patches", "3", "1").out


def test_json(lattend):
    data = json.loads(lattend("patches", "225", "16", "--padding", "crop", "--json").out)
    assert data["tokens"] == 196 and data["file"] is None
    assert data["rows"] == {
        "size": 225,
        "patch": 16,
        "stride": 16,
        "tokens": 14,
        "overlap": 0,
        "skipped": 0,
        "cropped": 1,
        "added": 0,
    }


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_files(lattend, tmp_path, ending, start):
    path = tmp_path / f"patches.{ending}"
    ran = lattend("patches", "32", "8x16", "-o", str(path))
    assert ran == (0, f"{path}: 32 × 32 pixels in patches of 8 × 16\n", "")
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("columns", ["20", "40", "80"])
def test_narrow(lattend, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    ran = lattend("patches", "224", "16", "--stride", "8", "--channels", "3", "--width", "768")
    assert max(map(len, ran.out.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "patches needs IMAGE. IMAGE is pixels, 224, or rows by columns, 480x640"),
        (("224",), "patches needs PATCH. PATCH is the size of a patch"),
        (("224", "a"), "PATCH is a whole number, or rows by columns as in 8x12"),
        (("224", "1.5"), "PATCH is a whole number"),
        (("224", "-4"), "PATCH is a whole number, or rows by columns"),
        (("224", "0"), "patch is a whole number from 1 up"),
        (
            ("225", "16"),
            "225 rows are not patches of 16 every 16: 1 is left over; --padding crop leaves it out, "
            "--padding zeros adds 15",
        ),
        (("8", "16"), "a patch of 16 rows does not fit in an image of 8; --padding zeros fills it up"),
        (("8", "4", "--padding", "mirror"), "padding of patches is one of error, crop, zeros, not 'mirror'"),
        (("8", "4", "--stride", "x"), "--stride is a whole number, or rows by columns"),
        (
            ("8", "4", "--channels", "3"),
            "the price of an embedding needs --channels and --width: give --width too",
        ),
        (("8", "4", "--out", "x.bmp"), 'cannot save a picture as "x.bmp"'),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("patches", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")
