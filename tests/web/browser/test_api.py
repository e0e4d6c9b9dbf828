"""The API page: the schema read out, and a question tried."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from playwright.sync_api import expect

import lattend as lt
from lattend.web.panels import PANELS


def test_every_panel_is_described_and_answers_what_is_typed(page: Any) -> None:
    page.goto("/#api")
    choice = page.get_by_label("Panel", exact=True)
    expect(choice.locator("option")).to_have_count(len(PANELS))
    choice.select_option("count")
    page.get_by_label("Question, as JSON").fill('{"rule": "causal", "numbers": {"n": 8}}')
    answer = page.get_by_label("The answer")
    expect(answer).to_contain_text('"value": "36"')
    assert json.loads(answer.inner_text())["formula"]["text"] == str(lt.rule("causal").count())


def test_mistakes_are_told(page: Any) -> None:
    page.goto("/#api?panel=count")
    body = page.get_by_label("Question, as JSON")
    body.fill('{"rule": ')
    expect(page.get_by_text("This is not a JSON object")).to_be_visible()
    body.fill('{"rule": "causal", "rows": 1}')
    expect(page.get_by_text("Extra inputs are not permitted")).to_be_visible()


def test_the_command_runs_as_it_stands(page: Any) -> None:
    page.goto("/#api?panel=count")
    page.get_by_label("Question, as JSON").fill('{"rule": "k <= q and not q - k > 3"}')
    command = page.get_by_label("The command").inner_text()
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    if done.returncode == 127:  # no curl here
        return
    assert json.loads(done.stdout)["formula"]["text"] == str(lt.rule("k <= q and not q - k > 3").count())
