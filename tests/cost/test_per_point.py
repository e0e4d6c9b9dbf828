"""The price of one score, cell and decoding step: against plain code that counts, and lectures' formulas."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.cost.reader import from_text
from lattend.cost.reference import attention as plain
from lattend.cost.reference import shapes
from lattend.cost.reference.layers import plain_layer
from lattend.cost.reference.numbers import CountingTape, counting, plus, times
from lattend.errors import NamingError, NoClosedForm

SMALL = st.integers(1, 4)
NAIVE = "attention(encoding={}, projections=naive, D_i=D, D_hid=D, heads=1)"


def naive_operations(encoding: str, D: int) -> tuple[int, int]:
    """Multiplies and adds of one score, counted by running it."""
    names = ("W_q", "W_k", *(("p",) if encoding == "absolute" else ("W_r", "u", "v")))
    every = shapes.attention(1, D, D, D, D, encoding=encoding, D_p=D, positions=1)
    source, tape = Random(D), CountingTape()
    weights = counting(shapes.filled({name: every[name] for name in names}, source), tape)
    x = counting([[source.uniform(-1, 1) for _ in range(D)]], tape)
    plain.naive_score(x, x, weights, 0, encoding, {0: [0.3] * D})(0, 0)
    return tape.multiplies, tape.adds


@pytest.mark.parametrize("encoding", ["absolute", "relative"])
@pytest.mark.parametrize("D", [1, 2, 3, 5])
def test_one_score_against_running(encoding, D):
    score = from_text(NAIVE.format(encoding)).per("score")["score"].at(D=D)
    assert (score.multiplies, score.adds) == naive_operations(encoding, D)


def test_one_score_as_a_lecture_has_it():
    """Four terms of 2D(2D - 1) + 2D - 1 operations, and 3 adds; a dot product is not D operations."""
    score = from_text(NAIVE.format("absolute")).per("score")
    assert score.claim("operations", "16D^2 - 1")
    assert score.claim("operations", "4(2D(2D - 1) + 2D - 1) + 3")
    failed = score.claim("operations", "4(2D(2D - 1) + D - 1)")
    assert failed.status == "fails" and failed.readings == ("exactly (4D + 1)(4D - 1)",)
    assert not score.claim("operations", "O(D)").holds and score.claim("operations", "O(D^2)").holds
    assert from_text(NAIVE.format("relative")).per("score").claim("operations", "12D^2 + 2D - 1")


@pytest.mark.parametrize("rule", ["full", "strided(5)", "k < q", "windowed"])
def test_a_score_does_not_depend_on_the_rule_or_the_heads(rule):
    result = lt.cost.attention(rule).per("score")
    assert result.claim("operations", "2D_hid - 1")
    assert result.claim("its query and key operations", "2D_hid(2D_i - 1)")


@pytest.mark.parametrize(
    ("where", "multiplies", "adds"),
    [
        ("inner", "hc + 2h^2", "h(c - 1) + 2h(h - 1) + 2h"),
        ("edge", "hc + h^2", "h(c - 1) + h(h - 1) + h"),
        ("corner", "hc", "h(c - 1)"),
    ],
)
def test_cells_of_an_image(where, multiplies, adds):
    cells = lt.cost.rnn2d().per("cell")
    assert cells.claim(f"{where} multiplies", multiplies)
    assert cells.claim(f"{where} adds", adds)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_cells_add_up_to_the_image(cell, bias):
    """Inner cells, those at the top and at the left, and a corner, against runs of plain code."""
    cells = lt.cost.rnn2d(cell=cell, bias=bias).per("cell")
    edges = ("edge", "edge") if "edge" in cells.costs else ("top edge", "left edge")
    for rows, cols, h, c in ((1, 1, 2, 3), (1, 3, 1, 2), (3, 1, 2, 1), (3, 4, 2, 3)):
        ran = plain_layer("rnn2d", rows=rows, cols=cols, h=h, c=c, cell=cell, bias=bias).run().forward
        many = [("inner", (rows - 1) * (cols - 1)), (edges[0], cols - 1), (edges[1], rows - 1), ("corner", 1)]
        for quantity in ("multiplies", "adds", "functions"):
            known = cells.at(h=h, c=c)
            total = sum(times * known[name].total(quantity) for name, times in many)
            assert total == getattr(ran, quantity), quantity


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_cells_of_a_line_add_up(kind, bias):
    cells = getattr(lt.cost, kind)(layers="l", bias=bias).per("cell")
    for steps, layers, h, c in ((1, 2, 1, 2), (3, 2, 2, 1), (2, 4, 3, 2)):
        sizes: dict[str, Any] = {"inputs": c, "hidden": h, "bias": bias}
        ran = plain_layer(kind, steps=steps, layers=layers, **sizes).run().forward
        many = {"first layer": steps, "upper layer": steps * (layers - 1)}
        for quantity in ("multiplies", "adds", "functions"):
            known = cells.at(h=h, c=c)
            total = sum(times * known[name].total(quantity) for name, times in many.items())
            assert total == getattr(ran, quantity), quantity


@settings(max_examples=25)
@given(
    st.sampled_from(["causal", "strided(2)", "k < q", "windowed(3)", "k <= q and (q - k) % 2 == 0"]),
    st.integers(1, 6), SMALL, SMALL, SMALL, st.sampled_from([None, "shared"]),
)  # fmt: skip
def test_a_step_is_the_work_of_the_new_query(rule, n, heads, D_i, D_hid, projections):
    """Enumerated: the keys that query n attends to, and its own projections."""
    sizes = {"n": n, "heads": heads, "D_i": D_i, "D_hid": D_hid}
    step = lt.cost.attention(rule, projections=projections, **sizes).per("step")["step"]
    keys = int(lt.rule(rule).mask(n=n + 1)[n].sum())
    projected = 4 * D_i * heads * D_hid if projections else 0
    assert step.multiplies == heads * 2 * keys * D_hid + projected
    assert (step.exponentials, step.divisions) == (heads * keys, heads * keys)


def decoded(n: int, heads: int, D_i: int, D_hid: int) -> CountingTape:
    """What one token takes with n cached: its query, key and value are made, the other keys are read."""
    source, tape = Random(n), CountingTape()
    shape = shapes.attention(heads, D_i, D_hid, D_hid, D_i)
    weights = counting(shapes.filled(shape, source), tape)
    token = counting(shapes.fill((1, D_i), source), tape)
    q, k, v = (plain.project(token, weights, name) for name in "qkv")
    cached = [counting(shapes.fill((heads, n, D_hid), source), tape) for _ in "kv"]
    keys = [[*old, *new] for old, new in zip(cached[0], k, strict=True)]
    values = [[*old, *new] for old, new in zip(cached[1], v, strict=True)]
    mask = [[True] * (n + 1)]
    mixed = [plain.attend(plain.plain_score(q[h], keys[h]), values[h], mask)[0] for h in range(heads)]
    row = times(plain.columns(weights["W_out"]), [x for head in mixed for x in head])
    plus(row, weights["b_out"])
    return tape


@pytest.mark.parametrize(("n", "heads", "D_i", "D_hid"), [(1, 1, 1, 1), (3, 2, 4, 2), (6, 1, 3, 5)])
def test_a_step_against_decoding_with_a_cache(n, heads, D_i, D_hid):
    step = lt.cost.attention("causal").per("step")["step"].at(n=n, heads=heads, D_i=D_i, D_hid=D_hid)
    ran = decoded(n, heads, D_i, D_hid)
    for quantity in ("multiplies", "adds", "exponentials", "divisions"):
        assert step.value(quantity) == getattr(ran, quantity), quantity


@settings(max_examples=20)
@given(st.integers(0, 5), st.integers(1, 6))
def test_a_step_under_a_band_is_a_formula(t, n):
    step = lt.cost.attention("strided", heads=1, D_hid="d", projections=None).per("step")["step"]
    assert step.at(n=n, t=t, d=3).multiplies == 2 * 3 * min(n + 1, t + 1)


def test_a_step_of_cross_attention_reads_keys_that_are_there():
    """The keys of m other tokens were projected before the first step."""
    step = lt.cost.attention("full", m="m", heads=1, D_i="d", D_hid="d").per("step")
    assert step.claim("multiplies", "2 m d + 2 d^2")  # scores and mixing; the query and the output
    block = lt.cost.transformer_block("causal", cross="m", heads=1).per("step")
    assert block.claim("multiply-adds", "2 d(n + 1) + 2 d m + 14 d^2 + 3 d")


def test_steps_of_models():
    decoder = lt.cost.decoder(heads=1, n="t", d="n", layers="l").per("step")
    assert decoder.claim(
        "multiply-adds", "l(2n(t + 1) + 12n^2 + 2n)"
    )  # pairs; projections, feed-forward; norms
    assert decoder.cache is not None and str(decoder.cache.cache) == "2n*l*t"
    rnn = lt.cost.rnn(steps="t", inputs="n", hidden="n", layers="l").per("step")
    assert rnn.claim("multiplies", "2n^2 l")  # whatever t is
    made = [lt.cost.decoder(heads=1, n=t, d=4, layers=2) for t in range(1, 7)]
    total = sum(one.per("step")["step"].total("adds") for one in made[:-1])
    assert total == made[-1].total("adds") - made[0].total("adds")


@pytest.mark.parametrize(
    ("layer", "point", "message"),
    [
        ("attention", "step", 'rule "full" queries attend to later keys'),
        ("attention(k <= q and q < n - 1)", "step", "depends on n"),
        ("conv", "step", "not of conv"),
        ("vit", "step", "not of vit"),
        ("linear", "score", "a score is of one layer, attention, not of linear"),
        ("rnn + lstm", "cell", "a cell is of one layer"),
        ("2 * rnn2d", "cell", "a cell is of one layer"),
        ("rnn2d(directions=2)", "cell", "a cell is of one direction"),
        ("rnn2d", "pixel", "a price is per score, cell or step, not per pixel"),
    ],
)
def test_where_there_is_no_such_point(layer, point, message):
    with pytest.raises(NamingError, match=message):
        from_text(layer).per(point)


def test_what_is_not_said():
    cells = lt.cost.rnn2d().per("cell")
    with pytest.raises(NamingError, match="say of which, inner adds or edge adds or corner adds"):
        cells.claim("adds", "0")
    with pytest.raises(NamingError, match="there is no middle here; there is inner, edge, corner"):
        cells["middle"]
    with pytest.raises(NoClosedForm, match="n is divided in this count; give it a number"):
        lt.cost.attention("windowed(4)").per("step")
