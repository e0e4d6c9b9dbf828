"""What a notebook is given of a result, on pages that are light, dark, or say nothing; twice on each."""

from __future__ import annotations

from typing import Any

import pytest

import lattend as lt

# How JupyterLab, VS Code, Colab and pages made by Sphinx say that they are dark, or light
DARK = [
    ("", 'data-jp-theme-light="false"'),
    ("", 'data-vscode-theme-kind="vscode-dark"'),
    ('theme="dark"', ""),
    ('data-theme="dark"', ""),
    ("", 'data-theme="dark"'),
]
LIGHT = [
    ("", 'data-jp-theme-light="true"'),
    ("", 'data-vscode-theme-kind="vscode-light"'),
    ('theme="light"', ""),
    ('data-theme="light"', ""),
]
PICTURES = "[...document.querySelectorAll('.lattend svg')].map(one => getComputedStyle(one).filter)"


def filters(browser: Any, html: str, body: str, system: str) -> list[str]:
    """What is done to the pictures of a result that is shown twice on such a page."""
    shown = lt.rule("k <= q and q - k <= t")._repr_mimebundle_()["text/html"]
    page = browser.new_page(color_scheme=system)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_content(f"<!doctype html><html {html}><body {body}>{shown}<hr>{shown}</body></html>")
    found = page.evaluate(PICTURES)
    assert page.locator(".lattend math").count() == 2 * shown.count("<math") > 0
    page.close()
    assert asked == []  # it needs no network
    return found


@pytest.mark.parametrize(("html", "body"), DARK)
def test_pictures_are_dark_on_dark_pages(browser: Any, html: str, body: str) -> None:
    assert filters(browser, html, body, "light") == ["invert(0.93) hue-rotate(180deg)"] * 2


@pytest.mark.parametrize(("html", "body"), LIGHT)
def test_pictures_are_light_on_light_pages_of_a_dark_system(browser: Any, html: str, body: str) -> None:
    assert filters(browser, html, body, "dark") == ["none"] * 2


def test_a_page_that_says_nothing_is_as_the_system(browser: Any) -> None:
    assert filters(browser, "", "", "light") == ["none"] * 2
    assert filters(browser, "", "", "dark") == ["invert(0.93) hue-rotate(180deg)"] * 2
