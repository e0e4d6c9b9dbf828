"""Costs that are checked by running: what is run, what is compared, and that a wrong formula is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.cost.check import MOST
from lattend.cost.layers.tokenwise import positions
from lattend.cost.reader import layer_names

C = lt.cost
SMALL: dict[str, dict[str, Any]] = {
    "linear": {"n": 2, "d_in": 3, "d_out": 4},
    "feed_forward": {"n": 2, "d": 3, "hidden": 4},
    "norm": {"n": 2, "d": 3},
    "embedding": {"n": 2, "vocabulary": 5, "d": 3},
    "conv": {"rows": 4, "cols": 5, "c_in": 2, "c_out": 3},
    "patch_embedding": {"rows": 33, "cols": 16, "d": 2},
    "rnn": {"t": 3, "h": 2, "c": 4},
    "lstm": {"t": 3, "h": 2, "c": 4},
    "gru": {"t": 3, "h": 2, "c": 4},
    "rnn2d": {"n": 3, "h": 2, "c": 4},
    "attention": {"n": 3, "heads": 2, "D_i": 3, "D_hid": 2},
    "transformer_block": {"n": 3, "d": 4, "heads": 2, "D": 2},
    "encoder": {"n": 3, "d": 4, "heads": 2, "D": 2, "l": 2},
    "decoder": {"n": 3, "d": 4, "heads": 2, "D": 2, "l": 2},
    "vae": {"n": 2, "d": 3, "hidden": 2, "z": 2},
}


@pytest.mark.parametrize("name", [name for name in layer_names() if name != "vit"])  # whose sizes are numbers
def test_every_layer_that_runs(name: str) -> None:
    result = getattr(C, name)().check(**SMALL[name])
    assert result, str(result)
    assert SMALL[name].items() <= result.values.items()
    assert [row.quantity for row in result.rows][:2] == ["parameters", "sequential depth"]


@pytest.mark.parametrize(
    "cost",
    [
        C.linear(n=2, d_in=3, d_out=4, bias=False),
        C.feed_forward(n=2, d=3, hidden=4, gated=True),
        C.feed_forward(n=2, d=3, hidden=4, activation=False),
        C.norm(n=2, d=3, kind="rms"),
        C.lstm(steps=3, inputs=2, hidden=3, layers=2, bias=True, initial=False),
        C.rnn2d(rows=2, cols=3, h=2, c=2, cell="gru", directions=4, layers=2, bias=True),
        3 * C.rnn(steps=2, inputs=2, hidden=2) + C.linear(n=2, d_in=2, d_out=1).named("head"),
    ],
    ids=lambda cost: cost.name,
)
def test_options_sums_and_repeats(cost: lt.cost.Cost) -> None:
    result = cost.check()
    assert result, str(result)
    assert result.rows[0].counted == cost.total("parameters") > 0


@settings(max_examples=25)
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.sampled_from(["valid", "same", 1, (2, 0)]),
    st.sampled_from(["zeros", "replicate"]),
    st.integers(1, 2),
)
def test_convolutions(
    image: tuple[int, int],
    kernel: tuple[int, int],
    dilation: tuple[int, int],
    padding: Any,
    mode: str,
    groups: int,
) -> None:
    pads = {"valid": (0, 0), "same": (4, 4), 1: (1, 1), (2, 0): (2, 0)}[padding]
    for size, taps, apart, pad in zip(image, kernel, dilation, pads, strict=True):
        assume(size + 2 * pad > apart * (taps - 1))
    sizes: dict[str, Any] = {"rows": image[0], "cols": image[1], "c_in": 2, "c_out": 2, "groups": groups}
    options: dict[str, Any] = {"padding": padding, "padding_mode": mode, "dilation": dilation}
    result = C.conv(kernel=kernel, **sizes, **options).check()
    assert result, str(result)


def test_the_table() -> None:
    text = str(C.rnn2d().check(n=4, h=3, c=2))
    title, _, *table = text.splitlines()
    assert title == "rnn2d at n = 4, h = 3, c = 2, run on numbers that count themselves"
    rows = [" ".join(line.split()) for line in table]
    assert rows[0] == "formula number counted"
    assert "multiplies n*h(2n*h + n*c - 2h) 312 312 equal" in rows  # 16*3*2 + 2*4*3*9
    assert "sequential depth 2n - 1 7 7 equal" in rows
    assert not any("exponentials" in row for row in rows)
    assert max(map(len, C.rnn2d().check(n=4, h=3, c=2).text(70).splitlines())) <= 70
    assert "formula" not in str(C.rnn2d(n=4, h=3, c=2).check())  # there are none


def test_a_wrong_formula_is_found() -> None:
    right = C.rnn2d()
    ((times, layer),) = right.parts
    wrong = replace(right, parts=((times, replace(layer, statements=layer.statements[:-1])),))
    result = wrong.check(n=3, h=2, c=2)
    assert not result
    different = {row.quantity for row in result.rows if not row.equal}
    assert different == {"functions", "backward functions", "backward multiplies"}
    line = next(line for line in str(result).splitlines() if line.startswith("functions"))
    assert line.split() == ["functions", "0", "18", "differs"]
    data = result.json()
    assert data["equal"] is False
    assert {"quantity": "functions", "formula": "0", "number": 0, "counted": 18, "equal": False} in data[
        "rows"
    ]


def test_numbers_may_come_in_parts() -> None:
    result = C.rnn2d().at(n=3).backward.dense.check(h=2, c=1)
    assert result
    assert result.values == {"n": 3, "h": 2, "c": 1}
    assert str(result.rows[0].formula) == "h(2h + c)"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: C.rnn2d().check(n=3), lt.errors.NamingError, "number for every size: give c=…, h=…"),
        (lambda: C.rnn2d().check(k=3), lt.errors.NamingError, "rnn2d has no k; it has n, c, h"),
        (positions().check, lt.errors.NamingError, "positions has no plain code to run; every layer that"),
        ((C.rnn() + positions()).check, lt.errors.NamingError, r"rnn \+ positions has no plain code to run"),
        (
            lambda: C.rnn2d().check(n=100, h=32, c=3),
            lt.errors.TooLarge,
            f"numbers and operations at these sizes, and a run at most {MOST:,}; give smaller sizes",
        ),
        (
            lambda: C.embedding().check(n=1, vocabulary=10**7, d=1),
            lt.errors.TooLarge,
            "has 10,000,000 numbers",
        ),
        (
            lambda: C.embedding().check(n=3, vocabulary=2, d=1),
            lt.errors.DomainError,
            "for different tokens, and 3 are more than the 2 there are",
        ),
        (lambda: C.rnn2d().check(n=0, h=1, c=1), lt.errors.DomainError, "needs n >= 1, got n = 0"),
    ],
)
def test_what_cannot_be_run_is_said(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_sizes_given_when_the_cost_was_made_are_said() -> None:
    result = C.rnn2d(rows=2, cols=3).check(h=2, c=1)
    assert str(result).splitlines()[0].startswith("rnn2d at rows = 2, cols = 3, h = 2, c = 1, run on")
