"""A server for the tests of the page, and a browser to look at it with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import FLAGS, chromium

TIMEOUT = 15_000  # ms for something to appear, on a busy machine
REFUSED = re.compile(
    r"status of (409|422|429|503|504)"
)  # the browser's own word about a question that was refused


@pytest.fixture(scope="session")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the workbench of these tests says: a file, since a pipe that nobody reads stops it when full."""
    return tmp_path_factory.mktemp("serve") / "stderr"


@pytest.fixture(scope="session")
def address(terminal: Path) -> Iterator[str]:
    """The address of a workbench that runs for these tests."""
    command = [sys.executable, "-m", "lattend", "serve", "--no-browser", "--port", "0", "--workers", "1"]
    with terminal.open("w") as said, subprocess.Popen(command, stderr=said) as server:
        while not (found := re.search(r"http://\S+(?=\s)", terminal.read_text())):
            assert server.poll() is None, terminal.read_text()
            time.sleep(0.01)
        yield found[0]
        server.terminate()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a browser come last: Playwright keeps an event loop running, and others run their own."""
    items.sort(key=lambda item: "browser" in getattr(item, "fixturenames", ()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With a test that fails, the end of what the workbench said."""
    report = yield
    terminal = getattr(item, "funcargs", {}).get("terminal")
    if report.failed and terminal is not None and terminal.exists():
        report.sections.append(("the workbench said", terminal.read_text()[-4000:]))
    return report


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples as a site of plain files, in a folder of a folder."""
    folder = tmp_path_factory.mktemp("site") / "docs" / "workbench"
    command = [sys.executable, "-m", "lattend", "serve", "--export", str(folder)]
    subprocess.run(command, capture_output=True, check=True)
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium; where none can be had the tests are skipped, which is said at the end, but not in CI."""
    from playwright.sync_api import expect, sync_playwright

    program = chromium()
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium: in CI the browser tests must run")
        pytest.skip("no Chromium")
    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as engine:
        found = engine.chromium.launch(executable_path=program, args=[*FLAGS])
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """An empty tab that knows the server; what goes wrong in it fails the test."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(TIMEOUT)
    tab = context.new_page()
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    yield tab
    context.close()
    assert not [text for text in wrong if not REFUSED.search(text)]


FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"


@pytest.fixture(scope="session")
def settled() -> Callable[[Any], None]:
    """Waits until a tab shows a page whose panels have all answered, those that ask after others too."""
    from playwright.sync_api import expect

    def wait(tab: Any) -> None:
        for _ in range(3):
            tab.evaluate(FRAMES)
            expect(tab.locator("main > [aria-busy=true]")).to_have_count(0)  # the page's code is here
            expect(tab.locator("main section.panel").first).to_be_visible()
            expect(tab.locator("section.panel[aria-busy=true]")).to_have_count(0)

    return wait
