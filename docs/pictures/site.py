"""Takes the pictures of the documentation site: `python docs/pictures/site.py [FOLDER]`, after `make docs`.

Without a folder, the picture of two pages side by side; with one, pages of every kind, light and dark, wide
and narrow. Needs Chromium.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2] / "client"))

from chromium import FLAGS, chromium

SITE = Path(__file__).parents[2] / "out" / "docs"
PAGES = (
    *("index", "guide", "docs/attention", "docs/speed", "docs/questions", "gallery/index", "gallery/swin"),
    *("notebooks", "examples/tour", "reference", "reference/attention", "search"),
)
COLOURS = 256  # of the picture that is kept: a third of the bytes, and no difference to be seen


def shoot(browser: Any, page: str, width: int, height: int, scheme: str) -> Image.Image:
    """A page of the site, from its file."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto((SITE / f"{page}.html").as_uri())
    tab.wait_for_timeout(500)
    taken = Image.open(BytesIO(tab.screenshot()))
    context.close()
    return taken.convert("RGB")


def main() -> None:
    """Take them."""
    if not (SITE / "index.html").exists():
        raise SystemExit("there is no site in out/docs yet: make docs")
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=chromium(), args=[*FLAGS])
        if len(sys.argv) == 1:
            beside = Image.new("RGB", (2000, 1000))
            beside.paste(shoot(browser, "index", 1000, 1000, "light"), (0, 0))
            beside.paste(shoot(browser, "gallery/index", 1000, 1000, "dark"), (1000, 0))
            beside.quantize(COLOURS).save(Path(__file__).parent / "site.png", optimize=True)
            return
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        for page in PAGES:
            for scheme in ("light", "dark"):
                for width in (1280, 390):
                    file = folder / f"{page.replace('/', '-')}-{scheme}-{width}.png"
                    shoot(browser, page, width, 900, scheme).save(file)
                    print(file, flush=True)
        browser.close()


if __name__ == "__main__":
    main()
