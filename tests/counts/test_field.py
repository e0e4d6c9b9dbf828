"""The receptive field of a stack of layers, against powers of its mask."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_rules import affine, split

import lattend as lt
from lattend.counts import Count, field
from lattend.counts import field_map as field_maps
from lattend.counts.field import Depth
from lattend.counts.field_map import MOST_SIDE, field_map, first_layers
from lattend.errors import DomainError, LattendError, NamingError, NoClosedForm, TooLarge
from lattend.rules import Rule

SLOW = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
CASES: dict[str, dict[str, int]] = {
    "strided": {"t": 2},
    "band": {"before": 2, "after": 1},
    "dilated": {"t": 2, "step": 2},
    "longformer": {"t": 1, "g": 1},
    "bigbird": {"w": 2, "t": 1, "g": 1},
    "sinks": {"s": 2, "t": 2},
    "sparse_strided": {"l": 3},
    "sparse_fixed": {"l": 3, "c": 1},
    "windowed": {"w": 3},
    "chunked": {"w": 2, "t": 1},
    "prefix_lm": {"p": 3},
    "neighbourhood": {"r": 1},
    "axial": {},
    "raster": {},
    "swin": {"w": 2, "shift": 1},
}


def first_by_search(mask: NDArray[np.bool_]) -> list[list[int]]:
    """The layer that first connects two positions, found by walking from each: -1 never."""
    n = len(mask)
    found = [[-1] * n for _ in range(n)]
    for query in range(n):
        found[query][query], edge, layer = 0, [query], 0
        while edge:
            layer += 1
            edge = sorted({k for q in edge for k in range(n) if mask[q, k] and found[query][k] < 0})
            for k in edge:
                found[query][k] = layer
    return found


def searched(rule: Rule, **values: int) -> NDArray[np.int64]:
    mask = rule.mask(**values)
    mask = mask.any(axis=0) if rule.has_heads else mask
    side = int(np.prod(mask.shape[: mask.ndim // 2]))
    return np.array(first_by_search(mask.reshape(side, side)), np.int64).reshape(side, side)


def sizes(rule: Rule, n: int) -> dict[str, int]:
    return {"n": n} if "n" in rule.sizes else {"rows": 3, "cols": max(1, n - 4)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layers", [1, 2, 3, 5])
def test_the_field_is_the_power_of_the_mask(name: str, layers: int) -> None:
    rule = getattr(lt.rules, name)(**CASES[name])
    seen = rule.receptive_field(layers)
    for n in (1, 5, 8):
        at = sizes(rule, n)
        first = searched(rule, **at)
        wanted = (first >= 0) & (first <= layers)
        assert (seen.mask(**at).reshape(wanted.shape) == wanted).all()
        assert seen.count(**at) == wanted.sum()


@pytest.mark.parametrize("name", CASES)
def test_the_depth_is_that_of_a_search(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = getattr(lt.rules, name)(**CASES[name])
    try:
        formula = rule.layers_to_reach_all().layers
    except NoClosedForm:
        assert name == "chunked"  # isl has no exact closure of it
        formula = None
    for n in (1, 2, 5, 9):
        at = sizes(rule, n)
        first = searched(rule, **at)
        for quick in (0, 128):  # as a set, and pair by pair
            monkeypatch.setattr(field, "QUICK_POSITIONS", quick)
            found = rule.layers_to_reach_all(**at)
            assert found.layers == first.max()
            assert found.all_reached == ((first >= 0) | (first.T >= 0)).all()
            assert (found.extent == "every") == (first >= 0).all()
            if (first >= 0).all() or n < 2:
                continue
            assert (found.extent == "earlier") == ((first >= 0) == np.tri(len(first), dtype=bool)).all()
        if formula is not None and not isinstance(formula, int):
            assert formula.at(**at) == first.max()


@SLOW
@given(
    text=st.one_of(affine(), split()), layers=st.integers(1, 6), numbers=st.tuples(*[st.integers(1, 7)] * 3)
)
def test_random_rules(text: str, layers: int, numbers: tuple[int, int, int]) -> None:
    rule = lt.rule(text)
    values = {name: value for name, value in zip(("n", "t", "w"), numbers, strict=True) if name in rule.free}
    first = searched(rule, **values)
    bound = rule.at(**{name: value for name, value in values.items() if name != "n"})
    try:
        seen = bound.receptive_field(layers)
    except NoClosedForm:  # late: hypothesis complains where that is so of too many
        assume(False)
        raise
    assert (seen.mask(n=values["n"]) == ((first >= 0) & (first <= layers))).all()
    ranges = {"q": np.arange(values["n"]), "k": np.arange(values["n"])}
    for quick in (0, 128):  # as a set, and pair by pair
        with patch.object(field_maps, "QUICK_TRACED", quick):
            assert (first_layers(rule.at(**values), ranges) == first).all()
    try:
        depth = bound.layers_to_reach_all()
    except NoClosedForm:
        return
    assert not isinstance(depth.layers, int)
    assert depth.layers.at(n=values["n"]) == first.max()
    assert depth.all_reached <= ((first >= 0) | (first.T >= 0)).all()


def test_letters_stay_letters() -> None:
    assert lt.rules.strided().receptive_field(3).text == "k <= q and q - k <= 3 * t"
    assert lt.rules.longformer().receptive_field(2).text == "g >= 1 or abs(q - k) <= 2 * t"
    assert lt.rules.sparse_strided().receptive_field(2).text == "k <= q"


def test_a_window_of_4096_through_32_layers() -> None:
    window = lt.rules.sliding_window(window=4096)
    seen = window.receptive_field(32)
    assert seen.reach().back.at(n=1 << 20) == 32 * 4095
    assert seen.count(per="query").at(n=1 << 20, q=1 << 19) == 32 * 4095 + 1
    assert window.layers_to_reach_all(n=131_072).layers == 33  # 131071 / 4095 is a little more than 32
    assert str(window.layers_to_reach_all(n=131_041)) == "after 32 layers every position sees all before it"
    places = np.array([0, 4095, 4096, 131_040])
    found = first_layers(window.at(n=131_072), {"q": places, "k": places})
    assert found.tolist() == [[0, -1, -1, -1], [1, 0, -1, -1], [2, 1, 0, -1], [32, 31, 31, 0]]


def test_residual_connections_keep_a_position() -> None:
    assert lt.rule("k < q").receptive_field(1).text == "k <= q"
    assert lt.rule("k == q + 1").receptive_field(2).mask(n=4).astype(int).tolist() == [
        [1, 1, 1, 0],
        [0, 1, 1, 1],
        [0, 0, 1, 1],
        [0, 0, 0, 1],
    ]


def test_heads_are_joined() -> None:
    rule = lt.rule("k <= q and q - k == head * 2")
    first = searched(rule, n=9, heads=2)
    assert (rule.receptive_field(3, heads=2).mask(n=9) == ((first >= 0) & (first <= 3))).all()
    found = rule.layers_to_reach_all(n=9, heads=2)
    assert (found.layers, found.apart) == (4, {"q": 0, "k": 1})
    with pytest.raises(NamingError, match="give heads a number"):
        rule.receptive_field(2)
    with pytest.raises(TooLarge, match="at most 64 heads"):
        rule.receptive_field(2, heads=65)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (lt.rules.causal().layers_to_reach_all(n=9), "after 1 layer every position sees all before it"),
        (
            lt.rules.axial().layers_to_reach_all(rows=3, cols=4),
            "after 2 layers every position sees every other",
        ),
        (
            lt.rules.windowed(w=4).layers_to_reach_all(n=9),
            "after 1 layer it grows no more: positions 0 and 4 never see each other",
        ),
        (
            lt.rules.prefix_lm(p=2).layers_to_reach_all(n=9),
            "after 1 layer of every two positions one sees the other",
        ),
        (
            lt.rules.swin(w=2).layers_to_reach_all(rows=4, cols=4, shift=0),
            "after 1 layer it grows no more: positions (0, 0) and (0, 2) never see each other",
        ),
    ],
)
def test_the_end_is_said_in_a_sentence(found: Depth, text: str) -> None:
    assert str(found) == text


def test_a_formula_says_where_it_is_not_all() -> None:
    assert str(lt.rules.windowed(w=4).layers_to_reach_all()) == (
        "layers until it grows no more:\n1  when n >= 2\n0  otherwise\n"
        "then positions 0 and 4 never see each other (at n = 5)"
    )


def test_data_is_traversed() -> None:
    rule = lt.rule("doc[q] == doc[k]", data={"doc": np.array([0, 0, 1, 1, 0])})
    assert rule.layers_to_reach_all(n=5).apart == {"q": 0, "k": 2}
    with pytest.raises(NoClosedForm, match="looks up data"):
        rule.receptive_field(2)


def _cross() -> Rule:
    return lt.rule("k <= q", cross=True)


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: lt.rules.causal().receptive_field(0), DomainError, "from 1 to"),
        (lambda: lt.rules.causal().receptive_field(-3), DomainError, "from 1 to"),
        (lambda: lt.rules.causal().receptive_field(10**30), DomainError, "from 1 to"),
        (lambda: lt.rules.causal().receptive_field(True), DomainError, "must be an integer"),
        (lambda: lt.rules.causal().receptive_field(2, z=1), NamingError, "has no z"),
        (lambda: _cross().receptive_field(2), DomainError, "only layers of self-attention"),
        (lambda: _cross().layers_to_reach_all(n=4, m=5), DomainError, "only layers of self-attention"),
        (lambda: lt.rule("k * k <= q").layers_to_reach_all(n=10**9), LattendError, "not affine"),
    ],
)
def test_what_cannot_be_asked(ask: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ask()


def test_what_is_not_affine_is_traversed() -> None:
    rule = lt.rule("k <= q and (q * k) % 7 == 1")
    assert rule.layers_to_reach_all(n=200).layers == searched(rule, n=200).max()


def test_a_late_answer_is_an_error() -> None:
    with pytest.raises(lt.errors.DeadlineError, match=r"not found: .*; give t a number"):
        field.receptive_field(lt.rule("k <= q and q - k <= t + 77"), 9, deadline=0)


@pytest.mark.parametrize("n", [10**6, 2**62 + 1, 2**63, 2**64 - 1, 10**20 - 1])
def test_a_large_map_is_exact(n: int) -> None:
    large = field_map(lt.rules.strided(t=10).at(n=n))
    assert len(large.rows) == MOST_SIDE
    assert (large.rows[0], large.rows[-1]) == (0, n - 1)
    for row, query in enumerate(large.rows):
        wanted = [-(-(query - key) // 10) if key <= query else -1 for key in large.columns]
        assert large.layers[row] == wanted


def test_a_map_of_a_line_has_all_pairs() -> None:
    rule = lt.rules.dilated(t=1, step=2)
    found = field_map(rule.at(n=9))
    assert found.rows == found.columns == list(range(9))
    assert found.layers == searched(rule, n=9).tolist()


def test_a_map_of_an_image_is_that_of_one_pixel() -> None:
    rule = lt.rules.neighbourhood(r=2)
    found = field_map(rule.at(rows=20, cols=30), (3, 4))
    assert found.pixel == (3, 4)
    assert found.layers == [[-(-max(abs(y - 3), abs(x - 4)) // 2) for x in range(30)] for y in range(20)]
    with pytest.raises(DomainError, match="lies outside"):
        field_map(rule.at(rows=20, cols=30), (20, 4))
    with pytest.raises(DomainError, match="a line or of an image"):
        field_map(lt.rules.neighbourhood(axes=3, r=1).at(depth=2, rows=2, cols=2))


def test_a_map_of_nothing_is_empty() -> None:
    assert field_map(lt.rules.causal().at(n=0)).layers == []


@pytest.mark.parametrize(
    ("text", "extent"),
    [
        ("strided", "earlier"),
        ("k <= q and q - k < u + 1", "earlier"),
        ("abs(q - k) <= t", "every"),
        ("q <= k <= q + t", "one way"),
    ],
)
def test_a_band_takes_as_many_layers_as_its_width_goes_into_the_rest(text: str, extent: str) -> None:
    rule = lt.rule(text)
    (name,) = rule.parameters
    found = rule.layers_to_reach_all()
    assert (found.extent, found.where, found.apart) == (extent, f"{name} >= 1", None)
    assert isinstance(found.layers, Count)
    for n in range(12):
        for t in range(1, 6):
            assert found.layers.at(**{"n": n, name: t}) == searched(rule, n=n, **{name: t}).max(initial=0)
    with pytest.raises(DomainError, match=f"needs {name} >= 1"):
        found.layers.at(**{"n": 4, name: 0})


def test_a_band_of_a_letter_at_a_number_of_tokens() -> None:
    found = lt.rules.strided().layers_to_reach_all(n=13)
    assert isinstance(found.layers, Count)
    assert [found.layers.at(t=t) for t in (1, 5, 6, 12, 40)] == [12, 3, 2, 1, 1]
    assert found.seen() == "every position sees all before it, where t >= 1; elsewhere each sees only itself"
    for t in (0, -1):  # a band of no width connects nothing
        assert searched(lt.rule("k <= q and q - k <= t"), n=4, t=t).max() == 0


def test_where_the_width_is_one_no_remainder_is_spoken_of() -> None:
    found = lt.rule("k <= q and q - k <= t").layers_to_reach_all()
    assert str(found.layers).splitlines() == [
        "N + 1  when r >= 2",
        "N      when t >= 2 and r <= 1",
        "n - 1  when t == 1",
        "where N = n // t, r = n % t",
    ]
