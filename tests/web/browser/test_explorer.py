"""The rule explorer of notebooks on a bare page, its questions answered by the widget's Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lattend
from lattend.integrations.notebook import explore

AXE = Path(__file__).parents[3] / "client" / "node_modules" / "axe-core" / "axe.min.js"
BUNDLE = Path(lattend.__file__).parent / "integrations" / "notebook" / "explorer.js"
# What anywidget gives a widget: what it holds, its events, and messages to Python and back
PAGE = """<!doctype html><html><body style="background: GROUND; color: GREY"><script type="module">
const url = URL.createObjectURL(new Blob([await readBundle()], { type: "text/javascript" }));
const { default: widget } = await import(url);
class Model {
  constructor(place, state) { Object.assign(this, { place, state, heard: {} }); }
  get(name) { return this.state[name]; }
  set(name, value) { this.state[name] = value; this.tell(`change:${name}`); }
  save_changes() { toPython(this.place, this.state); }
  on(name, heard) { (this.heard[name] ??= new Set()).add(heard); }
  off(name, heard) { this.heard[name]?.delete(heard); }
  tell(name, message) { for (const heard of this.heard[name] ?? []) heard(message); }
  async send(message) {
    for (const found of await askPython(this.place, message)) this.tell("msg:custom", found);
  }
}
window.models = (await states()).map((state, place) => new Model(place, state));
window.ends = models.map((model, place) => {
  const el = document.body.appendChild(document.createElement("section"));
  el.id = `w${place}`;
  return widget.render({ model, el });
});
</script></body></html>"""


class Notebook:
    """A page with an explorer for each rule, and the widgets in Python that they belong to."""

    def __init__(self, page: Any, rules: tuple[str, ...], ground: str) -> None:
        self.page, self.widgets = page, [explore(rule) for rule in rules]
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        page.on("request", lambda asked: asked.url.startswith("http") and self.errors.append(asked.url))
        page.expose_function("readBundle", lambda: BUNDLE.read_text(encoding="utf-8"))
        page.expose_function(
            "states", lambda: [{"rule": one.rule, "numbers": one.numbers} for one in self.widgets]
        )
        page.expose_function("toPython", self.take)
        page.expose_function("askPython", self.answer)
        page.set_content(PAGE.replace("GROUND", ground))
        page.wait_for_function("window.ends")

    def take(self, place: int, state: dict[str, Any]) -> None:
        self.widgets[place].set_state(state)

    def answer(self, place: int, message: dict[str, Any]) -> list[Any]:
        sent: list[Any] = []
        widget = self.widgets[place]
        widget.send = sent.append  # pyright: ignore[reportAttributeAccessIssue]
        widget._answer(message)
        return sent

    def explorer(self, place: int = 0) -> Any:
        return self.page.locator(f"#w{place} .explorer")


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """Opens a page of explorers; at the end nothing may have gone wrong, nor been fetched."""
    page = browser.new_page(viewport={"width": 800, "height": 1000})
    made: list[Notebook] = []

    def open_page(*rules: str, ground: str = "#ffffff") -> Notebook:
        made.append(Notebook(page, rules, ground))
        return made[-1]

    yield open_page
    page.close()
    assert [error for one in made for error in one.errors] == []


def test_a_rule_is_shown_with_its_count(opened: Any) -> None:
    from playwright.sync_api import expect

    found = opened("k <= q and q - k <= t")
    canvas = found.explorer().locator("canvas")
    expect(found.explorer().locator(".pieces math").first).to_be_visible()
    expect(found.explorer()).to_contain_text("42 of 144 pairs in view")  # 1 + 2 + 3 + 9*4, n = 12 and t = 3
    assert canvas.evaluate("one => one.width") > 200


def test_numbers_and_rules_go_to_python_and_come_from_it(opened: Any) -> None:
    from playwright.sync_api import expect

    found = opened("k <= q and q - k <= t")
    widget, explorer = found.widgets[0], found.explorer()
    explorer.get_by_label("n, number").fill("8")
    explorer.get_by_label("t, number").fill("2")
    expect(explorer.locator(".value")).to_contain_text("21 of 64 pairs")  # 1 + 2 + 6*3
    assert widget.numbers == {"n": 8, "t": 2} and widget.value.count() == 21
    explorer.locator("textarea").fill("k <= q")
    expect(explorer.locator(".value")).to_contain_text("36 of 64 pairs")
    assert widget.rule == "k <= q" and widget.value.total() == 36
    found.page.evaluate("models[0].set('rule', 'windowed(4)')")  # as a change in Python arrives
    expect(explorer.locator("textarea")).to_have_value("windowed(4)")
    expect(explorer.locator(".value")).to_contain_text("20 of 64 pairs")  # two windows of 4*5/2


def test_a_mistake_is_underlined_and_mended_by_a_click(opened: Any) -> None:
    from playwright.sync_api import expect

    found = opened("k <= q")
    explorer = found.explorer()
    explorer.locator("textarea").fill("k <= q & q - k <= 3")
    expect(explorer.locator(".mirror .wrong")).to_have_text("&")
    explorer.locator(".problem button").first.click()
    expect(explorer.locator("textarea")).to_have_value("k <= q and q - k <= 3")
    assert found.widgets[0].rule == "k <= q and q - k <= 3"


def test_names_are_completed(opened: Any) -> None:
    from playwright.sync_api import expect

    explorer = opened("k <= q").explorer()
    expect(explorer.locator(".pieces math").first).to_be_visible()  # so the catalogue, asked before, is here
    explorer.locator("textarea").fill("wind")
    explorer.get_by_role("option", name="windowed").first.click()
    expect(explorer.locator("textarea")).to_have_value("windowed")
    expect(explorer.get_by_label("w, number")).to_be_visible()


def test_two_on_a_page_are_independent(opened: Any) -> None:
    from playwright.sync_api import expect

    found = opened("k <= q", "k >= q")
    first, second = found.explorer(0), found.explorer(1)
    first.get_by_label("n, number").fill("4")
    expect(first.locator(".value")).to_contain_text("10 of 16 pairs")
    expect(second.locator(".value")).to_have_count(0)
    second.get_by_label("n, number").fill("5")
    expect(second.locator(".value")).to_contain_text("15 of 25 pairs")
    assert [one.numbers for one in found.widgets] == [{"n": 4}, {"n": 5}]
    found.page.evaluate("ends[1]()")  # one is taken away, the other goes on
    first.get_by_label("n, number").fill("6")
    expect(first.locator(".value")).to_contain_text("21 of 36 pairs")


def test_the_readout_and_the_zoom(opened: Any) -> None:
    from playwright.sync_api import expect

    explorer = opened("k <= q").explorer()
    explorer.locator(".grid-place").focus()
    explorer.page.keyboard.press("ArrowDown")
    expect(explorer.locator(".grid-readout")).to_contain_text("attended")
    expect(explorer.locator(".mirror .spoken-of")).to_have_text("k <= q")
    explorer.page.keyboard.press("+")
    expect(explorer.get_by_role("button", name="Fit")).to_be_enabled()


@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])
def test_axe_finds_nothing_serious(opened: Any, ground: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not there: run `make browser`")
    from playwright.sync_api import expect

    found = opened("k <= q and q - k <= t", ground=ground)
    expect(found.explorer().locator(".pieces math").first).to_be_visible()
    found.page.add_script_tag(path=str(AXE))
    wrong = found.page.evaluate(
        "axe.run('#w0').then(found => found.violations.map(({ id, nodes }) => [id, nodes[0].html]))"
    )
    assert wrong == []


@pytest.mark.parametrize(("ground", "theme"), [("#ffffff", "light"), ("#111111", "dark")])
def test_it_is_as_light_as_the_page(opened: Any, ground: str, theme: str) -> None:
    from playwright.sync_api import expect

    found = opened("k <= q", ground=ground)
    expect(found.page.locator("#w0 > div")).to_have_attribute("data-theme", theme)
    other = {"light": "#111111", "dark": "#ffffff"}[theme]
    found.page.evaluate(f"document.body.style.background = '{other}'")  # the notebook's theme is changed
    expect(found.page.locator("#w0 > div")).not_to_have_attribute("data-theme", theme)


def test_the_page_around_it_stays_as_it_was(opened: Any) -> None:
    page = opened("k <= q").page
    assert page.evaluate("document.documentElement.dataset.theme") is None
    assert page.evaluate("document.head.querySelectorAll('style').length") == 0
    page.evaluate("window.pressed = 0; document.addEventListener('keydown', () => window.pressed++)")
    page.locator("#w0 textarea").press("a")
    assert page.evaluate("window.pressed") == 0  # a notebook's keys are not for what is typed here
