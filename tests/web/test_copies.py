"""What is copied from a panel runs as it stands, and says what the panel was asked."""

from __future__ import annotations

import json
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from web.questions import good_questions

from lattend.cli.main import main
from lattend.web.panels import PANELS
from lattend.web.worker import reply

Question = dict[str, Any]
ANSWERED = (0, 1)  # exit codes: yes and no
NO_COPIES = ("start", "questions", "ask", "tiles", "layers")  # no panels, but what pages need to work
OTHERS: dict[str, Question] = {  # where a page's own question is slow, or asked only after a click
    "cost_claim": {"layer": "rnn2d", "claim": "multiplies: n"},
    "elbo_linear": {"size": 2, "latent": 1, "examples": 1},
    "shared": {"rule": "causal", "other": "strided(3)"},
}
GOOD = good_questions()


def answer(panel: str, question: Question) -> dict[str, Any]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return json.loads(body) if status == 200 else {}


@cache
def example(panel: str) -> tuple[Question, dict[str, str]]:
    """The first question of a page or an example that this panel answers, and the copies of the answer."""
    for question in [OTHERS[panel]] if panel in OTHERS else GOOD[panel]:
        if found := answer(panel, question):
            return question, found["copies"]
    raise AssertionError(f"no page asks {panel} anything that it answers")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which copies run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("panel", [name for name in PANELS if name not in NO_COPIES])
def test_copied_python_runs(panel: str, folder: Path) -> None:
    question, copies = example(panel)
    if panel == "cache" and not copies["python"]:  # a cache needs every number of its rule
        copies = answer(panel, {"rule": question["rule"], "numbers": {"t": 3}})["copies"]
    assert copies["python"]
    exec(copies["python"], {})


@pytest.mark.parametrize("panel", [name for name in PANELS if name not in NO_COPIES])
def test_copied_commands_run(panel: str, folder: Path) -> None:
    question, copies = example(panel)
    (folder / "config.json").write_text(json.dumps(question.get("config")))
    for line in copies["command"].splitlines():
        words = shlex.split(line)
        if words[0] == "echo":  # what a person wrote, into the file that the next line reads
            _, text, arrow, name = words
            assert arrow == ">"
            Path(name).write_text(text)
        else:
            assert words[0] == "lattend"
            assert main(words[1:]) in ANSWERED


def test_a_command_that_cannot_say_what_was_set_is_left_out() -> None:
    config = example("model")[0]["config"]
    asked: Question = {"config": config, "length": 64}
    assert answer("model", asked)["copies"]["command"] == "lattend cost config.json --length 64"
    assert not answer("model", asked | {"training": True})["copies"]["command"]
    assert not answer("model", asked | {"batch": 2})["copies"]["command"]
    rules = {"rule": "strided", "other": "windowed(4)"}
    assert answer("same", rules)["copies"]["command"] == "lattend same strided 'windowed(4)'"
    assert not answer("same", rules | {"numbers": {"t": 3}})["copies"]["command"]
    assert not example("heads")[1]["command"]


def test_copied_python_gives_the_numbers_of_its_panel(folder: Path) -> None:
    kernel = {"kernel": "3", "padding": "valid", "size": "6x7", "alpha": 1.5}
    error = answer("conv_error", kernel | {"filter": "sharpen"})
    held: dict[str, Any] = {}
    exec(error["copies"]["python"], held)
    assert f"{held['trial'].error:.3g}" == f"{float(error['error']):.3g}"
    leak = answer("conv_leak", kernel)
    exec(leak["copies"]["python"].replace("lt.nn.draw_conv", "picture = lt.nn.draw_conv"), held)
    assert leak["leak"] in str(held["picture"].facts)
