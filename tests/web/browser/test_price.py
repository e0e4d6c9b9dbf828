"""The price page, used as a person uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cost.models.published import PUBLISHED
from playwright.sync_api import expect

DROP = """(zone, [name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    for (const kind of ["dragover", "drop"])
        zone.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true }));
}"""
PASTE = """text => {
    const data = new DataTransfer();
    data.setData("text", text);
    document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
}"""


def quantity(page: Any, name: str) -> Any:
    return page.locator(f"[data-panel=cost] [data-quantity={name}]")


def card(page: Any, name: str) -> Any:
    return page.locator(".price-cards > div").filter(has_text=name).locator("dd")


def test_a_typed_layer_shows_its_formulas_and_then_its_numbers(page: Any) -> None:
    page.goto("/#price?view=layer&numbers={}")
    page.get_by_label("Layer", exact=True).fill("rnn2d")
    formula = quantity(page, "parameters").locator(".formula")
    expect(formula).to_have_attribute("data-latex", "h(2h + c)")
    for name, value in {"n": 8, "h": 5, "c": 3}.items():
        field = page.get_by_label(f"{name}, number")
        field.fill(str(value))
        field.press("Enter")
    expect(quantity(page, "multiplies").locator("td.number").first).to_have_text("3,760")
    expect(page.locator("[data-panel=cost]")).to_contain_text("bound by memory")
    page.get_by_role("button", name="Letters only").click()
    expect(quantity(page, "multiplies").locator("td.number")).to_have_count(0)


def test_layers_and_their_masks_are_completed_as_rules_are(page: Any) -> None:
    page.goto("/#price?view=layer&layer=")
    field, options = page.get_by_label("Layer", exact=True), page.locator(".offered").get_by_role("option")
    field.press_sequentially("tten")  # inside a name too
    expect(options.first).to_contain_text("attention")
    page.keyboard.press("Tab")
    expect(field).to_have_value("attention")
    field.press_sequentially("(slid")
    expect(options.first).to_contain_text("sliding_window")
    field.press("ArrowLeft")  # into the word, which is taken whole
    field.press("Control+Space")
    page.keyboard.press("Tab")
    expect(field).to_have_value("attention(sliding_window")


def test_one_cell_a_wrong_claim_and_a_run(page: Any) -> None:
    page.goto("/#price?view=layer&layer=rnn2d&numbers={}")
    page.get_by_role("button", name="One cell").click()
    expect(quantity(page, "multiplies").locator(".formula").nth(1)).to_have_attribute(
        "data-latex", "h(c + h)"
    )
    page.get_by_label("The price is").fill("inner multiplies: h c + 2h^2")
    expect(page.locator("[data-panel=cost_claim]")).to_contain_text("holds")
    page.get_by_label("The price is").fill("inner multiplies: h c + h^2")
    expect(page.locator("[data-panel=cost_claim]")).to_contain_text("fails")
    page.get_by_label("Run plain code").check()
    expect(page.locator("[data-panel=cost_check]")).to_contain_text("Every number is what the formula says")


def test_a_mistake_is_underlined_and_mended_by_a_click(page: Any) -> None:
    page.goto("/#price?view=layer")
    page.get_by_label("Layer", exact=True).fill("cnn(kernel=3)")
    expect(page.locator(".mirror .wrong")).to_have_text("cnn")
    page.get_by_role("button", name="conv(kernel=3)").click()
    expect(page.get_by_label("Layer", exact=True)).to_have_value("conv(kernel=3)")
    expect(page.locator("[data-panel=cost] h2")).to_contain_text("conv in")


def test_curves_cross_where_the_sentence_says_and_keys_read_them(page: Any) -> None:
    page.goto("/#price")
    panel = page.locator("[data-panel=compare]")
    crossing = panel.locator("li", has_text="attention (causal) passes rnn at").first
    expect(crossing.locator("math").first).to_have_text("n=2d\N{MINUS SIGN}1")
    expect(panel).to_contain_text("at d = 512: n = 1,023")
    number = page.get_by_label("d, number")
    number.fill("100")
    number.press("Enter")
    expect(panel).to_contain_text("at d = 100: n = 199")
    cursor = page.get_by_role("slider", name="Place along n")
    cursor.press("Home")
    expect(cursor).to_have_attribute("aria-valuenow", "0")
    first = page.locator(".chart-place").inner_text().removeprefix("n = ")
    size = int(first)
    values = dict.fromkeys(("rnn", "attention (causal)", "attention (strided)"), 100 * size * (size + 1))
    values["rnn"] = 2 * 100**2 * size
    told = "; ".join(f"{label} {value:,}" for label, value in values.items())
    expect(cursor).to_have_attribute("aria-valuetext", f"n = {first}: {told}")
    cursor.press("ArrowRight")
    expect(page.locator(".chart-place")).not_to_have_text(f"n = {first}")
    page.get_by_role("button", name="rnn", exact=True).last.click()
    expect(page.get_by_role("button", name="rnn", exact=True).last).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="rnn", exact=True).last).to_have_attribute("aria-pressed", "true")


def test_a_layer_is_added_and_another_quantity_chosen(page: Any) -> None:
    page.goto("/#price")
    page.get_by_role("group", name="Add a layer").get_by_role("button", name="lstm").click()
    expect(page.get_by_label("Layer 4", exact=True)).to_have_value("lstm")
    page.get_by_label("Compare").select_option("depth")
    expect(page.locator("[data-panel=compare] h2")).to_have_text("Sequential depth as n grows")
    expect(page.locator("[data-panel=compare] figcaption")).to_contain_text("lstm")
    page.reload()
    expect(page.locator("[data-panel=compare] h2")).to_have_text("Sequential depth as n grows")
    for _ in range(3):
        page.get_by_label("Remove layer 1").click()
    expect(page.locator("[data-panel=compare] .problem")).to_contain_text("two layers or more")


def test_a_config_is_dropped_and_priced_and_the_link_carries_it(page: Any) -> None:
    fields, parameters, _ = PUBLISHED["Mistral-7B-v0.1"]
    text = json.dumps({**fields, "torch_dtype": "bfloat16", "transformers_version": "4.34"})
    page.goto("/#price")
    expect(page.locator("[data-panel=compare] h2")).to_be_visible()
    page.locator("body").evaluate(DROP, ["config.json", text])  # anywhere in the window
    expect(card(page, "parameters").first).to_have_text(f"{parameters:,}")
    expect(page.locator("[data-panel=model] h2")).to_contain_text("mistral")
    formulas = page.locator(".price-formulas tr", has_text="the last 4,096 keys")
    expect(formulas.first.locator("math").last).to_be_visible()
    slider = page.get_by_label("Tokens", exact=True)
    expect(card(page, "KV cache")).to_contain_text("512 MiB")
    slider.press("Home")
    expect(card(page, "KV cache")).to_contain_text("128 KiB")
    expect(page).to_have_url(re.compile(r"length=1(&|$)"))
    assert "torch_dtype" not in page.url
    page.reload()
    expect(card(page, "parameters").first).to_have_text(f"{parameters:,}")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("model.bin", "\x00\x01", "model.bin is not JSON"),
        ("list.json", "[1, 2]", "list.json holds no fields"),
        ("empty.json", "{}", 'add it, as in "model_type": "llama"'),
        ("mamba.json", '{"model_type": "mamba"}', "family mamba, which is not known"),
        ("big.json", " " * 200_001, "more than 200,000 are not read"),
        ("script.json", '{"model_type": "<img src=x onerror=alert(1)>"}', "<img src=x onerror=alert(1)>"),
    ],
)
def test_files_that_are_no_config(page: Any, name: str, text: str, message: str) -> None:
    page.goto("/#price?view=model")
    expect(card(page, "parameters").first).to_have_text("8,030,261,248")
    page.locator(".price-views").evaluate(DROP, [name, text])
    expect(page.get_by_role("alert")).to_contain_text(message)
    expect(card(page, "parameters").first).to_have_text("8,030,261,248")
    older = page.locator("[data-panel=model] .stale")
    expect(older).to_contain_text("8,030,261,248")  # the answer before is outlined as such
    page.get_by_role("button", name="ViT-B/16").click()
    expect(older).to_have_count(0)


def test_a_config_is_chosen_pasted_or_edited(page: Any, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(PUBLISHED["gpt2"][0]))
    page.goto("/#price?view=model")
    page.get_by_label("choose a file").set_input_files(file)
    expect(card(page, "parameters").first).to_have_text("124,439,808")
    page.evaluate(PASTE, json.dumps(PUBLISHED["opt-125m"][0]))
    expect(card(page, "parameters").first).to_have_text("125,239,296")
    page.get_by_role("button", name="ViT-B/16").click()
    expect(card(page, "parameters").first).to_have_text("86,567,656")
    expect(page.get_by_label("Tokens", exact=True)).to_have_count(0)
    page.get_by_text("Fields, to be changed").click()
    editor = page.get_by_label("Fields of the config as JSON")
    editor.fill(editor.input_value().replace('"num_labels": 1000', '"num_labels": 10'))
    expect(card(page, "parameters").first).to_have_text("85,806,346")
    editor.fill("{")
    expect(page.locator(".price-editor")).to_contain_text("Not JSON yet")
