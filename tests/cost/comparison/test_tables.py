"""The two tables: architectures side by side, RNN against Transformer."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lattend as lt
from lattend.cost.comparison.tables import architectures
from lattend.cost.pairs import longest_path
from lattend.errors import DomainError, NamingError


def test_formulas():
    rows = {name: list(cells.values()) for name, cells in architectures(k=3).numbers}
    assert rows == {
        "parameters": ["9d^2", "2d^2", "4d^2"],
        "multiplies": ["d^2(9n - 12s + 4)", "2n*d^2", "2n*d(n + 2d)"],  # s*s pixels: (3s - 2)^2 d^2
        "multiplies, padding too": ["9n*d^2", "=", "="],
        "multiplies, no projections": ["=", "=", "2n^2*d"],
        "order of multiplies": ["O(n*d^2)", "O(n*d^2)", "O(n*d^2 + n^2*d)"],
        "sequential depth": ["1", "n", "1"],
        "maximum path length, in layers or steps": ["s - 1", "n", "1"],
        "saved activations, numbers": ["n*d", "2n*d", "n(n + 5d)"],
    }


def test_the_kernel_is_a_letter():
    result = architectures()
    rows = dict(result.numbers)
    assert rows["parameters"]["convolution"] == "d^2*k^2"
    assert rows["multiplies, padding too"]["convolution"] == "n*d^2*k^2"
    assert rows["order of multiplies"]["convolution"] == "O(n*d^2*k^2)"
    assert [verdict.status for _, verdict in result.claims] == ["fails", "holds", "holds", "holds"]
    assert result.claims[1][1].claim == "k^2*d^2*n"
    assert "self-attention passes convolution at n = d(k + 2)(k - 2)/2 when k > 2" in str(result)


@pytest.mark.parametrize("side", [2, 3, 4, 7, 8, 9])
@pytest.mark.parametrize("k", [3, 5, 7])
def test_the_path_with_a_letter_is_that_of_numbers(side, k):
    """⌈2(s - 1)/(k - 1)⌉ layers, against the steps of windows from one end of the image to the other."""
    name = "maximum path length, in layers or steps"
    words = dict(architectures(n=side * side, d=2).numbers)[name]["convolution"]
    assert words == f"⌈{2 * side - 2}/(k - 1)⌉"
    far = [[abs(q - key) <= k // 2 for key in range(side)] for q in range(side)]
    assert longest_path(np.array(far)) == -(-(2 * side - 2) // (k - 1))


@pytest.mark.parametrize("k", [1, 3, 5, 7])
def test_a_convolution_costs_k2_d2_n(k):
    result = architectures(n=64, d=6, k=k)
    cells = dict(result.numbers).get("multiplies, padding too", dict(result.numbers)["multiplies"])
    assert int(cells["convolution"].replace(",", "")) == k * k * 36 * 64


def test_the_claim_k2_d_n_fails_but_for_depthwise_or_one_channel():
    verdicts = dict(architectures(k=3).claims)
    assert [verdict.status for verdict in verdicts.values()] == ["fails", "holds", "holds", "holds"]
    assert "at n = 1, d = 2 it gives 18, the count is 36" in str(
        verdicts["k^2*d*n with d channels in and out"]
    )


def test_numbers():
    rows = {name: list(cells.values()) for name, cells in architectures(n=1024, d=64, k=5).numbers}
    image = lt.cost.conv(rows=32, cols=32, c_in=64, c_out=64, kernel=5, padding=2, bias=False)
    full = lt.cost.attention("full", n=1024, heads=1, D_i=64, D_hid=64, out_bias=False)
    assert rows["multiplies"] == [f"{x:,}" for x in (image.multiplies, 2 * 1024 * 64**2, full.multiplies)]
    assert rows["maximum path length, in layers or steps"] == ["16", "1,024", "1"]  # ceil(31/2)
    assert "order of multiplies" not in rows


def test_words_come_from_the_file():
    result = architectures()
    assert [name for name, _ in result.sentences] == [
        "parallelism", "distant positions", "inductive bias", "where used",
    ]  # fmt: skip
    assert all(cell for _, cells in result.rows for cell in cells.values())


def test_forms():
    result = architectures(k=3)
    text = str(result)
    assert max(map(len, text.splitlines())) <= 100
    assert "self-attention passes convolution at n = 5d/2" in text
    lines = result.markdown().splitlines()
    assert (
        lines[0] == "One layer each: n positions of d numbers, 3 × 3 kernel; s = √n is the side of the image"
    )
    assert {line.count("|") for line in lines if line.startswith("|")} == {5}
    assert "self-attention costs more than RNN at every n" in lines
    data = json.loads(json.dumps(result.json()))
    assert data["columns"] == ["convolution", "RNN", "self-attention"]
    assert data["claims"][0]["status"] == "fails"


def test_other_letters():
    result = architectures(n="t", d="n", k=1)
    assert dict(result.numbers)["multiplies"] == {
        "convolution": "n^2*t", "rnn": "2n^2*t", "attention": "2n*t(2n + t)",
    }  # fmt: skip
    assert dict(result.numbers)["maximum path length, in layers or steps"]["convolution"] == "never"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 2}, DomainError, "k must be odd"),
        ({"n": 10}, DomainError, "10 is no square number"),
        ({"n": "2*m"}, NamingError, "n is a number or a name here"),
    ],
)
def test_wrong_input(options, error, message):
    with pytest.raises(error, match=message):
        architectures(**options)


TABLES = lt.cost.train_test()
SIZES = [{"t": 3, "l": 2, "n": 2}, {"t": 4, "l": 1, "n": 3}]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("model", list(TABLES.costs))
def test_times_are_what_plain_code_does(model, sizes):
    rows = {row.quantity: row.counted for row in TABLES.costs[model].check(**sizes).rows}
    assert TABLES["time at test", model].formula.at(**sizes) == rows["multiplies"]
    both = rows["multiplies"] + rows["backward multiplies"]
    assert TABLES["time in training", model].formula.at(**sizes) == both


def test_spaces_by_hand():
    """A recurrent net saves its inputs and states, attention weights too: t(t + 1)/2 of each layer."""
    told = {model: TABLES["space in training", model].formula for model in TABLES.costs}
    for t, n, layers in ((3, 2, 2), (5, 4, 3)):
        assert told["RNN"].at(t=t, n=n, l=layers) == t * n * (layers + 1)
        assert told["attention alone"].at(t=t, n=n, l=layers) == layers * (3 * t * n + t * (t + 1) // 2)
    caches = [str(TABLES["space at test", model].formula) for model in TABLES.costs]
    assert caches == ["n*l", "2n*l*t", "2n*l*t"]


def test_the_usual_claims():
    """What lectures write holds of RNNs and of attention alone in time; not of a whole Transformer."""
    result = {name: [answer.verdict.status for answer in answers] for name, answers in TABLES.tables.items()}
    assert result == {
        "time in training": ["holds", "holds", "fails"],  # projections: t l n^2
        "space in training": ["holds", "fails", "fails"],  # weights: l t^2
        "time at test": ["holds", "holds", "fails"],
        "space at test": ["holds", "holds", "holds"],
    }


def test_forms_of_train_test():
    text = TABLES.text(80)
    assert max(map(len, text.splitlines())) <= 80
    assert "attention alone passes RNN at t = 2n - 1" in text
    assert "Transformer costs more than RNN at every t" in text
    numbers = lt.cost.train_test(t=1024, n=512, l=6)
    assert numbers["space at test", "RNN"].number == 6 * 512
    assert numbers.title.endswith("; at t = 1,024, n = 512, l = 6")
    assert numbers.json()["tables"]["time at test"][0]["number"] == 2 * 512**2 * 6 * 1024


def test_train_test_of_other_letters():
    with pytest.raises(NamingError, match="the tables have no d; they have t, l, n"):
        lt.cost.train_test(d=3)
    with pytest.raises(NamingError, match="there is no 'time' of 'RNN'; there are time in training, "):
        TABLES["time", "RNN"]
