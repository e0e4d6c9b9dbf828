"""Rules themselves: binding, combining, looking at pairs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError, TextError
from lattend.rules import Rule

BAND = lt.rule("k <= q and q - k <= t")


def test_text_and_function_give_the_same_rule() -> None:
    assert lt.rule(lambda q, k, t: (k <= q) & (q - k <= t)) == BAND
    assert lt.rule(BAND) is BAND
    assert hash(BAND) == hash(lt.rule("k <= q and (q - k <= t)"))
    assert lt.rule("k <= q and q - k < t") != BAND
    assert str(BAND.at(t=3)) == "k <= q and q - k <= t with t = 3"


@pytest.mark.parametrize(
    ("text", "sizes", "parameters", "positions"),
    [
        ("k <= q", ["n"], [], ["q", "k"]),
        ("k <= q + m", ["n", "m"], [], ["q", "k"]),
        ("q - k <= t and k < s", ["n"], ["t", "s"], ["q", "k"]),
        ("qx == kx", ["rows", "cols"], [], ["qy", "qx", "ky", "kx"]),
        ("qz == kz and qx <= c", ["depth", "rows", "cols"], ["c"], ["qz", "qy", "qx", "kz", "ky", "kx"]),
        ("q - k <= head", ["n", "heads"], [], ["head", "q", "k"]),
    ],
)
def test_names(text: str, sizes: list[str], parameters: list[str], positions: list[str]) -> None:
    rule = lt.rule(text)
    assert (rule.sizes, rule.parameters, rule.positions) == (sizes, parameters, positions)


def test_looking_at_squares() -> None:
    assert BAND.mask(n=4, t=1).astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]
    assert BAND.keys(7, n=12, t=3) == [4, 5, 6, 7]
    assert BAND.contains(7, 4, n=12, t=3)
    assert not BAND.contains(7, 3, n=12, t=3)
    assert BAND.contains(10**30, 10**30 - 5, n=10**31, t=5)
    near = lt.rule("abs(qy - ky) + abs(qx - kx) <= 1")
    assert near.keys(0, 0, rows=2, cols=2) == [(0, 0), (0, 1), (1, 0)]
    heads = lt.rule("k <= q and q - k <= head")
    assert heads.mask(n=3, heads=2).sum((1, 2)).tolist() == [3, 5]
    assert heads.keys(1, 2, n=3, heads=2) == [1, 2]


def test_keys_of_their_own_number() -> None:
    assert BAND.mask(n=2, m=3, t=0).shape == (2, 3)
    assert BAND.keys(3, n=4, m=2, t=2) == [1]
    assert not BAND.contains(0, 2, n=1, m=3, t=0)
    with pytest.raises(DomainError, match="k = 2 lies outside 0 … 1"):
        BAND.contains(3, 2, n=4, m=2, t=2)
    assert lt.rule("true", cross=True).sizes == ["n", "m"]


def test_combining() -> None:
    causal, near = lt.rule("k <= q"), lt.rule("abs(q - k) <= t")
    both = causal & near
    assert both.text == "k <= q and abs(q - k) <= t"
    assert np.array_equal(both.mask(n=5, t=2), BAND.mask(n=5, t=2))
    assert (~causal).text == "not k <= q"
    assert ~~causal == causal
    assert np.array_equal((causal - near).mask(n=5, t=2), causal.mask(n=5) & ~near.mask(n=5, t=2))
    assert np.array_equal((causal | near).mask(n=5, t=2), causal.mask(n=5) | near.mask(n=5, t=2))


def test_combining_two_values_of_one_name() -> None:
    narrow, wide = BAND.at(t=1), BAND.at(t=3)
    ring = wide - narrow
    assert ring.parameters == []
    assert np.array_equal(ring.mask(n=7), BAND.mask(n=7, t=3) & ~BAND.mask(n=7, t=1))
    half = BAND & wide
    assert half.parameters == ["t"]
    assert np.array_equal(half.mask(n=7, t=2), BAND.mask(n=7, t=2))


def test_a_line_joins_a_line_with_keys_of_its_own() -> None:
    joined = lt.rule("k <= q") & lt.rule("k - q <= m - n")
    assert joined.sizes == ["n", "m"]
    with pytest.raises(LattendError, match="rules on different axes cannot be combined"):
        _ = lt.rule("k <= q") & lt.rule("qx == kx")
    with pytest.raises(NamingError, match="lives on a line"):
        lt.rule("k <= qx")


def test_data() -> None:
    packed = lt.rule("doc[q] == doc[k]", data={"doc": [0, 0, 1]})
    assert packed.mask(n=3).sum() == 5
    assert packed == lt.rule(lambda q, k, doc: doc[q] == doc[k], data={"doc": [0, 0, 1]})
    assert packed != lt.rule("doc[q] == doc[k]", data={"doc": [0, 1, 1]})
    with pytest.raises(DomainError, match=r"doc\[q\] is read at q = 3, outside the doc given \(0 … 2\)"):
        packed.mask(n=4)
    with pytest.raises(TextError, match=r"looks up doc\[...\], but no array of that name is given"):
        lt.rule("doc[q] == 1")
    with pytest.raises(NamingError, match="both rules bring data named doc"):
        _ = packed & lt.rule("doc[q] == 1", data={"doc": [1, 1, 1]})


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"n": 4}, NamingError, "needs a value for t: give t=…"),
        ({}, NamingError, "needs a value for n and t: give n=…, t=…"),
        ({"n": 4, "t": 1, "tt": 2}, NamingError, "has no tt; it has n, t; did you mean t?"),
        ({"n": -1, "t": 1}, DomainError, "needs n >= 0, got n = -1"),
        ({"n": 4, "t": 1.5}, DomainError, "t must be an integer, got 1.5"),
        ({"n": 4, "t": True}, DomainError, "t must be an integer, got True"),
        ({"n": 10**6, "t": 1}, DomainError, "a mask of 1,000,000,000,000 pairs is too large to hold"),
    ],
)
def test_errors(values: dict[str, int], error: type[LattendError], message: str) -> None:
    with pytest.raises(error) as caught:
        BAND.mask(**values)
    assert message in str(caught.value)


def test_a_value_is_bound_once() -> None:
    with pytest.raises(NamingError, match="t already has the value 3; bind it once"):
        BAND.at(t=3).mask(n=4, t=3)


def test_one_head_is_fixed_by_its_number() -> None:
    by_head, every = lt.rule("q - k <= head"), lt.rule("q - k <= head").mask(n=5, heads=3)
    assert str(by_head.at(head=1)) == "q - k <= 1"
    for head in range(3):
        assert (by_head.mask(n=5, head=head) == every[head]).all()
        assert (by_head.mask(n=5, heads=3, head=head) == every[head]).all()
        assert by_head.count(n=5, head=head) == by_head.count(head=head).at(n=5) == every[head].sum()
        assert by_head.keys(3, n=5, head=head) == np.flatnonzero(every[head, 3]).tolist()
        assert by_head.contains(3, 1, n=5, head=head) == every[head, 3, 1]
        assert by_head.draw(n=5, head=head).caption[0].startswith(f"{every[head].sum()} of 25 pairs")
    assert by_head.draw(n=5, head=7).caption == ("25 of 25 pairs, 100%",)
    assert len(by_head.draw(n=5, head=1, beside=["causal"]).caption) == 2
    assert str(lt.rule("k < heads and k <= head").at(head=3, heads=9)) == "k < 9 and k <= 3"
    for wrong, values, message in (
        (by_head, {"head": 3, "heads": 3}, "head = 3 lies outside 0 … 2"),
        (by_head.at(heads=2), {"head": 2}, "head = 2 lies outside 0 … 1"),
        (by_head, {"head": -1}, "head = -1 lies outside 0 … heads - 1"),
        (by_head, {"head": True}, "head must be an integer, got True"),
        (lt.rule("k < heads"), {"head": 1}, r"depends on heads: at\(head=1, heads=…\)"),
        (lt.rule("k <= q"), {"head": 1}, 'rule "k <= q" has no head; it has n'),
    ):
        with pytest.raises(LattendError, match=message):
            wrong.at(**values)


@pytest.mark.parametrize(
    ("method", "misspelt", "option"),
    [
        ("draw", {"titel": "x"}, "title"),
        ("draw", {"compair": "full"}, "compare"),
        ("count", {"dedline": 3}, "deadline"),
        ("count", {"methd": "closed"}, "method"),
        ("block_mask", {"blok_size": 8}, "block_size"),
    ],
)
def test_a_misspelt_option_is_no_parameter(method: str, misspelt: dict[str, Any], option: str) -> None:
    (name,) = misspelt
    wanted = f'{method} has no option {name}, and "k <= q" has no {name}; did you mean {option}\\?'
    with pytest.raises(LattendError, match=wanted):
        getattr(lt.rule("k <= q"), method)(n=4, **misspelt)


def test_a_parameter_may_be_near_an_option() -> None:
    assert lt.rule("q - k <= titel").draw(n=3, titel=1).caption == lt.rule("q - k <= 1").draw(n=3).caption
    with pytest.raises(LattendError, match="has no tt; it has n, t; did you mean t"):
        lt.rule("q - k <= t").draw(tt=3)


def test_a_rule_that_grows_too_deep_is_refused() -> None:
    rule: Rule = lt.rule("k <= q")
    with pytest.raises(LattendError, match=r"nested \d+ deep, and at most 200 are allowed"):
        for _ in range(300):
            rule = ~(rule | lt.rule("k == q")) & lt.rule("k < 3")


def test_dense_is_the_size_of_the_mask() -> None:
    for text, numbers in (
        ("k <= q", {"n": 7}),
        ("abs(qy - ky) <= 1 and abs(qx - kx) <= 1", {"rows": 2, "cols": 3}),
        ("k <= q and q - k <= head", {"n": 5, "heads": 3}),
    ):
        complete = lt.rule(text).at(**numbers)
        assert complete.dense == complete.mask().size


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("k <= q", 12),
        ("q // 4 == k // 4", 12),
        ("k <= q and q - k < 8", 12),
        ("q * k < 40", 12),
        ("q // 64 == k // 64", 192),
        ("k <= q and q - k <= 255", 768),
        ("windowed(w=64)", 192),
        ("k <= q and q - k <= 4095", 8192),
    ],
)
def test_the_example_length_shows_the_rules_own_numbers(text: str, length: int) -> None:
    from lattend.rules.example_numbers import drawn_length

    rule = lt.rule(text)
    assert drawn_length(rule) == length
    if length <= 1000:  # neither every pair, nor every earlier one, but where that is meant
        mask = rule.mask(n=length)
        plain = np.array_equal(mask, np.tri(length, dtype=bool)) or mask.all()
        assert plain == (text == "k <= q")


@pytest.mark.parametrize("text", ["strided", "windowed", "neighbourhood", "k <= q and q - k <= head + t"])
def test_a_bound_rule_is_what_it_would_be_if_made_anew(text: str) -> None:
    open_rule = lt.rule(text)
    values = dict.fromkeys([*open_rule.sizes, *open_rule.parameters], 3)
    bound, anew = open_rule.at(**values), replace(lt.rule(text), values=values)
    derived = (
        "key",
        "sizes",
        "parameters",
        "positions",
        "limits",
        "moduli",
        "domain",
        "formula_domain",
        "free",
    )
    assert [getattr(bound, name) for name in derived] == [getattr(anew, name) for name in derived]
    assert bound == anew
    assert open_rule.values == {}
