"""lattend grid: steps, receptive fields, prices, frames, and what it says to wrong input."""

import json

import pytest

FRAMES = """\
A 2-D RNN on 2 × 3 pixels, step by step
1 direction: down and right

steps    4, sequential: cell (row, col) runs at step col + row
at once  up to 2 of 6 cells
2-D RNN  h(7h + 6c) multiplies, h(2h + c) parameters

step 0                    step 1                    step 2
row down, column across   row down, column across   row down, column across
  0 1 2                     0 1 2                     0 1 2
0 ██· ·                   0 ▒▒██·                   0 ▒▒▒▒██
1 · · ·                   1 ██· ·                   1 ▒▒██·

step 3
row down, column across
  0 1 2
0 ▒▒▒▒▒▒
1 ▒▒▒▒██

▒▒ done   ██ runs at this step
"""


def test_frames(lattend):
    assert lattend("grid", "2x3", "--frames") == (0, FRAMES, "")


def test_text(lattend):
    ran = lattend("grid", "8", "--at", "c=3,h=64")
    assert (ran.code, ran.err) == (0, "")
    assert "steps            15, sequential: cell (row, col) runs at step col + row" in ran.out
    assert "2-D RNN          471,040 multiplies, 8,384 parameters" in ran.out  # 64*192 + 112*4096
    assert "7 7  8  9  10 11 12 13 14    7 · · · · · · · ·" in ran.out
    assert "4 · 3 2 1 ██1 2 3" in ran.out


def test_the_words_below_are_about_what_is_shown(lattend, monkeypatch):
    said = lattend("grid", "8").out.split("\n\n")[-1]
    first, second = said.splitlines()
    assert first == "1, 2, 3: in the receptive field from this layer on"
    assert second == "██ the pixel itself   ▚▚ in the receptive field"
    monkeypatch.setenv("COLUMNS", "100")
    assert "·░▒▓█ 78  step" in lattend("grid", "40").out
    monkeypatch.setenv("COLUMNS", "18")  # steps have no room for their two digits, layers for their one
    said = lattend("grid", "10").out.split("\n\n")[-1]
    assert "1, 2, 3: in the" in said and "·░▒▓█ 18  step" in said


def test_directions_start_at_their_corners(lattend):
    out = " ".join(lattend("grid", "3", "--directions", "2").out.split())
    assert "cell (row, col) runs at step col + row, from the corner where its direction starts" in out
    assert "direction starts" not in lattend("grid", "3").out


def test_an_image_too_large_for_a_picture(lattend):
    ran = lattend("grid", "224x200", "--at", "h=2,c=3")
    assert ran.code == 0
    assert "no picture: " in ran.out and "row down" not in ran.out
    assert "423, sequential: cell (row, col) runs at step col + row" in ran.out
    multiplies = 224 * 200 * 6 + (223 * 200 + 224 * 199) * 4  # h*c a pixel, h*h a neighbour
    assert f"{multiplies:,} multiplies, {6 + 8} parameters" in ran.out
    data = json.loads(lattend("grid", "224x200", "--json").out)
    assert data["depth"] == 423 and "steps" not in data


def test_help_shows_its_own_numbers(lattend):
    out = lattend("grid", "--help").out
    assert "h=64,c=3" in out and "n=12" not in out


def test_directions_and_json(lattend):
    ran = lattend(
        "grid", "8x12", "--directions", "2", "--pixel", "3,4", "--kernel", "5", "--layers", "1", "--json"
    )
    data = json.loads(ran.out)
    assert data["depth"] == 19
    assert list(data["steps"]) == ["down and right", "down and left"]
    assert data["steps"]["down and left"][0] == list(range(11, -1, -1))
    assert data["receptive_field"] == {"rnn2d": 4 * 12, "convnet": 25, "pixels": 96}
    assert data["convnet"]["whole_image"] == 4  # (12 - 1 - 4) columns on, 2 a layer


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_files(lattend, tmp_path, ending, start):
    path = tmp_path / f"grid.{ending}"
    ran = lattend("grid", "4", "--directions", "4", "--out", str(path))
    assert ran == (0, f"{path}: A 2-D RNN on 4 × 4 pixels\n", "")
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("columns", ["20", "40", "80"])
def test_narrow(lattend, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    for options in (("12",), ("40x50",), ("6", "--frames", "--directions", "4")):
        ran = lattend("grid", *options)
        assert max(map(len, ran.out.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "grid needs SIZE. SIZE is the image, 8, or rows by columns, 8x12"),
        (("a",), "SIZE is a whole number, or rows by columns as in 8x12"),
        (("0",), "an image has 1 to 1,024 rows and columns here, got 0 × 0"),
        (("8", "--directions", "3"), "directions is 1, 2 or 4, not 3"),
        (("8", "--directions", "two"), "--directions is a whole number, got two"),
        (("8", "--pixel", "8,8"), "pixel (8, 8) lies outside an image of 8 × 8"),
        (("8", "--pixel", "8"), "--pixel is a row and a column, as in 3,4"),
        (("8", "--at", "n=4"), "grid has no n; --at takes c, channels of a pixel, and h, of a state"),
        (("8", "--at", "c"), "--at: write name=value"),
        (("8", "--layers", "0"), "layers must be at least 1, got 0"),
        (("8", "--out", "x.gif"), 'cannot save a picture as "x.gif"'),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("grid", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")


def test_the_module_is_checked_against_loops(lattend):
    ran = lattend("grid", "4", "--check")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(
        "GridRNN(3, 5, activation='sigmoid') on 4 × 4 pixels against plain loops, float64\n"
    )
    assert "gradient of W_top" in ran.out and "equal up to rounding" in ran.out
    ran = lattend("grid", "4x6", "3x3", "--check", "--cell", "gru", "--at", "c=1,h=2", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["sizes"] == [[4, 6], [3, 3]]
    assert json.loads(ran.out)["module"] == "GridRNN(1, 2, cell='gru')"


def test_a_check_that_fails_says_no(lattend, monkeypatch):
    from lattend.nn.grid.rnn import GridRNN

    forward = GridRNN.forward
    monkeypatch.setattr(GridRNN, "forward", lambda self, x, **more: 2 * forward(self, x, **more))
    ran = lattend("grid", "2", "--check")
    assert ran.code == 1
    assert "differs" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("4", "5"), "2 images are for --check; give one SIZE to draw"),
        (("4", "--check", "--out", "x.svg"), "--out draws, and --check draws nothing; leave it out"),
        (("4", "--activation", "relu"), "--activation is for --check; leave it out"),
        (("4", "--diagram", "--frames"), "a diagram shows one direction, at no step: leave frames"),
        ((), "grid needs SIZE. SIZE is the image"),
    ],
)
def test_checks_and_diagrams_asked_wrongly(lattend, arguments, message):
    ran = lattend("grid", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")


def test_diagram(lattend):
    ran = lattend("grid", "2", "--diagram")
    assert ran.code == 0
    assert "□   □            ○ → ○\n                 ↓   ↓\n□   ■            ○ → ●\n" in ran.out
    assert "h[i, j] = σ(W_in x[i, j] + W_left h[i, j−1] + W_top h[i−1, j])" in ran.out
