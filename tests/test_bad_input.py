"""Bad input: one clear error each, quickly, never a traceback from inside."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import lattend as lt
from lattend.cost.reader import from_text
from lattend.study.exact.numbers import exact
from lattend.study.worked.work import EXAMPLE

MANY = " or ".join(f"({i}*q - {i + 3}*k) % {2 * i + 5} <= t - {i}" for i in range(2, 9))

CASES: dict[str, tuple[Callable[[], object], str]] = {
    "not affine": (lambda: lt.rule("k*k <= q").count(), r"k \* k is not affine in k"),
    "a misspelt value": (lambda: lt.rules.strided().count(n=4, tt=3), "did you mean t"),
    "a misspelt rule": (lambda: lt.rule("windwed"), "did you mean windowed"),
    "a negative size": (lambda: lt.rules.causal().count(n=-1), "needs n >= 0, got n = -1"),
    "a missing value": (lambda: lt.rules.strided().mask(n=4), "needs a value for t: give t=…"),
    "a value twice": (lambda: lt.rules.strided(3).count(n=4, t=3), "t already has the value 3"),
    "a float": (lambda: lt.rules.causal().count(n=4.0), "n must be an integer, got 4.0"),
    "a bool": (lambda: lt.rules.causal().count(n=True), "n must be an integer, got True"),
    "a position as text": (lambda: lt.rules.causal().count(per="query", n=4, q="1"), "q must be an integer"),
    "a square off the grid": (lambda: lt.rules.causal().contains(4, 0, n=4), "q = 4 lies outside 0 … 3"),
    "a long text": (lambda: lt.rule("k <= q and " * 10_000 + "k <= q"), "characters"),
    "deep nesting": (lambda: lt.rule("(" * 10_000 + "k" + ")" * 10_000 + " <= q"), "20,006 characters"),
    "nesting": (lambda: lt.rule("(" * 150 + "k" + ")" * 150 + " <= q"), "more than 100 levels deep"),
    "many rules joined": (lambda: _joined(5_000), "parts, and at most 5,000 are allowed"),
    "dividing by a size": (lambda: lt.rule("q // n == 0").count(), "divisor must be a positive"),
    "dividing by a position": (lambda: lt.rule("q % k == 0").count(), "divisor must be a positive"),
    "a modulus divided": (lambda: lt.rule("q // w == 0 and w // v == 0").count(), "is itself divided by v"),
    "two moduli": (lambda: lt.rule("q // w == k // l").count(), "split by both w and l|divided by both"),
    "an explosive count": (lambda: lt.rule(MANY).count(), "counting at given numbers still works"),
    "an explosive formula": (lambda: lt.rules.causal().count().claim("(n+1)^32*(n+2)^32"), "degree|terms"),
    "deep sums": (lambda: lt.rules.causal().count().claim("sum(" * 200 + "1" + ",i,1,n)" * 200), "nest|deep"),
    "an option's name": (lambda: lt.rule("q - k <= deadline").count(deadline=1), "bind it first: at"),
    "too long a row": (lambda: lt.rules.causal().keys(5, n=10**12), "too long to list"),
    "too large a mask": (lambda: lt.rules.causal().mask(n=10**6), "too large to hold"),
    "another axis": (lambda: lt.rules.causal() & lt.rules.axial(), "different axes"),
    "an array missing": (lambda: lt.rule("doc[q] == doc[k]"), "no array of that name is given"),
    "an unknown method": (lambda: lt.rules.causal().count(method="guess"), "method is one of"),
    "an assumption never true": (lambda: lt.rules.strided().count().assuming("t < 0"), "never holds"),
}


def _joined(times: int) -> lt.Rule:
    rule = lt.rules.causal()
    for i in range(times):
        rule = rule | lt.rule("q - k == t").at(t=i)
    return rule


# Every reader of a person's text, and texts that nest or repeat without end
READERS: dict[str, Callable[[str], object]] = {
    "rule": lt.rule,
    "layer": from_text,
    "steps of a layer": lambda text: from_text(f"rnn(steps={text})"),
    "rule of a layer": lambda text: from_text(f"attention({text})"),
    "a size": lambda text: lt.cost.rnn(hidden=text),
    "a formula": lambda text: lt.rules.causal().count().claim(text),
    "a claim about a cost": lambda text: lt.cost.rnn2d().claim("multiplies", text),
    "a quantity": lambda text: lt.cost.rnn2d().claim(text, "n"),
    "a game": lt.study.games.Game,
    "an exact number": exact,
    "a derivation": lt.study.derive,
    "a step of an answer": lambda text: lt.study.work(**EXAMPLE).check({text: [[1]]}),
}
ENDLESS: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "(" * n + "n" + ")" * n,
    "open brackets": lambda n: "(" * n,
    "square brackets": lambda n: "[" * n + "]" * n,
    "signs": lambda n: "-" * n + "n",
    "nots": lambda n: "not " * n + "q < k",
    "powers": lambda n: "2^" * n + "2",
    "calls": lambda n: "abs(" * n + "n" + ")" * n,
    "LaTeX fractions": lambda n: r"\frac{" * n + "n" + "}{2}" * n,
    "LaTeX brackets": lambda n: r"\left(" * n + "n" + r"\right)" * n,
}


@pytest.mark.parametrize("many", [150, 2_000, 100_000])
@pytest.mark.parametrize("shape", ENDLESS)
@pytest.mark.parametrize("reader", READERS)
def test_text_without_end_gets_an_answer_or_one_clear_error(reader: str, shape: str, many: int) -> None:
    began = time.perf_counter()
    try:
        READERS[reader](ENDLESS[shape](many))
    except lt.errors.LattendError as error:
        assert len(str(error)) < 2_000
    assert time.perf_counter() - began < 5.0  # a second when nothing else runs


@pytest.mark.parametrize("name", CASES)
def test_one_clear_error(name: str) -> None:
    make, message = CASES[name]
    with pytest.raises(lt.errors.LattendError, match=message):
        make()
