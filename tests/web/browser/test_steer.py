"""The steering page, used as a person uses it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

INNER = '#steer?wanted=["0","0","0","0","1"]'


def weight(page: Any, key: int) -> Any:
    return page.locator(".steer-weights tbody tr").nth(key).locator("td.number").nth(1)


def test_a_dragged_query_changes_the_weights(page: Any) -> None:
    page.goto("/#steer")
    expect(page.get_by_text("gives all to key 1 in the limit")).to_be_visible()
    before = weight(page, 0).text_content()
    query = page.locator("[data-panel=try_query] [data-point=query]")
    box = query.bounding_box()
    x, y = box["x"] + box["width"] / 3, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 150, steps=6)
    expect(weight(page, 0)).not_to_have_text(before)  # while it is still held
    page.mouse.up()
    expect(page.get_by_text("gives all to key 0 in the limit")).to_be_visible()
    typed = page.get_by_label("Query, query, column 2")
    assert float(typed.input_value()) < 0


def test_arrow_keys_move_the_query_and_undo_brings_it_back(page: Any) -> None:
    page.goto("/#steer")
    query = page.get_by_role("slider", name="query", exact=True)
    expect(query).to_have_attribute("aria-valuetext", "1, 0.6")
    query.focus()
    page.keyboard.press("Shift+ArrowLeft")
    expect(query).to_have_attribute("aria-valuetext", "0.5, 0.6")
    page.keyboard.press("ArrowUp")
    expect(query).to_have_attribute("aria-valuetext", "0.5, 0.65")
    page.get_by_role("button", name="Undo").click()
    expect(query).to_have_attribute("aria-valuetext", "1, 0.6")


def test_never_is_shown_with_its_certificate(page: Any) -> None:
    page.goto("/" + INNER)
    panel = page.locator("[data-panel=steer]")
    expect(panel.get_by_text("✗ never")).to_be_visible()
    expect(panel.get_by_text("key 4 = 4/7·key 0 + 1/14·key 1 + 5/14·key 2")).to_be_visible()
    expect(panel.locator("[data-point=meeting]")).to_be_visible()
    expect(
        panel.get_by_role("img", name="Certificate: a mixture of keys 4 is the same point")
    ).to_be_visible()
    page.get_by_label("Wanted part of key 0, number").fill("1/2")  # 1/3 and 2/3
    expect(panel.locator("output").first).to_have_text("1/3")
    panel.get_by_role("button", name="only").first.click()
    expect(panel.get_by_text("→ in the limit")).to_be_visible()
    panel.get_by_role("button", name="Try this query").click()
    expect(weight(page, 0)).to_have_text("0.999491")


def test_a_typed_mistake_is_marked_in_its_cell(page: Any) -> None:
    page.goto("/#steer")
    cell = page.get_by_label("Keys, key 2, column 1")
    cell.fill("x+")
    expect(cell).to_have_attribute("aria-invalid", "true")
    expect(page.locator("[data-panel=try_query] .problem")).to_contain_text("keys[2][0]")
    cell.fill("-sqrt(2)")
    expect(page.locator("[data-panel=try_query] .problem")).to_have_count(0)
    cell.press("ArrowRight")
    expect(page.get_by_label("Keys, key 2, column 2")).to_be_focused()


def test_a_pasted_matrix_and_a_hostile_link(page: Any) -> None:
    page.goto('/#steer?keys=[["1","x"],["7"]]')
    expect(page.locator("[data-panel=try_query] .problem")).to_be_visible()
    page.goto("/#steer")
    page.reload()
    first = page.get_by_label("Keys, key 0, column 1")
    first.focus()
    page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.setData("text", "1 0; 0 1; -1 -1");
            const paste = { clipboardData: data, bubbles: true, cancelable: true };
            document.activeElement.dispatchEvent(new ClipboardEvent("paste", paste));
        }"""
    )
    expect(page.locator(".steer-weights tbody tr")).to_have_count(3)
    expect(page.get_by_label("Keys, key 2, column 2")).to_have_value("-1")
