"""Comparisons: the table, equal parameters, forms, and what is said to wrong input."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

import lattend as lt
from lattend.cost.comparison import compare
from lattend.cost.comparison.chart import chart_crossings, chart_height
from lattend.cost.comparison.comparison import powers_between
from lattend.errors import DomainError, LattendError, NamingError


def rnn():
    return lt.cost.rnn(steps="t", inputs="n", hidden="n")


def attention(rule="full", **options):
    return lt.cost.attention(
        rule, **{"n": "t", "heads": 1, "D_i": "n", "D_hid": "n", "projections": None, **options}
    )


def test_text():
    result = compare({"rnn": rnn(), "full": attention()}, over="t", at={"n": 8, "t": [4, 8, 16]})
    assert str(result).splitlines() == [
        "multiplies as t grows",
        "",
        "      formula  order",
        "rnn   2n^2*t   O(n^2*t)",
        "full  2n*t^2   O(n*t^2)",
        "",
        "at n = 8",
        "",
        " t    rnn   full  least",
        " 4    512    256  full",
        " 8  1,024  1,024  all the same",
        "16  2,048  4,096  rnn",
        "",
        "where they cross",
        "full passes rnn at t = n; equal there, costs more from t = n + 1 on",
        "  at n = 8: t = 8",
    ]


def test_different_numbers_of_positions_are_said_first():
    result = compare({"image": lt.cost.rnn2d(h="d", c="d"), "line": lt.cost.rnn(steps="n", hidden="d")})
    assert str(result).splitlines()[0] == "different numbers of positions: image has n^2, line has n"
    assert result.json()["positions"] == {"image": "n^2", "line": "n"}
    pixels = {"rows": "n", "cols": "n", "c_in": "d", "c_out": "d", "padding": 1}
    assert compare([lt.cost.rnn2d(), lt.cost.conv(**pixels)]).warning == ""
    patches = lt.cost.attention("swin", rows=8, cols=8, w=4, heads=1, D_hid="d")
    assert compare([patches, lt.cost.linear(n=64, d_in="d")], over="d").warning == ""


def test_what_nobody_gave_is_an_example_and_said_to_be():
    result = compare([rnn(), attention()], over="t")
    assert (result.numbers, result.chosen) == ({"n": 4096}, ("n",))
    assert "at n = 4,096, with n as an example: give a number to choose another" in str(result)
    assert result.sizes == (512, 1024, 2048, 4096, 8192, 16384, 32768)
    assert max(map(len, str(result).splitlines())) <= 100


def test_rows_are_the_costs_at_those_sizes():
    costs = {"rnn": rnn(), "causal": attention("causal"), "band": attention("strided", t="b")}
    result = compare(costs, over="t", at={"n": 5, "b": 9})
    for size, values in result.rows:
        for label, cost in costs.items():
            known = {"t": size, "n": 5, "b": 9}
            assert values[label] == cost.at(**{n: known[n] for n in cost.names}).total()


def test_other_numbers_keep_what_is_solved():
    first = compare({"rnn": rnn(), "full": attention()}, over="t")
    result = first.at({"n": 10**30}, [2, 4])
    whole = compare({"rnn": rnn(), "full": attention()}, over="t", at={"n": 10**30, "t": [2, 4]})
    assert result.crossovers is first.crossovers
    assert str(result) == str(whole)
    assert result.values("rnn", [4]) == [2 * 10**60 * 4]


def test_undefined_sizes_are_left_out():
    result = compare([attention("windowed"), rnn()], over="w", at={"n": 3, "t": 12, "w": [0, 4]})
    assert [values["attention"] for _, values in result.rows] == [None, 3 * 12 * 5]


def test_labels():
    assert list(compare([rnn(), attention(), attention("causal")], over="t").costs) == [
        "rnn", "attention 1", "attention 2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("quantity", "first"),
    [
        ("multiply_adds", "8n^2*t"),
        ("multiplies", "n*t(8n + 3)"),
        ("operations", "16n^2*t"),  # 8n + 3 multiplies a number; 4(2n - 1) + 1 adds
        ("depth", "t"),
        ("parameters", "8n^2"),
        ("path", "t"),
    ],
)
def test_quantities(quantity, first):
    costs = [lt.cost.lstm(steps="t", inputs="n", hidden="n"), attention("full", projections="shared")]
    result: Any = compare(costs, over="t", quantity=quantity).formulas["lstm"]
    assert str(result) == first


def test_products_of_the_backward_pass_are_twice_as_many():
    forward, backward = (compare([x, x], over="t", quantity="multiply_adds") for x in (rnn(), rnn().backward))
    assert str(forward.formulas["rnn 1"]) == "2n^2*t"
    assert str(backward.formulas["rnn 1"]) == "4n^2*t"


def test_dense_beside_needed():
    causal = attention("causal")
    result = compare({"needed": causal, "dense": causal.dense}, over="t")
    assert str(result.crossovers[0]) == "dense costs more than needed from t = 2 on; the same at t = 1"


# Equal parameters


def test_equal_parameters_solve_for_the_width():
    shared = attention("full", projections="shared", out_bias=False)
    lstm = lt.cost.lstm(steps="t", inputs="n", hidden="n")
    result = compare({"lstm": lstm, "attention": shared}, over="t", at={"n": 512}, equal="parameters")
    (width,) = result.widths
    assert (width.name, width.width, width.reference) == (
        "n",
        724,
        8 * 512**2,
    )  # 4*724^2 <= 8*512^2 < 4*725^2
    assert width.parameters == 4 * 724**2
    assert "attention has n = 724 (2,096,704 of 2,097,152 parameters)" in str(result)
    assert result.costs["attention"].at(t=3).total("parameters") <= width.reference
    assert result.json()["widths"][0]["width"] == 724


def test_a_width_of_its_own_name():
    wide = lt.cost.rnn(steps="t", inputs=16, hidden="h")
    result = compare({"rnn": rnn(), "wide": wide}, over="t", at={"n": 32}, equal="parameters")
    assert (result.widths[0].name, result.widths[0].width) == ("h", 37)  # 37*53 <= 2048 < 38*54


def test_nothing_is_scaled_without_being_asked():
    assert compare([rnn(), attention("full", projections="shared")], over="t", at={"n": 512}).widths == ()


@pytest.mark.parametrize(
    ("costs", "options", "message"),
    [
        ([rnn(), attention()], {"equal": "parameters"}, "need those of rnn as a number: give n=…"),
        ([rnn(), attention()], {"equal": "parameters", "at": {"n": 8}}, "has 0 parameters at any width"),
        ([rnn(), attention()], {"equal": "width"}, "equal is \"parameters\" or None, not 'width'"),
        ([rnn(), lt.cost.rnn(steps="t")], {"equal": "parameters", "at": {"n": 8}}, "depend on c and h"),
        ([rnn()], {}, "needs two layers or more, got 1"),
        ([rnn(), attention()], {"over": "z"}, "none of these has z: give over= one of n, t"),
        ([rnn(), attention()], {"at": {"z": 3}}, "none of these has z; they have n, t"),
        ([rnn(), attention()], {"quantity": "flops"}, "has no flops; it has parameters, multiply_adds"),
        ([rnn(), attention()], {"at": {"n": [1, 2]}}, "n takes one number; only t grows"),
        ([rnn(), lt.cost.conv()], {"quantity": "path"}, "maximum path length of conv is not known"),
    ],
)  # fmt: skip
def test_wrong_input(costs, options, message):
    with pytest.raises(NamingError) as error:
        compare(costs, **{"over": "t", **options})
    assert message in str(error.value)


def test_sizes_are_not_negative():
    with pytest.raises(DomainError, match="t must not be negative, got -1"):
        compare([rnn(), attention()], over="t", at=[-1, 4])


# Forms


def test_json_is_plain():
    result = compare({"rnn": rnn(), "full": attention()}, over="t", at={"n": 8, "t": [4, 8]})
    data = json.loads(json.dumps(result.json()))
    assert data["rows"][1] == {"t": 8, "values": {"rnn": 1024, "full": 1024}}
    assert data["crossings"] == [{"first": "full", "second": "rnn", "t": 8.0}]
    assert data["layers"][0] == {
        "label": "rnn", "formula": [{"when": "always", "count": "2n^2*t"}], "order": "O(n^2*t)",
    }  # fmt: skip


def test_svg(tmp_path):
    result = compare({"rnn": rnn(), "full & more": attention()}, over="t", at={"n": 64})
    root = ElementTree.fromstring(result.draw().svg())
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"rnn", "full & more", "t = 64", "Multiplies as t grows", "at n = 64"} <= set(texts)
    description = next(element.text for element in root.iter() if element.tag.endswith("desc"))
    assert "full & more passes rnn at t = n" in str(description)
    assert result.save(tmp_path / "a.svg").read_text() == result.draw().svg()
    assert result.save(tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    ax = Figure().subplots()
    result.draw(ax)
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel()) == ("log", "log", "t")
    assert [text.get_text() for text in ax.texts] == ["t = 64"]


def test_labels_of_lines_do_not_touch():
    costs = {f"copy {i}": rnn() for i in range(5)}
    root = ElementTree.fromstring(compare(costs, over="t").draw().svg())
    texts = [element for element in root.iter() if element.tag.endswith("text")]
    places = sorted(
        (float(text.get("y", 0)), float(text.get("x", 0)))
        for text in texts
        if re.fullmatch("copy [0-9]", text.text or "")
    )
    assert len(places) == 5
    assert all(
        lower - upper >= 12 or right - left >= 50 for (upper, left), (lower, right) in pairwise(places)
    )


def test_a_chart_of_one_size_is_refused():
    with pytest.raises(LattendError, match="a chart needs two sizes"):
        compare([rnn(), attention()], over="t", at=[8]).draw()


@pytest.mark.parametrize(("low", "high"), [(0, 8), (8, 8), (9, 8), (1, 2**60 + 1)])
def test_a_table_between_sizes_that_cannot_be(low, high):
    with pytest.raises(DomainError, match=r"from 1 or more to at most 2\^60"):
        powers_between(low, high)


def test_a_table_between_two_sizes_has_the_powers_of_two():
    assert powers_between(1, 8) == [1, 2, 4, 8]
    assert powers_between(5, 6) == [5, 6]
    assert powers_between(2**59, 2**60) == [2**59, 2**60]


def test_crossings_of_a_chart_lie_on_both_curves():
    result = compare({"rnn": rnn(), "full": attention()}, over="t", at={"n": 8})
    (crossing,) = chart_crossings(result)
    assert crossing[:3] == ("full", "rnn", 8.0)
    assert crossing.height == pytest.approx(2 * 8**3)
    assert crossing.label == "t = 8"
    assert [chart_height(value) for value in (None, 2**1000, 7)] == [None, None, 7.0]
