"""Reading Python functions: equal to the text, and everything Python would swallow is refused."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lattend as lt
from lattend.errors import TraceError
from lattend.rules.language.parser import parse
from lattend.rules.language.tracing import trace


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda q, k, t: (k <= q) & (q - k <= t), "k <= q and q - k <= t"),
        (lambda k, q: ~(k > q), "not k > q"),
        (lambda q, k, w: (k <= q) & (q // w == k // w), "k <= q and q // w == k // w"),
        (lambda q, k, g: (abs(q - k) <= 3) | (q < g) | (k < g), "abs(q - k) <= 3 or q < g or k < g"),
        (lambda q, k, s: (q - k) % s != 0, "(q - k) % s != 0"),
        (
            lambda q, k, t: lt.rules.minimum(q, t) + 1 > lt.rules.maximum(k, 0, t),
            "min(q, t) + 1 > max(k, 0, t)",
        ),
        (lambda q, k, t: np.minimum(q, t) <= np.maximum(k, 3), "min(q, t) <= max(k, 3)"),
        (lambda q, k: np.int64(3) <= q + np.int64(2), "3 <= q + 2"),
        (lambda q, k: np.logical_and(k <= q, ~(k == 3)), "k <= q and not k == 3"),
        (
            lambda q, k: np.logical_not(np.abs(q - k) < 2) | (np.negative(k) < 0),
            "not abs(q - k) < 2 or -k < 0",
        ),
        (lambda q, k: 3 - q <= 2 * -k, "3 - q <= 2 * -k"),
        (lambda q, k, t: 10 // t + 10 % t > +k, "10 // t + 10 % t > k"),
        (lambda q, k, w: divmod(q, w)[0] == divmod(k, w)[1], "q // w == k % w"),
        (lambda q, k, doc: doc[q] == doc[k], "doc[q] == doc[k]"),
        (lambda q, k, chosen, b: (k <= q) & chosen[q // b, k // b], "k <= q and chosen[q // b, k // b]"),
        (lambda q, k, marked: ~marked[q] | marked[k], "not marked[q] or marked[k]"),
        (lambda qy, qx, ky, kx: (qy == ky) | (qx == kx), "qy == ky or qx == kx"),
        (lambda q, k, /, *, t: q - k <= t, "q - k <= t"),
        (lambda q, k: True, "true"),
        (lambda q, k: np.bool_(False), "false"),
        (lambda q, k: (k <= q) & True, "k <= q and true"),
        (lambda q, k: False | (k <= q), "false or k <= q"),
        (lambda q, k: (k < q) & ((k < 3) & (q < 3)), "k < q and k < 3 and q < 3"),
    ],
)
def test_function_is_its_text(function: Callable[..., object], text: str) -> None:
    assert trace(function).condition == parse(text)


TRUTH = (
    "is true, and that is not known while a rule is being built (it asks in and, or, not, if, in, min, max "
    "and a <= b < c); write & for and, | for or, ~ for not, (a <= b) & (b < c) for a <= b < c, "
    "lt.rules.minimum and lt.rules.maximum for min and max, and brackets around every comparison"
)
DATA = 'pass arrays as data, as in rule("doc[q] == doc[k]", data={"doc": ids})'
TABLE = np.arange(9)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda q, k, t: k <= q and q - k <= t, f"Python asks whether k <= q {TRUTH}"),
        (lambda q, k: k < 3 or q < 3, f"Python asks whether k < 3 {TRUTH}"),
        (lambda q, k: not k < 3, f"Python asks whether k < 3 {TRUTH}"),
        (lambda q, k, t: k <= q <= t, f"Python asks whether k <= q {TRUTH}"),
        (lambda q, k: True if q < 3 else k < 3, f"Python asks whether q < 3 {TRUTH}"),
        (lambda q, k: min(q, 3) < k, f"Python asks whether 3 < q {TRUTH}".replace("3 < q", "q > 3")),
        (lambda q, k: max(q, k) < 3, f"Python asks whether k > q {TRUTH}"),
        (lambda q, k: k in [1, 2], f"Python asks whether k == 1 {TRUTH}"),
        (lambda q, k: k in range(3), f"Python asks whether k == 0 {TRUTH}"),
        (lambda q, k: k in {1, 2}, "membership of k, which is symbolic while a rule is built; "
         "write comparisons joined with |, as in (k == 0) | (k == 3)"),
        (lambda q, k: k <= q & q - k <= 3,
         "& | ~ work on conditions, and here they meet q, a number. They bind "
         "tighter than comparisons, so put brackets around each one, as in (k <= q) & (q - k <= t)"),
        (lambda q, k: ~q, "& | ~ work on conditions, and here they meet q, a number."),
        (lambda q, k: (k < q) | 3, "& | ~ work on conditions, and here they meet 3, a number."),
        (lambda q, k: q / 2 < k, "division by / of q, which is symbolic while a rule is built; "
         "write // (division rounded down)"),
        (lambda q, k: 1 / q < k, "write // (division rounded down)"),
        (lambda q, k: q**2 < k, "a power of q, which is symbolic while a rule is built; "
         "write a product out, as in t*t"),
        (lambda q, k: 2**q < k, "write a product out, as in t*t"),
        (lambda q, k: q ^ 1 < k, "a bit operation of q, which is symbolic while a rule is built; "
         "work with + - * // % and join conditions with & | ~"),
        (lambda q, k: q << 1 < k, "a bit operation of q"),
        (lambda q, k: int(q) < k, "int() of q, which is symbolic while a rule is built; leave int() away"),
        (lambda q, k: float(q) < k, "float() of q, which is symbolic while a rule is built; stay with"),
        (lambda q, k: math.sqrt(q) < k, "float() of q"),
        (lambda q, k: math.floor(q) < k, "round() of q, which is symbolic while a rule is built; every term"),
        (lambda q, k: round(q) < k, "round() of q"),
        (lambda q, k: any(k == i for i in range(q)), "a range or a lookup of q, which is symbolic"),
        (lambda q, k: [4, 5][q] == k, "a range or a lookup of q"),
        (lambda q, k: TABLE[q] == TABLE[k],
         f"an array of q, which is symbolic while a rule is built; {DATA}"),
        (lambda q, k: np.asarray(q) < 3, f"an array of q, which is symbolic while a rule is built; {DATA}"),
        (lambda q, k: np.sqrt(q) < 3,
         "np.sqrt of q, which is symbolic while a rule is built; use + - * // %"),
        (lambda q, k: q > TABLE, "is not a whole number; write an integer"),
        (lambda q, k: (q + k)[0] < 3, "a lookup of q + k, which is symbolic while a rule is built; only an"),
        (lambda q, k: [*q] == k, "going through the elements of q, which is symbolic"),
        (lambda q, k: len(q) < k, "the length of q, which is symbolic while a rule is built; write the size"),
        (lambda q, k: k <= 2.0, "2.0 in k <= 2.0 is not a whole number; write 2"),
        (lambda q, k: q + 0.5 < k, "0.5 in q + 0.5 is not a whole number; write an integer"),
        (lambda q, k: q == None, "None in q == None is not a whole number; write an integer"),  # noqa: E711
        (lambda q, k: q + True < k, "True in q + True is not a whole number; write an integer"),
        (lambda q, k: q // 0 < k, "q // 0: the divisor must be at least 1"),
        (lambda q, k: (k < q) == (k < 3),
         "k < q is a condition, not a number: it cannot be compared, added or "
         "multiplied; join conditions with & | ~, as in (k <= q) & (q - k <= t)"),
        (lambda q, k: (k < q) * (k < 3), "k < q is a condition, not a number"),
        (lambda q, k: q + (k < 3) < 1, "k < 3 is a condition, not a number"),
        (lambda q, k: q - k, "function <lambda> gives the number q - k, not a condition; compare it with "
         "something, as in k <= q - k"),
        (lambda q, k: None, "function <lambda> gives None; end it with return and a condition"),
        (lambda q, k: 3, "function <lambda> gives 3, a int, not a condition such as k <= q"),
        (lambda q, k, t=3: k <= q, "function <lambda> has a default value, t=3; leave it out and bind it "
         "afterwards, as in rule(…).at(t=…)"),
        (lambda q, *rest: q < 3, "function <lambda> takes *rest; name each position and parameter"),
        (lambda q, **rest: q < 3, "function <lambda> takes **rest; name each position and parameter"),
        (lambda q, true: q < true, "function <lambda>: true cannot be a name in a rule; use letters a to z"),
        (lambda q, _k: q < _k, "function <lambda>: _k cannot be a name in a rule; use letters a to z"),
        (lambda q, k: lt.rules.minimum(q) < 3, "lt.rules.minimum takes two numbers or more, as in"),
        (operator.itemgetter, "function itemgetter"),
        (3, "a rule is a text or a function of q and k, got 3"),
    ],
)  # fmt: skip
def test_what_python_would_swallow_is_refused(function: Any, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        trace(function)
    assert message in str(caught.value)


def test_a_tree_that_doubles_is_stopped() -> None:
    def doubling(q: Any, k: Any) -> Any:
        for _ in range(90):
            q = q + q
        return k <= q

    def deep(q: Any, k: Any) -> Any:
        for _ in range(100_000):
            q = q + 1
        return k <= q

    for function in (doubling, deep):
        with pytest.raises(TraceError, match="more than 5,000 parts or 100 levels; write it with fewer"):
            trace(function)


def test_minimum_and_maximum_of_numbers() -> None:
    assert lt.rules.minimum(3, 5) == 3
    assert lt.rules.maximum(3, 5, 4) == 5


def test_a_loop_may_join_many_conditions() -> None:
    def many(q: Any, k: Any) -> Any:
        found = k == 0
        for i in range(1, 500):
            found = found | (k == i)
        return found

    assert trace(many).condition == parse(" or ".join(f"k == {i}" for i in range(500)))


def test_long_terms_are_cut_in_messages() -> None:
    def long(q: Any, k: Any) -> Any:
        for i in range(60):
            q = q + i
        return q

    with pytest.raises(TraceError) as caught:
        trace(long)
    assert "gives the number q + 0 + 1 + 2" in str(caught.value)
    assert len(str(caught.value)) < 300
