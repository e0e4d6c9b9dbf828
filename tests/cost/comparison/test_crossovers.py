"""Crossovers: those of S14 as written there, and every one against evaluating the layers."""

from __future__ import annotations

from fractions import Fraction

import pytest

import lattend as lt
from lattend.cost.comparison import compare
from lattend.cost.comparison.crossover import Crossover, verdict
from lattend.cost.comparison.solve import SignSample
from lattend.counts import Count


def rnn(**options):
    return lt.cost.rnn(steps="t", inputs="n", hidden="n", **options)


def lstm(**options):
    return lt.cost.lstm(steps="t", inputs="n", hidden="n", **options)


def gru():
    return lt.cost.gru(steps="t", inputs="n", hidden="n")


def attention(rule="full", projections=None, **options):
    return lt.cost.attention(rule, n="t", heads=1, D_i="n", D_hid="n", projections=projections, **options)


def crossing(first, second, over="t", quantity="multiplies") -> Crossover:
    (result,) = compare({"second": second, "first": first}, over=over, quantity=quantity).crossovers
    return result


def places(result: Crossover, **values: int) -> list[Fraction]:
    here = result.at(**values)
    assert here is not None
    return here[1]


# S14, n neurons and t steps, one layer


def test_full_attention_passes_the_rnn_at_n():
    result = crossing(attention("full"), rnn())
    assert str(result) == "first passes second at t = n; equal there, costs more from t = n + 1 on"
    assert (result.method, verdict(result.cases[0])) == ("solved", "passes")
    assert places(result, n=512) == [512]


def test_causal_attention_passes_the_rnn_at_2n_minus_1():
    result = crossing(attention("causal"), rnn())
    assert str(result) == "first passes second at t = 2n - 1; equal there, costs more from t = 2n on"


def test_a_band_passes_the_rnn_only_if_b_plus_1_is_more_than_n():
    result = crossing(attention("strided", t="b"), rnn())
    assert result.sentences == [
        "first passes second at t = 2n - 1 when b >= 2n; equal there, costs more from t = 2n on",
        "first passes second at t = b(b + 1)/(2(b + 1 - n)) when n < b + 1 <= 2n; "
        "equal where that is whole, first costs more beyond",
        "second costs more than first at every t when b + 1 <= n",
        "first and second are the same at every t when n = 1 and b = 0",
    ]
    assert [verdict(case) for case in result.cases] == ["passes", "passes", "never", "same"]
    assert places(result, n=64, b=64) == [2080]  # 64*65/2
    assert places(result, n=64, b=63) == []  # b + 1 = n


def test_a_tie_at_a_place_that_is_whole_only_sometimes_is_said():
    layers = lt.cost.rnn(steps="t", inputs="d", hidden="d", layers="l")
    causal = lt.cost.attention("causal", n="t", heads=1, D_hid="d", projections=None)
    result = compare([layers, causal], over="d", at={"t": 131, "l": 33, "d": [1, 2, 3]})
    assert [len(set(values.values())) for _, values in result.rows] == [2, 1, 2]  # a tie at d = 2
    assert result.crossing_lines[0] == (
        "rnn passes attention at d = (t + 1)/(2l); equal where that is whole, rnn costs more beyond"
    )
    (line,) = compare([layers, causal], over="t", quantity="cache").crossing_lines[:1]
    assert line == "attention passes rnn at t = l/2; equal where that is whole, attention costs more beyond"


def test_the_same_band_as_b_grows():
    result = crossing(attention("strided", t="b"), rnn(), over="b")
    assert result.sentences[0] == (
        "first passes second at b = (2t - 1 - sqrt((2t + 1)^2 - 8n*t))/2 when t + 1 > 2n; "
        "equal where that is whole, first costs more beyond"
    )
    assert result.sentences[-1] == "second costs more than first at every b when t + 1 < 2n"
    (place,) = places(result, n=10, t=10**6)
    assert abs(place - 9) < Fraction(1, 1000)  # b + 1 > n for long sequences


def test_with_projections_attention_costs_more_at_every_t():
    result = crossing(attention("full", projections="shared", out_bias=False), rnn())
    assert str(result) == "first costs more than second at every t"
    assert verdict(result.cases[0]) == "always"


def test_an_lstm_crosses_full_attention_with_projections_at_2n():
    result = crossing(attention("full", projections="shared"), lstm(), quantity="multiply_adds")
    assert str(result) == "first passes second at t = 2n; equal there, costs more from t = 2n + 1 on"
    # with the 3n multiplies of single numbers a step
    result = crossing(attention("full", projections="shared"), lstm())
    assert str(result) == "first passes second at t = 2n + 3/2; costs more from t = 2n + 2 on"


# Other shapes of answers


@pytest.mark.parametrize(
    ("first", "second", "over", "quantity", "sentences"),
    [
        (attention("causal"), attention("strided", t="b"), "t", "multiplies",
         ["first and second are the same up to t = b + 1; beyond, first costs more"]),
        (attention("causal"), attention("strided", t="b"), "b", "multiplies",
         ["first costs more than second up to b = t - 1; the same from there on"]),
        (attention("full"), rnn(), "t", "depth",
         ["second costs more than first from t = 2 on; the same at t = 1"]),
        (attention("full"), rnn(), "n", "multiplies",
         ["second passes first at n = t; equal there, costs more from n = t + 1 on"]),
        (attention("windowed"), rnn(), "t", "multiplies",
         ["second costs more than first at every t when w + 1 < 2n and w divides t",
          "first costs more than second at every t when w + 1 > 2n and w divides t",
          "first and second are the same at every t when w + 1 = 2n and w divides t"]),
        (attention("full"), lt.cost.rnn(steps="t", inputs="c", hidden="h"), "t", "multiplies",
         ["first passes second at t = h(c + h)/(2n); equal where that is whole, first costs more beyond"]),
        (lt.cost.rnn2d(), lt.cost.conv(rows="n", cols="n", c_in="c", c_out="h", padding=1), "n", "multiplies",
         ["second passes first at n = 2c/(4c - h) when 2c < h < 4c; "
          "equal where that is whole, second costs more beyond",
          "second costs more than first from n = 2 on when h <= 2c; the same at n = 1",
          "first costs more than second from n = 2 on when h >= 4c; the same at n = 1"]),
    ],
    ids=["same then more", "more then same", "depth", "falls", "multiples", "three symbols", "cells"],
)  # fmt: skip
def test_sentences(first, second, over, quantity, sentences):
    assert crossing(first, second, over, quantity).sentences == sentences


def test_what_has_no_formula_is_evaluated():
    sparse = lt.cost.attention(lt.rules.sparse_strided(8), n="t", heads=1, D_hid=16, projections=None)
    small = lt.cost.rnn(steps="t", inputs=16, hidden=16)
    result = crossing(sparse, small)
    assert result.method == "evaluated"
    assert str(result).startswith(
        "first passes second at t = 140; first costs more from there on (evaluated at"
    )
    counts = [(sparse.at(t=t).total(), small.at(t=t).total()) for t in range(100, 200)]
    assert [a > b for a, b in counts] == [t >= 140 for t in range(100, 200)]


def test_what_cannot_be_solved_says_so():
    sparse = lt.cost.attention(lt.rules.sparse_strided(8), n="t", heads=1, D_hid="n", projections=None)
    result = crossing(sparse, rnn())
    assert (result.method, result.cases) == ("open", ())
    assert str(result) == (
        "where first and second cross is not solved: (t + 7) // 8 is rounded, so that there is no polynomial "
        "to solve; give n numbers"
    )


PAIRS = {
    "full": (attention("full"), rnn(), "t", {"n"}),
    "band": (attention("strided", t="b"), rnn(), "t", {"n", "b"}),
    "band in b": (attention("strided", t="b"), rnn(), "b", {"n", "t"}),
    "prefix": (attention("prefix_lm", p="b"), attention("strided", t="c"), "t", {"n", "b", "c"}),
    "longformer": (attention("longformer", t="b", g="c"), rnn(), "t", {"n", "b", "c"}),
    "lstm": (attention("causal", "shared"), lstm(), "t", {"n"}),
    "gru": (attention("strided", "shared", t="b"), gru(), "t", {"n", "b"}),
    "layers": (attention("full"), rnn(layers="c"), "t", {"n", "c"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_every_case_is_what_evaluation_says(name):
    """All other symbols at numbers of a grid: who costs more at each size, from the layers themselves."""
    first, second, over, others = PAIRS[name]
    result = crossing(first, second, over)
    assert result.method == "solved"
    assert result.checked > 20
    counts = [count for cost in (first, second) if isinstance(count := cost.multiplies, Count)]
    grid = [{}]
    for other in sorted(others):
        steps = (1, 2, 3, 7, 12) if len(others) < 3 else (1, 2, 5)
        grid = [{**values, other: number} for values in grid for number in steps]
    for values in grid:
        numbers = list(range(over != "b", 40))  # a reach may be 0
        signs = []
        for number in numbers:
            here = {**values, over: number}
            a, b = (count.at(**{x: here[x] for x in count.names}) for count in counts)
            signs.append((a > b) - (a < b))
        sample = SignSample(values, numbers, signs)
        said = [case for case in result.cases if case.when.holds(values)]
        assert said, values
        right = [case for case in said if case.holds(sample)]
        assert right == said or verdict(right[0]) == "same", (values, said)


def test_json():
    data = crossing(attention("causal"), rnn()).json()
    assert data["cases"] == [
        {
            "when": "always",
            "costs_more": ["second", "first"],
            "places": ["2n - 1"],
            "verdict": "passes",
            "sentence": "first passes second at t = 2n - 1; equal there, costs more from t = 2n on",
        }
    ]
    assert (data["over"], data["method"], data["where"]) == ("t", "solved", None)
