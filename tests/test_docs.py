"""The README and the docs say what really happens: their code runs, their pictures are the code's."""

from __future__ import annotations

import doctest
import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from lattend.cli.main import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [page for page in PAGES if page.name != "questions.md"]  # whose blocks tests/ask runs
FLAGS = doctest.ELLIPSIS


@pytest.mark.parametrize("page", BLOCKS, ids=lambda page: page.name)
def test_python_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text()
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    source = "\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    report: list[str] = []
    # torch.compile removes its own names from the globals later, so they stay
    outcome = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert outcome.failed == 0, "".join(report)
    assert outcome.attempted == source.count(">>> ")


def console_commands() -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for page in BLOCKS:
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append((page.name, command, output))
    return found


@pytest.mark.parametrize(("page", "command", "output"), console_commands())
def test_console_blocks(
    page: str, command: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    words = shlex.split(command)
    assert words[0] == "lattend"
    code = main(words[1:])
    shown = capsys.readouterr()
    assert (shown.out + shown.err).strip() == output.strip()
    assert (code == 2) == bool(shown.err)


def test_every_page_is_linked() -> None:
    text = (ROOT / "README.md").read_text()
    for page in PAGES[1:]:
        assert f"docs/{page.name}" in text


def test_links_lead_somewhere() -> None:
    """Files and headings, as GitHub reads the pages; tests/site looks at the site."""
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
            target, _, heading = link.partition("#")
            if link.startswith("http"):
                continue
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name}: {link}"
            assert not heading or heading in headings(file), f"{page.name}: {link}"


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def headings(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", without_code(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_pictures_are_those_of_the_code() -> None:
    folder = ROOT / "docs" / "pictures"
    spec = importlib.util.spec_from_file_location("make_pictures", folder / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pictures = module.pictures()
    assert {path.name for path in folder.glob("*.svg")} == {*pictures, "opening.svg"}
    assert (folder / "opening.svg").read_text() == module.opening(), "opening.svg is old: make pictures"
    for name, picture in pictures.items():
        assert (folder / name).read_text() == picture.svg(), f"{name} is old: make pictures"
        assert picture.tikz().isascii(), f"{name}: TeX cannot write a sign that draw/signs.py leaves out"
