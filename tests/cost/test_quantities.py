"""Quantities: every label of a table may be typed as the name of a claim."""

import pytest

import lattend as lt
from lattend.cost.reader import from_text
from lattend.cost.result import QUANTITIES, label, label_and_name, quantity_named
from lattend.errors import NamingError
from lattend.report.table import Table


def test_names_labels_and_both_are_read():
    for name in QUANTITIES:
        for text in (name, label(name), label_and_name(name), label(name).upper(), name.replace("_", "-")):
            assert quantity_named(text) == name


@pytest.mark.parametrize("layer", ["rnn2d", "decoder(heads=1)", "conv(padding=1)", "lstm(layers=l)"])
def test_what_a_table_prints_may_be_claimed(layer):
    """Every label in front of a formula, typed with the formula behind it, holds."""
    cost = from_text(layer)
    totals, *_, lines = cost.report().parts
    assert isinstance(totals, Table) and isinstance(lines, Table)
    told = {row[0]: row[1] for row in (*totals.rows, *lines.rows)}
    told = {name: formula for name, formula in told.items() if name not in ("schedule", "mixes tokens")}
    assert {"parameters", "operations, × and +", "sequential depth (depth)"} <= set(told)
    for name, formula in told.items():
        if not formula.startswith("known when") and "\n" not in formula:
            assert cost.claim(name, formula), name


def test_operations_are_multiplies_and_adds():
    cost = lt.cost.rnn2d(n=4, h=3, c=2)
    assert (cost.operations, cost.multiplies, cost.adds) == (312 + 264, 312, 264)
    assert cost.json()["operations"] == {"needed": 576, "executed": 720, "dense": 720}
    assert lt.cost.linear(n=1, d_in="D", d_out="D", bias=False).claim("operations", "D(2D - 1)")
    assert lt.cost.linear(n=1, d_in="D", d_out=1, bias=False).latex("operations") == "2D - 1"


def test_words_that_mean_another():
    with pytest.raises(NamingError, match=r"no flops; it has parameters, .*Did you mean operations\?"):
        lt.cost.rnn2d().order("flops")
    with pytest.raises(NamingError, match="scalar_depth is known when every size has a number: give n=…"):
        lt.cost.rnn2d().claim("scalar depth", "n")
