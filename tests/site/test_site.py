"""The documentation site: built with warnings as errors, whole, and needing no network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from html import unescape
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import pytest
from chromium import FLAGS, chromium
from filelock import FileLock

import lattend as lt
from lattend.ask.question import questions

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SEARCHED = "sliding window"  # what a newcomer types, and a page that must be found
FOUND = "strided"


def build(folder: Path, *options: str) -> Path:
    """The site in this folder."""
    command = [sys.executable, str(ROOT / "docs" / "site" / "make.py"), *options]
    ran = subprocess.run(
        [*command, "--out", str(folder / "site")],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert "index.html in a browser" in ran.stdout
    return folder / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without its notebooks run, built once for all workers, and then once more."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "documentation"
    with FileLock(f"{folder}.lock"):
        if not (folder / "again.json").exists():
            made = build(folder, "--quick")
            times = {page: page.stat().st_mtime_ns for page in made.rglob("*.html")}
            build(folder, "--quick")
            again = [str(page) for page, time in times.items() if page.stat().st_mtime_ns != time]
            (folder / "again.json").write_text(json.dumps(again))
    return folder / "site"


@cache
def text_of(page: Path) -> str:
    return page.read_text()


@cache
def anchors(page: Path) -> set[str]:
    return {unescape(name) for name in re.findall(r'\bid="([^"]*)"', text_of(page))}


def test_links_and_anchors_lead_somewhere(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    assert len(pages) > 60
    broken: list[str] = []
    for page in pages:
        for link in map(unescape, re.findall(r'(?:href|src)="([^"]+)"', text_of(page))):
            path, _, anchor = link.partition("#")
            if re.match(r"(https?|mailto|data):", link):
                continue
            target = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
            if not target.is_file() or (anchor and unquote(anchor) not in anchors(target)):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    assert fetched(site) == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\W*https?:", sheet.read_text()), sheet


def fetched(site: Path) -> list[str]:
    """What pages load from elsewhere: scripts, sheets, pictures."""
    loads = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*(?:src|href)=\"(https?:[^\"]*)")
    return [
        f"{page.name}: {found}" for page in site.rglob("*.html") for found in loads.findall(text_of(page))
    ]


def test_every_rule_has_a_page(site: Path) -> None:
    index = text_of(site / "gallery" / "index.html")
    for name in lt.rules.CATALOGUE:
        assert f"{name}.html" in index
        page = text_of(site / "gallery" / f"{name}.html")
        about = lt.rule("documents([2])" if name == "documents" else name).about
        assert about is not None
        assert about.reference in unescape(page)
        assert re.search(r'<img [^>]*src="[^"]*\.svg"', page) and "lt.attention" in re.sub(
            "<[^>]*>", "", page
        )
        assert "<math" in page or name == "documents"  # which is data, and has no closed form


def test_formulas_are_mathematics(site: Path) -> None:
    """(2n - t)(t + 1)/2 with its case, as elements that a browser draws; no LaTeX is left on a page."""
    page = text_of(site / "gallery" / "strided.html")
    formula = re.search(r"<math[^>]*>(.*?)</math>", page, re.DOTALL)
    assert formula is not None
    letters = unescape(re.sub("<[^>]*>", "", formula[1])).replace("\N{MINUS SIGN}", "-")
    assert "".join(letters.split()) == "{(2n-t)(t+1)2ift≤nn(n+1)2ift>n"
    for rule in (site / "gallery").glob("*.html"):
        assert not re.search(r"\\(frac|begin|text|mathrm|lfloor)|<merror", text_of(rule)), rule


def test_notebooks_come_in_the_order_to_read_them(site: Path) -> None:
    """That of the table in docs/notebooks.md, which has every one of them, the tour first."""
    listed = re.findall(r"\(\.\./examples/(\w+)\.ipynb\)", (ROOT / "docs" / "notebooks.md").read_text())
    assert sorted(listed) == [file.stem for file in NOTEBOOKS]
    assert listed[0] == "tour"
    page = text_of(site / "notebooks.html")
    article = page[page.index("<article") : page.index("</article>")]
    assert list(dict.fromkeys(re.findall(r'href="examples/(\w+)\.html"', article))) == listed


def test_every_question_has_a_place(site: Path) -> None:
    index = unescape(text_of(site / "docs" / "questions.html"))
    for one in questions():
        link = re.search(rf'href="(questions/[a-z0-9-]+\.html)#question-{one.number}"', index)
        assert link is not None, one.number
        assert f"{one.number}. {one.asks}" in unescape(text_of(site / "docs" / link[1])).replace("’", "'")


@pytest.mark.parametrize(
    "folder",
    ["lattend", "lattend.cost", "lattend.nn", "lattend.study", "lattend.study.games", "lattend.draw"],
)
def test_every_public_name_is_in_the_reference(site: Path, folder: str) -> None:
    known = set().union(*(anchors(page) for page in (site / "reference").glob("*.html")))
    module = import_module(folder)
    public = getattr(module, "__all__", None) or ["draw", "Picture"]
    for name in public:
        if callable(getattr(module, name)):
            assert f"{folder}.{name}" in known


def test_a_second_build_writes_only_what_changed(site: Path) -> None:
    again = json.loads((site.parent / "again.json").read_text())
    assert len(again) <= 3, again  # the search page and the like


@pytest.mark.parametrize("width", [1280, 390])
def test_the_site_in_a_browser(site: Path, width: int) -> None:
    """No page is wider than the window, nothing fails, and the search finds a rule by another name."""
    from playwright.sync_api import sync_playwright

    if chromium() is None:
        pytest.skip("no Chromium can be had")
    said: list[str] = []
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda asked: said.append(asked.url) if asked.url.startswith("http") else None)
        for name in (
            "index",
            "gallery/index",
            "gallery/swin",
            "docs/speed",
            "reference/attention",
            "docs/costs",
        ):
            page.goto((site / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        page.goto(f"{(site / 'search.html').as_uri()}?q={SEARCHED}")
        page.locator("#search-results a", has_text=FOUND).first.wait_for()
        browser.close()
    assert said == []


@pytest.mark.long
def test_the_site_with_its_notebooks_run(tmp_path: Path) -> None:
    site = build(tmp_path)
    assert NOTEBOOKS
    for notebook in NOTEBOOKS:
        page = text_of(site / "examples" / f"{notebook.stem}.html")
        assert "cell_output" in page and "Traceback" not in page
    assert fetched(site) == []
