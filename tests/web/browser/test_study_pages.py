"""The pages of conv, derivations, bounds, games and heads: what one sets is what one sees."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from lattend.study.derivations.draft import listed
from lattend.study.heads.record import digits_record


def test_sliders_move_heads_and_sharpen_them(page: Any) -> None:
    page.goto("/#conv")
    heads = page.locator("[data-panel=conv]")
    expect(heads.get_by_role("heading")).to_have_text("A 3 × 3 convolution as 9 heads")
    expect(heads.locator(".conv-head")).to_have_count(9)
    expect(page.locator("[data-panel=conv_error] dd strong")).to_have_text("3.25e−5")  # nearly equal
    page.get_by_label("Kernel", exact=True).press("ArrowRight")
    expect(heads.get_by_role("heading")).to_have_text("A 4 × 4 convolution as 16 heads")
    page.get_by_label("Sharpness α, number").fill("20")
    page.get_by_label("Sharpness α, number").press("Enter")
    expect(heads.locator("dd strong")).to_have_text("8.24e−9")
    expect(page.locator("[data-panel=conv_error] dd strong")).to_have_text(re.compile("e−9$"))
    page.keyboard.press("Control+z")
    expect(page.get_by_label("Sharpness α, number")).to_have_value("10")
    expect(page).not_to_have_url(re.compile("alpha"))


def test_the_query_moves_by_click_and_by_keys_and_the_link_has_it(page: Any) -> None:
    page.goto("/#conv?size=8")
    query = page.locator("[data-panel=conv] .facts dd").first
    expect(query).to_have_text("(4, 4) of the output, around pixel (4, 4)")
    image = page.get_by_role("slider", name=re.compile("^Query pixel"))
    box = image.bounding_box()
    image.click(position={"x": box["width"] * 1.5 / 10, "y": box["height"] * 2.5 / 10})
    expect(query).to_have_text("(1, 0) of the output, around pixel (1, 0)")
    image.press("ArrowRight")
    image.press("ArrowUp")
    image.press("ArrowUp")  # the edge holds it
    expect(query).to_have_text("(0, 1) of the output, around pixel (0, 1)")
    expect(page).to_have_url(re.compile(r"pixel=0%2C1"))
    page.reload()
    expect(query).to_have_text("(0, 1) of the output, around pixel (0, 1)")


def test_hard_heads_are_the_convolution_at_the_same_price(page: Any) -> None:
    page.goto("/#conv?size=8&stride=2")
    error = page.locator("[data-panel=conv_error] .facts dd").nth(1)
    expect(error).to_have_text(re.compile("nothing at all|e−1[5-9]: rounding"))
    proofs = page.locator("[data-panel=conv_same] li.holds")
    expect(proofs).to_have_count(3)
    page.get_by_label("Kernel, number, or rows by columns").fill("3x")
    expect(page.locator("[data-panel=conv] .problem")).to_contain_text("rows by columns as in 8x12")
    expect(page.locator(".problem-again")).to_have_count(3)
    expect(page.locator(".problem")).to_have_count(1)  # said once
    page.get_by_label("Kernel, number, or rows by columns").fill("1x2")
    expect(page.locator("[data-panel=conv]").get_by_role("heading")).to_have_text(
        "A 1 × 2 convolution as 2 heads"
    )


def test_a_changed_line_is_refuted_then_holds(page: Any) -> None:
    page.goto("/#derive?derivation=causal")
    choice = page.get_by_role("button", name="quadratic")
    expect(choice.locator("sub")).to_have_text("q,k")  # A_{q,k}, set as a formula
    line = page.locator("[data-line='6']")
    expect(line).to_have_attribute("data-verdict", "holds")
    line.get_by_role("button", name="Change").click()
    field = line.get_by_label("Right side of line 6")
    field.fill("n (n - 1)/2")
    expect(line).to_have_attribute("data-verdict", "refuted")
    expect(line).to_contain_text("the count is")
    field.fill("n (n - ")
    expect(line).to_have_attribute("data-verdict", "unread")
    field.fill("(n^2 + n)/2")
    expect(line).to_have_attribute("data-verdict", "holds")
    expect(page).to_have_url(re.compile("n%5E2"))  # the link follows after a moment
    page.reload()
    expect(line).to_contain_text("changed by you")
    line.get_by_role("button", name="Undo").click()
    expect(line).to_contain_text("n equal terms")


def test_another_derivation_is_one_click_away(page: Any) -> None:
    page.goto("/#derive")
    page.get_by_role("button", name="game").click()
    expect(page.get_by_role("heading", name="One step of the game")).to_be_visible()
    page.get_by_label("step, or h").fill("h")
    expect(page.locator("[data-line='3'] .formula").last).to_have_attribute(
        "data-latex", "= \\displaystyle q + h p"
    )


def test_it_opens_on_attention_with_all_derivations_in_view(page: Any) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("/#derive")
    expect(page.get_by_role("heading", name="The pairs of causal attention")).to_be_visible()
    names = page.get_by_role("group", name="Derivations").get_by_role("button")
    assert names.count() == len(listed())
    for name in names.all():
        expect(name).to_be_in_viewport(ratio=1)


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


def test_dragging_the_start_moves_the_orbit_and_the_link(page: Any) -> None:
    page.goto("/#game")
    start = page.locator("[data-point=start]")
    expect(start).to_have_attribute("aria-valuetext", "1, 1")
    box = start.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y + 40, steps=4)
    page.mouse.up()
    expect(start).not_to_have_attribute("aria-valuetext", "1, 1")
    expect(page).to_have_url(re.compile("start="))
    p = page.get_by_label("p", exact=True).input_value()
    table = page.get_by_role("region", name="Step by step").locator("table")
    expect(table.locator("tbody tr").first).to_contain_text(re.compile(r"\d"))
    assert float(p) > 1


def test_the_start_moves_by_arrow_keys_and_the_period_stays_proved(page: Any) -> None:
    page.goto("/#game")
    start = page.locator("[data-point=start]")
    start.focus()
    page.keyboard.press("ArrowRight")
    expect(start).not_to_have_attribute("aria-valuetext", "1, 1")
    expect(page.get_by_role("region", name="Step by step")).to_contain_text("6, proved")


def test_a_step_with_a_period_is_one_click_away(page: Any) -> None:
    page.goto("/#game")
    page.get_by_role("button", name="period 5").click()
    expect(page.locator("[data-method=alternating]")).to_contain_text("period 5")
    expect(page.get_by_role("region", name="Step by step")).to_contain_text("5, proved")


def test_rules_are_compared(page: Any) -> None:
    page.goto("/#game")
    page.get_by_label("draw simultaneous").check()
    expect(page.locator("[data-method=simultaneous]")).to_contain_text("diverges")
    page.get_by_label("optimistic in detail").check()
    expect(page.locator("[data-method=optimistic]")).to_contain_text("diverges")
    page.get_by_label("step h", exact=True).fill("0.5")
    expect(page.locator("[data-method=optimistic]")).to_contain_text("converges")


def test_a_wrong_formula_says_where_and_the_page_goes_on(page: Any) -> None:
    page.goto("/#game")
    field = page.get_by_label("One player makes this small")
    field.fill("p*q +")
    expect(page.locator(".text-field .problem")).to_contain_text("something is missing")
    field.fill("p*q - q^2")
    expect(page.locator(".text-field .problem")).to_have_count(0)
    expect(page.locator(".game-players")).to_contain_text("max over q")


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


OVERLAPS = """() => [...document.querySelectorAll(".plane")].flatMap(plane => {
    const texts = [...plane.querySelectorAll(".plane-label, .steer-wins, .plane-axes text")];
    const boxes = texts.map(text => [text.textContent, text.getBoundingClientRect()]);
    return boxes.flatMap(([name, a], i) => boxes.slice(i + 1)
        .filter(([, b]) => a.left + 1 < b.right && b.left + 1 < a.right)
        .filter(([, b]) => a.top + 2 < b.bottom && b.top + 2 < a.bottom)
        .map(([other]) => `${name} | ${other}`));
})"""


@pytest.mark.parametrize("link", ["elbo", "elbo?mean=3%2F4&variance=1%2F2", "steer"])
def test_labels_keep_apart(page: Any, link: str) -> None:
    page.goto(f"/#{link}")
    expect(page.locator(".plane-label", has_text="posterior" if "elbo" in link else "v4")).to_be_visible()
    assert page.evaluate(OVERLAPS) == []
