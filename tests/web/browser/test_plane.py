"""Labels of planes: none covers another, a number of an axis or a point."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

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
