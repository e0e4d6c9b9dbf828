"""lattend steer: numbers, fractions, files, pictures, and what it says to wrong input."""

import json

import numpy as np
import pytest

TWO = """\
Attention over 2 keys, steered to 1 of them
The keys are orthonormal, and q = Σ βᵢkᵢ has logits βᵢ: β + log(s·wanted) on the
s wanted keys, 0 elsewhere. What the others get fades as β grows, and never is
0.

query      (5, 0, 0)
sharpness  β = 5: the mean weight on the wanted keys is e^β times the greatest
           other
formula    e^β/(e^β + m - 1) on each wanted key, 1/(e^β + m - 1) on each other,
           with m = 2 keys
reached    in the limit
error      0.00669285, half the sum of the differences of weights; bound
           0.00669285

key  wanted  logit      weight
  0       1      5    0.993307
  1       0      0  0.00669285

What keys get
weight up, sharpness β across
  1 │                           ⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀
    │             ⢀⣀⠤⠤⠒⠒⠒⠉⠉⠉⠉⠉⠉⠉⠁
    │        a⣀⡤⠒⠉⠁
    │      ⢀⡤⠊⠁
    │    ⢀⡔⠃
    │  ⢀⠴⠁
    │ ⡰⠊
0.5 │⢼
    │ ⠱⢄
    │  ⠈⠲⡀
    │    ⠈⠣⡄
    │      ⠈⠓⢄⡀
    │         ⠉⠓⠤⣀⡀
  0 │             ⠈⠉⠒⠒b⠤⠤⣀⣀⣀⣀⣀⣀⣀⡀
    │                           ⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉
    └────────────────────────────────────────────
     0         2          4          6          8

Error and bound
error up, sharpness β across
     1 │
       │⠑⠲⠤⢄⡀
       │    ⠈⠉⠒⠤⣀
       │         ⠉⠒⠤⣀
       │             ⠙⠲⢤⡀
       │                ⠈⠑⠢⣀
       │                    ⠙⠒⢄⡀
  0.01 │                       ⠈⠓⠦c
       │                           ■⠢⢄⡀
       │                              ⠉⠑⠤⣀
       │                                 ⠈⠙d⢄
       │                                     ⠉⠲⠤⡀
       │                                        ⠈⠑⠦⣄
       │
0.0001 │
       └────────────────────────────────────────────
        0         2          4          6          8
⠤a key 0   ⠤b key 1   ⠤c bound   ⠤d error
"""


def test_text(lattend):
    assert lattend("steer", "--keys", "1,0,0;0,1,0", "--weights", "1,0", "--sharpness", "5") == (0, TWO, "")


def test_orthonormal(lattend):
    ran = lattend("steer", "--orthonormal", "100", "--weights", "1/2,1/2", "--error", "0.01", "--json")
    data = json.loads(ran.out)
    assert data["error"] == pytest.approx(0.01) and data["query"][:3] == pytest.approx(
        [8.486937, 8.486937, 0]
    )
    assert data["sharpness"] == pytest.approx(np.log(98 * 0.99 / (2 * 0.01)))


def test_a_given_query(lattend):
    ran = lattend("steer", "--keys", "1,0;2,0", "--query", "3,0", "--weights", "1,0")
    assert (ran.code, ran.err) == (0, "")
    assert "The query is parallel to key 0, the wanted one, but that does not suffice" in ran.out
    assert "max error  0.952574, the greatest difference of a weight" in ran.out
    assert "KL         3.04859 nats" in ran.out and "better     (−6.90675, 0) has error 0.001" in ran.out
    assert lattend("steer", "--keys", "1 0;2 0", "--query", "3 0", "--weights", "1 0") == ran
    data = json.loads(lattend("steer", "--orthonormal", "4", "--query", "3", "--json").out)
    assert data["weights"] == pytest.approx([np.e**3 / (np.e**3 + 3), *[1 / (np.e**3 + 3)] * 3])


def test_formulas(lattend):
    ran = lattend("steer", "--orthonormal", "m", "--weights", "1/2,1/2", "--formula")
    assert ran.code == 0 and "0              1/2  e^β/(2e^β + m - 2)" in ran.out
    assert lattend("steer", "--orthonormal", "m", "--weights", "1/2,1/2") == ran
    data = json.loads(lattend("steer", "--orthonormal", "4", "--weights", "1", "--formula", "--json").out)
    assert (data["leak"], data["keys"]) == ("3/(e^β + 3)", "4")


def test_fractions_are_exact(lattend):
    ran = lattend("steer", "--keys", "0;1/3;2/3", "--weights", "1/7,2/7,4/7", "--json")
    assert json.loads(ran.out)["exact"] is True
    ran = lattend("steer", "--keys", "-1;0;1", "--weights", "0,1,0")
    assert ran.code == 0 and "at most   0.333333 for key 1, whatever the query" in ran.out


def test_files(lattend, tmp_path):
    (tmp_path / "keys.csv").write_text("1,0\n0,1\n\n1/2,2\n")
    (tmp_path / "weights.json").write_text('["1/2", 0.5, 0]')
    np.save(tmp_path / "values.npy", np.array([[1.0], [2.0], [3.0]]))
    given = [f"--{name}={tmp_path / file}" for name, file in (("keys", "keys.csv"), ("values", "values.npy"))]
    ran = lattend("steer", *given, "--weights", str(tmp_path / "weights.json"), "--scale", "sqrt", "--json")
    data = json.loads(ran.out)
    assert data["wanted_output"] == [1.5] and data["scale"] == pytest.approx(0.5**0.5)
    assert data["output_error"] <= data["output_bound"]
    (tmp_path / "weights.csv").write_text("1\n0\n0\n")
    ran = lattend("steer", given[0], "--weights", str(tmp_path / "weights.csv"), "--json")
    assert json.loads(ran.out)["wanted"] == [1, 0, 0]


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_pictures(lattend, tmp_path, ending, start):
    path = tmp_path / f"steer.{ending}"
    ran = lattend("steer", "--keys", "0,0;2,0;1,2;1,1", "--weights", "1/3,2/3,0,0", "--out", str(path))
    assert ran == (0, f"{path}: Attention over 4 keys, steered to 2 of them\n", "")
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("columns", ["20", "40"])
def test_narrow(lattend, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    ran = lattend("steer", "--keys", "0,0;2,0;1,2;1,1", "--weights", "1/3,2/3,0,0")
    assert max(map(len, ran.out.splitlines())) <= int(columns)


KEYS = ("--keys", "1,0;0,1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), 'steer needs --keys, such as --keys "1,0;0,1", or --orthonormal with their number'),
        ((*KEYS, "--orthonormal", "2"), "steer needs --keys"),
        (KEYS, "steer needs --weights, the wanted weight of each key, such as --weights 1,0"),
        (("--keys", "1,0;0", "--weights", "1,0"), "--keys has 2 numbers in its first row and 1 in this one"),
        (("--keys", "1,x;0,1", "--weights", "1,0"), '--keys: "x" is not a number: x is not known'),
        (("--keys", "1e999999999;1", "--weights", "1,0"), '--keys: "1e999999999" is not a number'),
        (("--keys", "1e-400,1;0,1", "--weights", "1,0"), "--keys: 1e-400 is beyond floats"),
        (
            ("--keys", "keys.txt", "--weights", "1,0"),
            '"keys.txt" is not a number: . is not part of a formula; files end in',
        ),
        (("--keys", "1," * 999, "--weights", "1,0"), "--keys: a number is missing; files end in .json,"),
        (
            (*KEYS, "--weights", "1,"),
            "--weights: a number is missing; files end in .json, .csv, .npy or .npz",
        ),
        ((*KEYS, "--weights", "1/0,1"), '--weights: "1/0" is not a number: division by 0'),
        ((*KEYS, "--weights", "2,-1"), "weights[1] is -1; a weight is at least 0"),
        ((*KEYS, "--weights", "1,1/5"), "the weights sum to 1.2, not 1; divide them by their sum"),
        ((*KEYS, "--weights", "1,0,0"), "weights has shape (3,) for 2 keys; give [..., 2], one for each key"),
        ((*KEYS, "--weights", "1,0", "--sharpness", "5", "--error", "0.1"), "are both given"),
        ((*KEYS, "--weights", "1,0", "--error", "1.5"), "error is 1.5; the share that may go elsewhere"),
        ((*KEYS, "--weights", "1,0", "--sharpness", "1,2"), 'sharpness: "1,2" is not a number'),
        ((*KEYS, "--weights", "1,0", "--scale", "0"), "scale is 0; no query would change a weight"),
        ((*KEYS, "--weights", "1,0", "--values", "1,2"), "values has shape (1, 2); give [..., 2, v]"),
        (
            ("--orthonormal", "0", "--weights", "1"),
            "--orthonormal is 0; give a number of keys from 1 to 4,096",
        ),
        (
            (*KEYS, "--query", "1,0", "--error", "0.1"),
            "--error is for a query that is looked for; leave it out",
        ),
        ((*KEYS, "--query", "1"), "query has shape (1,), and keys have 2 numbers; give as many"),
        ((*KEYS, "--formula", "--weights", "1,0"), "--keys has no part in a formula of orthonormal keys"),
        (
            ("--orthonormal", "m", "--weights", "1,1"),
            "the weights are at least 0 and sum to 1; these sum to 2",
        ),
        (("--orthonormal", "2", "--query", "1,0,0"), "--query has 3 numbers for 2 keys; give at most 2"),
        (("--orthonormal", "2", "--weights", "1,0,0"), "--weights has 3 numbers for 2 keys; give at most 2"),
        (("--keys", "nowhere.csv", "--weights", "1,0"), '--keys: there is no file "nowhere.csv"'),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("steer", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_the_character_is_marked(lattend):
    ran = lattend("steer", "--keys", "1,x;0,1", "--weights", "1,0")
    assert ran.err.splitlines()[1:] == ["  1,x;0,1", "    ^"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bad.json", 'bad.json" is no JSON: Expecting property name'),
        ("bad.npy", 'bad.npy" holds no array of numbers; write it with numpy.save'),
        ("bad.npz", 'bad.npz" as .npz'),
        ("bad.csv", 'keys[0][0]: "{" is not a number'),
        ("bad.md", 'bad.md": the ending is not one of .json, .csv, .npy, .npz'),
    ],
)
def test_damaged_files(lattend, tmp_path, name, message):
    (tmp_path / name).write_text("{")
    ran = lattend("steer", "--keys", str(tmp_path / name), "--weights", "1,0")
    assert ran.code == 2 and message in ran.err


def test_heads_of_a_file(lattend, tmp_path):
    keys = np.random.default_rng(0).normal(size=(2, 5, 2))
    np.savez(tmp_path / "all.npz", keys=keys, weights=np.eye(5)[:2], values=keys)
    path = str(tmp_path / "all.npz")
    ran = lattend("steer", "--keys", path, "--weights", "1,0,0,0,0;0,1,0,0,0", "--values", path, "--json")
    data = json.loads(ran.out)
    assert data["shape"] == [2] and [head["wanted"][at] for at, head in enumerate(data["heads"])] == [1, 1]
    again = lattend("steer", "--keys", path, "--weights", path, "--values", path, "--json")
    assert again.out == ran.out


def test_no_weight_of_a_limit_is_exactly_0_or_1(lattend):
    sharp = lattend("steer", "--orthonormal", "4", "--weights", "1,0", "--sharpness", "20").out
    assert "1     20  1 − 6.2e−9" in sharp  # 3e^-20
    sharper = lattend("steer", "--orthonormal", "4", "--weights", "1,0", "--sharpness", "800").out
    assert "1 − 1.1e−347" in sharper and sharper.count("3.66787e−348") == 3
    assert "error      under 1e−300" in sharper and "bound under" in sharper
