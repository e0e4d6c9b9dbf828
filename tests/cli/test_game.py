"""lattend game: the orbit, what is proved of it, tables, pictures, and what it says to wrong input."""

import json
import sys

import pytest

from lattend.study.games.game import Game

HEAD = """\
min over p, max over q of p*q
alternating, q first, step 1

one step       p' = -q, q' = p + q, f' = -q*(p + q)
numbers        exact
period         6, proved: the state after 6 steps is that after 0
"""
ROWS = """\
step   p   q   f
   0   1   1   1
   1  -1   2  -2
   2  -2   1  -2
   3  -1  -1   1
   4   1  -2  -2
   5   2  -1  -2
   6   1   1   1
"""
RANGES = """\
steps      what happens  factor a step
0 < h < 2  cycles        1
h = 2      grows like t  1
h > 2      diverges      h^2/2 + h*sqrt(h^2 - 4)/2 - 1
"""


def test_an_orbit_its_period_and_its_analysis(lattend):
    arguments = ["--step", "1", "--method", "alternating", "--start", "1,1", "--steps", "6"]
    ran = lattend("game", "p*q", *arguments)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(HEAD)
    assert ROWS in ran.out and ran.out.endswith(RANGES)
    assert "stays equal  p^2 + h*p*q + q^2\n" in ran.out
    assert "at h = 1     cycles, period 6: the step's matrix has M^6 = 1" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_portrait_in_the_terminal(lattend, monkeypatch):
    out = lattend("game", "p*q", "--steps", "6", "--portrait").out
    assert "Phase portrait\n" in out and "kept by every step" in out
    monkeypatch.setenv("COLUMNS", "40")
    out = lattend("game", "p*q", "--steps", "6", "--portrait").out
    assert max(map(len, out.splitlines())) <= 40


def test_first_steps_and_start(lattend):
    ran = json.loads(
        lattend("game", "p*q", "--first", "p", "--step", "1/2,1", "--start", "2,0", "--json").out
    )
    assert ran["orbit"]["method"] == "alternating, p first"
    assert ran["orbit"]["points"][:2] == [["2", "0"], ["2", "2"]]  # p stays 2 - 0/2, then q = 0 + 1*2
    assert ran["analysis"]["ratio"] == "2"
    assert len(ran["orbit"]["points"]) == 13


def test_several_methods(lattend, tmp_path):
    arguments = (
        "game",
        "p*q",
        "--method",
        "simultaneous,gradient_penalty",
        "--weight",
        "1/2",
        "--step",
        "0.5",
    )
    ran = lattend(*arguments)
    assert "gradient penalty, weight 1/2  cycles without a period" in ran.out
    file = tmp_path / "portrait.svg"
    assert lattend(*arguments, "--out", str(file)).out == f"{file}: min over p, max over q of p*q\n"
    assert file.read_text().startswith("<svg")


def test_the_table_of_methods(lattend):
    ran = lattend("game", "p*q", "--table")
    assert ran.code == 0
    assert "          optimistic 0.995  0.966  0.707  1.401  1.932  2.957  3.968  4.975\n" in ran.out


def test_several_equilibria(lattend):
    ran = lattend("game", "(p^2 - 1)*q - q^2/4", "--steps", "2")
    assert ran.code == 0
    assert "p = 0, q = -2  not an equilibrium: p gains by moving\n" in ran.out
    assert ran.out.endswith("p = -1, q = 0; p = 1, q = 0; say which: --at ...\n")
    assert "near p = 1, q = 0" in lattend("game", "(p^2 - 1)*q - q^2/4", "--steps", "1", "--at", "1,0").out
    said = "lattend: p = 1, q = 0 is no equilibrium: the gradient by q is not 0 there\n"
    assert lattend("game", "p*q", "--at", "1,0") == (2, "", said)


def test_players(lattend):
    assert lattend("game", "x*u + y*v", "--minimise", "x,y", "--steps", "1").out.startswith(
        "min over x, y, max over u, v of u*x + v*y\n"
    )
    assert "max over p" in lattend("game", "p*q", "--minimise", "q", "--steps", "1").out


def test_dirac(lattend):
    ran = lattend("game", "dirac", "--loss", "linear", "--method", "gradient_penalty", "--step", "1/2")
    assert ran.out.startswith("min over p, max over q of -p*q\n")
    assert "best step    1/2: factor sqrt(3)/2 = 0.8660" in ran.out


def test_advice_is_said_with_options(lattend):
    out = lattend("game", "p^3 + p*q", "--step", "1/10", "--steps", "30").out
    assert "stopped after 7 of 30 steps, before 1,000 digits; floats go on\n" in out
    assert lattend("game", "p*q + r", "--minimise", "p", "--steps", "1").out.endswith(
        "\nEquilibria\nno equilibrium: the gradient is 0 nowhere\n"
    )
    nowhere = lattend("game", "p*exp(q)", "--step", "1/10", "--steps", "1").out
    assert nowhere.endswith("give one: --at 0,0\n") and "at=(" not in nowhere


def test_the_equilibrium_of_a_picture(lattend, tmp_path):
    file, wells = tmp_path / "wells.txt", "(p^2 - 1)*q - q^2/4"
    lines: list[str] = []
    for at in ("-1,0", "1,0"):
        assert lattend("game", wells, "--at", at, "--floats", "--step", "1/8", "--out", str(file)).code == 0
        lines.append(file.read_text())
    assert lines[0] != lines[1]  # (1, 1) is 2.24 from (-1, 0) and 1 from (1, 0)
    said = "lattend: p = 1, q = 1 is no equilibrium: "
    assert lattend("game", wells, "--at", "1,1", "--out", str(file)).err.startswith(said)


def test_a_player_moves_first_by_its_own_name(lattend):
    ran = lattend("game", "x*u", "--minimise", "x", "--first", "x", "--json", "--steps", "1")
    assert json.loads(ran.out)["orbit"]["method"] == "alternating, p first"


def test_help_says_what_a_step_is_to_a_table(lattend):
    assert "With --table, its columns." in " ".join(lattend("game", "--help").out.split())


def test_ring(lattend, tmp_path):
    pytest.importorskip("torch")
    file = tmp_path / "ring.svg"
    ran = lattend("game", "ring", "--steps", "20", "--seed", "5", "--runs", "1", "--json", "--out", str(file))
    runs = json.loads(ran.out)["runs"]
    assert [(run["method"], run["seed"]) for run in runs] == [
        ("gradient penalty, weight 1", 5),
        ("simultaneous", 5),
    ]
    assert "gradient penalty, weight 1, seed 5: " in ran.err
    assert file.read_text().startswith("<svg")


def test_ring_without_torch(lattend, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "lattend.study.games.tensors", raising=False)
    said = "lattend: this runs on torch, an extra that is not installed: pip install 'lattend[torch]'\n"
    assert lattend("game", "ring") == (3, "", said)


def test_the_command_and_the_method_take_as_many_steps(lattend):
    orbit = json.loads(lattend("game", "p*q", "--json").out)["orbit"]
    assert orbit == Game("p*q").orbit((1, 1)).json()
    assert f"How many. {len(orbit['points']) - 1}" in " ".join(lattend("game", "--help").out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], 'lattend: game needs GAME. GAME is a formula such as "p*q", or dirac, or ring.'),
        (["p*q", "--step", "0"], "lattend: a step must be above 0, got 0: nobody would move\n"),
        (
            ["p*q", "--step", "1,2,3"],
            "lattend: step is one number or two, the minimiser's and the maximiser's; got 3\n",
        ),
        (
            ["p*q", "--method", "adam"],
            'lattend: there is no method "adam"; there are simultaneous, alternating,',
        ),
        (["p*q", "--start", "1"], "lattend: start must be 2 numbers, for p, q; got 1\n"),
        (
            ["p*q", "--method", "optimistic", "--first", "q"],
            "lattend: optimistic takes no options, got first\n",
        ),
        (["p*q", "--steps", "-1"], "lattend: an orbit has 0 to 100,000 steps, got -1\n"),
        (["dirac", "--loss", "hinge"], 'lattend: dirac has no loss "hinge"; it has logistic, linear\n'),
        (["ring", "--weight", "1"], "lattend: --weight belongs to a method; name it with --method\n"),
        (["ring", "--runs", "0"], "lattend: --runs is 1 to 100, got 0\n"),
        (
            ["ring", "--seed", str(2**64 - 2)],
            "lattend: seed must be a whole number from −2⁶³ to 2⁶⁴ − 1, got",
        ),
        (["p*q", "--table", "--mass", "0"], "lattend: --mass belongs to a method; name it with --method\n"),
        (["p*q", "--seed", "0"], "lattend: a formula has no use for --seed\n"),
        (["dirac", "--runs", "3"], "lattend: dirac has no use for --runs\n"),
        (["p*q*0"], "lattend: f has no gradient: it is 0 everywhere, and nobody would move\n"),
        (["p*q", "--loss", "linear"], "lattend: a formula has no use for --loss\n"),
        (["dirac", "--minimise", "q"], "lattend: dirac has no use for --minimise\n"),
        (["ring", "--table"], "lattend: ring has no use for --table\n"),
        (["ring", "--start", "1,1"], "lattend: ring has no use for --start\n"),
        (["p*q", "--table", "--steps", "0"], "lattend: a table has no use for --steps\n"),
        (
            ["p*q", "--method", "optimistic,extragradient", "--at", "0,0"],
            "lattend: a comparison of methods has no use for --at\n",
        ),
        (
            ["p*q", "--method", "optimistic,extragradient", "--first", "q"],
            "lattend: optimistic and extragradient have no use for --first\n",
        ),
        (["p*q", "--out", "x.svg", "--portrait"], "lattend: a file has no use for --portrait\n"),
        (["p^2"], "lattend: a game needs two players, one that minimises and"),
        (["Dirac"], 'lattend: there is no game "Dirac"; did you mean dirac?\n'),
        (["rings"], 'lattend: there is no game "rings"; did you mean ring?\n'),
        (["p*q*r"], "lattend: f has p, q, r: say which of them minimise, as in --minimise x,y\n"),
        (["p*q", "--start", "1e400,1", "--out", "x.png"], "lattend: a picture has room for numbers up to"),
        (["log(p)*q", "--start", "0,1"], "lattend: at the start, 0, 1, f is no finite number in floats"),
        (
            ["p*q", "--step", "h"],
            "lattend: --step is a number; what is said for which steps holds for every h",
        ),
        (["p*q", "--start", "p0,q0", "--out", "x.png"], "lattend: the start has p0 and q0 in it; to draw"),
        (["p*q", "--field", "--method", "optimistic"], "lattend: the field has no use for --method\n"),
        (["p*q", "--field", "--table"], "lattend: the field has no use for --table\n"),
        (["ring", "--field"], "lattend: ring has no use for --field\n"),
        (["p*q", "--out", "x.bmp"], 'lattend: cannot save a picture as "x.bmp"'),
    ],
)
def test_wrong_input(lattend, arguments, said):
    ran = lattend("game", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(said)


def test_a_formula_that_cannot_be_read_is_marked(lattend):
    ran = lattend("game", "p*")
    assert ran.code == 2
    assert ran.err.splitlines()[1:] == ["  p*", "    ^"]


def test_letters_as_a_start(lattend):
    ran = lattend("game", "p*q", "--start", "p0,q0", "--steps", "6")
    assert (ran.code, ran.err) == (0, "")
    assert "one step  p' = -q, q' = p + q, f' = -q*(p + q)\n" in ran.out
    assert "   1  -q0       p0 + q0   -q0*(p0 + q0)\n" in ran.out
    assert "6, proved for all p0 and q0" in ran.out
    assert "matrix       M = [1 - h^2, -h; h, 1], by which a step multiplies\n" in ran.out


def test_the_field(lattend, tmp_path):
    """∂f/∂p = q − p/2 and ∂f/∂q = p: 0 at the origin alone, where p is at a maximum of −p²/4."""
    ran = lattend("game", "p*q - p^2/4", "--field")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("min over p, max over q of p*q - p^2/4\n")
    assert "p = 0, q = 0  " in ran.out
    assert "→ where the gradients pull" in ran.out
    data = json.loads(lattend("game", "p*q - p^2/4", "--field", "--json").out)
    assert [one["point"] for one in data["equilibria"]] == [["0", "0"]]
    file = tmp_path / "field.svg"
    assert lattend("game", "p*q", "--field", "--out", str(file)).code == 0
    assert file.read_text().startswith("<svg")


def test_numbers_of_more_digits_than_python_writes(lattend):
    # f at the second point has 5,617 digits, and Python's own text of a whole number ends at 4,300
    ran = lattend("game", "p**20*q**20", "--start", "2,2")
    assert ran.code == 0 and "10995116277762   5.19907e5617" in ran.out
    told = json.loads(lattend("game", "p**20*q**20", "--start", "2,2", "--json").out)["orbit"]
    q = 2 + 20 * 2**20 * 2**19  # q goes first, up f's slope 20 p^20 q^19
    p = 2 - 20 * 2**19 * q**20
    assert told["points"][1] == [str(p), str(q)]
    assert len(told["values"][1]) == 5618
