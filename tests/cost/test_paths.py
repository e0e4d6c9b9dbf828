"""Paths: how many layers from one position to any other, against a search over the masks."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lattend as lt
from lattend.cost.pairs import conv_path, longest_path
from lattend.cost.sizes import read_size


def searched(mask) -> int | None:
    """The longest of all shortest ways, by a search from every key; None where two never meet."""
    n = len(mask)
    far = np.full((n, n), -1)
    for key in range(n):
        far[key, key] = 0
        waiting = deque([key])
        while waiting:
            here = waiting.popleft()
            for query in np.flatnonzero(mask[:, here]):
                if far[key, query] < 0:
                    far[key, query] = far[key, here] + 1
                    waiting.append(query)
    return None if ((far < 0) & (far.T < 0)).any() else int(far.max())


def path(rule, **sizes) -> Any:
    return lt.cost.attention(rule, heads=1, D_hid=1, projections=None, **sizes).path


@given(n=st.integers(2, 24), t=st.integers(1, 9), shape=st.sampled_from(["strided", "abs(q - k) <= t"]))
def test_bands(n, t, shape):
    wanted = searched(lt.rules.strided(t).mask(n=n) if shape == "strided" else lt.rule(shape).mask(n=n, t=t))
    assert wanted == -(-(n - 1) // t)
    assert path(shape, n=n, t=t) == wanted
    assert path(shape, t=t).at(n=n) == wanted
    assert path(shape).at(n=n, t=t) == wanted
    assert path(shape, n="m", t="w").at(m=n, w=t) == wanted


def test_a_band_with_its_number_in_the_text():
    assert path("k <= q and q - k <= 3", n=14) == 5  # ceil(13/3)
    assert str(path("abs(q - k) < 4")) == "r  where r = (n + 1) // 3"


@pytest.mark.parametrize("rule", ["full", "causal", "q >= 0", "k <= q"])
def test_one_layer_sees_all(rule):
    assert path(rule) == 1


@pytest.mark.parametrize(
    ("rule", "sizes"),
    [
        ("windowed", {"n": 12, "w": 4}),
        ("sparse_strided", {"n": 30, "l": 5}),
        ("longformer", {"n": 30, "t": 2, "g": 1}),
        ("band", {"n": 20, "before": 3, "after": 1}),
        ("dilated", {"n": 20, "t": 2, "step": 2}),
        ("prefix_lm", {"n": 20, "p": 3}),
        ("q == k", {"n": 3}),
    ],
)
def test_other_rules_are_walked(rule, sizes):
    mask = lt.rule(rule).mask(**sizes)
    assert path(rule, **sizes) == (searched(mask) if rule != "q == k" else None)
    assert longest_path(mask) == searched(mask)


def test_windows_that_never_overlap_let_nothing_pass():
    assert path("windowed", n=12, w=4) is None
    assert path("windowed") is None


@given(rows=st.integers(1, 6), cols=st.integers(1, 6), k=st.sampled_from([(3, 3), (5, 3), (5, 5)]))
def test_convolutions(rows, cols, k):
    """A pixel hears those at most half a kernel away along each axis."""
    y, x = np.divmod(np.arange(rows * cols), cols)
    near = (abs(y[:, None] - y) <= k[0] // 2) & (abs(x[:, None] - x) <= k[1] // 2)
    result = conv_path(read_size("rows", rows), read_size("cols", cols), k)
    assert result is not None
    assert result.count() == searched(near)


def test_convolutions_in_symbols():
    side = read_size("s", "s")
    three, five = conv_path(side, side, (3, 3)), conv_path(side, side, (5, 5))
    assert three is not None
    assert five is not None
    assert str(three) == "s - 1"
    assert [five.count().at(s=s) for s in (1, 2, 3, 4, 8)] == [0, 1, 1, 2, 4]  # pyright: ignore[reportAttributeAccessIssue]
    assert conv_path(side, side, (1, 1)) is None  # every pixel for itself
    assert conv_path(side, side, (2, 2)) is None  # no middle
    assert conv_path(side, side, (3, 3), (2, 2)) is None  # leaves every other pixel out


@pytest.mark.parametrize(
    "text",
    [
        "k <= q and q - k <= 6",
        "k <= q and q - k <= 2*3",
        "k <= q and q < k + 7",
        "not (k > q or q - k >= 7)",
        "0 <= q - k and (q - k) // 7 == 0",
        "k <= q and 6 >= q - k and q - k <= 1000",
    ],
)
def test_a_path_is_that_of_the_set_and_not_of_its_spelling(text):
    assert str(path(text)) == str(path("k <= q and q - k <= t", t=6)) == "r  where r = (n + 4) // 6"
    assert path(text, n=5000) == 834  # ceil(4999/6)
    assert path(f"{text} and k >= 0", n=20) == 4  # ceil(19/6)


def test_numbers_are_put_in_before_a_band_is_looked_for():
    assert str(path("k <= q and q - k <= 2*t", t=3)) == "r  where r = (n + 4) // 6"
    assert path(lt.rules.strided(3).at(n=100_000)) == 33_333  # ceil(99999/3), its numbers bound


@pytest.mark.parametrize(
    ("rule", "across"),
    [("q == k", False), ("q <= k and k <= q", False), ("q == k + 40", True), ("k <= q", True)],
)
def test_what_mixes_tokens(rule, across):
    assert lt.cost.attention(rule, projections=None).mixes_tokens == {"attention": across}
