"""The grid, used as a person uses it: what is drawn is what the library says."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect
from web.page_texts import link_to

import lattend as lt

# The colours in the middle of the squares of a grid of so many rows and columns
SQUARES = """(canvas, [rows, cols]) => {
    const context = canvas.getContext("2d"), ratio = canvas.width / canvas.getBoundingClientRect().width;
    const [left, top, right, bottom] = JSON.parse(canvas.dataset.frame).map(place => place * ratio);
    const found = [];
    for (let i = 0; i < rows; i++)
        for (let j = 0; j < cols; j++) {
            const x = left + (j + 0.5) * (right - left) / cols, y = top + (i + 0.5) * (bottom - top) / rows;
            found.push([...context.getImageData(x, y, 1, 1).data].slice(0, 3).join());
        }
    return found;
}"""


def visit(page: Any, rule: str, **state: object) -> Any:
    """The canvas of the grid at this state."""
    page.goto(link_to("rule", rule=rule, **state))
    canvas = page.locator("[data-panel=draw] canvas")
    told = re.compile("are attended|by both")
    expect(canvas).to_have_attribute(
        "aria-label", told, timeout=60_000
    )  # the first answer waits for a worker
    expect(page.locator("[data-panel=draw][aria-busy=true]")).to_have_count(0)  # with it come buttons, above
    return canvas


def at_square(canvas: Any, row: int, col: int, n: int) -> dict[str, float]:
    """The place of a square on the canvas."""
    left, top, right, bottom = json.loads(canvas.get_attribute("data-frame"))
    return {"x": left + (col + 0.5) * (right - left) / n, "y": top + (row + 0.5) * (bottom - top) / n}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("k <= q and q - k <= t", {"n": 14, "t": 4}),
        ("sparse_fixed", {"n": 40, "l": 7, "c": 2}),
        ("(q*q + k) % 3 == 0", {"n": 9}),
    ],
)
def test_a_square_is_filled_where_the_mask_is_true(text: str, numbers: dict[str, int], page: Any) -> None:
    canvas = visit(page, text, numbers=numbers)
    mask = lt.rule(text).mask(**numbers)
    colours = canvas.evaluate(SQUARES, list(mask.shape))
    attended = {colour for colour, true in zip(colours, mask.ravel(), strict=True) if true}
    empty = {colour for colour, true in zip(colours, mask.ravel(), strict=True) if not true}
    assert len(empty) == 1
    assert attended
    assert not attended & empty


@pytest.mark.parametrize("n", [320, 3200])  # looked at in the page, and counted by the server
def test_the_shade_of_a_cell_is_the_share_of_its_pairs(n: int, page: Any) -> None:
    text, numbers = "k <= q and (q - k <= t or (q - k) % 3 == 0)", {"n": n, "t": n // 9}
    canvas = visit(page, text, numbers=numbers)
    how = page.locator(".grid-how[data-exact=true]")
    expect(how).to_contain_text("exact share")
    side = int(re.findall(r"each cell is (\d+)", how.inner_text())[0])
    cells = lt.rule(text).mask(**numbers).reshape(n // side, side, n // side, side).sum((1, 3))
    levels = -(-20 * cells // side**2)
    shades: dict[int, set[str]] = {}
    for level, colour in zip(
        levels.ravel().tolist(), canvas.evaluate(SQUARES, list(cells.shape)), strict=True
    ):
        shades.setdefault(level, set()).add(colour)
    assert len(shades) > 3
    assert all(len(colours) == 1 for colours in shades.values())  # one shade a level,
    assert len(set.union(*shades.values())) == len(shades)  # and one level a shade


def test_pointing_at_a_square_tells_which_clause_decides(page: Any) -> None:
    canvas = visit(page, "k <= q and q - k <= t", numbers={"n": 12, "t": 3})
    told = page.locator(".grid-readout")
    canvas.hover(position=at_square(canvas, 7, 4, 12))
    expect(told).to_contain_text("q = 7, k = 4: attended. k <= q holds (4 <= 7), q - k <= t holds (3 <= 3)")
    expect(told).to_contain_text("Keys of this query: 4. Queries of this key: 4.")
    canvas.hover(position=at_square(canvas, 9, 2, 12))
    expect(told).to_contain_text("q = 9, k = 2: not attended. q - k <= t fails (7 <= 3)")


def test_the_keyboard_moves_zooms_and_shows_all_again(page: Any) -> None:
    canvas = visit(page, "causal", numbers={"n": 64})
    grid, told = page.get_by_role("application", name="The grid"), page.locator(".grid-readout")
    grid.focus()
    for key in ("ArrowDown", "ArrowDown", "Shift+ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(told).to_contain_text("q = 11, k = 1: attended")
    page.keyboard.press("+")
    expect(canvas).to_have_attribute("aria-label", re.compile("of the 1,024 pairs in view"))
    page.keyboard.press("0")
    expect(canvas).to_have_attribute(
        "aria-label", re.compile("2,080 of the 4,096 pairs in view are attended")
    )


def test_the_wheel_zooms_at_the_pointer_a_drag_moves_and_undo_goes_back(page: Any) -> None:
    canvas = visit(page, "causal", numbers={"n": 100_000})
    expect(page.locator(".grid-how")).to_have_attribute("data-exact", "true")
    expect(canvas).to_have_attribute("aria-label", re.compile("5,000,050,000 of the 10,000,000,000 pairs"))
    canvas.hover(position=at_square(canvas, 1, 1, 2))
    page.mouse.wheel(0, 300)  # scrolls the page
    page.mouse.wheel(0, -300)
    expect(page.get_by_role("button", name="Fit")).to_be_disabled()
    canvas.hover(position=at_square(canvas, 1, 1, 2))  # the page may be elsewhere by now
    page.keyboard.down("Control")
    for _ in range(30):
        page.mouse.wheel(0, -500)
    page.keyboard.up("Control")
    expect(page.locator(".grid-how")).to_have_text("each square is one pair")
    canvas.hover(position=at_square(canvas, 1, 1, 2))
    place = page.locator(".grid-readout b").first
    expect(place).to_have_text(re.compile(r"q = 7[45],\d{3}"))  # where the pointer was: 3/4 of the way down
    before = place.inner_text()
    page.mouse.down()
    page.mouse.move(300, 400)
    page.mouse.move(300, 300)
    page.mouse.up()
    expect(page).to_have_url(re.compile("view="))
    page.mouse.move(1, 1)
    canvas.hover(position=at_square(canvas, 1, 1, 2))
    expect(place).not_to_have_text(before)
    page.reload()
    expect(page.locator(".grid-how")).to_have_text("each square is one pair")
    page.get_by_role("button", name="Fit").click()
    expect(canvas).to_have_attribute("aria-label", re.compile("of the 10,000,000,000 pairs"))
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".grid-how")).to_have_text("each square is one pair")


def test_two_rules_are_told_apart_and_counted(page: Any) -> None:
    canvas = visit(page, "strided(3)", other="windowed(4)", numbers={"n": 12})
    a, b = lt.rule("strided(3)").mask(n=12), lt.rule("windowed(4)").mask(n=12)
    legend = page.locator(".grid-legend")
    for text in (f"only A: {(a & ~b).sum()}", f"only B: {(b & ~a).sum()}", f"both: {(a & b).sum()}"):
        expect(legend).to_contain_text(text)
    canvas.hover(position=at_square(canvas, 4, 3, 12))
    expect(page.locator(".grid-readout")).to_contain_text("B does not: q // w == k // w fails (1 == 0)")


def test_of_an_image_the_keys_of_a_chosen_pixel_are_shown(page: Any) -> None:
    canvas = visit(page, "neighbourhood", numbers={"rows": 8, "cols": 8, "r": 2})
    expect(canvas).to_have_attribute("aria-label", re.compile(r"query pixel \(4, 4\)\. 25 of the 64 pixels"))
    canvas.click(position=at_square(canvas, 0, 1, 8))
    expect(canvas).to_have_attribute("aria-label", re.compile(r"query pixel \(0, 1\)\. 12 of the 64 pixels"))
    page.get_by_role("application", name="The grid").focus()
    page.keyboard.press("ArrowRight")
    expect(canvas).to_have_attribute("aria-label", re.compile(r"query pixel \(0, 2\)\. 15 of the 64 pixels"))
    page.get_by_role("button", name="All pairs").click()
    total = lt.rule("neighbourhood").mask(rows=8, cols=8, r=2).sum()
    expect(canvas).to_have_attribute("aria-label", re.compile(f"{total:,} of the 4,096 pairs"))


def test_what_the_page_cannot_work_out_the_server_counts_or_it_is_told(page: Any) -> None:
    canvas = visit(page, "k <= q and q - k <= t", numbers={"n": 12, "t": "9" * 30})
    expect(canvas).to_have_attribute("aria-label", re.compile("78 of the 144 pairs in view"))
    page.goto(link_to("rule", rule="causal", numbers={"n": "1" + "0" * 30}))
    expect(page.locator("[data-panel=draw]")).to_contain_text("n is larger than what the page draws")


def test_the_first_difference_is_marked_and_what_runs_is_outlined(page: Any) -> None:
    canvas = visit(page, "causal", other="strided(90)", numbers={"n": 200})
    show = page.get_by_role("button", name="Show first difference")
    show.click()
    expect(canvas).to_have_attribute("aria-label", re.compile("Of the 576 pairs in view, [1-9]"))
    canvas.hover(position=at_square(canvas, 12, 12, 24))
    expect(page.locator(".grid-readout")).to_contain_text("A attends")
    runs = page.get_by_role("button", name="What runs")
    runs.click()
    expect(runs).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".grid-legend")).to_contain_text("computed by the plan")
