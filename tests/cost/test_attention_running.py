"""Attention and what is made of it, priced by lt.cost and run on numbers that count."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from cost.running import check, check_dense, check_numbers, one, run
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rules import affine, split

import lattend as lt
from lattend.cost.reference import attention as attended
from lattend.cost.reference import shapes

SMALL = st.integers(1, 3)
LENGTH = st.integers(1, 5)
RULES = {
    "q >= 0": (),
    "k <= q": (),
    "k < q": (),  # the first row has no keys, the last key no query
    "k <= q and q - k <= t": ("t",),
    "abs(q - k) <= t": ("t",),
    "k == 0": (),
}


def masks_of(text: str, n: int, m: int, heads: int, **values: int) -> list[attended.Mask]:
    """The pairs a rule attends, head by head: its text is Python as well."""
    code = compile(text, "rule", "eval")
    known = {"n": n, "m": m, "heads": heads, "abs": abs, "min": min, "max": max, **values}

    def attends(head: int, q: int, k: int) -> bool:
        return bool(eval(code, {}, known | {"head": head, "q": q, "k": k}))

    return [[[attends(head, q, k) for k in range(m)] for q in range(n)] for head in range(heads)]


def shifts_of(n: int, m: int, width: int) -> dict[int, list[float]]:
    """One constant vector for each k - q there can be."""
    return {shift: [0.1 * shift] * width for shift in range(1 - n, m)}


@settings(max_examples=60)
@given(st.sampled_from(list(RULES)), LENGTH, st.integers(0, 3), st.data(), st.booleans(), st.booleans())
def test_attention(text: str, n: int, t: int, data: st.DataObject, bias: bool, out_bias: bool) -> None:
    names = ("heads", "D_i", "D_hid", "D_o", "D_out")
    sizes = {name: data.draw(SMALL) for name in names}
    values = dict.fromkeys(RULES[text], t)
    masks = masks_of(text, n, n, sizes["heads"], **values)
    weights = shapes.attention(*sizes.values(), bias=bias, out_bias=out_bias)
    result = run(one(lambda x, w: attended.attention(x, x, w, masks)), weights, (n, sizes["D_i"]))
    sizes = {"n": n, **values, **sizes}
    check(result, "attention", sizes, rule=text, bias=bias, out_bias=out_bias)


@settings(max_examples=25)
@given(st.one_of(affine(), split()), LENGTH, st.integers(0, 3), st.integers(1, 3))
def test_attention_under_any_rule(text: str, n: int, t: int, w: int) -> None:
    weights = shapes.attention(2, 2, 3, 2, 1)
    needed, dense = (
        run(one(lambda x, w, masks=masks: attended.attention(x, x, w, masks)), weights, (n, 2))
        for masks in (masks_of(text, n, n, 2, t=t, w=w), masks_of("True", n, n, 2))
    )
    rule = lt.rule(text)
    values: dict[str, Any] = {name: v for name, v in (("t", t), ("w", w)) if name in rule.parameters}
    cost = lt.cost.attention(rule, n=n, heads=2, D_i=2, D_hid=3, D_o=2, D_out=1, **values)
    check_numbers(needed, cost)
    check_dense(dense, cost)


@settings(max_examples=30)
@given(LENGTH, st.integers(1, 3), st.sampled_from(["k <= q + head", "q % heads == head", "k <= q"]))
def test_heads_that_differ(n: int, heads: int, text: str) -> None:
    masks = masks_of(text, n, n, heads)
    result = run(
        one(lambda x, w: attended.attention(x, x, w, masks)), shapes.attention(heads, 2, 2, 3, 2), (n, 2)
    )
    text = text.replace("heads", str(heads))
    check_numbers(result, lt.cost.attention(text, n=n, heads=heads, D_i=2, D_hid=2, D_o=3, D_out=2))


@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2))
def test_attention_on_an_image(rows: int, cols: int, t: int) -> None:
    places = [(y, x) for y in range(rows) for x in range(cols)]
    masks = [[[abs(a - c) <= t and abs(b - d) <= t for c, d in places] for a, b in places]]
    weights = shapes.attention(1, 2, 2, 2, 2)
    result = run(one(lambda x, w: attended.attention(x, x, w, masks)), weights, (rows * cols, 2))
    sizes = {"rows": rows, "cols": cols, "t": t, "heads": 1, "D_i": 2, "D_hid": 2, "D_o": 2, "D_out": 2}
    check(result, "attention", sizes, rule="abs(qy - ky) <= t and abs(qx - kx) <= t")


@settings(max_examples=30)
@given(LENGTH, LENGTH, SMALL, SMALL, st.sampled_from(["q >= 0", "k <= q", "k <= q + m - n"]), st.booleans())
def test_attention_to_other_tokens(n: int, m: int, heads: int, D: int, text: str, absolute: bool) -> None:
    masks = masks_of(text, n, m, heads)
    encoding = "absolute" if absolute else None
    weights = shapes.attention(heads, D, D, D, D, encoding=encoding, positions=n)
    if absolute:
        weights["p_keys"] = (m, D)
    layer = one(lambda x, y, w: attended.attention(x, y, w, masks, encoding=encoding))
    result = run(layer, weights, (n, D), (m, D))
    sizes = {"n": n, "m": m, "heads": heads, "D_i": D, "D_hid": D}
    check(result, "attention", sizes, rule=text, encoding=encoding)


@settings(max_examples=30)
@given(LENGTH, SMALL, SMALL, SMALL, SMALL, st.booleans(), st.sampled_from(["q >= 0", "k <= q", "k < q"]))
def test_given_queries_keys_and_values(
    n: int, kv_heads: int, group: int, D_hid: int, D_o: int, scaled: bool, text: str
) -> None:
    heads = kv_heads * group
    masks = masks_of(text, n, n, heads)

    def layer(q: Any, k: Any, v: Any, _: Any) -> Any:
        return attended.attention(q, k, {}, masks, scale=0.5 if scaled else None, valued=v)

    result = run(one(layer), {}, (heads, n, D_hid), (kv_heads, n, D_hid), (kv_heads, n, D_o))
    sizes = {"n": n, "heads": heads, "kv_heads": kv_heads, "D_hid": D_hid, "D_o": D_o}
    check(result, "attention", sizes, rule=text, projections=None, scaled=scaled)


@settings(max_examples=40)
@given(
    LENGTH,
    st.data(),
    st.sampled_from(["q >= 0", "k <= q", "k < q"]),
    st.sampled_from(["absolute", "relative", "quadratic"]),
    st.booleans(),
    st.booleans(),
)
def test_encodings(n: int, data: st.DataObject, text: str, encoding: str, bias: bool, scaled: bool) -> None:
    sizes = {name: data.draw(SMALL) for name in ("heads", "D_i", "D_hid", "D_o", "D_out")}
    masks = masks_of(text, n, n, sizes["heads"])
    D_p = data.draw(SMALL)
    weights = shapes.attention(*sizes.values(), bias=bias, encoding=encoding, D_p=D_p, positions=n)
    shifts = shifts_of(n, n, 3 if encoding == "quadratic" else D_p)
    options: dict[str, Any] = {"scale": 0.5 if scaled else None, "encoding": encoding, "shifts": shifts}
    result = run(one(lambda x, w: attended.attention(x, x, w, masks, **options)), weights, (n, sizes["D_i"]))
    sizes = {"n": n, "D_p": D_p, **sizes} if encoding == "relative" else {"n": n, **sizes}
    check(result, "attention", sizes, rule=text, encoding=encoding, bias=bias, scaled=scaled)


@settings(max_examples=30)
@given(LENGTH, st.data(), st.sampled_from(["q >= 0", "k <= q", "k < q"]), st.booleans(), st.booleans())
def test_quadratic_beside_content(n: int, data: st.DataObject, text: str, bias: bool, content: bool) -> None:
    """D_p numbers a head: 2 on a line, 3 on an image, 5 with a covariance."""
    sizes = {name: data.draw(SMALL) for name in ("heads", "D_i", "D_hid", "D_o", "D_out")}
    D_p = data.draw(st.sampled_from([2, 3, 5]))
    weights = shapes.attention(*sizes.values(), bias=bias, encoding="quadratic", content=content, form=D_p)
    options: dict[str, Any] = {"encoding": "quadratic", "content": content, "shifts": shifts_of(n, n, D_p)}
    masks = masks_of(text, n, n, sizes["heads"])
    result = run(one(lambda x, w: attended.attention(x, x, w, masks, **options)), weights, (n, sizes["D_i"]))
    sizes = {"n": n, "D_p": D_p, **sizes}
    check(result, "attention", sizes, rule=text, encoding="quadratic", content=content, bias=bias)


@settings(max_examples=30)
@given(
    LENGTH,
    st.sampled_from(["q >= 0", "k <= q", "k < q", "abs(q - k) <= 1"]),
    st.sampled_from([None, 0, 1, 2]),
)
def test_tables(n: int, text: str, radius: int | None) -> None:
    """Within a radius, shifts further away take the entry at the end."""
    reach = n - 1 if radius is None else radius
    weights = shapes.attention(2, 3, 2, 2, 1, encoding="tables", entries=2 * reach + 1)
    masks = masks_of(text, n, n, 2)

    def layer(x: Any, w: Any) -> Any:
        return attended.attention(x, x, w, masks, entry=lambda q, k: min(max(k - q + reach, 0), 2 * reach))

    sizes = {"n": n, "heads": 2, "D_i": 3, "D_hid": 2, "D_o": 2, "D_out": 1}
    check(run(one(layer), weights, (n, 3)), "attention", sizes, rule=text, encoding="tables", radius=radius)


@settings(max_examples=20)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.sampled_from([None, (1, 0), (2, 2)]))
def test_tables_on_an_image(rows: int, cols: int, t: int, radius: tuple[int, int] | None) -> None:
    places = [(y, x) for y in range(rows) for x in range(cols)]
    masks = [[[abs(a - c) <= t and b <= d for c, d in places] for a, b in places]]
    down, across = radius or (rows - 1, cols - 1)

    def entry(q: int, k: int) -> int:
        dy, dx = (b - a for a, b in zip(places[q], places[k], strict=True))
        return min(max(dy, -down), down) * (2 * across + 1) + min(max(dx, -across), across)  # from its middle

    weights = shapes.attention(1, 2, 2, 2, 2, encoding="tables", entries=(2 * down + 1) * (2 * across + 1))
    layer = one(lambda x, w: attended.attention(x, x, w, masks, entry=entry))
    result = run(layer, weights, (rows * cols, 2))
    sizes: dict[str, Any] = {"rows": rows, "cols": cols, "t": t, "heads": 1, "D_i": 2, "D_hid": 2}
    text = "abs(qy - ky) <= t and qx <= kx"
    cost = lt.cost.attention(text, encoding="tables", radius=radius, **sizes)
    check_numbers(result, cost)


@settings(max_examples=20)
@given(LENGTH, st.sampled_from(["k <= q + head", "q % heads == head"]))
def test_tables_of_heads_that_differ(n: int, text: str) -> None:
    masks = masks_of(text, n, n, 2)
    weights = shapes.attention(2, 2, 2, 2, 2, encoding="tables", entries=2 * n - 1)
    layer = one(lambda x, w: attended.attention(x, x, w, masks, entry=lambda q, k: k - q + n - 1))
    cost = lt.cost.attention(text.replace("heads", "2"), n=n, heads=2, D_i=2, D_hid=2, encoding="tables")
    check_numbers(run(layer, weights, (n, 2)), cost)


def test_tables_under_a_rule_of_data() -> None:
    masks = [[[(q < 2) == (k < 2) for k in range(5)] for q in range(5)]]
    weights = shapes.attention(1, 2, 2, 2, 2, encoding="tables", entries=3)
    layer = one(
        lambda x, w: attended.attention(x, x, w, masks, entry=lambda q, k: min(max(k - q, -1), 1) + 1)
    )
    packed = lt.rules.documents(lengths=[2, 3])
    cost = lt.cost.attention(packed, heads=1, D_i=2, D_hid=2, encoding="tables", radius=1)
    check_numbers(run(layer, weights, (5, 2)), cost)


@settings(max_examples=20)
@given(LENGTH, st.sampled_from(["q >= 0", "k <= q"]))
def test_sinusoids_are_no_parameters(n: int, text: str) -> None:
    masks, fixed = masks_of(text, n, n, 2), [[0.1 * q, 0.2, 0.3] for q in range(n)]

    def layer(x: Any, w: Any) -> Any:
        return attended.attention(x, x, w, masks, encoding="sinusoidal", fixed=fixed)

    sizes = {"n": n, "heads": 2, "D_i": 3, "D_hid": 2, "D_o": 1, "D_out": 2}
    result = run(one(layer), shapes.attention(2, 3, 2, 1, 2), (n, 3))
    check(result, "attention", sizes, rule=text, encoding="sinusoidal")


@settings(max_examples=20)
@given(LENGTH, st.sampled_from(["q >= 0", "k <= q"]), st.booleans())
def test_encodings_that_are_given_and_not_learned(n: int, text: str, content: bool) -> None:
    """The same work as when they are learned, and no parameters."""
    masks, shifts = masks_of(text, n, n, 2), shifts_of(n, n, 3)
    weights = shapes.attention(2, 3, 2, 1, 2, encoding="quadratic", content=content)
    given_form = weights.pop("v")

    def layer(x: Any, v: Any, w: Any) -> Any:
        options: dict[str, Any] = {"encoding": "quadratic", "content": content, "shifts": shifts}
        return attended.attention(x, x, {**w, "v": v}, masks, **options)

    sizes = {"n": n, "heads": 2, "D_i": 3, "D_hid": 2, "D_o": 1, "D_out": 2}
    result = run(one(layer), weights, (n, 3), given_form)
    check(result, "attention", sizes, rule=text, encoding="quadratic", content=content, learned=False)


@settings(max_examples=20)
@given(LENGTH, LENGTH, SMALL, SMALL)
def test_keys_and_values_of_other_widths(n: int, m: int, D_keys: int, D_values: int) -> None:
    masks = masks_of("q >= 0", n, m, 2)
    weights = shapes.attention(2, 3, 2, 2, 3, D_keys=D_keys, D_values=D_values)
    sizes: dict[str, Any] = {
        "n": n,
        "m": m,
        "heads": 2,
        "D_i": 3,
        "D_hid": 2,
        "D_keys": D_keys,
        "D_values": D_values,
    }
    if D_keys == D_values:  # one array gives both
        result = run(one(lambda x, y, w: attended.attention(x, y, w, masks)), weights, (n, 3), (m, D_keys))
        check_numbers(result, lt.cost.attention(**sizes))
        return
    layer = one(lambda x, y, z, w: attended.attention(x, y, w, masks, valued=z))
    check(run(layer, weights, (n, 3), (m, D_keys), (m, D_values)), "attention", sizes)


@settings(max_examples=30)
@given(st.integers(1, 3), st.data(), st.sampled_from(["q >= 0", "k <= q", "k < q"]))
def test_naive_projections(n: int, data: st.DataObject, text: str) -> None:
    sizes = {name: data.draw(SMALL) for name in ("heads", "D_i", "D_hid", "D_o", "D_out")}
    masks = masks_of(text, n, n, sizes["heads"])
    weights = shapes.attention(*sizes.values(), encoding="absolute", positions=n)
    layer = one(lambda x, w: attended.attention(x, x, w, masks, encoding="absolute", naive=True))
    result = run(layer, weights, (n, sizes["D_i"]))
    check(result, "attention", {"n": n, **sizes}, rule=text, encoding="absolute", projections="naive")


@settings(max_examples=30)
@given(st.integers(1, 3), st.data(), st.sampled_from(["q >= 0", "k <= q", "k < q"]))
def test_naive_projections_of_relative_scores(n: int, data: st.DataObject, text: str) -> None:
    sizes = {name: data.draw(SMALL) for name in ("heads", "D_i", "D_hid", "D_o", "D_out")}
    D_p = data.draw(SMALL)
    masks = masks_of(text, n, n, sizes["heads"])
    weights = shapes.attention(*sizes.values(), encoding="relative", D_p=D_p)
    far = {shift: [0.1] * D_p for shift in range(-n, n)}
    options: dict[str, Any] = {"encoding": "relative", "naive": True, "shifts": far}
    result = run(one(lambda x, w: attended.attention(x, x, w, masks, **options)), weights, (n, sizes["D_i"]))
    layer = {"rule": text, "encoding": "relative", "projections": "naive"}
    check(result, "attention", {"n": n, "D_p": D_p, **sizes}, **layer)


def test_relative_scores_are_the_same_projected_once_or_for_every_pair() -> None:
    """Plain code both ways gives the same outputs."""
    n, sizes = 4, (2, 3, 2, 2, 3)
    source = Random(5)
    shape = shapes.attention(*sizes, encoding="relative", D_p=2)
    weights, x = shapes.filled(shape, source), shapes.fill((n, 3), source)
    far = {shift: [0.3 * shift, 1.0 - shift] for shift in range(-n, n)}
    masks = masks_of("k <= q", n, n, 2)
    both = [
        attended.attention(x, x, weights, masks, encoding="relative", shifts=far, naive=naive)
        for naive in (False, True)
    ]
    assert np.allclose(*both, atol=1e-12)


@pytest.mark.parametrize("D", [1, 2, 3, 5])
def test_a_naive_score_takes_four_terms(D: int) -> None:
    """Four terms of 2D(2D - 1) + 2D - 1 operations, and 3 adds between them."""
    weights = {"W_q": (1, D, D), "W_k": (1, D, D), "p": (1, D)}
    result = run(lambda x, w: [attended.naive_score(x, x, w, 0, "absolute")(0, 0)], weights, (1, D))
    assert result["multiplies"] + result["adds"] == 16 * D * D - 1


def test_a_formula_takes_every_size_that_any_quantity_has() -> None:
    """Key heads change no operation going forward, but the adds going back and what is cached."""
    general = lt.cost.attention("k <= q", kv_heads="kv_heads", D_o="D_o", projections=None)
    numbers: dict[str, Any] = {"n": 4, "heads": 4, "kv_heads": 2, "D_hid": 2, "D_o": 2}
    known, direct = general.at(**numbers), lt.cost.attention("k <= q", projections=None, **numbers)
    assert known.backward.adds == direct.backward.adds
    assert known.cache == direct.cache == 4 * 2 * (2 + 2)
