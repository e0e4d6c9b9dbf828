"""Pairs, halos and edges of random rules under random cuts are those of the mask."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_rules import affine, split

import lattend as lt
from lattend.errors import DeadlineError
from lattend.parallel.intervals import IntervalTable, interval_table
from lattend.parallel.layout import Cut, Layout, balanced, contiguous, of_lengths, zigzag
from lattend.parallel.tally import DataTally, PairTally, tally_of
from lattend.rules.language.linear import Linear, Quotient
from lattend.rules.rule import Rule
from lattend.sets.bound import Bound

SOME = settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
IMAGES = [
    "abs(qy - ky) <= 1 and abs(qx - kx) <= 2",
    "qy == ky or qx == kx",
    "ky < qy or ky == qy and kx <= qx",
    "(qy - 1) // 3 == (ky - 1) // 3 and (qx - 1) // 3 == (kx - 1) // 3",
    "abs(qy - ky) <= 2 and (qx - kx) % 2 == 0",
    "abs(qy - ky) + abs(qx - kx) <= 2",
]


@st.composite
def cuts(draw: st.DrawFn, n: int) -> Cut:
    """Contiguous, zigzag or any lengths, empty ones among them."""
    ranks = draw(st.integers(1, 5))
    kind = draw(st.sampled_from(["contiguous", "zigzag", "any"]))
    if kind == "any":
        ends = sorted(draw(st.lists(st.integers(0, n), min_size=ranks - 1, max_size=ranks - 1)))
        return of_lengths([b - a for a, b in pairwise([0, *ends, n])])
    return contiguous(n, ranks) if kind == "contiguous" else zigzag(n, ranks)


def owners(layout: Layout) -> NDArray[np.int64]:
    """Whose each position is, flat."""
    found = np.full(layout.sizes, -1)
    for rank in range(layout.ranks):
        for box in layout.boxes(rank):
            found[tuple(slice(a, b) for a, b in box)] = rank
    assert (found >= 0).all()
    return found.reshape(-1)


def check(rule: Rule, tally: PairTally | DataTally, layout: Layout) -> None:
    """All counts of a layout against the rule's mask."""
    owner = owners(layout)
    mask = rule.mask().reshape(rule.values.get("heads", 1), len(owner), len(owner))
    any_head: NDArray[np.bool_] = np.asarray(mask.any(0))
    table = np.array(
        [
            [mask[:, owner == q][:, :, owner == k].sum() for k in range(layout.ranks)]
            for q in range(layout.ranks)
        ]
    )
    seen = np.array([any_head[owner == q].any(0) for q in range(layout.ranks)]).reshape(layout.ranks, -1)
    keys = np.array(
        [[(seen[q] & (owner == k)).sum() for k in range(layout.ranks)] for q in range(layout.ranks)]
    )
    assert tally.pairs(layout).tolist() == table.sum(1).tolist()
    assert tally.own_pairs(layout).tolist() == table.diagonal().tolist()
    assert layout.lengths.tolist() == [int((owner == r).sum()) for r in range(layout.ranks)]
    reached = tally.reached(layout)
    assert reached.halo.tolist() == (keys.sum(1) - keys.diagonal()).tolist()
    some = [*range(layout.ranks)][::2]
    assert reached.table(some).tolist() == keys[some].tolist()
    if len(layout.cuts) == 1:
        node = np.arange(layout.ranks) // 2
        inside = [keys[rank, node == node[rank]].sum() for rank in range(layout.ranks)]
        assert reached.inside(2).tolist() == inside
    for rank in range(layout.ranks):
        assert reached.table([rank]).tolist() == [keys[rank].tolist()]
        assert reached.to_each(rank).tolist() == keys[:, rank].tolist()
        for source in range(layout.ranks):
            listed = [p for box in reached.boxes(rank, source) for p in box.flat(layout.sizes).tolist()]
            assert sorted(listed) == np.flatnonzero(seen[rank] & (owner == source)).tolist()


@SOME
@given(st.one_of(affine(), split()), st.integers(0, 17), st.integers(0, 4), st.integers(1, 5), st.data())
def test_random_rules_under_random_cuts(text: str, n: int, t: int, w: int, data: st.DataObject) -> None:
    rule = lt.rule(text)
    values = {name: value for name, value in {"n": n, "m": n, "t": t, "w": w}.items() if name in rule.free}
    rule = rule.at(**values)
    try:
        tally = tally_of(rule)
        check(rule, tally, Layout((data.draw(cuts(n)),), (n,)))
    except DeadlineError:
        assume(False)


@pytest.mark.parametrize("text", IMAGES)
@pytest.mark.parametrize("mesh", [(1,), (3,), (2, 2), (3, 2)])
def test_rows_and_blocks_of_images(text: str, mesh: tuple[int, ...]) -> None:
    rule = lt.rule(text).at(rows=7, cols=5)
    tally = tally_of(rule)
    if len(tally.sizes) == 1:  # read row by row
        rows = contiguous(7, mesh[0])
        check(rule, tally, Layout((rows.times(5),), (35,)))
    else:
        check(rule, tally, Layout.of_mesh((7, 5), mesh))
        check(rule, tally, Layout((zigzag(7, 2),), (7, 5)))


def test_documents_and_chosen_blocks_are_counted_from_the_data() -> None:
    documents = lt.rules.documents(lengths=[5, 1, 9, 3], causal=True)
    blocks = lt.rules.bigbird(w=2, t=1, g=1, random=1, seed=0, n=18).complete()
    odd = lt.rule("doc[q] == doc[k] and (q - k) % 3 == 0", data={"doc": np.repeat([0, 1], 9)}).at(n=18)
    for rule in (documents, blocks, odd):
        tally = tally_of(rule)
        assert isinstance(tally, DataTally)
        for cut in (contiguous(18, 4), zigzag(18, 3), of_lengths([0, 11, 7])):
            check(rule, tally, Layout((cut,), (18,)))


def test_heads_of_their_own() -> None:
    rule = lt.rule("k <= q and q - k <= 2*head").at(n=14, heads=3)
    check(rule, tally_of(rule), Layout((contiguous(14, 4),), (14,)))


@pytest.mark.parametrize(
    "text", ["k <= q", "abs(q - k) <= 3", "k <= q and q // 4 == k // 4", "k < 3", "k < q and k < 0"]
)
def test_balanced_shards_have_as_many_pairs_as_can_be(text: str) -> None:
    rule = lt.rule(text).at(n=40)
    found = balanced(tally_of(rule).upto, 40, 4)
    check(rule, tally_of(rule), Layout((found,), (40,)))
    rows = np.concatenate([[0], rule.mask().sum(1).cumsum()])
    pairs = [rows[b] - rows[a] for pieces in found.pieces for a, b in pieces]
    most_of_a_row = rule.mask().sum(1).max()
    assert max(pairs, default=0) <= rows[-1] / 4 + most_of_a_row


@pytest.mark.parametrize(
    "text",
    ["abs(q - k) <= 2", "3 > abs(q - k)", "abs(q - 2*k) >= 4", "not 5 >= abs(q - k)", "abs(q - k) == 3",
     "abs(q // 4 - k // 4) <= 1 or abs(q - k) != 9", "abs(q - k) > -1", "abs(q - abs(k - 5)) < abs(q - 3)"],
)  # fmt: skip
def test_distances_are_counted_by_their_sign(text: str) -> None:
    rule = lt.rule(text).at(n=17)
    for cut in (contiguous(17, 4), zigzag(17, 3)):
        check(rule, tally_of(rule), Layout((cut,), (17,)))


def test_pieces_in_any_order_and_number() -> None:
    pieces = (((12, 15), (0, 2)), ((2, 4), (15, 18), (7, 8)), (), ((4, 7), (8, 12)))
    for text in ("k <= q and q - k <= 4", "abs(q - k) >= 3", "k % 4 >= 2 or q // 4 == k // 4"):
        rule = lt.rule(text).at(n=18)
        check(rule, tally_of(rule), Layout((Cut("own", pieces),), (18,)))


NUMBERS = st.integers(-7, 7)


@st.composite
def windows(draw: st.DrawFn) -> tuple[IntervalTable, list[set[int]]]:
    """One window of remainders and limits a shard, and the keys of each shard."""
    modulus, shards = draw(st.integers(1, 6)), 3
    rows = draw(st.sampled_from([1, shards]))
    first = draw(st.lists(NUMBERS, min_size=rows, max_size=rows)) if modulus > 1 else [0] * rows
    size = draw(st.lists(st.integers(0 if modulus > 1 else 1, modulus), min_size=rows, max_size=rows))
    low, high = (draw(st.lists(st.integers(0, 30), min_size=shards, max_size=shards)) for _ in range(2))
    found = IntervalTable(modulus, *(np.array(side)[:, None] for side in (first, size, low, high)))
    keys = [
        {k for k in range(low[i], high[i]) if (k - first[i % rows]) % modulus < size[i % rows]}
        for i in range(shards)
    ]
    return found, keys


@given(st.lists(windows(), min_size=1, max_size=3), st.integers(0, 30), st.integers(0, 30))
def test_windows_of_remainders(some: list[tuple[IntervalTable, list[set[int]]]], a: int, b: int) -> None:
    found, keys = some[0]
    for more, others in some[1:]:
        found, keys = found & more, [x & y for x, y in zip(keys, others, strict=True)]
    inside = [{k for k in x if a <= k < b} for x in keys]
    counts = np.zeros(3, np.int64) + found.between(a, b)
    assert counts.tolist() == [len(x) for x in inside]
    for shard in range(3):
        first, end = found.spans_in(shard, a, b)
        assert sorted(k for x, y in zip(first, end, strict=True) for k in range(x, y)) == sorted(
            inside[shard]
        )
    assert [*np.ravel(found.rows([2]).between(a, b))] in ([len(inside[2])], [])
    listed = [(r, k) for r, x, y in zip(*found.spans(), strict=True) for k in range(x, y)]
    assert sorted(listed) == [(r, k) for r in range(3) for k in sorted(keys[r])]


ATOMS = st.one_of(
    st.sampled_from(["k", "a"]),
    st.builds(
        lambda k, a, c, by: Quotient(Linear.of([("k", k), ("a", a)], c), by),
        st.integers(-2, 2),
        st.integers(-1, 1),
        NUMBERS,
        st.integers(1, 6),
    ),
)
TERMS = st.lists(st.tuples(ATOMS, NUMBERS), max_size=3)


@given(st.lists(st.tuples(TERMS, NUMBERS, st.booleans()), min_size=1, max_size=3))
def test_clauses_of_any_bounds(parts: list[tuple[list[tuple[str | Quotient, int]], int, bool]]) -> None:
    bounds = [Bound(Linear.of(terms, constant), equal) for terms, constant, equal in parts]
    shards = np.array([0, 3, 11])
    found = interval_table(bounds, "k", 25, {"a": shards}, 3)

    def holds(k: int, a: int) -> bool:
        numbers = [(bound.form.value({"k": k, "a": a}), bound.equal) for bound in bounds]
        return all(number == 0 if equal else number >= 0 for number, equal in numbers)

    for place in (0, 7, 25):
        counts = np.zeros(3, np.int64) + found.between(0, place)
        assert counts.tolist() == [sum(holds(k, a) for k in range(place)) for a in shards.tolist()]


def test_remainders_that_lie_side_by_side_are_one_window() -> None:
    form = Linear.of([(Quotient(Linear.of([("k", 1)]), 64), 1), (Quotient(Linear.of([("k", 1)]), 1024), -16)])
    found = interval_table([Bound(form, True)], "k", 10**9, {}, 1000)  # k // 64 % 16 == 0
    assert found.windows == 1
    assert found.between(0, 10**6).tolist() == [1000000 // 1024 * 64 + 64] * 1000


def test_numbers_do_not_depend_on_n_in_time_or_size() -> None:
    layout = Layout((contiguous(10**15, 1000),), (10**15,))
    tally = tally_of(lt.rules.strided(t=4095).at(n=10**15))
    assert tally.reached(layout).halo.tolist() == [0] + [4095] * 999
    assert tally.pairs(layout)[5] == 10**12 * 4096
