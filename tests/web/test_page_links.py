"""Commands open the pages that show what they print: those of the questions, and those copied from a page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lattend.ask import questions
from lattend.web.page_links import PageLink, page_link, read_command
from lattend.web.panels import PANELS
from lattend.web.worker import reply

LINES = list(dict.fromkeys(line for one in questions() for line, _ in one.commands))
# Commands that no page shows, and why
WITHOUT = {"gradients": "trains nets", "complete": "trains nets", "ask": "is the menu itself"}
NO_PAGE_OF = ("elbo digits", "--orthonormal m", "cost llama.json")  # the page reads no files
# The panels that answer for a page; of the price page by its view
MAIN = {
    "rule": ("read", "count", "claim"),
    "layer": ("cost", "cost_claim"),
    "compare": ("compare",),
    "tables": ("tables",),
    "heads": ("heads",),
    "conv": ("conv",),
    "grid": ("grid",),
    "patches": ("patches",),
    "scores": ("scores",),
    "work": ("work",),
    "steer": ("steer", "try_query"),
    "elbo": ("elbo_linear",),
    "game": ("game",),
    "derive": ("derive",),
}


def asked(place: PageLink) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the page asks: of each panel, the fields of its question that the state has."""
    for name in MAIN[place.state.get("view", place.page)]:
        if (name.endswith("claim") and "claim" not in place.state) or name not in PANELS:
            continue
        fields = PANELS[name].question.model_fields
        yield name, {field: value for field, value in place.state.items() if field in fields}


@pytest.mark.parametrize("line", LINES)
def test_a_command_opens_a_page_that_answers(line: str) -> None:
    place = page_link(line)
    if place is None:
        assert read_command(line).name in WITHOUT or any(part in line for part in NO_PAGE_OF)
        return
    for panel, question in asked(place):
        status, _, body = reply(panel, "", json.dumps(question).encode())
        assert status == 200, (panel, question, json.loads(body)["message"])


CLAIMS = [(line, printed) for one in questions() for line, printed in one.commands if "claim" in line]


@pytest.mark.parametrize(("line", "printed"), CLAIMS)
def test_a_claim_has_the_same_verdict_on_its_page(line: str, printed: str) -> None:
    place = page_link(line)
    if place is None:
        assert read_command(line).name in WITHOUT
        return
    panel, question = list(asked(place))[-1]
    found = json.loads(reply(panel, "", json.dumps(question).encode())[2])["verdict"]
    assert f": {found['status']}" in " ".join(printed.split()), found["sentence"]


def test_a_claim_with_all_its_options_is_filled_in() -> None:
    place = page_link(
        'lattend claim strided "min(i, L)" --per query --from 1 --assume "t < n" --rename L=t+1'
    )
    assert place == PageLink(
        page="rule",
        state={
            "rule": "strided",
            "claim": "min(i, L)",
            "first": 1,
            "assume": "t < n",
            "rename": {"L": "t+1"},
            "per": "query",
        },
    )


def test_a_plan_is_filled_in() -> None:
    place = page_link("lattend explain strided --at t=255 --n 65536 --device cuda --heads 4")
    assert place is not None
    assert place.state == {"rule": "strided", "numbers": {"t": 255, "n": 65536}, "heads": 4, "device": "cuda"}


@pytest.mark.parametrize(
    ("panel", "question"),
    [
        (
            "claim",
            {"rule": "strided", "claim": "min(i, L)", "per": "query", "first": 1, "rename": {"L": "t+1"}},
        ),
        ("explain", {"rule": "strided", "numbers": {"n": 64, "t": 3}, "head_dim": 32, "kernel": "dense"}),
        ("cost", {"layer": "attention", "rule": "causal", "numbers": {"n": 8, "D_i": 4}, "backward": True}),
        ("conv", {"kernel": "3x5", "stride": "2", "size": "9", "alpha": 6.0}),
        ("patches", {"image": "32x48", "patch": "16", "padding": "crop", "channels": 1, "width": 64}),
        ("try_query", {"keys": [["1", "0"], ["0", "2"]], "query": ["1/2", "-1"], "scale": "sqrt"}),
        ("work", {"tokens": [["1", "2"], ["2", "0"]], "wq": [["1", "1"], ["0", "1"]], "columns": True}),
        ("elbo_linear", {"size": 3, "latent": 1, "noise_variance": 0.5, "examples": 2, "seed": 4}),
        (
            "game",
            {
                "game": "p*q",
                "method": "optimistic",
                "also": ["alternating"],
                "start": ["1/2", "2"],
                "steps": 6,
            },
        ),
    ],
)
def test_a_copied_command_opens_the_page_that_it_was_copied_from(
    panel: str, question: dict[str, Any]
) -> None:
    copied = json.loads(reply(panel, "", json.dumps(question).encode())[2])["copies"]["command"]
    link = page_link(copied.splitlines()[-1])
    assert link is not None
    assert question.items() <= link.state.items()
