"""A server for the tests of the page, and a browser to look at it with."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a workbench that runs for these tests."""
    command = [sys.executable, "-m", "lattend", "serve", "--no-browser", "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + server.stderr.read()
        yield found[0]
        server.terminate()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium: the browser tests do not run")
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=found, args=[*FLAGS])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """An empty tab that knows the server; what goes wrong in it fails the test."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(10_000)
    tab = context.new_page()
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on(
        "console",
        lambda said: wrong.append(said.text) if said.type == "error" and "422" not in said.text else None,
    )
    yield tab
    context.close()
    assert not wrong
