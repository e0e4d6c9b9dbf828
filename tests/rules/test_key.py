"""Keys of rules: the same for the same pairs, and a way back; arrays that are left open."""

from __future__ import annotations

import copy
import pickle
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from random_rules import affine, split

import lattend as lt
from lattend.errors import NamingError
from lattend.rules.axes import CROSS, VOLUME
from lattend.rules.language import expr
from lattend.rules.language.expr import FLIPPED, And, Arith, Compare, Condition, Not, Num, Or
from lattend.rules.language.key import KNOWN, normal_text, parts_of
from lattend.rules.language.parser import parse

BAND = lt.rule("k <= q and q - k <= t")
PACKED = lt.rule("doc[q] == doc[k]", data={"doc": [0, 0, 1]})
OPEN = lt.rule("doc[q] == doc[k]", data={"doc": None})


def test_a_key_says_all_but_the_numbers() -> None:
    assert BAND.key == "q k n n\nk <= q and q - k <= t\ntrue\n"
    assert BAND.key == BAND.at(t=3, n=9).key == lt.rule(lambda q, k, t: (k <= q) & (q - k <= t)).key
    others = [lt.rule(BAND.text, where="t >= 1"), lt.rule(BAND.text, cross=True), BAND.at(m=3), ~BAND]
    assert len({rule.key for rule in (BAND, *others)}) == 4  # cross and at(m=3) are alike


def test_a_key_leads_back() -> None:
    cross = lt.rule("k - q <= far", where="far >= 0", cross=True)
    assert parts_of(cross.key) == (CROSS, cross.condition, cross.where, {})
    volume = lt.rule("abs(qz - kz) <= 1 and seen[kx, ky] == 1", data={"seen": None})
    assert parts_of(volume.key) == (VOLUME, volume.condition, volume.where, {"seen": "?"})


def test_arrays_are_told_apart_by_what_they_hold() -> None:
    assert PACKED.key == lt.rule("doc[q] == doc[k]", data={"doc": np.array([0, 0, 1])}).key
    for other in ([0, 1, 1], [[0, 0, 1]], [0, 0, 1, 1]):
        assert PACKED.key != lt.rule("doc[q] == doc[k]", data={"doc": other}).key
    assert PACKED.key != OPEN.key and PACKED != OPEN


def test_an_array_does_not_change_under_its_rule() -> None:
    doc = np.array([0, 0, 1])
    rule = lt.rule("doc[q] == doc[k]", data={"doc": doc})
    doc[:] = 0
    assert rule == PACKED and rule.mask(n=3).sum() == 5
    with pytest.raises(ValueError, match="read-only"):
        rule.data["doc"][0] = 1
    assert rule.at(n=3).data["doc"] is rule.data["doc"]


def test_a_rule_is_known_by_its_key_while_one_of_its_kind_lives() -> None:
    first = lt.rule("q - k == 12345 + t")
    second, key = first.at(t=1), first.key
    del first
    assert KNOWN[key].key == key
    del second
    assert key not in KNOWN


@pytest.mark.parametrize("rule", [BAND.at(t=3), PACKED.at(n=3), OPEN, lt.rules.strided(2)])
def test_copies(rule: lt.Rule) -> None:
    for twin in (copy.deepcopy(rule), pickle.loads(pickle.dumps(rule))):
        assert twin == rule
        assert (twin.key, twin.open, twin.about) == (rule.key, rule.open, rule.about)


def test_combining_open_arrays() -> None:
    both = OPEN & lt.rule("seen[k] == 1", data={"seen": None}) & lt.rule("doc[k] >= 0", data={"doc": None})
    assert both.open == ("doc", "seen")
    assert (OPEN & lt.rule("seen[k] == 1", data={"seen": [1]})).data.keys() == {"seen"}
    with pytest.raises(NamingError, match="both rules bring data named doc, and the two differ; rename one"):
        _ = OPEN | PACKED


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
