"""The rule page, used as a person uses it."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import expect
from web.page_texts import link_to

import lattend as lt

link = partial(link_to, "rule")


def formulas(page: Any, panel: str) -> Any:
    return page.locator(f"[data-panel={panel}] .pieces .formula")


def field(page: Any) -> Any:
    return page.get_by_label("Who attends to whom")


def test_a_typed_rule_shows_its_formula_and_its_name(page: Any) -> None:
    page.goto("/")
    field(page).fill("not k > q")
    expect(formulas(page, "count").first).to_have_attribute("data-latex", r"\frac{n(n + 1)}{2}")
    expect(formulas(page, "keys").first).to_have_attribute("data-latex", "q + 1")
    expect(page.locator("[data-panel=rules]")).to_contain_text("autoregressive")
    page.get_by_role("button", name="Write causal").click()
    expect(field(page)).to_have_value("causal")


def test_a_mistake_is_underlined_and_mended_by_a_click(page: Any) -> None:
    page.goto(link(rule="k <= q"))
    field(page).fill("j =< i && i - j < 8")
    expect(page.locator(".mirror .wrong")).to_have_text("=<")
    expect(field(page)).to_have_attribute("aria-invalid", "true")
    page.locator(".text-field").get_by_role("button", name="k <= q and q - k < 8").click()
    expect(field(page)).to_have_value("k <= q and q - k < 8")
    expect(page.locator(".mirror .wrong")).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(field(page)).to_have_value("j =< i && i - j < 8")


def test_a_mistake_behind_wide_characters_is_underlined_in_its_place(page: Any) -> None:
    page.goto(link(rule="𝑘 <= q"))
    expect(page.locator(".mirror .wrong")).to_have_text("𝑘")
    page.get_by_role("button", name="k <= q").click()
    expect(page.locator("[data-panel=rules]")).to_contain_text("causal")


def test_names_are_completed_from_the_keyboard(page: Any) -> None:
    page.goto(link(rule="full"))
    field(page).press("Control+a")
    field(page).press_sequentially("sli")
    options = page.locator(".offered").get_by_role("option")
    expect(options.first).to_contain_text("sliding_window")
    page.keyboard.press("Tab")
    expect(field(page)).to_have_value("sliding_window")
    expect(options).to_have_count(0)
    field(page).press_sequentially("(")
    page.keyboard.press("Escape")
    field(page).fill("")
    page.keyboard.press("ArrowDown")
    expect(options.first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)


def test_completion_stays_away_while_a_condition_is_typed(page: Any) -> None:
    page.goto(link(rule=""))
    for letter in "k <= q and q - k <= t or k < p":
        field(page).press_sequentially(letter)
        if letter == " ":
            expect(page.locator(".offered").get_by_role("option")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(field(page)).to_have_value("k <= q and q - k <= t or k < p")


def test_letters_get_numbers_and_become_letters_again(page: Any) -> None:
    page.goto(link(rule="strided"))
    expect(formulas(page, "count").first).to_have_attribute("data-latex", r"\frac{(2n - t)(t + 1)}{2}")
    page.get_by_label("n, number").fill("1e6")
    page.get_by_label("t, number").fill("255")
    expect(page.locator("[data-panel=count] .value")).to_contain_text("255,967,360")
    page.get_by_label("t, number").fill("two")
    expect(page.get_by_label("t, number")).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="t: a letter again").click()
    expect(page.locator("[data-panel=count] .value")).to_have_count(0)
    page.get_by_label("n", exact=True).press("ArrowRight")
    expect(page.get_by_label("n, number")).to_have_value("1000000")
    page.get_by_label("n, number").fill("9" * 30)
    page.get_by_label("t, number").fill("0")
    expect(page.locator("[data-panel=count] .value")).to_contain_text(f"{int('9' * 30):,}")


def test_every_press_of_an_arrow_moves_the_slider_of_a_size(page: Any) -> None:
    page.goto(link(rule="k <= q"))
    slider, box = page.get_by_label("n", exact=True), page.get_by_label("n, number")
    for key, n in (("ArrowRight", 13), ("ArrowUp", 14), ("ArrowLeft", 13), ("ArrowDown", 12)):
        slider.press(key)
        expect(box).to_have_value(str(n))


def test_a_dragged_slider_is_followed_while_it_moves(page: Any) -> None:
    page.goto(link(rule="strided", numbers={"n": 16}))
    expect(formulas(page, "count").first).to_be_visible()
    slider, box = page.get_by_label("t", exact=True), page.get_by_label("t, number")
    expect(box).to_have_value("")  # still a letter
    slider.scroll_into_view_if_needed()
    place = slider.bounding_box()
    height = place["y"] + place["height"] / 2
    page.mouse.move(place["x"] + place["width"] / 2, height)
    page.mouse.down()
    counts = set[str]()
    for part in (0.3, 0.6):
        page.mouse.move(place["x"] + part * place["width"], height, steps=4)
        expect(slider).to_be_focused()
        t = int(slider.input_value())
        expect(box).to_have_value(str(t))
        count = str(lt.rule("strided").at(n=16).count().at(t=t))
        expect(page.locator("[data-panel=count] .value")).to_contain_text(count)
        counts.add(count)
    assert len(counts) == 2
    page.mouse.move(place["x"] - 50, height, steps=4)  # beyond its end
    expect(box).to_have_value("0")
    page.mouse.up()
    expect(page).to_have_url(re.compile("%22t%22%3A0"))
    page.get_by_role("button", name="Undo").click()
    expect(box).not_to_have_value("0")


def test_two_rules_differ_first_somewhere(page: Any) -> None:
    page.goto(link(rule="causal"))
    page.get_by_role("button", name="Compare with a second rule").click()
    verdict = page.locator("[data-panel=same]")
    expect(verdict).to_contain_text("the same pairs, always")
    page.get_by_label("B: the rule to compare with").fill("strided")
    expect(verdict).to_contain_text("They differ first at n = 2, t = 0: only A attends (q = 1, k = 0)")
    expect(verdict).to_contain_text("At n = 12, t = 3, as drawn, only A attends (q = 4, k = 0)")
    page.get_by_role("button", name="Go there").click()
    expect(page.get_by_label("n, number")).to_have_value("2")
    page.get_by_role("button", name="Swap").click()
    expect(page.get_by_label("A: who attends to whom")).to_have_value("strided")
    page.get_by_role("button", name="Take away").click()
    expect(verdict).to_have_count(0)


def test_what_is_no_number_is_said_and_changes_nothing(page: Any) -> None:
    page.goto(link(rule="causal", numbers={"n": 1000}))
    count, box = page.locator("[data-panel=count]"), page.get_by_label("n, number")
    expect(count).to_contain_text("500,500 of 1,000,000 pairs")
    for text, why in (("1.5", "n is a whole number"), ("-5", "n is at least 1")):
        box.fill(text)
        expect(page.locator(".slider-wrong")).to_contain_text(f"{why}")
        expect(page.locator(".slider-wrong")).to_contain_text("the page still shows n = 1,000")
    box.fill("10")
    expect(page.locator(".slider-wrong")).to_have_count(0)
    expect(count).to_contain_text("55 of 100 pairs")


def test_a_rule_without_formulas_is_told_why_once(page: Any, settled: Any) -> None:
    page.goto(link(rule="k*k <= q"))
    settled(page)
    expect(page.get_by_text("is not affine in k")).to_have_count(1)
    expect(page.locator("[data-panel=keys]")).to_contain_text("Not for this rule")
    expect(page.locator("[data-panel=count]")).to_contain_text("34 of 144 pairs")
    expect(page.locator(".problem")).to_have_count(0)


def test_a_document_mask_is_given_an_array(page: Any, settled: Any) -> None:
    mask = "def doc(b, h, q_idx, kv_idx):\n    return document_id[q_idx] == document_id[kv_idx]"
    page.goto(link(rule=mask))
    expect(page.locator(".problem")).to_have_count(1)
    page.locator(".problem button").click()
    expect(page.locator("[data-panel=count]")).to_contain_text("50 of 144 pairs")
    settled(page)
    expect(page.locator(".problem")).to_have_count(0)
    expect(page).to_have_url(re.compile("document_id"))


def test_a_mistyped_letter_and_an_empty_field_are_told_quietly(page: Any) -> None:
    page.goto(link(rule="k <= qq"))
    page.get_by_text("Did you mean").get_by_role("button", name="k <= q").click()
    field = page.get_by_label("Who attends to whom")
    expect(field).to_have_value("k <= q")
    expect(page.get_by_text("Did you mean")).to_have_count(0)
    field.fill("")
    expect(page.locator(".text-field .problem")).to_contain_text("it is empty")
    expect(page.locator(".mirror .wrong, .offered")).to_have_count(0)


def test_a_link_is_written_by_hand_and_what_it_has_too_much_is_told(page: Any) -> None:
    page.goto("/#rule?rule=causal&n=200&view=all")
    expect(page.get_by_label("n, number")).to_have_value("200")
    expect(page.locator(".left-out")).to_contain_text("no such field or value: view")
    page.goto("/#nosuch")
    expect(page.locator(".left-out")).to_contain_text("There is no page nosuch")
    page.locator(".left-out").get_by_role("button", name="close").click()
    expect(page.locator(".left-out")).to_have_count(0)


def test_the_same_in_code_follows_the_numbers(page: Any) -> None:
    page.goto(link(rule="windowed", numbers={"n": 64, "w": 16}))
    page.get_by_role("button", name="FlexAttention").click()
    code = page.locator("[data-panel=code] pre")
    expect(code).to_contain_text("n, w = 64, 16")
    expect(code).to_contain_text("return (k <= q) & (q // w == k // w)")


def test_a_link_brings_all_of_it_back(page: Any) -> None:
    page.goto(link(rule="strided", numbers={"n": 16, "t": 4}))
    expect(page.locator("[data-panel=count] .value")).to_contain_text("70")
    page.get_by_label("t, number").fill("3")
    expect(page.locator("[data-panel=count] .value")).to_contain_text("58")
    expect(page).to_have_url(re.compile("%22t%22%3A3"))
    page.reload()
    expect(page.locator("[data-panel=count] .value")).to_contain_text("58")


def test_nonsense_in_the_field_leaves_the_rest_standing(page: Any) -> None:
    page.goto(link(rule="causal"))
    expect(formulas(page, "count").first).to_be_visible()
    for text in ("(" * 2000, "", "<img src=x onerror=alert(1)>", "q" * 5000):
        field(page).fill(text)
        expect(page.locator(".text-field .problem")).to_be_visible()
        expect(page.locator("[data-panel=count] .stale .formula").first).to_be_visible()
    field(page).fill("k <= q")
    expect(page.locator(".text-field .problem")).to_have_count(0)
    expect(formulas(page, "count").first).to_have_attribute("data-latex", r"\frac{n(n + 1)}{2}")


def test_what_is_shown_of_an_older_answer_is_of_one_rule(page: Any) -> None:
    page.goto(link(rule="qy//7 == ky//7 and qx//7 == kx//7"))
    panel = page.locator("[data-panel=count]")
    expect(panel).to_contain_text("grows as")
    field(page).fill("doc = [0,0,0,1,1,2,2,2]\ndoc[q]==doc[k] and k<=q")
    expect(panel).to_contain_text("15 of 64 pairs")  # 6 + 3 + 6 of 8 * 8
    field(page).fill("doc=[0,0,1]\ncausal and doc[q]==")  # never answered: the older answer stays
    expect(panel.locator(".stale").first).to_contain_text("15 of 64 pairs")
    expect(panel).not_to_contain_text("grows as")


@pytest.mark.parametrize("width", [360, 1280])
def test_the_name_of_an_older_answer_covers_nothing(page: Any, width: int) -> None:
    """Between the links of the panel and the answer, in as much room as there is."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(link(rule="causal"))
    expect(formulas(page, "count").first).to_be_visible()
    field(page).fill("k <= q +")
    older = page.locator("[data-panel=count] > .stale")
    expect(older).to_be_visible()
    links, top, bottom, answer = older.evaluate(
        """(older) => {
            const label = getComputedStyle(older, "::before");
            const box = older.getBoundingClientRect();
            const texts = [...older.closest(".panel").querySelectorAll(".take button")].map((button) => {
                const range = document.createRange();
                range.selectNodeContents(button);
                return range.getBoundingClientRect().bottom;
            });
            const top = box.top + parseFloat(label.top);
            return [Math.max(...texts), top, top + parseFloat(label.height), box.top];
        }"""
    )
    assert links <= top + 1 and bottom <= answer + 1


def test_a_size_beyond_53_bits_is_told_digit_by_digit(page: Any) -> None:
    page.goto("/#rule?rule=strided")
    size = page.get_by_label("n, number")
    size.fill("99999999999999999999")
    expect(page.locator("[data-panel=field]")).to_contain_text("positions beyond 2^53 are not drawn")
    size.fill("99999999999999999999x")
    expect(page.locator(".slider-wrong")).to_contain_text("the page still shows n = 99999999999999999999")
