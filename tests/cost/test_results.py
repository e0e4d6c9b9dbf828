"""Results as they are printed: short reprs, tables that fit, tables of a notebook; one protocol for all."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
import torch

import lattend as lt
from lattend.cost.result import MultiplyAdds, Result

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
