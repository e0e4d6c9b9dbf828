"""Every kind of result shows itself in a notebook; a new one cannot be forgotten."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module
from xml.etree import ElementTree

import pytest
from made_results import RESULTS

import lattend
import lattend as lt
from lattend.integrations.notebook import rule_forms
from lattend.report.report import Printed
from lattend.report.shown import Drawn

SLOW = {"Completion"}  # trains for seconds; its tests are its own
PARTS_OF_PAGES = ("lattend.web", "lattend.cli", "lattend.tour", "lattend.ask")
FORMS = ("json", "report", "svg", "draw", "latex")
# What has such a method and is no result that a person is given by itself
NO_RESULTS = {
    *("Printed", "Shown", "Drawn", "Data", "RuleForms"),  # what results are made with
    *("Report", "Table", "Facts"),  # what they print
    *("Bars", "Chart", "Sample"),  # parts of pictures
    *("ModelAnswer", "ModuleCost", "Tally"),  # rows of tables
    *("HeadMoment", "HeadRun", "Measures"),  # parts of a record
    *("Cuts",),  # parts of formulas
    *("DiscreteModel", "Recall"),  # make results
    *("KernelCrossover",),  # a line of explain
}
# Shown with the result that they are part of, and like it
PARTS = {
    "DerivedLine",
    "Step",
    "Judgement",
    "Crossover",
    "Result",
    "EvidenceBound",
    "Identity",
    "Architectures",
}
PARTS |= {"FieldMap", "TileMap", "GridCheck"}


def classes() -> dict[str, type]:
    """The public classes of the library that can write or draw themselves, by name."""
    found: dict[str, type] = {}
    for file in pkgutil.walk_packages(lattend.__path__, "lattend."):
        if file.name.startswith(PARTS_OF_PAGES) or file.name.endswith("__main__"):
            continue
        module = import_module(file.name)
        for name, value in vars(module).items():
            own = inspect.isclass(value) and value.__module__ == file.name and not name.startswith("_")
            if own and any(callable(getattr(value, form, None)) for form in FORMS):
                found[name] = value
    return found


def test_every_result_shows_itself() -> None:
    found = classes()
    results = {name: kind for name, kind in found.items() if name not in NO_RESULTS}
    silent = [name for name, kind in results.items() if not hasattr(kind, "_repr_mimebundle_")]
    assert silent == [], "make them Shown, or say in NO_RESULTS what they are"
    missing = {*results} - {*RESULTS} - PARTS
    assert missing == set(), "give one of each in made_results.py"
    assert {
        *found,
        "Shown",
        "Drawn",
        "Data",
        "Printed",
        "RuleForms",
    } >= NO_RESULTS | PARTS  # none is out of date


@pytest.mark.parametrize("name", [name for name in RESULTS if name not in SLOW])
def test_bundles(name: str) -> None:
    result = RESULTS[name]()
    assert type(result).__name__ == name
    found = result._repr_mimebundle_(include=None, exclude=None)
    assert found["text/plain"]
    if isinstance(result, (Printed, Drawn, lt.Rule, lt.Bias, lt.KVCache)):
        assert found["text/html"].startswith('<div class="lattend"><style>')
    for kind in ("text/html", "image/svg+xml"):
        if kind in found:
            ElementTree.fromstring(
                found[kind].replace("<br>", "<br/>")
            )  # well formed: what follows in the notebook is not swallowed
            assert not re.search(
                r"https?://(?!www\.w3\.org)|<script|\bid=", found[kind]
            )  # offline, twice on a page
    if "image/svg+xml" in found:
        assert found["text/html"].count("<svg") == found["image/svg+xml"].count("<svg")
    if latex := found.get("text/latex"):
        assert latex.startswith("$") and latex.endswith("$") and latex.count("{") == latex.count("}")


def test_a_bias_and_a_cache_say_what_they_hold() -> None:
    bias = RESULTS["Bias"]()._repr_html_()
    assert "<b>Bias -slope[head]*(q - k)</b>" in bias
    cells = re.findall("<td[^>]*>(.*?)</td>", bias)
    assert cells == ["slope", "(2)", "float32", "fixed"]
    assert "<table" not in lt.Bias("q - k")._repr_html_()
    found = RESULTS["KVCache"]()._repr_html_()
    assert "<b>KVCache of k &lt;= q and q - k &lt;= t with t = 3</b>" in found
    assert ">128</td>" in found  # 4 slots of 4 + 4 numbers of 4 bytes
    assert "key k is kept until query k + 3" in found


def test_a_result_without_a_picture() -> None:
    class Undrawn(Drawn):
        def draw(self) -> object:
            raise lt.errors.DomainError("n has no number")

        def __str__(self) -> str:
            return "undrawn"

    assert Undrawn()._repr_mimebundle_() == {"text/plain": "undrawn"}


@pytest.mark.parametrize("name", [*lt.rules.CATALOGUE])
def test_rules_of_the_catalogue(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_forms, "SECONDS", 60.0)
    rule = lt.rule(name)
    assert rule.about is not None
    found = rule._repr_mimebundle_()
    assert ("<svg" in found["text/html"]) == (not rule.open)
    assert ("Attended pairs" in found["text/html"]) == (not rule.open)
    assert rule.about.meaning.split("`")[0][:20] in found["text/html"]
    ElementTree.fromstring(found["text/html"])


def test_a_rule_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_forms, "SECONDS", 60.0)
    found = lt.rule("strided(3)").at(n=8)._repr_mimebundle_()  # 1 + 2 + 3 + 5*4
    assert "Attended pairs: 26<" in found["text/html"]
    assert found["text/plain"] == "<Rule k <= q and q - k <= t with t = 3, n = 8>"


def test_a_count_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_forms, "SECONDS", 0.0)
    html = lt.rule("q - 3*k <= t or k + q % 7 <= 2*t")._repr_mimebundle_()["text/html"]
    assert "<svg" in html and "Attended pairs" not in html


@pytest.mark.parametrize("text", ["q*k < 40", "head*q >= k", "q*q + k*k <= r*r", "k > q and k < q"])
def test_rules_that_are_odd(text: str) -> None:
    assert "<svg" in lt.rule(text)._repr_mimebundle_()["text/html"]


def test_a_rule_whose_arrays_come_later() -> None:
    html = lt.rule("doc[q] == doc[k]", data={"doc": None})._repr_mimebundle_()["text/html"]
    assert "<code>doc[q] == doc[k]</code>" in html and "<svg" not in html


def test_a_verdict_says_it_in_colour_and_in_words() -> None:
    count = lt.rule("k <= q").count()
    for claim, look in (("n(n + 1)/2", "good"), ("n^2", "bad")):
        html = count.claim(claim)._repr_mimebundle_()["text/html"]
        assert f'<code>{claim}</code>: <span class="{look}">' in html
    assert "left side" not in html and "at n = 2 it gives 4, the count is 3" in html


def test_an_order_of_growth_is_typeset() -> None:
    count = lt.rule("k <= q and q - k <= t").count()
    assert count.order("n")._repr_mimebundle_()["text/latex"] == r"$\displaystyle O\left(n\right)$"
    assert r"O\left(n t\right) & \text{if } t \le n" in count.order()._repr_mimebundle_()["text/latex"]
