"""Takes the pictures of the workbench: `python docs/pictures/workbench.py [FOLDER]`; needs Chromium.

Without a folder, the picture of the README; with one, every page, light and dark, wide and narrow.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2] / "client"))

from chromium import FLAGS, chromium

ROOT = Path(__file__).parents[2]
README = (
    "#rule?rule=k+%3C%3D+q+and+q+-+k+%3C%3D+t&numbers=%7B%22n%22%3A16%2C%22t%22%3A4%7D&claim=n%28t%2B1%29"
)
PAGES = re.findall(r'from "\./(\w+)/', (ROOT / "client" / "src" / "pages" / "index.ts").read_text())
TIMEOUT = 60_000  # ms


@contextmanager
def server() -> Iterator[str]:
    """The address of a workbench."""
    command = [sys.executable, "-m", "lattend", "serve", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found
        try:
            yield found[0]
        finally:
            process.terminate()


def shoot(browser: Any, address: str, file: Path, *, whole: bool = True, **settings: Any) -> None:
    """A page, once every panel has answered."""
    context = browser.new_context(reduced_motion="reduce", **settings)
    tab = context.new_page()
    tab.goto(address)
    tab.locator("main section.panel").first.wait_for(timeout=TIMEOUT)
    tab.wait_for_timeout(500)
    tab.locator("section.panel[aria-busy=true]").first.wait_for(state="detached", timeout=TIMEOUT)
    tab.wait_for_timeout(300)
    tab.screenshot(path=file, full_page=whole)
    context.close()


def main() -> None:
    """Take them."""
    with server() as address, sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=chromium(), args=[*FLAGS])
        if len(sys.argv) == 1:
            file = Path(__file__).parent / "workbench.png"
            shoot(browser, address + README, file, whole=False, viewport={"width": 1280, "height": 1180})
            return
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        for page in PAGES:
            for scheme in ("light", "dark"):
                for width in (1440, 360):
                    size = {"width": width, "height": 900}
                    file = folder / f"{page}-{scheme}-{width}.png"
                    shoot(browser, f"{address}#{page}", file, viewport=size, color_scheme=scheme)
                    print(file, flush=True)
        browser.close()


if __name__ == "__main__":
    main()
