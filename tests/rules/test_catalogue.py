"""The catalogue: every mask against plain loops, every stated number of keys, every domain."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import pytest

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError
from lattend.rules import CATALOGUE, Rule
from lattend.rules.language.evaluation import evaluate, evaluate_term
from lattend.rules.language.parser import parse, parse_term

R = lt.rules
Edge = Literal["clip", "shift"]


def _loop(n: int, m: int, attended: Callable[[int, int], bool]) -> list[list[bool]]:
    return [[attended(q, k) for k in range(m)] for q in range(n)]


# name, rule without numbers, parameters and their values, the rule said again in plain Python
LINES: list[tuple[Rule, dict[str, range], Callable[..., Any]]] = [
    (R.full(), {}, lambda n: lambda q, k: True),
    (R.causal(), {}, lambda n: lambda q, k: k in range(q + 1)),
    (R.strided(), {"t": range(10)}, lambda n, t: lambda q, k: k in range(q - t, q + 1)),
    (R.windowed(), {"w": range(1, 10)}, lambda n, w: lambda q, k: k in range(q - q % w, q + 1)),
    (R.band(), {"before": range(5), "after": range(5)},
     lambda n, before, after: lambda q, k: k in range(q - before, q + after + 1)),
    (R.dilated(), {"t": range(5), "step": range(1, 5)},
     lambda n, t, step: lambda q, k: k in [q - i * step for i in range(t + 1)]),
    (R.sparse_strided(), {"l": range(1, 9)},
     lambda n, l: lambda q, k: k in {*range(q - l + 1, q + 1), *range(q, -1, -l)}),  # noqa: E741
    (R.sparse_fixed(), {"l": range(1, 6), "c": range(6)},
     lambda n, l, c: lambda q, k: k <= q and (k >= q - q % l or k in _ends(n, l, c))),  # noqa: E741
    (R.longformer(), {"t": range(5), "g": range(4)},
     lambda n, t, g: lambda q, k: q in range(g) or k in range(g) or k in range(q - t, q + t + 1)),
    (R.bigbird(), {"w": range(1, 4), "t": range(3), "g": range(3)},
     lambda n, w, t, g: lambda q, k: _bigbird(divmod(q, w)[0], divmod(k, w)[0], t, g)),
    (R.prefix_lm(), {"p": range(11)}, lambda n, p: lambda q, k: k in range(max(p, q + 1))),
    (R.sinks(), {"s": range(4), "t": range(5)},
     lambda n, s, t: lambda q, k: k in {*range(min(s, q + 1)), *range(q - t, q + 1)}),
    (R.chunked(), {"w": range(1, 5), "t": range(4)},
     lambda n, w, t: lambda q, k: k in range(q - q % w - t * w, q - q % w + w)),
]  # fmt: skip


def _ends(n: int, l: int, c: int) -> set[int]:  # noqa: E741
    return {start + l - 1 - i for start in range(0, n, l) for i in range(c)}


def _bigbird(query: int, key: int, t: int, g: int) -> bool:
    return key in {*range(query - t, query + t + 1), *range(g)} or query in range(g)


def _grid(ranges: dict[str, range]) -> Iterator[dict[str, int]]:
    for values in itertools.product(*ranges.values()):
        yield dict(zip(ranges, values, strict=True))


def _key_counts(rule: Rule, at: dict[str, int]) -> np.ndarray:
    """How many keys each query has, as the catalogue states it: cases of a formula and a condition."""
    assert rule.about is not None
    names = rule.positions[: len(rule.axes)]
    lengths = [at[axis.queries] for axis in rule.axes]
    env: dict[str, Any] = {**at, **dict(zip(names, np.ix_(*map(np.arange, lengths)), strict=True))}
    found = np.full(lengths, -1)
    for case in reversed(rule.about.keys.split("; ")):
        formula, _, when = case.removesuffix(" otherwise").partition(" when ")
        value = np.broadcast_to(evaluate_term(parse_term(formula), env, {}), lengths)
        found = np.where(evaluate(parse(when or "true"), env, {}), value, found)
    return found


@pytest.mark.parametrize(
    ("rule", "ranges", "said"),
    LINES,
    ids=lambda item: item.about and item.about.name if isinstance(item, Rule) else "",
)
def test_mask_is_what_the_loop_marks(rule: Rule, ranges: dict[str, range], said: Callable[..., Any]) -> None:
    for n, at in itertools.product((0, 1, 2, 5, 9), _grid(ranges)):
        if at.get("c", 0) > at.get("l", 0):
            continue
        mask = rule.mask(n=n, **at)
        assert mask.tolist() == _loop(n, n, said(n, **at)), (n, at)
        if n:
            assert mask.sum(1).tolist() == _key_counts(rule, {"n": n, **at}).tolist(), (n, at)


def test_causal_with_keys_of_their_own_number() -> None:
    for n, m in itertools.product(range(6), repeat=2):
        top = R.causal().mask(n=n, m=m)
        assert top.tolist() == _loop(n, m, lambda q, k: k <= q)
        bottom = R.causal(align="bottom-right")
        last = [[m - 1 - k >= n - 1 - q for k in range(m)] for q in range(n)]
        assert bottom.mask(n=n, m=m).tolist() == last
        if n:
            assert bottom.mask(n=n, m=m).sum(1).tolist() == _key_counts(bottom, {"n": n, "m": m}).tolist()
    assert R.causal().mask(n=2, m=4).astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0]]
    assert R.causal("bottom-right").mask(n=2, m=4).astype(int).tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    unknown: Any = "left"
    with pytest.raises(DomainError, match='align is "top-left" or "bottom-right"'):
        R.causal(align=unknown)


def _clip(q: int, size: int, r: int, step: int) -> set[int]:
    return {q + step * i for i in range(-r, r + 1)} & set(range(size))


def _shift(q: int, size: int, r: int, step: int) -> set[int]:
    """NATTEN: of the pixels with the query's remainder, the 2r + 1 around it, moved inside."""
    same = [k for k in range(size) if k % step == q % step]
    start = same.index(q) - r
    start = min(start, len(same) - (2 * r + 1))
    start = max(start, 0)
    return set(same[start : start + 2 * r + 1])


@pytest.mark.parametrize("edge", ["clip", "shift"])
@pytest.mark.parametrize("step", [None, 1, 2, 3])
def test_neighbourhood_on_an_image(edge: Edge, step: int | None) -> None:
    window = _clip if edge == "clip" else _shift
    for rows, cols, r in itertools.product((1, 2, 5, 7), (1, 4, 6), (0, 1, 2)):
        rule = R.neighbourhood(r, step=step, edge=edge)
        mask = rule.mask(rows=rows, cols=cols)
        for qy, qx in itertools.product(range(rows), range(cols)):
            ys, xs = window(qy, rows, r, step or 1), window(qx, cols, r, step or 1)
            assert set(map(tuple, np.argwhere(mask[qy, qx]).tolist())) == set(itertools.product(ys, xs))
        at = {"rows": rows, "cols": cols, "r": r, **({"step": step} if step else {})}
        assert mask.sum((2, 3)).tolist() == _key_counts(rule, at).tolist()


@pytest.mark.parametrize("edge", ["clip", "shift"])
def test_neighbourhood_in_a_volume(edge: Edge) -> None:
    window = _clip if edge == "clip" else _shift
    rule = R.neighbourhood(1, step=2, edge=edge, axes=3)
    mask = rule.mask(depth=2, rows=3, cols=5)
    for query in itertools.product(range(2), range(3), range(5)):
        keys = [window(q, size, 1, 2) for q, size in zip(query, (2, 3, 5), strict=True)]
        assert set(map(tuple, np.argwhere(mask[query]).tolist())) == set(itertools.product(*keys))
    at = {"depth": 2, "rows": 3, "cols": 5, "r": 1, "step": 2}
    assert mask.sum((3, 4, 5)).tolist() == _key_counts(rule, at).tolist()


def test_neighbourhood_parameters() -> None:
    assert R.neighbourhood().free == ["rows", "cols", "r"]
    assert R.neighbourhood(step="step").free == ["rows", "cols", "r", "step"]
    assert R.neighbourhood(2, step=3, axes=3).free == ["depth", "rows", "cols"]
    assert R.neighbourhood(step="step").text.startswith(
        "abs(qy - ky) <= r * step and (qy - ky) % step == 0 and abs(qx - kx) <= r * step"
    )
    assert R.neighbourhood(edge="shift").text.startswith(
        "min(qy, rows - 1 - r) - r <= ky and ky <= max(qy, r) + r"
    )
    mistakes: list[dict[str, Any]] = [{"edge": "wrap"}, {"axes": 1}, {"step": "x"}]
    for wrong in mistakes:
        with pytest.raises(DomainError, match=r"neighbourhood\("):
            R.neighbourhood(**wrong)


def test_axial_and_raster() -> None:
    for rows, cols in itertools.product(range(4), range(5)):
        axial, raster = R.axial().mask(rows=rows, cols=cols), R.raster().mask(rows=rows, cols=cols)
        pixels = [(y, x) for y in range(rows) for x in range(cols)]
        for at, query in enumerate(pixels):
            cross = {p for p in pixels if p[0] == query[0]} | {p for p in pixels if p[1] == query[1]}
            assert set(map(tuple, np.argwhere(axial[query]).tolist())) == cross
            assert set(map(tuple, np.argwhere(raster[query]).tolist())) == set(pixels[: at + 1])
        if rows and cols:
            at = {"rows": rows, "cols": cols}
            assert axial.sum((2, 3)).tolist() == _key_counts(R.axial(), at).tolist()
            assert raster.sum((2, 3)).tolist() == _key_counts(R.raster(), at).tolist()


def _swin_as_published(rows: int, cols: int, w: int, shift: int) -> np.ndarray:
    """Roll by -shift, cut into windows, and mask pairs of different regions, as Swin's img_mask does."""
    region = np.zeros((rows, cols), int)
    slices = (slice(0, -w), slice(-w, -shift), slice(-shift, None)) if shift else (slice(None),)
    for label, (ys, xs) in enumerate(itertools.product(slices, slices)):
        region[ys, xs] = label
    place = np.arange(rows * cols).reshape(rows, cols)
    rolled = np.roll(place, (-shift, -shift), (0, 1))
    mask = np.zeros((rows * cols, rows * cols), bool)
    for y, x in itertools.product(range(0, rows, w), range(0, cols, w)):
        inside = rolled[y : y + w, x : x + w].ravel()
        labels = region[y : y + w, x : x + w].ravel()
        mask[np.ix_(inside, inside)] = labels[:, None] == labels[None, :]
    return mask.reshape(rows, cols, rows, cols)


def test_swin_is_the_rolled_and_masked_one() -> None:
    for w, down, across in itertools.product((1, 2, 3, 4), (1, 2, 3), (1, 2)):
        for shift in range(w):
            rows, cols = w * down, w * across
            published = _swin_as_published(rows, cols, w, shift)
            found = R.swin(w, shift).mask(rows=rows, cols=cols)
            assert np.array_equal(found, published), (w, shift, rows, cols)


def test_swin_key_counts_at_any_size() -> None:
    for w, rows, cols in itertools.product((1, 2, 3), (1, 4, 5), (2, 3)):
        for shift in range(w):
            mask = R.swin(w, shift).mask(rows=rows, cols=cols)
            at = {"rows": rows, "cols": cols, "w": w, "shift": shift}
            assert mask.sum((2, 3)).tolist() == _key_counts(R.swin(), at).tolist()


def test_documents() -> None:
    lengths = [3, 0, 1, 2]
    bounds = [(0, 3), (3, 4), (4, 6)]
    together = _loop(6, 6, lambda q, k: any(a <= q < b and a <= k < b for a, b in bounds))
    assert R.documents(lengths=lengths).mask().tolist() == together
    causal = R.documents(lengths=lengths, causal=True)
    assert causal.mask().tolist() == _loop(6, 6, lambda q, k: k <= q and together[q][k])
    ids = [4, -1, 4, 2]
    scattered = R.documents(ids=ids)
    assert scattered.mask().tolist() == _loop(4, 4, lambda q, k: ids[q] == ids[k])
    assert scattered.values == {"n": 4}
    assert R.documents(lengths=[]).mask().shape == (0, 0)
    assert R.documents(causal=True).open == ("doc",)  # given when attention runs
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"lengths": [1], "ids": [0]}, "documents takes lengths"),
        ({"lengths": [2, -1]}, "a length is at least 0, got -1"),
        ({"ids": [0.5]}, "ids is one row of whole numbers, got float64"),
        ({"ids": [[0]]}, "ids is one row of whole numbers"),
    ]
    for wrong, message in mistakes:
        with pytest.raises(DomainError, match=message):
            R.documents(**wrong)


def test_bigbird_random_blocks() -> None:
    for n, w, t, g, random in itertools.product((1, 7, 12), (1, 2), (0, 1), (0, 1), (1, 2, 9)):
        plain = R.bigbird(w, t, g).mask(n=n)
        drawn = R.bigbird(w, t, g, random=random, seed=3, n=n)
        mask, blocks = drawn.mask(), -(-n // w)
        assert not (plain & ~mask).any()
        extra = (mask & ~plain)[::w, ::w]  # one query and one key of each block
        free = blocks - plain[::w, ::w].sum(1)
        assert extra.sum(1).tolist() == np.minimum(random, free).tolist()
        whole = np.repeat(np.repeat(mask[::w, ::w], w, 0), w, 1)[:n, :n]
        assert np.array_equal(mask, whole)
    again, other = (R.bigbird(1, 0, 0, random=2, seed=seed, n=30).mask() for seed in (3, 4))
    assert np.array_equal(again, R.bigbird(1, 0, 0, random=2, seed=3, n=30).mask())
    assert not np.array_equal(again, other)
    with pytest.raises(DomainError, match=r"bigbird\(random=1\) draws its blocks now: give n=…, g=… too"):
        R.bigbird(w=2, t=1, random=1)
    with pytest.raises(DomainError, match="random blocks is at least 0"):
        R.bigbird(random=-1)
    with pytest.raises(DomainError, match="5,000 blocks, and at most 4,096 are drawn; take larger blocks"):
        R.bigbird(1, 0, 0, random=1, n=5000)


@pytest.mark.parametrize(
    ("rule", "at", "message"),
    [
        (R.strided(), {"t": -1}, "needs t >= 0, got t = -1"),
        (R.windowed(), {"w": 0}, "needs w >= 1, got w = 0"),
        (R.band(), {"before": -1}, "needs before >= 0, got before = -1"),
        (R.band(), {"after": -1}, "needs after >= 0, got after = -1"),
        (R.dilated(), {"t": -1}, "needs t >= 0, got t = -1"),
        (R.dilated(), {"step": 0}, "needs step >= 1, got step = 0"),
        (R.sparse_strided(), {"l": 0}, "needs l >= 1, got l = 0"),
        (R.sparse_fixed(), {"l": 3, "c": 4}, "needs c <= l, got c = 4, l = 3"),
        (R.sparse_fixed(), {"c": -1}, "needs 0 <= c, got c = -1"),
        (R.longformer(), {"t": -1}, "needs t >= 0, got t = -1"),
        (R.bigbird(), {"w": 0}, "needs w >= 1, got w = 0"),
        (R.bigbird(), {"t": -1}, "needs t >= 0, got t = -1"),
        (R.bigbird(), {"g": -1}, "needs g >= 0, got g = -1"),
        (R.prefix_lm(), {"p": -1}, "needs p >= 0, got p = -1"),
        (R.sinks(), {"s": -1}, "needs s >= 0, got s = -1"),
        (R.chunked(), {"t": -1}, "needs t >= 0, got t = -1"),
        (R.neighbourhood(), {"r": -1}, "needs r >= 0, got r = -1"),
        (R.neighbourhood(step="step"), {"step": 0}, "needs step >= 1, got step = 0"),
        (R.swin(), {"w": 2, "shift": 2}, "needs shift < w, got shift = 2, w = 2"),
        (R.swin(), {"shift": -1}, "needs 0 <= shift, got shift = -1"),
        (R.causal(), {"n": -1}, "needs n >= 0, got n = -1"),
    ],
)
def test_domain(rule: Rule, at: dict[str, int], message: str) -> None:
    with pytest.raises(DomainError) as caught:
        rule.at(**at)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "documents"])
def test_symbolic_and_bound(name: str) -> None:
    rule = CATALOGUE[name]()
    assert not rule.values
    assert rule.about is not None
    assert rule.about.name == name
    arguments = [p for p in inspect.signature(CATALOGUE[name]).parameters.values() if p.default is None]
    for argument in arguments:
        if (name, argument.name) == ("neighbourhood", "step"):
            continue  # a step makes another text
        bound = CATALOGUE[name](**{argument.name: 1})
        assert list(bound.values.values()) == [1]
        assert bound.condition == rule.condition


def test_strided_is_bound_in_any_way() -> None:
    assert R.strided(255) == R.strided(t=255) == R.strided().at(t=255)
    with pytest.raises(NamingError, match="t already has the value 255"):
        R.strided(255).at(t=3)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_docstring_says_what_it_must(name: str) -> None:
    notes = inspect.getdoc(CATALOGUE[name]) or ""
    assert re.search(r"keys?\b", notes)
    about = CATALOGUE[name]().about
    assert about is not None and re.search(r"\d{4}, ", about.reference)
    assert re.search(r"^ {4}[#.]{3,}", notes, re.MULTILINE)


PICTURED: dict[str, tuple[Rule, dict[str, int]]] = {
    "full": (R.full(), {"n": 4}),
    "causal": (R.causal(), {"n": 4}),
    "strided": (R.strided(t=1), {"n": 4}),
    "windowed": (R.windowed(w=2), {"n": 4}),
    "band": (R.band(2, 1), {"n": 4}),
    "dilated": (R.dilated(1, 2), {"n": 4}),
    "sparse_strided": (R.sparse_strided(2), {"n": 5}),
    "sparse_fixed": (R.sparse_fixed(3, 1), {"n": 6}),
    "longformer": (R.longformer(1, 1), {"n": 5}),
    "bigbird": (R.bigbird(1, 1, 1, random=1, seed=0, n=7), {}),
    "prefix_lm": (R.prefix_lm(2), {"n": 4}),
    "sinks": (R.sinks(1, 1), {"n": 5}),
    "chunked": (R.chunked(2, 1), {"n": 6}),
    "documents": (R.documents(lengths=[2, 1, 1]), {}),
}


@pytest.mark.parametrize("name", PICTURED)
def test_the_picture_in_the_docstring_is_the_mask(name: str) -> None:
    rule, at = PICTURED[name]
    notes = inspect.getdoc(CATALOGUE[name]) or ""
    drawn = re.findall(r"^ {4}([#.]{2,})(?: {2,}.*)?$", notes, re.MULTILINE)
    mask = rule.mask(**at)
    assert drawn[: len(mask)] == ["".join(".#"[int(x)] for x in row) for row in mask]


@pytest.mark.parametrize(
    ("name", "rule", "pixel"),
    [("axial", R.axial(), (1, 1)), ("raster", R.raster(), (1, 1)), ("swin", R.swin(2, 1), (1, 1))],
)
def test_the_picture_of_one_pixel_is_the_mask(name: str, rule: Rule, pixel: tuple[int, int]) -> None:
    notes = inspect.getdoc(CATALOGUE[name]) or ""
    drawn = re.findall(r"^ {4}([#.]{3})(?: {2,}.*)?$", notes, re.MULTILINE)
    assert drawn == ["".join(".#"[int(x)] for x in row) for row in rule.mask(rows=3, cols=3)[pixel]]


def test_the_pictures_of_the_two_edges() -> None:
    notes = inspect.getdoc(R.neighbourhood) or ""
    drawn = re.findall(r"^ {4}([#.]{4}) {6}([#.]{4})$", notes, re.MULTILINE)
    edges: tuple[Edge, ...] = ("clip", "shift")
    for column, edge in enumerate(edges):
        mask = R.neighbourhood(1, edge=edge).mask(rows=4, cols=4)[0, 0]
        assert [row[column] for row in drawn] == ["".join(".#"[int(x)] for x in row) for row in mask]


def test_errors_of_the_catalogue_are_all_of_one_kind() -> None:
    broken: Any = 2.5
    with pytest.raises(LattendError):
        R.strided(t=broken)
