"""The weights of orthonormal keys as formulas: equal to those of softmax in 60 digits, and to steer's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from steering_oracle import softmax

import lattend as lt
from lattend.errors import DomainError, NamingError
from lattend.study.exact.shares import BETA, share_text
from lattend.study.steering.formulas import WeightFormula

m = sympy.Symbol("m", positive=True)
power = sympy.exp(BETA)


def test_the_two_formulas_of_the_course() -> None:
    pair = lt.study.weight_formula(["1/2", "1/2"])
    assert sympy.simplify(pair.weights[0] - power / (2 * power + m - 2)) == 0
    assert sympy.simplify(pair.weights[0] - 1 / (2 + (m - 2) * sympy.exp(-BETA))) == 0
    assert share_text(pair.weights[1]) == "e^β/(2e^β + m - 2)"
    alone = lt.study.weight_formula([1])
    assert sympy.simplify(alone.leak - (m - 1) / (power + m - 1)) == 0
    assert share_text(alone.leak) == "(m - 1)/(e^β + m - 1)"
    assert alone.sharpness == "β = log((m - 1)(1 - ε)/ε)"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any), st.integers(0, 4), st.floats(0.1, 9))
def test_numbers_are_those_of_softmax(parts: list[int], more: int, beta: float) -> None:
    wanted = [Fraction(part, sum(parts)) for part in parts]
    result = lt.study.weight_formula(wanted)
    size, s = len(parts) + more, sum(part > 0 for part in parts)
    query = [beta + np.log(float(s * weight)) if weight else 0.0 for weight in wanted] + [0.0] * more
    right = [float(weight) for weight in softmax(np.eye(size), query)]
    *named, other, leak = result.numbers(beta, size)
    assert named == pytest.approx(right[: len(parts)], rel=1e-12)
    assert leak == pytest.approx(sum(w for w, p in zip(right, [*parts, *[0] * more], strict=True) if not p))
    if more:
        assert other == pytest.approx(right[-1], rel=1e-12)
    fixed = lt.study.weight_formula(wanted, keys=size)
    assert fixed.numbers(beta, size) == pytest.approx(result.numbers(beta, size), rel=1e-12)


@pytest.mark.parametrize(("s", "size"), [(1, 4), (2, 4), (3, 7), (2, 100)])
def test_steer_gives_these_weights(s: int, size: int) -> None:
    steered = lt.study.steer(np.eye(size), [Fraction(1, s)] * s + [0] * (size - s), error=0.01)
    formula = lt.study.weight_formula([Fraction(1, s)] * s)
    *named, other, leak = formula.numbers(float(steered.sharpness), size)
    assert [*named, other] == pytest.approx(steered.weights[: s + 1].tolist(), rel=1e-12)
    assert leak == pytest.approx(steered.error) == pytest.approx(0.01)  # β of ε
    said = dict(steered.draw().facts)["formula"]
    assert said.startswith(share_text(formula.weights[0])) and said.endswith(f"with m = {size} keys")


def test_unequal_weights_have_no_formula_beside_their_numbers() -> None:
    assert "formula" not in dict(lt.study.steer(np.eye(3), ["1/3", "2/3", 0]).draw().facts)
    assert "formula" not in dict(lt.study.steer([[1, 0], [1, 1]], [1, 0]).draw().facts)
    assert share_text(lt.study.weight_formula(["1/3", "2/3"]).weights[1]) == "4e^β/(6e^β + 3m - 6)"


def test_a_wrong_formula_is_not_given() -> None:
    right = lt.study.weight_formula([1])
    wrong = WeightFormula(right.wanted, right.keys, (power / (power + m),), right.other, right.leak)
    with pytest.raises(AssertionError, match="off at m = 1"):
        wrong.check()


def test_all_keys_wanted() -> None:
    result = lt.study.weight_formula(["1/2", "1/2"], keys=2)
    assert [share_text(weight) for weight in result.weights] == ["1/2", "1/2"]
    assert (result.leak, result.sharpness) == (0, "")
    assert "leak" not in str(result)


def test_report() -> None:
    assert str(lt.study.weight_formula(["1/2", 0, "1/2"])) == (
        "m orthonormal keys, steered to keys 0, 2\n\n"
        "key         wanted  weight\n"
        "0              1/2  e^β/(2e^β + m - 2)\n"
        "2              1/2  e^β/(2e^β + m - 2)\n"
        "each other       0  1/(2e^β + m - 2)\n\n"
        "logits      β on keys 0, 2; 0 on all others\n"
        "leak        (m - 2)/(2e^β + m - 2) goes to the others together\n"
        "for leak ε  β = log((m - 2)(1 - ε)/(2ε))\n"
        "limit       the wanted weights, as β grows; no β reaches them\n"
        "checked     against softmax in float64, at β = 0.5, 3, 8"
    )
    assert (
        r"\alpha_{0} = \frac{e^{\beta}}{m + 2 e^{\beta} - 2}"
        in lt.study.weight_formula(["1/2", "1/2"]).latex()
    )


def test_bad_input() -> None:
    with pytest.raises(DomainError, match="these sum to 3/2"):
        lt.study.weight_formula(["1/2", 1])
    with pytest.raises(DomainError, match="there are 2 weights for 1 key; give at most 1"):
        lt.study.weight_formula(["1/2", "1/2"], keys=1)
    with pytest.raises(NamingError, match='a letter such as m, not "2m"'):
        lt.study.weight_formula([1], keys="2m")
