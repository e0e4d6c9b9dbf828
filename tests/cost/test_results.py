"""What every result answers to, and quantities by name and label."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
import torch

import lattend as lt
from lattend.cost.reader import from_text
from lattend.cost.result import QUANTITIES, MultiplyAdds, Result, label, label_and_name, quantity_named
from lattend.errors import NamingError
from lattend.report.table import Table

SMALL = {"model_type": "gpt2", "vocab_size": 11, "n_positions": 8, "n_embd": 4, "n_layer": 2, "n_head": 2}
RESULTS: dict[str, Result] = {
    "formulas": lt.cost.linear(n=8, d_in=4, d_out=4, bias=False),
    "a configuration": lt.cost.config(SMALL).forward(8),
    "a module": lt.cost.of(torch.nn.Linear(4, 4, bias=False), (8, 4)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_has_the_same_names_and_the_same_table(name: str) -> None:
    result = RESULTS[name]
    assert isinstance(result.multiply_adds, MultiplyAdds)
    title, empty, head, parameters, multiply_adds, *_ = str(result).splitlines()
    assert (title, empty) == (result.heading, "")
    assert head.replace(", 64 × 64 tiles", "").split() == ["needed", "executed", "dense"]
    assert parameters.split() == ["parameters", f"{result.parameters:,}", "=", "="]
    assert multiply_adds.split()[:2] == ["multiply-adds", f"{result.multiply_adds.needed:,}"]
    data = json.loads(json.dumps(result.json()))
    assert data["parameters"] == result.parameters
    assert data["multiply_adds"] == result.multiply_adds._asdict()


@pytest.mark.parametrize("name", RESULTS)
def test_a_notebook_shows_short_tables(name: str) -> None:
    result = RESULTS[name]
    page = ElementTree.fromstring(f"<div>{result._repr_html_()}</div>")
    assert page.findall("table")
    assert not hasattr(result, "_repr_latex_")  # one unlabelled number
    assert repr(result).startswith(f"<{type(result).__name__} of {result.heading}: parameters ")
    assert len(repr(result)) < 200


def test_the_same_layer_by_formula_and_by_running_it() -> None:
    assert RESULTS["formulas"].multiply_adds == RESULTS["a module"].multiply_adds == (128, 128, 128)


def test_a_configuration_in_a_notebook() -> None:
    model = lt.cost.config(SMALL)
    assert repr(model) == (
        "<Model gpt2: causal language model, head shared with the table; 2 layers, width 4; parameters 572>"
    )
    assert len(model._repr_html_()) < 5000


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
