"""One spelling: it keeps the pairs, and all the ways to write a condition come to it."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from random_rules import affine, split

import lattend as lt
from lattend.rules.language import expr
from lattend.rules.language.expr import FLIPPED, And, Arith, Compare, Condition, Not, Num, Or
from lattend.rules.language.key import normal_text
from lattend.rules.language.parser import parse

NUMBERS = {"n": 7, "t": 2, "w": 3}


def mask(text: str) -> np.ndarray:
    rule = lt.rule(text)
    return np.array(rule.mask(**{name: NUMBERS[name] for name in rule.free}))


@example("k % 3 >= 0")  # -(k % 3) <= 0, and not (-k) % 3 <= 0
@given(st.one_of(affine(), split()))
def test_the_spelling_attends_the_same_pairs(text: str) -> None:
    spelling = re.sub(r"(\d)([a-z(])", r"\1*\2", normal_text(parse(text)))  # 2q is 2*q
    assert np.array_equal(mask(spelling), mask(text))


def respelled(node: Condition, chance: random.Random) -> Condition:
    """The condition written in another way."""
    if chance.random() < 0.3:
        return Not(respelled(expr.negated(node), chance))
    match node:
        case And() | Or():
            args = [respelled(arg, chance) for arg in node.args]
            chance.shuffle(args)
            return replace(node, args=(*args, *args[: chance.randrange(2)]))
        case Not():
            return Not(respelled(node.arg, chance))
        case Compare() if chance.random() < 0.5:
            return replace(node, op=FLIPPED[node.op], left=node.right, right=node.left)
        case Compare() if node.op in ("<=", ">") and chance.random() < 0.5:
            one = Arith("+", (node.right, Num(1)))  # a <= b is a < b + 1
            return replace(node, op="<" if node.op == "<=" else ">=", right=one)
        case _:
            return node


LINEAR = st.sampled_from(("k <= q", "q - k <= t", "k < 2", "q == k", "q != k + t", "q - 4*(q // 4) >= k % 4"))
SIGNS = st.sampled_from(("and", "or"))
JOINED = st.recursive(LINEAR, lambda part: st.builds("({}) {} ({})".format, part, SIGNS, part), max_leaves=5)


@given(JOINED, st.integers())
def test_other_ways_to_write_it_have_the_same_spelling(text: str, seed: int) -> None:
    node = parse(text)
    assert normal_text(respelled(node, random.Random(seed))) == normal_text(node)


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("not k > q", "k - q <= 0"),
        ("3*q >= 3*k - 2", "k - q <= 0"),
        ("2*q == 2*k + 1", "false"),
        ("2*q != 4*k + 6", "2k + 3 - q != 0"),
        ("k <= q or k <= q and q - k <= t", "(k - q <= 0 and q - k - t <= 0) or k - q <= 0"),
        ("k <= q and k - q < 1 and 0 <= 3", "k - q <= 0"),
        ("q // w == k // w", "k // w == q // w"),
    ],
)
def test_some_spellings(text: str, spelling: str) -> None:
    assert normal_text(parse(text)) == spelling


def test_what_attends_other_pairs_is_spelled_otherwise() -> None:
    texts = (
        "k <= q",
        "k < q",
        "k <= q + 1",
        "k >= q",
        "q == k",
        "2*k <= q",
        "k <= q and k >= 1",
        "k <= q or k >= 1",
    )
    assert len({normal_text(parse(text)) for text in texts}) == len(texts)
