"""lattend heads: tables, heat maps, files, and what it says to wrong input."""

import json

import pytest

TAPS = """\
Heads around a query pixel
an image without edges; rows and columns are counted from the query

head  row  column  width px  own weight
   0    0      −1       0.5       0.619
   1    0       0       0.5       0.619
   2    0       1       0.5       0.619

row down, column across
   − −
   2 1 0 1 2
−2 · · · · ·
−1 ░░░░░░░░░░
 0 ░░0 1 2 ░░
 1 ░░░░░░░░░░
 2 · · · · ·

0–2: the heads, in place of the weight at the centre
0 ·░▒▓█ 0.786  weights of all heads together
"""


def test_text(lattend):
    assert lattend("heads", "--kernel", "1x3", "--alpha", "2") == (0, TAPS, "")


def test_no_own_weight_is_exactly_1(lattend):
    # e^-10 for each of four neighbors, 0.99982 = (1 + 2e^-10)^-2
    assert lattend("heads", "--kernel", "3", "--alpha", "10").out.count("0.224     0.99982") == 9
    assert lattend("heads", "--kernel", "3", "--alpha", "100").out.count("1 − 1.5e−43") == 9
    assert "1 − 8.2e−9 at pixel" in lattend("heads", "--scores", "quadratic", "--alpha", "20").out
    assert "at most 1.47e−347 of a head's" in lattend("conv", "--kernel", "3", "--alpha", "800").out


def test_centres_and_widths(lattend):
    ran = lattend("heads", "--centres", "0,1;-2,2.5", "--alpha", "2,0.5", "--json")
    heads = json.loads(ran.out)["layers"][""]
    assert [head["centre"] for head in heads] == [[0, 1], [-2, 2.5]]
    assert [head["precision"] for head in heads] == [[2, 0, 2], [0.5, 0, 0.5]]
    ran = lattend(
        "heads", "--centres", "0,1", "--covariance", "0.5,0.2,1", "--size", "9x12", "--pixel", "0,11"
    )
    assert "an image of 9 × 12 pixels, the query at (0, 11)" in ran.out
    assert "0.656 to 1.03" in ran.out  # roots of 0.75 ± √(0.25² + 0.2²)


def test_a_saved_layer(lattend, tmp_path):
    file = tmp_path / "heads.json"
    file.write_text(lattend("heads", "--kernel", "3", "--dilation", "2", "--json").out)
    again = lattend("heads", str(file))
    assert again.code == 0
    assert (
        again.out.splitlines()[1:]
        == lattend("heads", "--kernel", "3", "--dilation", "2").out.splitlines()[1:]
    )
    assert again.out.startswith("Heads of heads.json\n")


def test_scores(lattend):
    ran = lattend("heads", "--scores", "quadratic", "--centres", "1,2", "--alpha", "0.5")
    assert "exact: centre Δ = (1, 2), α = 0.5, and W_q = W_k = 0" in ran.out
    assert "greatest weight     0.16 at pixel (5, 6)" in ran.out
    ran = lattend("heads", "--scores", "relative", "--size", "5", "--pixel", "0,0", "--seed", "3", "--json")
    data = json.loads(ran.out)
    assert data["made"] == "an example: contents and weights are random, seed 3, 16 numbers a pixel"
    assert data["pixel"] == [0, 0] and len(data["terms"]) == 4
    assert sum(map(sum, data["weights"])) == pytest.approx(1)


@pytest.mark.parametrize("what", [("--kernel", "3"), ("--scores", "absolute")])
def test_files(lattend, tmp_path, what):
    path = tmp_path / "heads.pdf"
    ran = lattend("heads", *what, "--out", str(path))
    assert ran.code == 0 and ran.out.startswith(f"{path}: ")
    assert path.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("columns", ["20", "40", "80"])
def test_narrow(lattend, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    for what in (("--kernel", "5"), ("--scores", "sinusoidal", "--size", "20x30"), ("--scores", "quadratic")):
        ran = lattend("heads", *what)
        assert max(map(len, ran.out.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "heads needs FILE, --kernel, --centres or --scores, such as --kernel 3"),
        (("--kernel", "x"), "--kernel is a whole number, or rows by columns"),
        (("--kernel", "99999"), "9,999,800,001 heads are more than a picture shows"),
        (("--kernel", "3", "--alpha", "0"), "alpha must be above 0, got 0"),
        (("--kernel", "3", "--alpha", "1,2"), "9 heads have one alpha, or one each, not 2"),
        (("--centres", "0,1;2"), "--centres has 2 numbers between semicolons, as in 1,0;1,0\n  0,1;2\n"),
        (("--centres", "0,a"), "--centres: a is no number\n  0,a\n    ^\n"),
        (("--centres", ""), "--centres: nothing is no number"),
        (("--centres", "0,1", "--dilation", "2"), "dilation is the distance from tap to tap of a kernel"),
        (("--centres", "0,1", "--covariance", "1,2,1"), "(1, 2, 1) is no covariance"),
        (("--kernel", "3", "--pixel", "1,1"), "a pixel is one of an image: give its size too"),
        (("--kernel", "3", "--pixel", "1", "--size", "4"), "--pixel is a row and a column, as in 3,4"),
        (("--kernel", "3", "--pixel", "9,1", "--size", "4"), "pixel (9, 1) lies outside an image of 4 × 4"),
        (("--kernel", "3", "--seed", "1"), "--seed is for --scores; leave it out"),
        (("--scores", "absolute", "--kernel", "3"), "--kernel is not for --scores; leave it out"),
        (("--scores", "rotary"), "an encoding is one of absolute, relative, quadratic, sinusoidal, not"),
        (("--scores", "absolute", "--channels", "5"), "width is a multiple of 4"),
        (("--scores", "absolute", "--alpha", "5"), "centres and alpha are for the quadratic encoding"),
        (("none.json",), 'there is no file "none.json"'),
        (("none.txt",), 'cannot read heads from "none.txt": the ending is not one of'),
        (("none.json", "--kernel", "3"), "--kernel is not for saved heads; leave it out"),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("heads", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")


def test_a_configuration_is_no_list_of_heads(lattend, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "hidden_size": 8}')
    ran = lattend("heads", str(path))
    assert ran.code == 2
    assert "is the configuration of a model, which has no heads in it: give saved weights" in ran.err
    assert f"`lattend cost {path}` tells what the model costs" in ran.err
    path.write_text('{"colour": "blue"}')
    assert "are a list such as" in lattend("heads", str(path)).err
