"""Heads in training, used as a person does: time moves, a record is opened, a wrong file is refused."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import expect

from lattend.study.heads.record import digits_record


def test_time_moves_the_heads_by_slider_and_by_play(page: Any) -> None:
    page.goto("/#heads")
    time = page.get_by_label("Moment of the training")
    head = page.locator(".heads-layer circle").first
    expect(time).to_have_attribute("aria-valuetext", "epoch 25")
    last = head.get_attribute("cx")
    time.fill("0")
    expect(time).to_have_attribute("aria-valuetext", "epoch 0")
    expect(head).not_to_have_attribute("cx", last)
    expect(page.get_by_role("region", name="At this moment")).to_contain_text("before training")
    time.press("ArrowRight")
    expect(time).to_have_value("1")
    page.get_by_role("button", name="Play").click()
    expect(time).not_to_have_value("1")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".heads-layer")).to_have_count(4)


def test_a_record_is_opened_and_a_wrong_file_refused(page: Any) -> None:
    page.goto("/#heads")
    expect(page.locator(".heads-layer")).to_have_count(4)
    data = digits_record().json()
    data["settings"]["data"] = "letters of mine"
    data["runs"].pop("control")
    file = {"mimeType": "application/json"}
    chooser = page.locator("input[type=file]")
    chooser.set_input_files({"name": "mine.json", "buffer": json.dumps(data).encode(), **file})
    expect(page.locator(".heads-title")).to_contain_text("letters of mine")
    chooser.set_input_files({"name": "config.json", "buffer": b'{"model_type": "llama"}', **file})
    expect(page.locator(".problem").first).to_contain_text("this is no record of heads in training")
    page.get_by_role("button", name="Back to the digits").click()
    expect(page.locator(".heads-title")).to_contain_text("digits")
