"""same_as and difference: decided on sets for all sizes, with the smallest witness."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from random_rules import affine, split

import lattend as lt
from lattend.errors import DomainError


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("k <= q", "not k > q"),
        ("k <= q and q - k <= t", "0 <= q - k <= t"),
        ("abs(q - k) <= t", "q - k <= t and k - q <= t"),
        ("k <= q and q // w == k // w", "k <= q and k >= q - q % w"),
        ("q // w == k // w", "q - q % w == k - k % w"),
        ("max(q, k) <= t", "q <= t and k <= t"),
        ("(q - k) % 2 == 0", "q % 2 == k % 2"),
        ("qy == ky or qx == kx", "not (qy != ky and qx != kx)"),
    ],
)
def test_equal_sets_written_differently(left: str, right: str) -> None:
    assert lt.rule(left).same_as(lt.rule(right))
    assert lt.rule(left).difference(lt.rule(right)) is None


@pytest.mark.parametrize(
    ("left", "right", "values", "pair"),
    [
        ("k <= q", "k < q", {"n": 1}, (0, 0)),
        ("k <= q and q - k <= t", "k <= q and q - k < t", {"n": 1, "t": 0}, (0, 0)),
        ("k <= q and q // w == k // w", "k <= q and q - k < w", {"n": 3, "w": 2}, (2, 1)),
        ("q // w == k // w", "true", {"n": 2, "w": 1}, (0, 1)),
        ("q - k <= 5", "q - k <= 6", {"n": 7}, (6, 0)),
        ("k <= q and q - k <= t", "k <= q and q - k <= 5", {"n": 2, "t": 0}, (1, 0)),
        ("t >= 0", "true", {"n": 1, "t": -1}, (0, 0)),
        ("(k - t) % w == 0 or t < -3", "(k - t) % w == 0", {"n": 1, "t": -4, "w": 3}, (0, 0)),
    ],
)
def test_the_smallest_witness(left: str, right: str, values: dict[str, int], pair: tuple[int, ...]) -> None:
    witness = lt.rule(left).difference(lt.rule(right))
    assert witness is not None
    assert (witness.values, witness.pair) == (values, pair)


@settings(max_examples=40)
@given(affine(), affine())
def test_difference_agrees_with_masks(left: str, right: str) -> None:
    _check(left, right, {"n": range(5), "t": sorted(range(-9, 10), key=lambda t: (t < 0, abs(t)))})


@settings(max_examples=25)
@given(split(), split())
def test_difference_agrees_with_masks_when_split(left: str, right: str) -> None:
    try:
        _check(left, right, {"n": range(7), "w": range(1, 8)})
    except lt.errors.NotAffineError:
        assume(False)


def _check(left: str, right: str, ranges: dict[str, Sequence[int]]) -> None:
    a, b = lt.rule(left), lt.rule(right)
    try:
        witness = a.difference(b)
    except lt.errors.DeadlineError:
        assume(False)
        raise
    names = list(dict.fromkeys([*a.sizes, *a.parameters, *b.parameters]))
    smallest = None
    places = itertools.product(*(ranges[name] for name in names))
    for numbers in sorted(places, key=lambda numbers: min(numbers) < 0):  # parameters below 0 last
        values = dict(zip(names, numbers, strict=True))
        masks = []
        try:
            for rule in (a, b):
                known = {*rule.sizes, *rule.parameters}
                masks.append(rule.mask(**{name: v for name, v in values.items() if name in known}))
        except DomainError:
            continue
        if (masks[0] != masks[1]).any():
            smallest = values
            break
    if witness is None:
        assert smallest is None
        return
    attended = []
    for rule in (a, b):
        known = {*rule.sizes, *rule.parameters}
        attended.append(
            rule.contains(*witness.pair, **{k: v for k, v in witness.values.items() if k in known})
        )
    assert attended[0] != attended[1]
    if smallest is None or (min(smallest.values()) < 0 and witness.values["n"] not in ranges["n"]):
        return  # the first difference lies beyond the numbers that were tried
    assert witness.values == smallest


def test_two_moduli_on_one_axis_are_named() -> None:
    with pytest.raises(lt.errors.NoClosedForm, match="divided by both w and l"):
        lt.rule("q // w == k // w").same_as(lt.rule("q % l == k % l"))
    with pytest.raises(lt.errors.NoClosedForm, match="divided by both w and l"):
        lt.rule("q // w == k // w or q % l == 0").count()


@pytest.mark.parametrize("swapped", [False, True])
def test_a_rule_by_head_differs_from_one_without(swapped: bool) -> None:
    causal, by_head = lt.rule("k <= q"), lt.rule("q - k <= head")
    found = (by_head if swapped else causal).difference(causal if swapped else by_head)
    assert found is not None
    assert (found.values, found.pair, found.attended_by) == ({"n": 2, "heads": 1}, (0, 0, 1), by_head.text)
    assert not causal.same_as(by_head)
    assert by_head.at(head=0).same_as(lt.rule("q <= k"))


def test_bound_values_take_part() -> None:
    assert lt.rules.strided(3).same_as(lt.rule("0 <= q - k <= 3"))
    assert not lt.rules.strided(3).same_as(lt.rules.strided(4))


def test_data_cannot_be_compared_as_sets() -> None:
    with pytest.raises(lt.errors.NoClosedForm, match="compare their masks"):
        lt.rules.documents(lengths=[2, 2]).same_as(lt.rules.causal())


def test_other_axes_are_refused() -> None:
    with pytest.raises(lt.errors.LattendError, match="lives on a line"):
        lt.rules.causal().same_as(lt.rules.axial())
