"""The ELBO page, used as a person uses it."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect


def test_dragging_q_to_the_posterior_closes_the_gap(page: Any) -> None:
    page.goto("/#elbo")
    q, posterior = page.locator("[data-point=q]"), page.locator("[data-point=posterior]")
    gap = page.get_by_role("region", name="The bound").locator("[data-term=gap] .number")
    expect(gap).to_have_text(re.compile(r"\d\.\d+"))
    before = float(gap.inner_text())
    ends = [
        (place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
        for place in (q.locator("circle").bounding_box(), posterior.locator("path").bounding_box())
    ]
    page.mouse.move(*ends[0])
    page.mouse.down()
    page.mouse.move(*ends[1], steps=4)
    page.mouse.up()
    assert before > 0.6
    expect(gap).to_have_text(re.compile(r"^0\.0[0-2]"))


def test_q_can_be_made_the_posterior_and_the_link_carries_it(page: Any) -> None:
    page.goto("/#elbo?x=2&noise=1/3")
    page.get_by_role("group", name="Set q").get_by_role("button", name="q = posterior").click()
    gap = page.get_by_role("region", name="The bound").locator("[data-term=gap] .number")
    expect(gap).to_have_text("0.000000")
    expect(page).to_have_url(re.compile("mean=3%2F2"))
    page.reload()
    expect(gap).to_have_text("0.000000")


def test_typed_probabilities_must_add_up(page: Any) -> None:
    page.goto("/#elbo")
    panel = page.get_by_role("region", name="A z of few values")
    panel.get_by_label("q(z|x)").fill("1/2, 1/2, 1/2")
    expect(panel.locator(".problem")).to_contain_text("add up to 3/2, not to 1")
    panel.get_by_label("q(z|x)").fill("1, 0, 0")
    expect(panel.locator("[data-term=elbo] .number")).to_have_text("−2.995732")  # log(1/2 · 1/10)
