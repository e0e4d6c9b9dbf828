"""Which keys are kept equals enumeration: the catalogue, images, and random rules."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from random_rules import affine, split

import lattend as lt
from lattend.errors import DeadlineError, DomainError, LattendError, NamingError, TextError
from lattend.plans import retention as module
from lattend.plans.last_query import FOREVER, NEVER, last_query_bound
from lattend.plans.retention import Retention, retention
from lattend.rules import Rule

SLOW = settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
HORIZON = 96
SEEN = 24  # far enough from the horizon that what the small numbers below decide is decided by then

BACK = {
    "causal": lt.rules.causal(),
    "strided": lt.rules.strided(t=3),
    "strided t=0": lt.rules.strided(t=0),
    "windowed": lt.rules.windowed(w=4),
    "dilated": lt.rules.dilated(t=2, step=3),
    "sparse_strided": lt.rules.sparse_strided(l=4),
    "sparse_fixed": lt.rules.sparse_fixed(l=5, c=2),
    "sinks": lt.rules.sinks(s=2, t=3),
    "band": lt.rules.band(before=3, after=0),
    "chunks behind": lt.rules.chunked(w=3, t=1) & lt.rules.causal(),
    "longformer": lt.rules.longformer(t=2, g=3) & lt.rules.causal(),
    "bigbird": lt.rules.bigbird(w=2, t=1, g=1) & lt.rules.causal(),
    "prefix": lt.rules.prefix_lm(p=5) & lt.rules.causal(),
    "strictly before": lt.rule("k < q and q - k <= 4"),
    "only even keys": lt.rule("k <= q and k % 2 == 0 and q - k <= 5"),
    "a growing window": lt.rule("k <= q and q <= 2*k + 1"),
    "none": lt.rule("false"),
}


def mask(rule: Rule, horizon: int = HORIZON) -> np.ndarray:
    """The pairs with sizes bound to the horizon, whichever are free."""
    found = rule.mask(**dict.fromkeys(rule.free, horizon))
    return found.max(0) if rule.has_heads else found


def kept_by_enumeration(pairs: np.ndarray, p: int) -> list[int]:
    """The keys up to p that a query after p reaches."""
    return np.flatnonzero(pairs[p + 1 :, : p + 1].any(0)).tolist()


def check(rule: Rule, found: Retention, upto: int = SEEN) -> None:
    pairs = mask(rule)
    for p in range(upto):
        assert found.kept(p).tolist() == kept_by_enumeration(pairs, p), p
        used = [k for k in range(p + 1) if pairs[p:, k].any()]
        if found.most is not None:
            assert len(used) <= found.most
        if found.whole:
            assert np.flatnonzero(pairs[p]).tolist() == used, p


@pytest.mark.parametrize("name", BACK)
def test_the_catalogue_keeps_what_enumeration_keeps(name: str) -> None:
    found = retention(BACK[name])
    assert not found.inexact
    check(BACK[name], found)


def test_the_catalogue_by_hand() -> None:
    band, sinks = retention(lt.rules.strided(t=3)), retention(lt.rules.sinks(s=2, t=3))
    assert band.kept(20).tolist() == [18, 19, 20]  # t of them; with its own key a query then sees t + 1
    assert (band.most, band.whole) == (4, True)
    assert sinks.kept(20).tolist() == [0, 1, 18, 19, 20]
    assert (sinks.most, sinks.whole) == (6, True)  # s + t + 1
    windowed = retention(lt.rules.windowed(w=4))
    assert windowed.kept(3).tolist() == [] and windowed.kept(6).tolist() == [4, 5, 6]
    assert (windowed.most, windowed.whole) == (4, True)
    fixed = retention(lt.rules.sparse_fixed(l=5, c=2))
    assert fixed.kept(11).tolist() == [3, 4, 8, 9, 10, 11]  # columns 3 and 4 of each block, and its own block
    assert (fixed.most, fixed.whole) == (None, True)
    strided = retention(lt.rules.sparse_strided(l=4))
    assert strided.kept(9).tolist() == list(range(10)) and strided.most is None and not strided.whole
    assert retention(lt.rules.dilated(t=2, step=3)).most == 7  # t*step + 1


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            lt.rules.strided(t=3),
            "key k is kept until query k + 3, the last that reaches it; at most 4 at once",
        ),
        (
            lt.rules.sinks(s=2, t=3),
            "key k is kept for good when k <= 1, until query k + 3 when k >= 2, the last that reaches it; "
            "at most 6 at once",
        ),
        (
            lt.rules.sparse_fixed(l=5, c=2),
            "key k is kept for good when k % 5 >= 3, until query 5(k // 5) + 4 when k % 5 <= 2, the last "
            "that reaches it; the number grows with the sequence",
        ),
        (
            lt.rules.causal(),
            "every key is kept: each is within reach of queries to come; the number grows with the sequence",
        ),
        (
            lt.rule("k < q and k % 3 == 1"),
            "key k is kept for good when k % 3 == 1; the number grows with the sequence",
        ),
        (lt.rule("false"), "no key is kept: no query reaches any; at most 0 at once"),
    ],
)
def test_it_says_what_is_kept_and_why(rule: Rule, sentence: str) -> None:
    assert str(retention(rule)) == sentence


@pytest.mark.parametrize(
    "text",
    [
        "k <= q and q - k <= k % 2 + k % 3",  # what repeats after 6 repeats after neither 2 nor 3
        "k <= q and q - k <= max(9 - k, k % 4)",  # the greatest number is at the start
        "k <= q and (q // 3 == k // 3 or k == 5 or q // 5 == k // 5)",
    ],
)
def test_the_greatest_number_is_reached(text: str) -> None:
    rule = lt.rule(text)
    assert retention(rule).most == most_by_enumeration(rule, HORIZON // 2)


def small(text: str, **values: int) -> Rule:
    """A random rule at its numbers, made to look back; those outside its domain are passed over."""
    try:
        whole = lt.rule(f"({text}) and k <= q")
        return whole.at(**{name: value for name, value in values.items() if name in whole.free})
    except (DomainError, TextError):
        assume(False)
        raise


def most_by_enumeration(rule: Rule, upto: int) -> int:
    pairs = mask(rule)
    return max(sum(bool(pairs[p:, k].any()) for k in range(p + 1)) for p in range(upto))


@SLOW
@given(affine(), st.integers(0, 5), st.integers(1, 20))
@example("(k % 3 == 1) or (q - k < 2)", 2, 20)
@example("abs(q - k) <= t - 1", 0, 20)
def test_random_rules_keep_what_enumeration_keeps(text: str, t: int, n: int) -> None:
    rule = small(text, t=t, **({"n": n} if "n - 1" in text else {}))
    found = retention(rule)
    if found.inexact:
        assume(False)
    if found.length is None:
        check(rule, found)
        if found.most is not None:
            assert found.most == most_by_enumeration(rule, HORIZON // 2)
    else:
        pairs = mask(rule)
        for p in range(n):
            assert found.kept(p).tolist() == kept_by_enumeration(pairs, p)


@SLOW
@given(split(), st.integers(1, 5))
@example("(q // w == k // w) or (k < q)", 3)
def test_random_rules_with_blocks_keep_what_enumeration_keeps(text: str, w: int) -> None:
    rule = small(text, w=w)
    found = retention(rule)
    if found.inexact:
        assume(False)
    check(rule, found)
    if found.most is not None:
        assert found.most == most_by_enumeration(rule, HORIZON // 2)


@SLOW
@given(st.one_of(affine(), split()), st.integers(0, 5), st.integers(1, 5), st.booleans())
@example("q - k <= 2*q - 3", 0, 1, False)
@example("q // w - k // w <= 2", 0, 3, True)
@example("(q + 1) // w <= k // w", 0, 3, True)
@example("3*k - 2*q >= 1 - t", 4, 3, True)
@example("2*k - 3*q <= 0", 4, 3, False)
@example("2*k - q <= 0", 4, 3, False)
@example("2*k - 3*q < 0", 4, 3, False)
def test_the_text_never_says_too_little(text: str, t: int, w: int, causal: bool) -> None:
    whole = lt.rule(f"({text}) and k <= q" if causal else text)
    try:
        rule = whole.at(**{a: b for a, b in {"t": t, "w": w}.items() if a in whole.free}).baked()
    except DomainError:
        assume(False)
        raise
    assume("n - 1" not in text)  # the length is not known
    found, pairs = last_query_bound(rule.condition), mask(rule)
    if found.back:
        assert not np.triu(pairs, 1).any()
    for k in range(SEEN):
        queries = np.flatnonzero(pairs[:, k])
        truth = int(queries[-1]) if len(queries) else NEVER
        bound = int(found.last(k))
        assert truth == NEVER or truth <= bound
        if k >= found.pinned:
            assert truth <= k + found.reach or truth == NEVER
        if found.steady:
            past = queries[queries >= k].tolist()
            assert past == list(range(k, min(bound, HORIZON - 1) + 1))
        if found.endless:
            assert bound == FOREVER


@pytest.mark.parametrize("name", BACK)
def test_without_isl_the_text_keeps_at_least_as_much(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_set(*_: object) -> None:
        raise module._NoSet("islpy is not installed")

    exact = retention(BACK[name])
    monkeypatch.setattr(module, "_future", no_set)
    found = retention(BACK[name])
    for p in range(SEEN):
        assert set(exact.kept(p).tolist()) <= set(found.kept(p).tolist())
    if name in ("causal", "strided", "windowed", "sinks", "sparse_fixed", "band", "prefix"):
        assert not found.inexact and found.whole
        assert (found.most is None) == (exact.most is None)
        check(BACK[name], found)


def test_where_islpy_is_missing_it_says_so() -> None:
    program = """
import sys
sys.modules["islpy"] = None
import lattend as lt
from lattend.plans.retention import retention
print(retention(lt.rules.strided(t=3)))
print(retention(lt.rules.dilated(t=2, step=3)))
print(retention(lt.rules.raster(), cols=4))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "key k is kept until query k + 3 at the latest; at most 4 at once",
        "key k is kept until query k + 6 at the latest; at most 7 at once "
        "(islpy is not installed, so keys may be kept longer than needed)",
        "every key is kept: no query is known to be the last that reaches it; "
        "the number grows with the sequence",
    ]


def test_a_set_that_takes_too_long_is_replaced_by_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from lattend.sets import guard

    def late(*_: object, **__: object) -> None:
        raise DeadlineError("no answer within 1.2 seconds")

    monkeypatch.setattr(guard, "guarded", late)
    found = retention(lt.rule("k <= q and q - k <= 5 and (q + k) % 2 == 0"))
    assert found.most == 5  # q - k is even and at most 5
    assert found.inexact == (
        "its set was not found, no answer within 1.2 seconds, so keys may be kept longer than needed"
    )


def test_a_rule_that_is_not_affine_keeps_every_key() -> None:
    found = retention(lt.rule("k <= q and k*k <= q"))
    assert found.kept(9).tolist() == list(range(10)) and found.most is None
    assert found.inexact == "it is not affine, so keys may be kept longer than needed"
    near = retention(lt.rule("k <= q and q - k <= 3 and k*k <= q"))
    assert near.most == 4 and near.kept(9).tolist() == [7, 8, 9]


def test_a_known_length_bounds_every_rule() -> None:
    found = retention(lt.rules.causal(), n=12)
    assert (found.most, found.length) == (12, 12)
    assert found.kept(10).tolist() == list(range(11)) and found.kept(11).tolist() == []
    aligned = retention(lt.rules.causal(align="bottom-right"), n=8)
    assert aligned.kept(3).tolist() == [0, 1, 2, 3]


def test_heads_together_keep_what_one_of_them_needs() -> None:
    rule = lt.rule("k <= q and q - k <= 2*head")
    found = retention(rule, query_heads=3)
    assert (found.most, found.whole) == (5, False)
    check(rule.at(heads=3), found)


def test_an_image_is_read_row_by_row() -> None:
    cols, rows = 5, 12
    near = lt.rules.neighbourhood(r=1) & lt.rules.raster()
    for rule in (lt.rules.raster(), near, lt.rule("ky == qy and kx <= qx")):
        pairs = rule.mask(rows=rows, cols=cols).reshape(rows * cols, rows * cols)
        found = retention(rule, cols=cols)
        for p in range(6 * cols):
            assert found.kept(p).tolist() == kept_by_enumeration(pairs, p)
    assert retention(near, cols=cols).most == cols + 2  # from the upper left neighbour on
    volume = lt.rule("qz == kz and qy == ky and kx <= qx")
    assert retention(volume, rows=2, cols=3).kept(7).tolist() == [6, 7]


def test_data_is_bounded_by_the_rest_of_the_rule() -> None:
    documents = lt.rules.documents([3, 4, 5], causal=True)
    found = retention(documents & lt.rules.strided(t=2))
    assert found.most == 3 and found.kept(9).tolist() == [8, 9]
    assert found.inexact == "it looks up data, so keys may be kept longer than needed"
    assert retention(documents).most == 12


def test_numbers_beyond_64_bits() -> None:
    found = retention(lt.rules.strided(t=10**30))
    assert found.kept(5).tolist() == [0, 1, 2, 3, 4, 5] and found.most == 10**30 + 1


@pytest.mark.parametrize(
    ("rule", "values", "error", "message"),
    [
        (lt.rules.full(), {}, LattendError, "has query 0 attend to key 1, which has not come yet"),
        (lt.rules.band(before=2, after=3), {}, LattendError, "k <= q and (…) keeps those pairs only"),
        (lt.rules.prefix_lm(p=4), {}, LattendError, 'with p = 4" has query 0 attend to key 1'),
        (lt.rule("k <= q or q == 6 and k == 9"), {}, LattendError, "has query 6 attend to key 9"),
        (lt.rules.chunked(w=4, t=1), {}, LattendError, "A cache is for rules with k <= q"),
        (
            lt.rules.neighbourhood(r=1),
            {"cols": 4},
            LattendError,
            "has query 0 attend to key 1 in reading order",
        ),
        (lt.rules.documents([2, 3]), {}, LattendError, "has query 0 attend to key 1"),
        (
            lt.rule("k <= q and k >= n - 9"),
            {},
            LattendError,
            "speaks of n, the size of the whole: what earlier queries see changes as the sequence "
            "grows, and their answers are already given. If it is known beforehand, give n=…",
        ),
        (lt.rules.neighbourhood(r=1, edge="shift"), {"cols": 4}, LattendError, "speaks of rows"),
        (lt.rules.raster(), {}, NamingError, "an image is read row by row, so its rows must have a length"),
        (lt.rules.strided(), {}, NamingError, "needs a value for t; give t=…"),
        (lt.rule("k*k <= q*q"), {}, LattendError, "it is not affine, so it is not known that there are none"),
        (lt.rule("k*k <= q + 3"), {}, LattendError, "has query 0 attend to key 1"),
        (
            lt.rule("k <= q + m - n"),
            {"n": 4, "m": 5},
            DomainError,
            "one key for each query, got n = 4 and m = 5",
        ),
        (lt.rule("k <= q and q - k <= head"), {}, NamingError, "give the number of query heads"),
        (
            lt.rule("k <= q and doc[q] == doc[k]", data={"doc": [0, 0, 1]}),
            {},
            LattendError,
            "looks up data: give n=…, the number of positions it is for",
        ),
        (
            lt.rule("k <= q and doc[q] == doc[k]", data={"doc": [0, 0, 1]}),
            {"n": 5},
            DomainError,
            "outside the doc given (0 … 2)",
        ),
        (
            lt.rule("k <= q and doc[q] == doc[k]", data={"doc": None}),
            {},
            LattendError,
            "gets doc when attention runs, and a cache drops keys before: give it with the cache, "
            "KVCache(rule, …, doc=array)",
        ),
    ],
)
def test_refusals_say_why(
    rule: Rule, values: dict[str, int], error: type[LattendError], message: str
) -> None:
    with pytest.raises(error) as caught:
        retention(rule.at(**values))
    assert message in str(caught.value)
