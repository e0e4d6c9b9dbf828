"""Values at given positions: exact for numbers of any size, never an overflow in arrays."""

import numpy as np
import pytest

from lattend.errors import DomainError, NamingError
from lattend.rules.language.evaluation import evaluate, evaluate_term
from lattend.rules.language.parser import parse, parse_term

LINE = np.arange(4)
TOP = 2**63 - 1


def test_numbers_are_exact_at_any_size() -> None:
    at = {"q": 10**40 + 1, "k": 10**40, "t": 3}
    assert evaluate(parse("k < q and q - k <= t"), at, {}) is True
    assert evaluate_term(parse_term("q*q - k*k"), at, {}) == 2 * 10**40 + 1
    assert evaluate_term(parse_term("-q // 2 + -q % 2"), at, {}) == (-(10**40) - 1) // 2 + 1


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("q <= t", [True] * 4),
        ("q == t", [False] * 4),
        ("q != t", [True] * 4),
        ("-t < q", [True] * 4),
        ("q > t", [False] * 4),
        ("min(q, t) < 2", [True, True, False, False]),
        ("max(q, t) == t", [True] * 4),
        ("q // t == 0", [True] * 4),
        ("q % t < 2", [True, True, False, False]),
    ],
)
def test_parameters_beyond_64_bits_compare_exactly(text: str, held: list[bool]) -> None:
    found = evaluate(parse(text), {"q": LINE, "t": 10**30}, {})
    assert np.broadcast_to(found, 4).tolist() == held


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q + t <= 3", "q + t may lie between 1,{z} and 1,{z2}, more than 64 bits hold"),
        ("q * t <= 3", "q * t may lie between 0 and 3,"),
        ("(q - 1) // t == 0", "(q - 1) // t needs numbers of more than 64 bits"),
        ("(q - 1) % t == 0", "(q - 1) % t needs numbers of more than 64 bits"),
    ],
)
def test_arithmetic_beyond_64_bits_is_refused(text: str, message: str) -> None:
    zeros = ",".join(["000"] * 10)
    wanted = message.format(z=zeros, z2=zeros[:-1] + "3")
    with pytest.raises(DomainError) as caught:
        evaluate(parse(text), {"q": LINE, "t": 10**30}, {})
    assert wanted in str(caught.value)
    assert "contains(…) for one pair" in str(caught.value)


def test_the_edge_of_64_bits() -> None:
    at = {"q": np.array([TOP - 1, TOP - 3]), "t": 1}
    assert np.asarray(evaluate_term(parse_term("q + t"), at, {})).tolist() == [TOP, TOP - 2]
    with pytest.raises(DomainError, match="more than 64 bits"):
        evaluate_term(parse_term("q + t + t"), at, {})
    least = {"q": np.array([-(2**63)])}
    for text in ("-q", "abs(q)", "q - 1", "q * q"):
        with pytest.raises(DomainError, match="more than 64 bits"):
            evaluate_term(parse_term(text), least, {})
    with pytest.raises(DomainError, match=r"q holds 9223372036854775808, more than 64 bits hold"):
        evaluate_term(parse_term("q"), {"q": np.array([2**63], np.uint64)}, {})


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, bool])
def test_small_dtypes_do_not_wrap(dtype: type) -> None:
    at = {"q": np.array([1, 0], dtype)}
    assert np.asarray(evaluate_term(parse_term("q - 300"), at, {})).tolist() == [-299, -300]


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("q // w", {"q": 3, "w": 0}, "q // w: the divisor w is 0, and it must be at least 1"),
        (
            "q % (w - 2)",
            {"q": LINE, "w": 1},
            "q % (w - 2): the divisor w - 2 is -1, and it must be at least 1",
        ),
        ("3 // q", {"q": LINE}, "3 // q: the divisor q is 0, and it must be at least 1"),
        ("doc[q]", {"q": 2}, "doc[q] is read at q = 2, outside the doc given (0 … 1)"),
        ("doc[q - 1]", {"q": LINE}, "doc[q - 1] is read at q - 1 = -1, outside the doc given (0 … 1)"),
        ("doc[5]", {}, "doc[5] is read at 5, outside the doc given (0 … 1)"),
        ("none[q]", {"q": 0}, "none[q] is read at q = 0, outside the none given (none, it is empty)"),
        ("doc[q, q]", {"q": 0}, "doc[q, q] gives 2 places, and doc has 1 axes"),
        ("half[q]", {"q": 0}, "half must hold whole numbers, got float64"),
        ("q", {"q": np.array([0.5])}, "q must hold whole numbers, got float64"),
    ],
)
def test_outside_the_domain(text: str, at: dict[str, object], message: str) -> None:
    data = {"doc": np.array([7, 8]), "half": np.array([0.5]), "none": np.zeros(0, np.int64)}
    with pytest.raises(DomainError) as caught:
        evaluate_term(parse_term(text), at, data)
    assert str(caught.value) == message


def test_what_is_not_given_is_named() -> None:
    with pytest.raises(NamingError, match="no value is given for t"):
        evaluate(parse("q <= t"), {"q": 3}, {})
    with pytest.raises(NamingError, match=r"no array is given for doc; pass it as data=\{'doc': array\}"):
        evaluate(parse("doc[q]"), {"q": 3}, {})


def test_lookups_in_two_axes() -> None:
    table = np.arange(6).reshape(2, 3)
    at = {"q": np.arange(2)[:, None], "k": np.arange(3)[None, :]}
    assert np.array_equal(evaluate_term(parse_term("table[q, k] + 1"), at, {"table": table}), table + 1)
    assert evaluate_term(parse_term("table[1, 2]"), {}, {"table": table}) == 5


def test_empty_positions_are_fine() -> None:
    found = evaluate(parse("doc[q] == q // 2"), {"q": np.arange(0)}, {"doc": np.arange(0)})
    assert np.broadcast_to(found, 0).tolist() == []
