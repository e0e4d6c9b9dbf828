"""Every attended pair is visited exactly once, and no other: for the catalogue and for random rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans.visits import visits
from random_rules import affine, split

import lattend as lt
from lattend.plans.part import make_part
from lattend.plans.plan import Plan, plan
from lattend.rules.rule import Rule

R = lt.rules
LINES = [
    R.full(),
    R.causal(),
    R.strided(t=5),
    R.windowed(w=5),
    R.band(before=3, after=1),
    R.dilated(t=3, step=3),
    R.sparse_strided(l=5),
    R.sparse_fixed(l=6, c=2),
    R.longformer(t=3, g=2),
    R.bigbird(w=3, t=1, g=1),
    lt.rule(
        "chosen[q // 8, k // 8] and k <= q", data={"chosen": np.tri(6, dtype=int) - np.eye(6, dtype=int)}
    ),
    R.prefix_lm(p=7),
    R.sinks(s=2, t=4),
    R.chunked(w=4, t=1),
    lt.rule("(q - k) % 3 == 1"),
    lt.rule("k % 5 >= 4 or k % 5 < 1"),
    lt.rule("(k + 2) % 5 < 3 and k <= q"),
    lt.rule("q % 4 == 0 and k <= q"),
    lt.rule("k <= q and q - k <= 4 * head + 1"),
    lt.rule("head < 2 and k <= q or head >= 2 and k >= q"),
]
IMAGES = [
    R.neighbourhood(r=1),
    R.neighbourhood(r=1, edge="shift"),
    R.neighbourhood(r=1, step=2),
    R.axial(),
    R.swin(w=3, shift=1),
    R.raster(),
    lt.rule("abs(qy - ky) + abs(qx - kx) <= 2"),
]


def mask(rule: Rule, sizes: dict[str, int]) -> np.ndarray:
    found = rule.mask(**sizes)
    return found if rule.has_heads else found[None]


def check(rule: Rule, shape: tuple[int, ...], **sizes: int) -> None:
    expected = mask(rule, sizes)
    heads = expected.shape[0]
    planned = plan(rule, **sizes)
    assert np.array_equal(visits(planned, shape), expected)
    axes = len(rule.axes)
    transposed = expected.transpose(0, *range(axes + 1, 2 * axes + 1), *range(1, axes + 1))
    assert np.array_equal(visits(planned, shape, transposed=True), transposed)
    needed = int(expected.sum()) / heads
    assert sum(planned.tiles(i, shape).executed(1) for i in range(len(planned.parts))) >= int(needed)


@pytest.mark.parametrize("rule", LINES, ids=str)
@pytest.mark.parametrize(("n", "tile"), [(1, 4), (23, 4), (32, 8)])
def test_lines(rule: Rule, n: int, tile: int) -> None:
    sizes = {"n": n} | ({"heads": 3} if rule.has_heads else {})
    check(rule, (tile,), **sizes)


@pytest.mark.parametrize("rule", [R.causal(), R.strided(t=5), R.sparse_fixed(l=6, c=2)], ids=str)
@pytest.mark.parametrize(("n", "m"), [(9, 23), (23, 9)])
def test_other_number_of_keys(rule: Rule, n: int, m: int) -> None:
    check(rule, (4,), n=n, m=m)


@pytest.mark.parametrize("rule", IMAGES, ids=str)
@pytest.mark.parametrize(("rows", "cols"), [(7, 10), (3, 5)])
def test_images(rule: Rule, rows: int, cols: int) -> None:
    check(rule, (2, 4), rows=rows, cols=cols)


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(20, 70),
    shift=st.integers(0, 30),
    period=st.integers(30, 110),
    least=st.integers(1, 29),
    name=st.sampled_from("qk"),
    n=st.integers(1, 400),
)
def test_windows_beside_residues(width: int, shift: int, period: int, least: int, name: str, n: int) -> None:
    window = f"(q + {shift}) // {width} == (k + {shift}) // {width}"
    check(lt.rule(f"{window} and {name} % {period} >= {least}"), (16,), n=n)


@settings(max_examples=150, deadline=None)
@given(text=st.one_of(affine(), split()), n=st.integers(0, 14), t=st.integers(0, 6), w=st.integers(1, 5))
def test_random_rules(text: str, n: int, t: int, w: int) -> None:
    rule = lt.rule(text)
    values = {name: value for name, value in {"t": t, "w": w}.items() if name in rule.parameters}
    check(rule, (4,), n=n, **values)


# Tables of blocks


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 999),
    n=st.integers(0, 30),
    m=st.integers(0, 30),
    a=st.integers(3, 7),
    b=st.integers(1, 7),
    text=st.sampled_from(
        [
            "chosen[q // a, k // b]",
            "chosen[k // b, q // a] >= 2 and k <= q",
            "1 == chosen[q // a, k // b] and abs(q - k) <= 6 and q % 3 == 0",
            "chosen[q // a, k // b] and chosen[q // b, k // a] == 0",
            "abs(q // a - k // a) <= 1 or k < 3 or chosen[q // a, k // b]",
            "not chosen[q // a, k // b]",
            "chosen[q // a, k // b] and doc[q] == doc[k]",
        ]
    ),
)
def test_listed_blocks(seed: int, n: int, m: int, a: int, b: int, text: str) -> None:
    source = np.random.default_rng(seed)
    table = source.integers(0, 3, (31, 31)) * (source.random((31, 31)) < source.random())
    data = {"chosen": table, "doc": source.integers(0, 2, 31)}
    rule = lt.rule(text, data={name: data[name] for name in data if f"{name}[" in text})
    check(rule, (4,), n=n, m=m, a=a, b=b)


def test_the_squares_follow_the_marked_blocks() -> None:
    table = np.zeros((64, 64), int)
    table[np.arange(64), np.arange(64) * 7 % 64] = 1
    planned = plan(lt.rule("chosen[q // 16, k // 16]", data={"chosen": table}), n=1024)
    for transposed in (False, True):
        assert planned.tiles(0, (16,), transposed=transposed).executed(16) == 64 * 16 * 16
    # 63 of 64 rows have a whole block: 1,023 rows, and the last block has 15 columns
    planned = plan(lt.rule("chosen[q // 16, k // 16]", data={"chosen": table}), n=1023)
    assert planned.tiles(0, (16,)).inner.sum() == 1023


def test_random_blocks_on_both_sides_are_listed_once() -> None:
    rule = R.bigbird(w=16, t=1, g=1, random=3, n=1024)
    planned = plan(rule)
    listed = [place for place, part in enumerate(planned.parts) if part.block_table]
    pairs = sum(planned.tiles(place, (16,)).executed(1) for place in listed)
    assert pairs == 16 * 16 * rule.data["chosen"].sum()


def test_a_table_that_is_too_small_is_named() -> None:
    rule = lt.rule("chosen[k // 8, q // 4]", data={"chosen": np.ones((2, 6), int)})
    with pytest.raises(
        lt.errors.LattendError, match=r"is read at k // 8 = 2, outside the chosen given \(0 … 1\)"
    ):
        plan(rule, n=24).tiles(0, (4,))


@pytest.mark.parametrize(
    ("rule", "shape", "sizes"),
    [
        (R.windowed(w=5), (4,), {"n": 23}),
        (lt.rule("(q + 3) // 5 == (k + 3) // 5"), (8,), {"n": 23}),
        (lt.rule("(q - 2) // 5 == (k - 2) // 5 and k <= q"), (2,), {"n": 23}),
        (R.swin(w=3, shift=1), (2, 4), {"rows": 7, "cols": 10}),
        (R.swin(w=3, shift=2), (4, 4), {"rows": 8, "cols": 5}),
    ],
    ids=str,
)
def test_windows_as_classes(rule: Rule, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    plain = plan(rule, **sizes)
    parts = [make_part(part.branch, plain.axes, part.numbers, windows=True) for part in plain.parts]
    paired = Plan(plain.rule, tuple(part for part in parts if part is not None), plain.axes, plain.form)
    lines = [axis.transposed() for axis in plain.axes]
    transposed = [make_part(part.branch, lines, part.numbers, windows=True) for part in plain.transposed]
    paired.__dict__["transposed"] = tuple(part for part in transposed if part is not None)
    assert all(part.windowed for part in paired.parts)
    expected = mask(rule, sizes)
    assert np.array_equal(visits(paired, shape), expected)
    axes = len(rule.axes)
    across = expected.transpose(0, *range(axes + 1, 2 * axes + 1), *range(1, axes + 1))
    assert np.array_equal(visits(paired, shape, transposed=True), across)


def test_windows_become_classes_where_tiles_would_cross_them() -> None:
    assert not plan(R.windowed(w=256), n=4096).parts[0].windowed  # 64 divides 256
    assert plan(lt.rule("(q + 300) // 512 == (k + 300) // 512"), n=4096).parts[0].windowed
    assert plan(R.swin(w=8, shift=4), rows=64, cols=64).parts[0].windowed
    assert not plan(R.windowed(w=1), n=4096).parts[0].windowed  # a tile a position would cost more


@pytest.mark.parametrize("modulus", [4096, 4097, 15_000, 100_000])
@pytest.mark.parametrize(
    "text", ["k <= q and k % w == 0", "k % w <= 2", "q % w == k % w", "(q - k) % w == 0"]
)
def test_large_moduli_are_laid_out_by_remainders(text: str, modulus: int) -> None:
    made = plan(lt.rule(text), n=3 * modulus, w=modulus)
    at_sixteen = plan(lt.rule(text), n=48, w=16)
    assert [str(part) for part in made.parts] == [
        str(p).replace("16", str(modulus)) for p in at_sixteen.parts
    ]
    assert sum(made.tiles(i, (128,)).executed(32) for i in range(len(made.parts))) < 6000 * modulus


@pytest.mark.parametrize(
    "text", ["q % 7 == 3", "q % 7 >= 5 or q < 2", "(q - k) % 4 == 0", "q // 3 == k // 3", "q >= 2"]
)
@pytest.mark.parametrize("n", [1, 2, 9])
def test_a_part_covers_the_queries_that_are_in_its_tiles(text: str, n: int) -> None:
    found = plan(lt.rule(text), n=n, m=9)
    for transposed, parts in ((False, found.parts), (True, found.transposed)):
        for place, part in enumerate(parts):
            tiles, axis = found.tiles(place, (1,), transposed=transposed), part.axes[0]
            rows = axis.outer_order.positions(tiles.column("outer_slot"), tiles.column("outer_base"))
            assert part.covers == (sorted(rows[0].tolist()) == list(range(axis.outer_size)))


def test_a_table_of_tiles_lies_in_order() -> None:
    gated = plan(lt.rule("k <= q and k <= 2 or head < 1"), n=37, heads=2)
    for place in range(len(gated.parts)):
        assert gated.tiles(place, (32,)).table.flags.c_contiguous
