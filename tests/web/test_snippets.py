"""What is copied from a panel runs as it stands, and prints the numbers that the panel shows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from web.latex_check import faults
from web.page_texts import text_of
from web.questions import good_questions

from lattend.cli.main import main
from lattend.web.panels import PANELS
from lattend.web.worker import reply

Question = dict[str, Any]
ANSWERED = (0, 1)  # exit codes: yes and no
NO_COPIES = ("start", "questions", "ask", "tiles", "layers")  # no panels, but what pages need to work
OTHERS: dict[str, list[Question]] = {  # where a page's own question is slow, or asked only after a click
    "cache": [{"rule": "strided", "numbers": {"t": 3}}],
    "cost_claim": [{"layer": "rnn2d", "claim": "multiplies: n"}],
    "elbo_linear": [{"size": 2, "latent": 1, "examples": 1}],
    "same": [{"rule": "strided", "other": "windowed(4)", "numbers": {"t": 3}}],
    "shared": [{"rule": "causal", "other": "strided(3)"}],
}


def cells(report: dict[str, Any]) -> list[str]:
    """All that stands in the tables and facts of a report."""
    return [
        line
        for part in report["parts"]
        for row in part["rows"]
        for cell in row
        for line in text_of(cell).split("\n")
    ]


def lines(formula: dict[str, Any]) -> list[str]:
    return [*formula["text"].splitlines()]


# What a panel shows above all, and both its Python and its command print
SHOWN: dict[str, Callable[[Any], list[str]]] = {
    "read": lambda found: [found["text"]],
    "other": lambda found: [found["text"]],
    "count": lambda found: [found["value"]] if found["value"] else lines(found["partly"] or found["formula"]),
    "claim": lambda found: [found["verdict"]["sentence"]],
    "keys": lambda found: [*lines(found["per_query"]), *lines(found["per_key"])],
    "growth": lambda found: [found["order"]["text"]],
    "reach": lambda found: [found["spans"][0]["most"]["text"].splitlines()[0].split("  ")[0]],
    "field": lambda found: [found["text"], *lines(found["keys"]), found["sees"]],
    "first_layers": lambda found: [
        "".join("·" if layer < 0 else str(layer) for layer in row[:8])  # long rows are printed in blocks
        for row in found["layers"]
    ],
    "cache": lambda found: [found["sentence"]],
    "rules": lambda found: [found["name"]],
    "same": lambda found: [] if found["first"] is None else [str(tuple(found["first"]["pair"].values()))],
    "shared": lambda found: [
        line for part in found["parts"] for line in (part["value"], *lines(part["formula"]))
    ],
    "draw": lambda found: found["caption"],
    "game": lambda found: cells(found["report"]),
    "game_field": lambda found: [part for one in found["rests"] for part in one["text"].split(": ", 1)],
    "game_outcome": lambda found: [
        text_of(one["words"]) for one in found["outcomes"] if one["kind"] != "undecided"
    ],
    "game_steps": lambda found: cells(found["report"]),
    "steer": lambda found: cells(found["report"]),
    "try_query": lambda found: cells(found["report"]),
    "conv": lambda found: [found["leak"]],
    "conv_leak": lambda found: [found["leak"]],
    "conv_error": lambda found: [found["error"], found["bound"]],
    "conv_price": lambda found: [words for _, words in found["facts"]],
    "conv_same": lambda found: [text for one in found["same"] for text in (one["words"], one["number"])],
    "grid": lambda found: [str(found["depth"]), found["words"]],
    "grid_price": lambda found: [one["number"] for one in found["prices"]],
    "grid_check": lambda found: cells(found["report"]),
    "grid_diagram": lambda found: [words for _, words in found["facts"]],
    "patches": lambda found: [fact["words"] for fact in found["facts"]],
    "patches_price": lambda found: [
        found["parts"][2]["parameters"],
        *(one["multiplies"] for one in found["parts"]),
    ],
    "scores": lambda found: [words for _, words in found["facts"]],
    "elbo": lambda found: [term["text"] for term in found["bound"]["terms"]],
    "elbo_discrete": lambda found: [term["text"] for term in found["bound"]["terms"]],
    "elbo_linear": cells,
    "explain": lambda found: [one["pairs"] for one in found["amounts"]],
    "tile_map": lambda found: [str(sum(map(sum, found["executed"])))],
    "rule_cost": lambda found: [one["needed"] for one in found["quantities"]],
    "work": lambda found: [
        number["decimal"] for table in found["steps"][-1]["tables"] for row in table for number in row
    ],
    "check": lambda found: [found["summary"]],
    "heads_moment": lambda found: [cell for row in found["table"]["rows"] for cell in row],
    "heads_findings": lambda found: cells(found["report"]),
    "derive": lambda found: [found["title"], found["given"]],
    "cost": lambda found: [number for row in found["work"] for number in row["numbers"][:1]],
    "cost_claim": lambda found: [found["verdict"]["sentence"]],
    "cost_check": lambda found: cells(found["report"]),
    "compare": lambda found: [
        layer["formula"]["pieces"][0]["when"] and layer["label"] for layer in found["layers"]
    ],
    "tables": lambda found: [cells(found["architectures"])[1], found["train_test"]["title"]],
    "model": lambda found: [found["parameters"], *found["multiply_adds"], *cells(found["formulas"])],
}


def answer(panel: str, question: Question) -> dict[str, Any]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return json.loads(body) if status == 200 else {}


@cache
def questions() -> list[tuple[str, Question]]:
    """All that pages and examples ask of panels, the first of each panel before the others."""
    asked = {name: OTHERS.get(name, good) for name, good in good_questions().items() if name not in NO_COPIES}
    return [(name, one) for name, several in asked.items() for one in several]


def first_of_each() -> list[tuple[str, Question]]:
    found: dict[str, Question] = {}
    for name, question in questions():
        found.setdefault(name, question)
    return [*found.items()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which copies run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_python(copied: str) -> None:
    exec(copied, {"__name__": "__main__"})


def split_commands(copied: str) -> list[list[str]]:
    """The words of each command; a quoted rule may be of several lines."""
    found: list[list[str]] = []
    begun = ""
    for line in copied.splitlines(keepends=True):
        begun += line
        try:
            found.append(shlex.split(begun))
            begun = ""
        except ValueError:  # a quote that is not closed on this line
            continue
    assert not begun, f"a quote is not closed: {begun}"
    return found


def run_command(copied: str) -> None:
    for words in split_commands(copied):
        if words[0] == "echo":  # what a person wrote, into the file that the next line reads
            _, text, arrow, name = words
            assert arrow == ">"
            Path(name).write_text(text)
        else:
            assert words[0] == "lattend"
            assert main(words[1:]) in ANSWERED


def plain(text: str) -> str:
    """Without what differs by the width of a line and by the way in which a number is written."""
    found = "".join(text.split()).replace(",", "").replace("\N{MINUS SIGN}", "-")
    return re.sub(r"(?<=\de)([-+]?)0(?=\d)", r"\1", found)


def missing(panel: str, found: dict[str, Any], printed: str) -> list[str]:
    """What the panel shows and was not printed."""
    shown = SHOWN[panel](found) if panel in SHOWN else []
    return [text for text in shown if plain(text) not in plain(printed)]


def check(panel: str, question: Question, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(panel, question)
    assert found, "the panel has no answer"
    copies = found["copies"]
    Path("config.json").write_text(json.dumps(question.get("config")))
    for run, copied in ((run_python, copies["python"]), (run_command, copies["command"])):
        capsys.readouterr()
        run(copied)
        printed = capsys.readouterr().out
        assert bool(printed.strip()) == bool(copied), f"printed nothing: {copied}"
        assert not copied or missing(panel, found, printed) == [], copied
    assert not faults(copies["latex"]), copies["latex"]


@pytest.mark.parametrize("panel", [name for name in PANELS if name not in NO_COPIES])
def test_copies_run_and_print_what_the_panel_shows(
    panel: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = dict(first_of_each())[panel]
    check(panel, question, capsys)
    copies = answer(panel, question)["copies"]
    assert copies["python"]
    assert copies["command"]
    assert copies["latex"]


@pytest.mark.long
def test_copies_of_every_example_run_and_print_what_the_panel_shows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for panel, question in questions():
        if answer(panel, question):  # some rules of the examples have no formula
            check(panel, question, capsys)


def test_a_copy_says_all_that_was_set() -> None:
    config = dict(first_of_each())["model"]["config"]
    asked: Question = {"config": config, "length": 64}
    assert answer("model", asked)["copies"]["command"] == "lattend cost config.json --length 64 --formulas"
    more = answer("model", asked | {"training": True, "batch": 2})["copies"]["command"]
    assert more == "lattend cost config.json --length 64 --batch 2 --training --formulas"
    rules = {"rule": "strided", "other": "windowed(4)"}
    assert answer("same", rules)["copies"]["command"] == "lattend same strided 'windowed(4)'"
    at_numbers = answer("same", rules | {"numbers": {"t": 3}})["copies"]["command"]
    assert at_numbers == "lattend same strided 'windowed(4)' --at t=3"


def test_a_grid_is_copied_as_tikz_while_it_is_small() -> None:
    small = answer("draw", {"rule": "causal", "numbers": {"n": 4}})["copies"]["latex"]
    assert small.count(r"\fill[") >= 4 and r"\begin{tikzpicture}" in small
    stripes = {"rule": "(7*q + 3*k) % 5 == 1", "other": "causal", "numbers": {"n": 190}}
    sets = answer("draw", stripes)["copies"]["latex"]
    assert sets.count(r"\left\{ (q, k)") == 2 and not faults(sets)


def test_a_rule_is_copied_as_a_set() -> None:
    written = r"\left\{ (q, k) \;\middle|\; 0 \le q, k < n,\; k \le q \wedge q - k \le t \right\}"
    assert answer("read", {"rule": "strided"})["copies"]["latex"] == written
    assert answer("other", {"other": "k <= q and q - k <= t"})["copies"]["latex"] == written
    assert rf"\text{{strided}} &= {written}" in answer("rules", {"rule": "strided"})["copies"]["latex"]


@pytest.mark.parametrize("rule", ["full", "swin(4, 2)"])
def test_where_there_is_no_cache_the_copies_say_why(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer("cache", {"rule": rule})
    for run, form in ((run_python, "python"), (run_command, "command")):
        run(found["copies"][form])
        assert plain(f"no cache: {found['no_cache']}") in plain(capsys.readouterr().out)
    assert not found["copies"]["latex"], "a reason is no formula"


def test_the_cache_is_copied_in_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes depend on a dtype, which the panel does not ask for."""
    found = answer("cache", {"rule": "strided", "numbers": {"t": 3}})
    run_python(found["copies"]["python"])
    assert capsys.readouterr().out == found["sentence"] + "\n"


def test_numbers_of_both_rules_go_into_their_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check("shared", {"rule": "strided", "other": "windowed", "numbers": {"t": 3, "w": 4}}, capsys)


def test_sizes_go_into_the_counts_of_two_rules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = {"rule": "strided(3)", "other": "causal", "numbers": {"n": 32768}}
    check("shared", question, capsys)
    check("same", question, capsys)
    found = answer("shared", question)
    assert [part["value"] for part in found["parts"]] == ["131,066", "0", "536,756,230"]  # 4n - 6 of n(n+1)/2
    command = "lattend same 'strided(3)' causal --at n=32768 --count"
    assert command in found["copies"]["command"].splitlines()
    assert r"\left| A \cap B \right| &= 131{,}066 \quad \text{at } n = 32{,}768" in found["copies"]["latex"]


def test_counts_of_rules_that_look_up_data_are_copied(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer("shared", {"rule": "documents([5, 3, 4])", "other": "causal", "numbers": {"n": 12}})
    run_python(found["copies"]["python"])
    assert capsys.readouterr().out.split() == [part["value"] for part in found["parts"]] == ["31", "19", "47"]
    assert not found["copies"]["command"], "it does not compare such rules"


def test_two_rules_are_copied_as_sets() -> None:
    same, different = ({"rule": "causal", "other": other} for other in ("not k > q", "strided(3)"))
    assert answer("same", same)["copies"]["latex"].endswith("A &= B\n\\end{aligned}")
    latex = answer("same", different)["copies"]["latex"]
    assert r"A &\ne B" in latex
    assert latex.count(r"\left\{ (q, k)") == 2


def test_the_pixel_goes_into_the_map_of_first_layers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = {"rows": 4, "cols": 5}
    check("first_layers", {"rule": "neighbourhood(1)", "numbers": numbers, "pixel": [0, 1]}, capsys)


@pytest.mark.parametrize(
    ("claim", "latex"),
    [
        ("n(n+1)/2", r"\text{count} = \frac{n (n + 1)}{2} \quad \text{for } n \ge 0"),
        ("O(n)", r"\text{count} \ne O\left(n\right)"),
        ("m", r"\text{count} \overset{?}{=} m"),
        (
            "C = n = 1",
            "\\begin{aligned}\nC &\\ne n \\quad \\text{but where } n \\le 1 \\\\\n"
            "&\\text{at } n = 2 \\colon\\; 3 \\ne 2 \\\\\n"
            "n &\\ne 1 \\quad \\text{but where } n = 1 \\\\\n"
            "&\\text{at } n = 2 \\colon\\; 2 \\ne 1\n\\end{aligned}",
        ),
    ],
)
def test_a_claim_is_copied_with_its_verdict(claim: str, latex: str) -> None:
    assert answer("claim", {"rule": "causal", "claim": claim})["copies"]["latex"] == latex


def test_a_claim_that_holds_somewhere_is_copied_with_the_places() -> None:
    latex = answer("claim", {"rule": "windowed", "claim": "n*(w+1)/2"})["copies"]["latex"]
    assert r"\quad \text{only where } w \mid n" in latex
    assert r"\text{at } n = 1, w = 2 \colon\; 1 \ne 3/2" in latex
    price = answer("cost_claim", {"layer": "rnn2d", "claim": "multiplies: n"})["copies"]["latex"]
    assert r"\text{multiplies} &\ne n" in price


def test_a_receptive_field_is_copied_as_mathematics() -> None:
    latex = answer("field", {"rule": "strided", "layers": 2})["copies"]["latex"]
    assert r"\max (q - k) &= \begin{cases}" in latex
    assert "{-}" not in latex
