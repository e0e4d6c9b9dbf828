"""Reach, tiles and data rules against the mask."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.counts import tile_counts
from lattend.counts.reach import reach as find_reach
from lattend.counts.tiles import counted_from_data, enumerated
from lattend.errors import DeadlineError

LINES = ["full", "causal", "strided", "windowed", "band", "dilated", "sparse_strided", "sparse_fixed",
         "longformer", "bigbird", "prefix_lm", "sinks", "chunked"]  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_reach_is_the_farthest_marked_square(name: str) -> None:
    rule = getattr(lt.rules, name)()
    reach = rule.reach()
    names = rule.sizes + rule.parameters
    for numbers in itertools.product(range(1, 6), repeat=len(names)):
        values = dict(zip(names, numbers, strict=True))
        try:
            mask = rule.mask(**values)
        except lt.errors.DomainError:
            continue
        q, k = np.nonzero(mask)
        assert reach.back.at(**values) == (q - k).max()
        assert reach.ahead.at(**values) == (k - q).max()


def test_reach_of_the_band_decides_the_cache() -> None:
    assert str(lt.rules.strided().reach()).splitlines() == [
        "q - k is at most: n - 1 when t >= n; t when t < n",
        "k - q is at most: 0",
    ]
    image = lt.rules.neighbourhood(3).reach()
    assert image.axes["qx"].back.at(rows=20, cols=20) == 3
    with pytest.raises(lt.errors.LattendError, match="this rule has 2 axes; use axes"):
        print(image.back)


def test_a_span_with_a_quotient_in_a_quotient_has_a_latex_form() -> None:
    reach = lt.rule("q%7==k%5").reach()
    assert r"s = \lfloor (4n + 3) / 7 \rfloor" in reach.latex()
    assert reach._repr_latex_() == f"$\\displaystyle {reach.latex()}$"
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: reach.latex(), range(16)))) == 1


@pytest.mark.parametrize("text", ["k <= q and q - k <= t", "abs(q - k) <= t", "q - k >= t + 2"])
def test_where_no_pair_is_attended_there_is_no_span(text: str) -> None:
    rule = lt.rule(text)
    reach = rule.reach()
    for n, t in itertools.product(range(1, 7), range(-4, 8)):
        q, k = np.nonzero(rule.mask(n=n, t=t))
        if len(q):
            assert (reach.back.at(n=n, t=t), reach.ahead.at(n=n, t=t)) == ((q - k).max(), (k - q).max())
        else:
            with pytest.raises(lt.errors.DomainError, match="no pair is attended at n = "):
                reach.back.at(n=n, t=t)
            assert str(rule.at(n=n, t=t).reach()) == "no pair is attended"


def test_the_span_says_where_it_is_one() -> None:
    rule = lt.rule("k <= q and q - k <= t")
    assert str(rule.reach()).splitlines() == [
        "q - k is at most: n - 1 when t >= n; t when 0 <= t < n; no pair is attended otherwise",
        "k - q is at most: 0 when t >= 0; no pair is attended otherwise",
    ]
    assert str(rule.at(t=-1).reach()) == "no pair is attended"
    assert r"\text{no pair is attended} & \text{otherwise}" in rule.reach().ahead.latex()


def test_spans_have_a_direction_on_a_line_and_in_an_image() -> None:
    line = lt.rules.strided().reach()
    assert [span[:2] for span in line.spans] == [("back", "q - k"), ("ahead", "k - q")]
    assert [span.most for span in line.spans] == [line.back, line.ahead]
    image = lt.rules.neighbourhood(3).reach().spans
    assert {span.distance: span.direction for span in image} == {
        **{"qy - ky": "up", "ky - qy": "down", "qx - kx": "left", "kx - qx": "right"}
    }
    volume = lt.rule("abs(qz - kz) + abs(qy - ky) + abs(qx - kx) <= 1").reach().spans
    assert [span.direction for span in volume] == ["back", "ahead", "up", "down", "left", "right"]


@settings(max_examples=40)
@given(
    st.sampled_from(LINES),
    st.integers(1, 40),
    st.lists(st.integers(1, 7), min_size=4, max_size=4),
    st.lists(st.integers(0, 40), max_size=4),
    st.lists(st.integers(0, 40), max_size=4),
)
def test_tiles_hold_the_squares_of_the_mask(
    name: str, n: int, numbers: list[int], rows: list[int], cols: list[int]
) -> None:
    rule = getattr(lt.rules, name)()
    values = {"n": n, **dict(zip(rule.parameters, sorted(numbers, reverse=True), strict=False))}
    mask = rule.mask(**values)
    row_edges = sorted({0, n, *(min(r, n) for r in rows)})
    col_edges = sorted({0, n, *(min(c, n) for c in cols)})
    tiles = tile_counts(rule.at(**values), row_edges, col_edges)
    for i, j in itertools.product(range(len(row_edges) - 1), range(len(col_edges) - 1)):
        inside = mask[row_edges[i] : row_edges[i + 1], col_edges[j] : col_edges[j + 1]]
        assert tiles[i, j] == inside.sum()


def test_tiles_at_a_million_and_beyond_are_exact() -> None:
    for n in (10**6, 10**9, 10**15):
        edges = [n * i // 64 for i in range(65)]
        tiles = tile_counts(lt.rules.strided(5000).at(n=n), edges, edges)
        assert sum(tiles.flatten().tolist()) == lt.rules.strided().count(n=n, t=5000)


def test_tiles_of_a_rule_that_speaks_of_its_sizes() -> None:
    rule = lt.rules.causal(align="bottom-right")
    tiles = tile_counts(rule.at(n=6, m=9), [0, 2, 6], [0, 5, 9])
    mask = rule.mask(n=6, m=9)
    assert tiles.tolist() == [
        [mask[:2, :5].sum(), mask[:2, 5:].sum()],
        [mask[2:, :5].sum(), mask[2:, 5:].sum()],
    ]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=24), st.booleans())
def test_documents_are_counted_from_their_runs(ids: list[int], causal: bool) -> None:
    rule = lt.rules.documents(ids=ids, causal=causal)
    assert counted_from_data(rule, enumerate_below=0) == rule.mask().sum()


def test_many_documents_at_length() -> None:
    lengths = [100, 5000, 3000] * 20
    rule = lt.rules.documents(lengths=lengths, causal=True)
    assert rule.count() == sum(x * (x + 1) // 2 for x in lengths)
    assert (rule & lt.rules.strided(99)).count() == sum((2 * x - 99) * 100 // 2 for x in lengths)


@pytest.mark.parametrize("n", [30, 64, 100])
def test_bigbird_with_its_random_blocks(n: int) -> None:
    rule = lt.rules.bigbird(4, 1, 1, 2, 0, n)
    assert counted_from_data(rule, enumerate_below=0) == rule.mask().sum()


def test_data_has_no_closed_form_and_says_so() -> None:
    with pytest.raises(lt.errors.NoClosedForm, match=r"looks up data \(doc\[\.\.\.\]\)"):
        lt.rule("doc[q] == doc[k] and k <= t", data={"doc": [0, 0, 1]}).count()


def test_enumeration_is_bounded() -> None:
    with pytest.raises(lt.errors.TooLarge, match="10,000,000,000 pairs are too many to enumerate"):
        lt.rule("k*k <= q").count(n=100_000)
    assert lt.rule("k*k <= q").count(n=1000) == sum(1 for q in range(1000) for k in range(1000) if k * k <= q)
    assert enumerated(lt.rules.causal().at(n=3000)) == 3000 * 3001 // 2


@pytest.mark.parametrize(
    "text", ["k < a[q]", "a[q] <= k and k <= q", "k <= q and 7 <= a[q]*k", "a[q] + k >= a[k]"]
)
def test_data_compared_with_positions(text: str) -> None:
    rule = lt.rule(text, data={"a": np.arange(40) // 3}).at(n=40)
    assert counted_from_data(rule, enumerate_below=0) == rule.mask().sum()
    tiles = tile_counts(rule, [0, 13, 40], [0, 7, 40])
    assert tiles.sum() == rule.mask().sum()


def test_tiles_without_a_closed_form_are_counted_from_the_pairs_inside_them_alone() -> None:
    rule = lt.rule("(q*q + k) % 7 == 0").at(n=10**6)
    rows, cols = [999_000, 999_003, 999_003, 999_040], [5, 6, 20]
    mask = rule.mask_at({"q": np.arange(rows[0], rows[-1]), "k": np.arange(cols[0], cols[-1])})
    tiles = tile_counts(rule, rows, cols)
    assert tiles.tolist() == [
        [mask[:3, :1].sum(), mask[:3, 1:].sum()],
        [0, 0],
        [mask[3:, :1].sum(), mask[3:, 1:].sum()],
    ]


def test_a_span_with_numbers_is_found_with_them_and_each_case_is_printed_once() -> None:
    """At 1 to 9 rows, counted pair by pair."""
    found = lt.rule("swin").at(w=4, shift=2).reach()
    for rows in range(1, 10):
        queries, _, keys, _ = np.nonzero(lt.rule("swin(4, 2)").mask(rows=rows, cols=1))
        assert found.axes["qy"].back.at(rows=rows, cols=1) == (queries - keys).max()
    for line in str(found).splitlines():
        cases = line.partition(": ")[2].split("; ")
        assert len(cases) == len(set(cases))


def test_a_span_that_takes_too_long_says_which_numbers_would_help() -> None:
    with pytest.raises(DeadlineError, match=r"span was not found: .*; give shift and w a number"):
        find_reach(lt.rule("swin"), deadline=0.05)
