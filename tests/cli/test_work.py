"""lattend work: tables, files of every kind, checks and their exit codes, and what it says to wrong input."""

import json
import zipfile
from typing import Any

import numpy as np
import pytest

HEAD = {
    "tokens": [[1, 2], [2, 0], [0, 1], [1, 1]],
    "W_q": [[1, 0], [0, 1]],
    "Wk": [[1, 0], [0, 0]],
    "wv": [[0, 0], [0, 1]],
}
NONE = [None] * 4
ANSWER = {
    "weights": [[0.1967, 0.5343, 0.0723, 0.1967], NONE, [0.25, 0.25, 0.25, 0.25], NONE],
    "outputs": [[0, 0.6624], [0, 0.3292], [0, 1], [0, 0.6622]],
}
FIRST = "1  0.1966  0.5344  0.0723  0.1966"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "head.json").write_text(json.dumps(HEAD))
    (tmp_path / "answer.json").write_text(json.dumps(ANSWER))
    return tmp_path


def test_example(lattend):
    ran = lattend("work", "--example")
    assert (ran.code, ran.err) == (0, "")
    assert FIRST in ran.out and "2  e^4 + 2e^2 + 1   70.3763" in ran.out
    assert "1  0  (3e + 1)/(e^2 + 2e + 1)       0  0.6622" in ran.out


def test_a_file_is_the_example(lattend, here):
    assert lattend("work", "head.json") == lattend("work", "--example")


def test_matrices_as_text(lattend):
    rows = ("--tokens", "1,2;2,0;0,1;1,1", "--wq", "1,0;0,1", "--wk", "1,0;0,0", "--wv", "0,0; 0, 2/2")
    assert lattend("work", *rows) == lattend("work", "--example")


def test_spaces_or_commas_and_matrices_left_out(lattend):
    ran = lattend("work", "--tokens", "1 2; 2  0", "--decimal")
    assert ran == lattend("work", "--tokens", "1,2;2,0", "--decimal")
    assert "no matrices: q = k = v = x" in ran.out and "no scaling" in ran.out
    assert ran.out.rstrip().endswith("1  1.0474  1.9051\n2  1.8808  0.2384")  # e^5 and e^2, e^2 and e^4
    assert lattend("work", "--tokens", "1 -1; e^2 1/2", "--decimal").code == 0
    one = lattend("work", "--tokens", "1 + e; 2", "--exact").out
    assert "1  e + 1\n2  2" in one  # one number a row: what stands between the spaces is none


def test_columns(lattend, here):
    rows = ("--tokens", "1,2;2,0", "--wq", "1,1;0,1")
    ran = lattend("work", *rows, "--columns")
    assert "tokens are columns: W x, not x W" in ran.out and "Queries: q = W_q x" in ran.out
    assert lattend("work", "--tokens", "1,2;2,0", "--wq", "1,0;1,1", "--json").code == 0
    (here / "left.json").write_text('{"tokens": [[1, 2], [2, 0]], "wq": [[1, 1], [0, 1]], "columns": true}')
    assert lattend("work", "left.json") == ran
    by_hand = json.loads(lattend("work", "--tokens", "1,2;2,0", "--wq", "1,0;1,1", "--json").out)
    assert (
        json.loads(lattend("work", *rows, "--columns", "--json").out)["steps"]["outputs"]
        == by_hand["steps"]["outputs"]
    )


def test_an_answer_with_decimal_commas_and_a_stray_vector(lattend, here):
    """As it stood in somebody's notes: decimal commas, and a second vector in the line of query 2."""
    first = ["0,1967", "0,5343", "0,0723", "0,1967"]
    answer = {
        "q": [[1, 2], [2, 0, [1, 1]], [0, 1], [1, 1]],
        "weights": [first, ["0,1050", "0,7757", "0,0142", "0,1050"], ["0,25"] * 4, first],
        "outputs": [[0, "0,6624"], [0, "0,3292"], [0, 1], [0, "0,6624"]],
    }
    (here / "notes.json").write_text(json.dumps(answer))
    ran = lattend("work", "--example", "--check", "notes.json")
    assert ran.code == 1
    assert ran.out.splitlines()[0] == "row 2, q: 2 numbers too many at its end, 1 and 1, which are left out"
    assert "32 numbers: 23 right, 7 slips, 2 follow from them" in ran.out
    assert ran.out.rstrip().endswith("19 decimal commas are read as a point: 0,1967 as 0.1967")


def test_every_kind_of_file(lattend, here):
    arrays: dict[str, Any] = {"tokens": HEAD["tokens"], "wq": HEAD["W_q"], "wk": HEAD["Wk"], "wv": HEAD["wv"]}
    np.savez(here / "head.npz", **arrays, rule="causal", scale=0.5)
    wanted = lattend("work", "--example", "--rule", "causal", "--scale", "1/2")
    assert wanted.code == 0
    assert lattend("work", "head.npz") == wanted
    folder = here / "head"
    folder.mkdir()
    np.save(folder / "tokens.npy", np.array(arrays["tokens"]))
    (folder / "wq.csv").write_text("1, 0\n0, 1\n\n")
    (folder / "wk.json").write_text("[[1, 0], [0, 0]]")
    np.savez(folder / "wv.npz", wv=arrays["wv"])
    assert lattend("work", "head", "--rule", "causal", "--scale", "0.5") == wanted
    single = (
        "--tokens",
        "head/tokens.npy",
        "--wq",
        "head/wq.csv",
        "--wk",
        "head/wk.json",
        "--wv",
        "head.npz",
    )
    assert lattend("work", *single, "--rule", "causal", "--scale", "0.5") == wanted


def test_sizes_of_a_rule_stand_in_the_file(lattend, here):
    (here / "band.json").write_text(json.dumps({**HEAD, "rule": "strided", "t": 1, "heads": 2}))
    ran = lattend("work", "band.json", "--decimal")
    assert "2 heads; no scaling; rule k <= q and q - k <= t with t = 1" in " ".join(ran.out.split())
    assert (
        lattend("work", "head.json", "--rule", "strided", "--at", "t=1", "--heads", "2", "--decimal") == ran
    )


def test_places_and_forms(lattend):
    assert "0.196612  0.534447" in lattend("work", "--example", "--places", "6").out
    assert "0.1966" not in lattend("work", "--example", "--exact").out
    assert "e^2 +" not in lattend("work", "--example", "--decimal").out
    assert lattend("work", "--example", "--form", "latex").out.startswith("% needs")
    assert lattend("work", "--example", "--form", "markdown").out.startswith("# Attention")
    assert lattend("work", "--example", "--form", "html").out.startswith('<div class="worked">')


def test_json(lattend, here):
    data = json.loads(lattend("work", "--example", "--json").out)
    assert data["steps"]["outputs"]["exact"][0] == ["0", "(3e + 1)/(e^2 + 2e + 1)"]
    assert data["file"] is None
    data = json.loads(lattend("work", "--example", "--json", "--out", "head.md").out)
    assert data["file"] == "head.md" and (here / "head.md").is_file()


def test_out(lattend, here):
    ran = lattend("work", "--example", "--out", "weights.png")
    said = "weights.png: attention worked through, 4 tokens of 2 numbers; 1 head; no scaling; every query"
    side = "tokens are rows: x W, which is W x too, as every matrix is symmetric"
    assert ran == (0, f"{said} attends to every key; {side}\n", "")
    assert (here / "weights.png").read_bytes().startswith(b"\x89PNG")


CHECKED = """\
row 1, weights 1 and 4: you have 0.1967, exact 0.1966; output 2 of row 1 follows
  from them
row 1, weight 2: you have 0.5343, exact 0.5344
16 numbers: 12 right, 3 slips, 1 follows from them
"""


def test_check(lattend, here):
    assert lattend("work", "--example", "--check", "answer.json") == (1, CHECKED, "")
    data = json.loads(lattend("work", "--example", "--check", "answer.json", "--json").out)
    assert data["right"] is False and len(data["slips"]) == 2


def test_a_right_answer(lattend, here):
    (here / "right.json").write_text('{"sums": [13.8256, 70.3763, 4, 13.83]}')
    assert lattend("work", "--example", "--check", "right.json") == (0, "4 numbers: all right\n", "")
    ran = lattend("work", "--example", "--check", "right.json", "--places", "4")
    assert ran.code == 1 and "row 4, sum: you have 13.83, exact 13.8256" in ran.out


def test_the_last_digit_of_a_json_number_counts(lattend, here):
    """0.200 has three decimals, though JSON knows 0.2 alone: 0.1966 is near 0.20, and not near 0.200."""
    for written, code in (
        ("0.20", 0),
        ("0.200", 1),
        ("0.2", 0),
        ("2e-1", 0),
        ("1.966e-1", 0),
        ("1.967e-1", 1),
    ):
        rest = "[null, null, null, null]"
        text = f'{{"weights": [[{written}, null, null, null], {rest}, {rest}, {rest}]}}'
        (here / "a.json").write_text(text)
        assert lattend("work", "--example", "--check", "a.json").code == code, written


@pytest.mark.parametrize("columns", ["20", "40", "80"])
def test_narrow(lattend, here, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    for options in ((), ("--check", "answer.json"), ("--rule", "causal", "--scale", "sqrt")):
        ran = lattend("work", "--example", *options)
        assert max(map(len, ran.out.splitlines())) <= int(columns)


ROWS = ("--wq", "1;0", "--wk", "1;0", "--wv", "1;0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), 'work needs FILE, --example or --tokens, as in --tokens "1,2;2,0"'),
        (
            ("--tokens", "1,2", "--wq", "1;2"),
            "wq is 2 × 1 and wk is 2 × 2: q and k must be equally long; left out, wk is the identity",
        ),
        (("--wq", "1,0;0,1"), "work has --wq, and needs FILE, --example or --tokens"),
        (
            ("--tokens", "1 2, 3"),
            '--tokens: "1 2" is not a number: 2 is not expected here; put commas between',
        ),
        (
            ("--tokens", "1,2", "--wq", "1,2;3,4;5,6"),
            "tokens has rows of 2 numbers and wq is 3 × 2: in x wq the rows of wq must be as many, 2; "
            "--columns is wq x",
        ),
        (
            ("--tokens", "1,2", "--wq", "1;2", "--columns"),
            "tokens has rows of 2 numbers and wq is 2 × 1: in wq x the columns of wq must be as many, 2",
        ),
        (("--example", "--check", "bare.json"), '"bare.json" is no JSON: Expecting'),
        (("none.json",), 'there is no file "none.json"'),
        (("head.txt",), 'cannot read "head.txt": the ending is not one of .json, .npz'),
        (("bad.json",), '"bad.json" is no JSON: Expecting'),
        (("few.json",), '"few.json" has no tokens; it has wq'),
        (("list.json",), '"list.json" holds a list; write {"tokens"'),
        (("bad.npz",), 'cannot read "bad.npz" as .npz'),
        (("bytes.npz",), '"bytes.npz" holds no array in tokens; write it with numpy.savez'),
        (("--tokens", "bytes.npz", *ROWS), '"bytes.npz" holds no array in tokens; write it with'),
        (("long.json",), '"long.json": 111111111111… has 5,000 digits; a whole number has at most 4,000'),
        (
            ("longtext.json",),
            f'tokens, row 1, column 1: "{37 * "1"}..." is not a number: a formula has at most 2,000',
        ),
        (("--example", "--check", "long.json"), '"long.json": 111111111111… has 5,000 digits'),
        (("deep.json",), '"deep.json" has too many brackets inside one another'),
        ((".",), 'the folder "." has no tokens'),
        (("head.json", "--example"), "FILE and --example are two pieces of work; give one"),
        (
            ("--tokens", "1,2;;", *ROWS),
            "--tokens: a number is missing; files end in .json, .csv",
        ),
        (("--tokens", "1,2;3", *ROWS), "--tokens has 2 numbers in its first row and 1 in this one"),
        (("--tokens", "1,a", *ROWS), '--tokens: "a" is not a number: a is not known'),
        (("--tokens", "no.csv", *ROWS), '--tokens: there is no file "no.csv"'),
        (
            ("--example", "--rule", "windwed"),
            'rule "windwed": no rule is named windwed; did you mean windowed?',
        ),
        (
            ("--example", "--rule", "strided"),
            'rule "k <= q and q - k <= t" needs a value for t: give --at t=…',
        ),
        (("--example", "--scale", "root"), 'scale is a number, or "sqrt" for 1/sqrt(D)'),
        (("--example", "--heads", "3"), "wq has 2 columns, which 3 heads cannot share equally"),
        (("--example", "--places", "99"), "places must be a whole number from 0 to 40, got 99"),
        (("--example", "--exact", "--decimal"), "--exact and --decimal leave nothing to print"),
        (("--example", "--form", "xml"), "--form is one of terminal, html, latex, markdown, not xml"),
        (("--example", "--form", "html", "--out", "x.html"), "the ending of --out says its form"),
        (("--example", "--out", "x.gif"), 'cannot save the work as "x.gif"'),
        (("--example", "--check", "head.json"), "the work has no step tokens; it has q, k, v"),
        (("--example", "--check", "answer.json", "--out", "x.md"), "--check prints its verdict; leave --out"),
        (
            ("--example", "--check", "answer.json", "--form", "html"),
            "--check prints its verdict; leave --form",
        ),
        (("--example", "--check", "answer.json", "--places", "99"), "places must be a whole number from 0"),
        (
            ("--example", "--check", "wide.json"),
            "weights in the answer must be 4 rows of 4 numbers, with null for a number or row",
        ),
    ],
)
def test_wrong_input(lattend, here, arguments, message):
    (here / "bad.json").write_text('{"tokens": [[1, 2],')
    (here / "few.json").write_text('{"wq": [[1, 2]]}')
    (here / "bare.json").write_text('{"weights": [[0,1967, 0,0142, 0,25, 1], null, null, null]}')
    (here / "list.json").write_text("[1]")
    (here / "wide.json").write_text('{"weights": [[1, 2, 3, 4, 5]]}')
    (here / "bad.npz").write_bytes(b"PK\x03\x04nothing")
    with zipfile.ZipFile(here / "bytes.npz", "w") as file:
        file.writestr("tokens.npy", b"no array")
    for name, number in (("long", 5000 * "1"), ("longtext", f'"{5000 * "1"}"')):
        (here / f"{name}.json").write_text(f'{{"tokens": [[{number}]], "wq": 1, "wk": 1, "wv": 1}}')
    (here / "deep.json").write_text(100000 * "[")
    ran = lattend("work", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")
