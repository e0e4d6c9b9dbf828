"""lt.study.work: the known numbers, float64 attention, mpmath at 50 digits, exact forms, heads, bad input."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import DomainError, NamingError, TensorError, TooLarge
from lattend.study.worked.work import EXAMPLE

e = sympy.E


def oracle(tokens, wq, wk, wv, mask, scale=1.0, memory=None):
    """One head as it is written in textbooks, in mpmath at 50 digits; zeros where a query has no key."""
    x, y = (mpmath.matrix(rows) for rows in (tokens, tokens if memory is None else memory))
    q, k, v = x * mpmath.matrix(wq), y * mpmath.matrix(wk), y * mpmath.matrix(wv)
    scores = scale * q * k.T
    weights = mpmath.zeros(scores.rows, scores.cols)
    for i in range(scores.rows):
        seen = [j for j in range(scores.cols) if mask[i][j]]
        total = mpmath.fsum(mpmath.exp(scores[i, j]) for j in seen)
        for j in seen:
            weights[i, j] = mpmath.exp(scores[i, j]) / total
    return weights, weights * v


def test_the_notes_numbers():
    result = lt.study.work(**EXAMPLE)
    assert result.scores.exact == [[1, 2, 0, 1], [2, 4, 0, 2], [0, 0, 0, 0], [1, 2, 0, 1]]
    assert result.sums.decimals() == [["13.8256"], ["70.3763"], ["4"], ["13.8256"]]
    first = ["0.1966", "0.5344", "0.0723", "0.1966"]
    assert result.weights.decimals() == [
        first,
        ["0.1050", "0.7758", "0.0142", "0.1050"],
        ["0.2500"] * 4,
        first,
    ]
    assert result.outputs.decimals() == [["0", "0.6622"], ["0", "0.3292"], ["0", "1"], ["0", "0.6622"]]


def test_exact_forms():
    result = lt.study.work(**EXAMPLE)
    assert result.exponentials.exact[1] == [e**2, e**4, 1, e**2]
    assert result.sums.exact[0] == [1 + 2 * e + e**2]
    assert result.weights.exact[0][0] == e / (1 + 2 * e + e**2)
    assert result.outputs.exact[0] == [0, (1 + 3 * e) / (1 + 2 * e + e**2)]
    assert result.weights.tables[0][0][1].text == "e^2/(e^2 + 2e + 1)"


def test_fractions_are_cancelled():
    """Keys 0, 0, 1, 1 for the query 1, values 1, 0, 1, 0: (1 + e)/(2 + 2e) is one half."""
    same = lt.study.work(
        [[1, 0, 1], [1, 0, 0], [1, 1, 1], [1, 1, 0]], [[1], [0], [0]], [[0], [1], [0]], [[0], [0], [1]]
    )
    assert same.outputs.exact == [[Fraction(1, 2)]] * 4
    tokens = [[1, 0, 1], [1, 1, 1], [1, 1, 0], [1, 2, 0]]
    result = lt.study.work(tokens, [[1], [0], [0]], [[0], [1], [0]], [[0], [0], [1]])
    assert result.outputs.exact[0] == [1 / (1 + e)]  # (1 + e)/(1 + 2e + e²)


def test_a_common_factor_of_all_scores_is_left_out():
    result = lt.study.work([[-3], [-2]], [[1]], [["1/2"]], [[1]])
    assert result.weights.tables[0][0][0].text == "e^(3/2)/(e^(3/2) + 1)"  # e^(9/2)/(e^(9/2) + e^3)


def test_irrational_numbers_are_multiplied_out():
    """(1 + √2)² is written 3 + 2√2, so that equal scores are seen to be equal."""
    result = lt.study.work([["1 + sqrt(2)"]], [[1]], [[1]], [[1]], memory=[["1 + sqrt(2)"], [1]])
    assert result.scores.tables[0][0][0].text == "2sqrt(2) + 3"
    scaled = lt.study.work([["1 + sqrt(2)"]], [[1]], [[1]], [[1]], scale="sqrt(2) - 1")
    assert scaled.scores.exact == [[1 + sympy.sqrt(2)]]  # (√2 − 1)(√2 + 1)² = √2 + 1


WRITTEN = {
    "1/2": sympy.Rational(1, 2),
    "-1/3": sympy.Rational(-1, 3),
    "0.25": sympy.Rational(1, 4),
    "sqrt(2)": sympy.sqrt(2),
}
numbers = st.integers(-3, 3) | st.sampled_from(list(WRITTEN))


def matrices(rows: int, cols: int):
    return st.lists(st.lists(numbers, min_size=cols, max_size=cols), min_size=rows, max_size=rows)


@st.composite
def cases(draw):
    n, m, wide = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rule = draw(st.sampled_from(["full", "causal", "k < q", "(q + k) % 2 == 0", "strided(1)", "q != k"]))
    memory = draw(st.none() | matrices(m, 2))
    return {
        "tokens": draw(matrices(n, 2)),
        "memory": memory,
        **{name: draw(matrices(2, wide)) for name in ("wq", "wk")},
        "wv": draw(matrices(2, draw(st.integers(1, 3)))),
        "rule": rule,
        "scale": draw(st.sampled_from([1, "1/2", "sqrt"])),
    }


def precise(values):
    return [[mpmath.mpf(sympy.N(WRITTEN.get(value, value), 60)) for value in row] for row in values]


@settings(max_examples=40, deadline=None)
@given(cases())
def test_mpmath_at_50_digits(case):
    result = lt.study.work(**case)
    keys = len(case["memory"] or case["tokens"])
    sizes = {"n": len(case["tokens"])} | ({"m": keys} if case["memory"] else {})
    mask = lt.rule(case["rule"]).mask(**sizes)
    with mpmath.workdps(60):
        wide = len(case["wq"][0])
        scale = {1: mpmath.mpf(1), "1/2": mpmath.mpf("0.5"), "sqrt": 1 / mpmath.sqrt(wide)}[case["scale"]]
        memory = None if case["memory"] is None else precise(case["memory"])
        tokens, wq, wk, wv = (precise(case[name]) for name in ("tokens", "wq", "wk", "wv"))
        weights, outputs = oracle(tokens, wq, wk, wv, mask, scale, memory)
        for step, wanted in ((result.weights, weights), (result.outputs, outputs)):
            for i, row in enumerate(step.tables[0]):
                for j, entry in enumerate(row):
                    right = wanted[i, j]
                    assert abs(mpmath.mpf(str(entry.value)) - right) < mpmath.mpf("1e-50")
                    exact = mpmath.mpf(sympy.sympify(entry.exact).evalf(60))
                    assert abs(exact - right) < mpmath.mpf("1e-50")


@pytest.mark.parametrize("rule", ["full", "causal", "k < q", "k <= q and q - k <= 1 + head", "windowed(2)"])
@pytest.mark.parametrize("heads", [1, 2])
def test_equals_attention(rule, heads):
    if heads == 1 and "head" in rule:
        rule = "k <= q and q - k <= 1"
    made = torch.Generator().manual_seed(heads)
    tokens = torch.randn(5, 4, generator=made, dtype=torch.float64)
    wq, wk, wv, wo = (torch.randn(4, 4, generator=made, dtype=torch.float64) for _ in range(4))
    result = lt.study.work(tokens, wq, wk, wv, rule, "sqrt", heads, wo)
    q, k, v = ((tokens @ w).view(5, heads, -1).transpose(0, 1)[None] for w in (wq, wk, wv))
    out = lt.attention(q, k, v, lt.rule(rule), kernel="reference")
    wanted = out[0].transpose(0, 1).reshape(5, 4) @ wo
    np.testing.assert_allclose(result.outputs.values, wanted.numpy(), rtol=1e-12, atol=1e-12)


def test_heads_by_a_leading_axis_are_those_that_share_columns():
    wide: dict[str, Any] = {name: [[1, 2, 0, 1], [0, 1, 1, -1]] for name in ("wq", "wk", "wv")}
    apart: dict[str, Any] = {
        name: [[row[:2] for row in m], [row[2:] for row in m]] for name, m in wide.items()
    }
    tokens = EXAMPLE["tokens"]
    shared, given_apart = lt.study.work(tokens, **wide, heads=2), lt.study.work(tokens, **apart)
    assert shared.outputs.exact == given_apart.outputs.exact
    single = [lt.study.work(tokens, *(parts[head] for parts in apart.values())) for head in (0, 1)]
    assert shared.mixed.exact == [one.outputs.exact for one in single]
    joined = [[*a, *b] for a, b in zip(*shared.mixed.exact, strict=True)]
    assert shared.outputs.exact == joined


def turned(matrix):
    return [list(column) for column in zip(*matrix, strict=True)]


@settings(max_examples=20, deadline=None)
@given(cases(), st.integers(1, 2), st.booleans())
def test_columns_are_the_transposed_matrices(case, heads, apart):
    """q = W x of columns is q = x Wᵀ of rows, heads sharing the rows of W or each with its own."""
    named = {name: [row * heads for row in case[name]] for name in ("wq", "wk", "wv")}
    wo = [[1, 2, 0]] * (heads * len(case["wv"][0]))
    rows = lt.study.work(**{**case, **named}, heads=heads, wo=wo)
    left: dict[str, Any] = {name: turned(matrix) for name, matrix in named.items()}
    if apart:
        left = {name: [turned(case[name])] * heads for name in named}
    columns = lt.study.work(**{**case, **left}, heads=heads, wo=turned(wo), columns=True)
    for name in ("q", "k", "v", "weights", "outputs"):
        np.testing.assert_array_equal(getattr(columns, name).values, getattr(rows, name).values)
    given = {step.name: step for step in columns.exercise}
    assert given["wo"].values.shape == (3, len(wo))
    assert given["wq"].values.shape[-2:] == (len(case["wq"][0]), 2)


def test_columns_are_said_aloud():
    skew: dict[str, Any] = {**EXAMPLE, "wq": [[1, 1], [0, 1]]}
    rows, columns = lt.study.work(**skew), lt.study.work(**skew, columns=True)
    assert rows.facts[1] == "tokens are rows: x W, not W x"
    assert columns.facts[1] == "tokens are columns: W x, not x W"
    assert rows.q.exact[0] == [1, 3] and columns.q.exact[0] == [3, 2]  # (1, 2) from the left and the right
    assert (rows.q.formula, columns.q.formula) == ("q = x W_q", "q = W_q x")
    assert "$Q = X W_q^{\\top}$" in columns.latex() and "Q = W_q x" not in columns.html()
    assert (rows.json()["columns"], columns.json()["columns"]) == (False, True)
    for side in (False, True):
        said = lt.study.work(**EXAMPLE, columns=side).facts[1]
        assert said.endswith("too, as every matrix is symmetric")


@pytest.mark.parametrize("scale", [1, "sqrt"])
def test_without_matrices_tokens_are_compared_as_they_are(scale):
    """y = Σ softmax(xᵢᵀxⱼ) xⱼ, in float64 loops."""
    x = np.array([[1, 2], [2, 0], [0, 1], [1, 1]])
    result = lt.study.work(x, scale=scale)
    for i, row in enumerate(result.outputs.values):
        powers = [np.exp(x[i] @ x[j] * (1 if scale == 1 else 2**-0.5)) for j in range(4)]
        wanted = sum(power * x[j] for j, power in enumerate(powers)) / sum(powers)
        np.testing.assert_allclose(row, wanted, rtol=1e-14)
    assert result.facts[1] == "no matrices: q = k = v = x"
    assert [step.name for step in result.exercise] == ["tokens"]
    assert "$Q = X$" in result.latex()
    one = torch.tensor(x, dtype=torch.float64)[None, None]
    out = lt.attention(one, one, one, lt.rule("full"), scale=1 if scale == 1 else None)
    np.testing.assert_allclose(result.outputs.values, out[0, 0].numpy(), rtol=1e-12)


def test_one_matrix_left_out_is_the_identity():
    tokens = [[1, 2], [3, 1], [0, 1]]
    identity = [[1, 0], [0, 1]]
    key = [[2, 1], [0, 1]]
    result = lt.study.work(tokens, wk=key, heads=2)
    assert result.outputs.exact == lt.study.work(tokens, identity, key, identity, heads=2).outputs.exact
    assert result.facts[1] == "tokens are rows: x W, not W x; without W_q and W_v, the identity"
    assert result.q.formula == "q = part of x"
    crossed = lt.study.work(tokens, memory=[[1, 0, 5]], wq=[[1, 0, 0], [0, 0, 1]])
    assert (crossed.k.formula, crossed.k.exact) == ("k = y, y the memory", [[1, 0, 5]])


def test_the_output_matrix():
    result = lt.study.work(**EXAMPLE, wo=[[1, 0, 5], [2, "1/2", 0]])
    plain = lt.study.work(**EXAMPLE)
    for row, (_, second) in zip(result.outputs.exact, plain.outputs.exact, strict=True):
        assert [sympy.simplify(a - b) for a, b in zip(row, (2 * second, second / 2, 0), strict=True)] == [
            0,
            0,
            0,
        ]
    assert [step.name for step in result.steps][-2:] == ["mixed", "outputs"]


def test_a_query_that_sees_nothing():
    result = lt.study.work(**EXAMPLE, rule="k < q")
    assert result.sums.exact[0] == [0]
    assert result.weights.exact[0] == [0, 0, 0, 0]
    assert result.outputs.exact[0] == [0, 0]
    assert "row 1 attends to no key: its weights and output are 0" in str(result)
    assert result.masked.exact[0] == [float("-inf")] * 4


def test_a_memory_has_keys_of_its_own():
    result = lt.study.work([[1], [2]], [[1]], [[1]], [[1]], memory=[[0], [1], [3]])
    assert result.scores.exact == [[0, 1, 3], [0, 2, 6]]
    assert (
        lt.study.work([[1], [2]], [[1]], [[1]], [[1]], "k <= q", memory=[[0], [1], [3]]).masked.exact[0][1:]
        == [float("-inf")] * 2
    )


def test_a_rule_on_an_image():
    result = lt.study.work(**EXAMPLE, rule="qy == ky", rows=2)
    assert (result.weights.values > 0).tolist() == [[True, True, False, False]] * 2 + [
        [False, False, True, True]
    ] * 2
    with pytest.raises(DomainError, match=r"has 36 pairs at these sizes, and 4 tokens with 4 keys have 16"):
        lt.study.work(**EXAMPLE, rule="qy == ky", rows=2, cols=3)


def test_floats_are_their_shortest_decimals():
    result = lt.study.work([[0.1], [np.float32(0.7)]], [[1]], [[1]], [[3]])
    assert result.q.exact == [[Fraction(1, 10)], [Fraction(7, 10)]]
    assert result.scores.exact[0][1] == Fraction(7, 100)


def test_long_exact_forms_are_left_out_and_said_to_be():
    made = np.random.default_rng(0)
    wq, wk, wv = made.normal(size=(3, 3, 3))
    result = lt.study.work(made.normal(size=(5, 3)), wq, wk, wv)
    assert not result.weights.readable
    assert result.weights.tables[0][0][0].text is None
    said = "exact forms have more than 60 characters, or fractions of more than 12; .exact has them"
    printed = " ".join(str(result).split())
    assert printed.count(said) == 1 and "decimals alone in tokens, wq, wk, wv, q, k, v, scores" in printed
    assert "/" not in printed.replace(said, "").replace("e^s / row sum", "")
    assert f"decimals alone here: {said}" in " ".join(str(result.q).split())
    assert said in result.html() and said in result.latex() and said in result.markdown()
    assert said not in result.markdown(show="decimal")
    exact = result.weights.exact[0][0]
    assert float(exact) == pytest.approx(result.weights.values[0, 0], rel=1e-14)


def test_32_tokens_of_16_numbers_are_quick():
    """Seconds on a slow core; the printed tables are cut, the data are whole."""
    made = np.random.default_rng(0)
    wq, wk, wv = made.normal(size=(3, 16, 16))
    result = lt.study.work(made.normal(size=(32, 16)), wq, wk, wv, "causal", "sqrt")
    assert "16 more rows and 16 more columns not printed" in result.terminal(80)
    assert np.array(result.json()["steps"]["weights"]["decimals"]).shape == (32, 32)
    np.testing.assert_allclose(result.weights.values.sum(1), 1)


def test_a_saturated_weight_is_not_called_one():
    result = lt.study.work([[200], [0]], [[1]], [[1]], [[1]])
    assert result.weights.decimals()[0] == ["1.0000", "0.0000"]
    assert result.weights.exact[0][0] != 1


@pytest.mark.parametrize(
    ("scale", "fact", "formula"),
    [
        ("sqrt", "scores divided by sqrt(2)", "s = q·k / sqrt(2)"),
        ("1/2", "scores divided by 2", "s = q·k / 2"),
        ("2/3", "scores times 2/3", "s = 2/3 · q·k"),
        (0, "scores times 0", "s = 0 · q·k"),
    ],
)
def test_the_scale_in_words(scale, fact, formula):
    result = lt.study.work(**EXAMPLE, scale=scale)
    assert fact in result.facts[0] and result.scores.formula == formula


def test_large_numbers_are_written_short():
    result = lt.study.work([[20]], [[1]], [[1]], [[1]])
    assert result.exponentials.decimals() == [["5.2215e173"]]  # e^400
    assert result.weights.exact == [[1]]


def test_json():
    data = json.loads(json.dumps(lt.study.work(**EXAMPLE, rule="causal").json(places=2)))
    assert data["rule"] == "k <= q"
    assert data["steps"]["masked"]["exact"][0] == ["1", "-inf", "-inf", "-inf"]
    assert data["steps"]["weights"]["decimals"][1] == ["0.12", "0.88", "0", "0"]
    assert data["steps"]["weights"]["exact"][1] == ["1/(e^2 + 1)", "e^2/(e^2 + 1)", "0", "0"]


ONE = [[1], [0]]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tokens": [[1, 2], [3]]}, DomainError, "row 1 has 2 numbers and row 2 has 1 number"),
        ({"tokens": 3}, DomainError, "tokens must be rows of numbers"),
        ({"tokens": [[1, float("nan")]]}, DomainError, "row 1, column 2: nan is not a finite number"),
        ({"wq": [[1, 0]]}, TensorError, "tokens has rows of 2 numbers and wq is 1 × 2"),
        ({"wk": ONE}, TensorError, "wq is 2 × 2 and wk is 2 × 1: q and k must be equally long"),
        ({"wo": [[1]]}, TensorError, r"wo is 1 × 1, and outputs of 2 numbers need 2 rows"),
        ({"wq": [EXAMPLE["wq"]] * 2}, TensorError, "wq has 2 heads and wk has 1"),
        ({"wq": [EXAMPLE["wq"]] * 2, "heads": 3}, TensorError, "wq has matrices for 2 heads, and heads is 3"),
        ({"heads": 2, "wv": [[1], [1]]}, TensorError, "wv has 1 columns, which 2 heads cannot share"),
        ({"heads": 0}, DomainError, "heads must be at least 1, got 0"),
        ({"heads": 1.5}, DomainError, "heads must be an integer, got 1.5"),
        ({"scale": "root"}, DomainError, r'scale is a number, or "sqrt" for 1/sqrt\(D\)'),
        ({"scale": 10**7}, DomainError, "a score is 4e7 away from 0"),
        ({"rule": "strided"}, NamingError, "needs a value for t"),
        ({"n": 3}, DomainError, "n = 3 is given, but there are 4; leave n out"),
        ({"rule": "k <= q", "t": 3}, NamingError, "has no t; it has n"),
        ({"causal": True}, NamingError, 'causal is the name of a rule; give it as rule="causal"'),
        ({"memory": [[1, 2, 3]]}, TensorError, "memory has rows of 3 numbers and wk is 2 × 2"),
        ({"tokens": [[1, 2]] * 400}, TooLarge, "multiplies 644,800 pairs of numbers"),
    ],
)
def test_bad_input(change, error, message):
    with pytest.raises(error, match=message):
        lt.study.work(**{**EXAMPLE, **change})


def test_bad_writing():
    result = lt.study.work(**EXAMPLE)
    with pytest.raises(DomainError, match="places must be a whole number from 0 to 40, got -1"):
        result.terminal(places=-1)
    with pytest.raises(NamingError, match="show is one of both, exact, decimal, not 'all'"):
        result.markdown(show="all")


@pytest.mark.parametrize("score", [0, 1, 2, "1/3", "sqrt(2)"])
@pytest.mark.parametrize(
    ("ones", "keys", "places", "wanted", "other"),
    [(3, 32, 4, "0.0938", "0.0937"), (1, 32, 4, "0.0313", "0.0312"), (3, 4, 1, "0.8", "0.7")],
)
def test_ties_round_away_from_zero_and_either_neighbour_passes(score, ones, keys, places, wanted, other):
    """Keys of one score weigh 1/keys each, whatever the score is."""
    result = lt.study.work([[1, 1]] * ones + [[1, 0]] * (keys - ones), [[score], [0]], [[1], [0]], [[0], [1]])
    assert result.outputs.decimals(places) == [[wanted]] * keys
    for answer in (wanted, other):
        assert result.check({"outputs": [[answer]] * keys})
    off = result.check({"outputs": [["0.5001"]] + [[None]] * (keys - 1)})
    assert f"exact {result.outputs.decimals()[0][0]}" in off.terminal(200)


def test_a_tie_that_w_o_makes_is_one_too():
    """Two weights, e/(e + 1) and 1/(e + 1), times 3/32 each: 3/32 in all."""
    identity = [[1, 0], [0, 1]]
    result = lt.study.work(identity, [[1], [1]], [[1], [0]], identity, wo=[["3/32"], ["3/32"]])
    assert result.outputs.decimals() == [["0.0938"]] * 2
    assert result.check({"outputs": [["0.0937"], ["0.0938"]]})


def test_what_follows_from_a_slip_may_be_a_tie():
    """Keys 2, 2, 2, 2 instead of 1, 1, 1, 1: the weights are 1/4 still; 3 instead of 1 of one value: 3/4."""
    result = lt.study.work([[1, 1]] + [[1, 0]] * 3, [[1], [0]], [[1], [0]], [[0], [1]])
    for answer in ("0.7", "0.8"):
        judged = result.check({"v": [["3"], [0], [0], [0]], "outputs": [[answer]] * 4})
        assert [verdict.kind for verdict in judged.verdicts] == ["slip"] + ["right"] * 3 + ["follows"] * 4


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["full", "causal"]), st.sampled_from([1, 2]), st.booleans())
def test_queries_keys_and_values_given_themselves(seed: int, rule: str, heads: int, output: bool) -> None:
    random = np.random.default_rng(seed)
    tokens, wq, wk, wv, wo = (random.integers(-2, 3, (2, 2)) for _ in range(5))
    others: dict[str, Any] = {"rule": rule, "heads": heads, "scale": "sqrt", "wo": wo if output else None}
    made = lt.study.work(tokens, wq, wk, wv, **others)
    result = lt.study.work(q=tokens @ wq, k=tokens @ wk, v=tokens @ wv, **others)
    assert result.outputs.decimals(12) == made.outputs.decimals(12)
    assert [step.name for step in result.steps] == [step.name for step in made.steps][3:]
    assert [step.name for step in result.exercise][:3] == ["q", "k", "v"]
    assert result.json()["given"]["k"]["exact"] == [[str(x) for x in row] for row in tokens @ wk]
    for text in (result.html(), result.latex(), result.markdown(), str(result)):
        assert "W_q" not in text and "memory" not in text


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"q": [[1]]}, "q, k and v are given together; k and v still to be given"),
        (
            {"q": [[1]], "k": [[1]], "v": [[1], [2]]},
            "k has 1 row and v has 2: there must be a value for each",
        ),
        ({"q": [[1]], "k": [[1, 2]], "v": [[1]]}, "q has rows of 1 numbers and k of 2: they must be equally"),
        ({"q": [[1]], "k": [[1]], "v": [[1]], "wq": [[1]]}, "which wq would make; leave wq out"),
        ({"q": [[1]], "k": [[1]], "v": [[1]], "heads": 2}, "q has 1 column, which 2 heads cannot share"),
    ],
)
def test_queries_keys_and_values_that_do_not_fit(case: dict[str, Any], message: str) -> None:
    with pytest.raises((NamingError, TensorError), match=message):
        lt.study.work(**case)
