"""lattend compare: layers side by side, in text, JSON and pictures."""

import json
from xml.etree import ElementTree

import pytest

RNN = "rnn(steps=t,inputs=n,hidden=n)"
FULL = "attention(full,n=t,heads=1,D_i=n,D_hid=n,projections=none)"


def test_text(lattend):
    ran = lattend("compare", RNN, FULL, "--over", "t", "--at", "n=512")
    assert (ran.code, ran.err) == (0, "")
    assert "attention passes rnn at t = n; equal there, costs more from t = n + 1 on" in ran.out.splitlines()
    assert "  at n = 512: t = 512" in ran.out.splitlines()
    assert f"rnn is {RNN}" in ran.out.splitlines()


def test_layers_without_sizes(lattend):
    ran = lattend("compare", "lstm", "attention", "--over", "t", "--quantity", "multiply_adds")
    assert (
        "attention passes lstm at t = 2d; equal there, costs more from t = 2d + 1 on" in ran.out.splitlines()
    )
    assert "lstm is lstm(steps=t, inputs=d, hidden=d)" in ran.out.splitlines()


def test_an_image_beside_an_image(lattend):
    """All have the same n × n pixels and channels, those on a line as n^2 positions; that is said first."""
    ran = lattend("compare", "rnn2d", "conv", "--at", "d=8")
    lines = ran.out.splitlines()
    assert lines[:2] == ["the same n × n pixels of d channels", "multiplies as n grows"]
    assert "rnn2d is rnn2d(n=n, h=d, c=d)" in lines
    assert "conv is conv(rows=n, cols=n, kernel=3, padding=1, c_in=d, c_out=d)" in lines
    data = json.loads(lattend("compare", "rnn2d", "lstm", "attention", "--json").out)
    assert data["note"] == (
        "the same n × n pixels of d channels: lstm and attention are given them as n^2 positions in a line"
    )
    assert data["meanings"]["lstm"] == "lstm(steps=n^2, inputs=d, hidden=d)"
    assert "positions" not in data
    ran = lattend("compare", "rnn2d(rows=a, cols=b, h=64, c=3)", "conv", "gru", "--over", "a")
    assert "conv is conv(rows=a, cols=b, kernel=3, padding=1, c_in=3, c_out=64)" in ran.out.splitlines()
    assert "gru is gru(steps=a*b, inputs=3, hidden=64)" in ran.out.splitlines()


def test_sizes_of_their_own_are_warned_of(lattend):
    """A line beside an image is not compared without a word."""
    ran = lattend("compare", "rnn2d", "lstm(steps=n)")
    warning = "different numbers of positions: rnn2d has n^2, lstm has n"
    assert ran.out.splitlines()[:2] == [warning, "multiplies as n grows"]
    data = json.loads(lattend("compare", "rnn2d", "lstm(steps=n)", "--json").out)
    assert data["positions"] == {"rnn2d": "n^2", "lstm": "n"} and "note" not in data


def test_stacks_of_layers(lattend):
    """So many layers as on the other side, or a word about it."""
    ran = lattend("compare", "rnn(layers=l)", "attention(projections=none) * l", "--over", "t")
    lines = ran.out.splitlines()
    assert lines[0] == "multiplies as t grows"
    assert "l * attention passes rnn at t = d; equal there, costs more from t = d + 1 on" in lines
    meaning = "l * attention is l * attention(projections=none, n=t, heads=1, D_i=d, D_hid=d)"
    assert meaning in " ".join(line.strip() for line in lines)
    ran = lattend("compare", "rnn(layers=l)", "attention", "--over", "t")
    assert ran.out.splitlines()[0] == "different numbers of layers: rnn has l, attention has 1"
    data = json.loads(lattend("compare", "rnn(layers=l)", "attention", "--over", "t", "--json").out)
    assert data["warning"] == "different numbers of layers: rnn has l, attention has 1"


def test_labels(lattend):
    ran = lattend("compare", "attention(full)", "attention(causal)", "mine: attention(strided)", "--json")
    assert [layer["label"] for layer in json.loads(ran.out)["layers"]] == [
        "attention (full)",
        "attention (causal)",
        "mine",
    ]
    for first, labels in (("rnn", ["rnn 1", "rnn 2"]), ("rnn(hidden=3)", ["rnn(hidden=3)", "rnn(hidden=5)"])):
        ran = lattend("compare", first, "rnn(hidden=5)" if first != "rnn" else first, "--over", "t", "--json")
        assert [layer["label"] for layer in json.loads(ran.out)["layers"]] == labels


def test_json_and_picture(lattend, tmp_path):
    file = tmp_path / "f.svg"
    ran = lattend(
        "compare", RNN, FULL, "--over", "t", "--at", "n=8", "--sizes", "4,8,16", "--json", "--out", str(file)
    )
    data = json.loads(ran.out)
    assert data["crossovers"][0]["cases"][0]["places"] == ["n"]
    assert [row["t"] for row in data["rows"]] == [4, 8, 16]
    assert data["file"] == str(file)
    ElementTree.fromstring(file.read_text())
    ran = lattend("compare", RNN, FULL, "--over", "t", "--out", str(tmp_path / "f.png"))
    assert ran.out == f"{tmp_path / 'f.png'}: Multiplies as t grows\n"


def test_equal_parameters_and_columns(lattend):
    ran = lattend("compare", "lstm", "attention", "--over", "t", "--at", "d=512", "--equal", "parameters")
    assert "attention has d = 723" in ran.out
    ran = lattend("compare", "rnn", "attention(causal)", "--over", "t", "--column", "dense")
    assert "2d*t(2d + t)" in ran.out


def test_architectures(lattend, tmp_path):
    ran = lattend("compare", "--architectures")
    assert ran.code == 0
    assert "k^2*d^2*n: holds for n >= 1 and k >= 1 and d >= 1" in " ".join(ran.out.split())
    ran = lattend("compare", "--architectures", "--at", "k=3")
    assert "it gives 18, the count is 36" in " ".join(ran.out.split())
    data = json.loads(lattend("compare", "--architectures", "--at", "n=64,d=8,k=5", "--json").out)
    assert data["numbers"]["sequential depth"] == ["1", "64", "1"]
    file = tmp_path / "table.md"
    assert lattend("compare", "--architectures", "--out", str(file)).code == 0
    assert file.read_text().splitlines()[2] == "|  | convolution | RNN | self-attention |"


def test_tables_of_training_and_test(lattend, tmp_path):
    ran = lattend("compare", "--tables")
    assert (ran.code, ran.err) == (0, "")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "RNN 2n^2*l*t O(n^2*l*t) O(t l n^2): holds" in lines
    assert "RNN n*l O(n*l) O(l n): holds" in lines
    data = json.loads(lattend("compare", "--tables", "--at", "t=4,n=3,l=2", "--json").out)
    assert data["tables"]["space at test"][2]["number"] == 2 * 3 * 2 * 4
    file = tmp_path / "tables.md"
    assert lattend("compare", "--tables", "--out", str(file)).code == 0
    assert "| RNN | n*l | O(n*l) | O(l n): holds |" in file.read_text().splitlines()


def test_a_comparison_as_markdown(lattend, tmp_path):
    file = tmp_path / "layers.md"
    ran = lattend("compare", RNN, FULL, "--over", "t", "--at", "n=8", "--sizes", "4,8", "--out", str(file))
    assert ran.out == f"{file}: Multiplies as t grows\n"
    lines = file.read_text().splitlines()
    assert "| rnn | 2n^2*t | O(n^2*t) |" in lines and "| 8 | 1,024 | 1,024 | all the same |" in lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tables", "--architectures"), "--architectures does not go with --tables"),
        (("--tables", "--quantity", "adds"), "--quantity does not go with --tables"),
        (("--tables", "--at", "q=3"), "the tables have no q; they have t, l, n"),
        (("--tables", "rnn"), "--tables compares layers of its own; leave rnn out"),
        (("rnn",), "compare needs two layers or more"),
        ((), "compare needs two layers or more"),
        (("rnn", "attntion"), "no layer is named attntion"),
        (("rnn", "attention", "--at", "z=3"), "none of these has z; they have n, d"),
        (("rnn", RNN, "--over", "z"), None),
        ((RNN, FULL, "--over", "z"), "none of these has z: give over= one of n, t"),
        (("rnn", "attention", "--quantity", "flops"), "a cost has no flops"),
        (("rnn", "attention", "--column", "marked"), "--column is needed or dense, not marked"),
        (("rnn", "attention", "--equal", "parameters"), "as a number: give --at d=…"),
        (("rnn", "attention", "--sizes", "a"), "--sizes takes whole numbers, as in 64,128, not a"),
        (("rnn", "attention", "--out", "f.doc"), "the ending is not one of"),
        (("a: rnn", "a: gru"), "two layers are called a; name them apart"),
        (("rnn", "--architectures"), "leave rnn out"),
        (("--architectures", "--at", "h=3"), "--architectures has no h; it has n, d, k"),
        (("--architectures", "--at", "k=2"), "k must be odd"),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("compare", *arguments)
    if message is None:
        assert ran.code == 0
        return
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
