"""Builds the documentation site into out/docs: `make docs`; `--quick` does not run the notebooks.

The sources are laid out in out/docs-build as they lie in the repository, so that a link which works on
GitHub works on the site. A file is written only where it changed: Sphinx then reads that page alone again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import gallery
import guide
import questions
import reference

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SITE = ROOT / "out" / "docs"
PORT = 8322
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md")
PICTURES = ("*.svg", "*.png", "*.gif")
KERNEL = "get_config().IPKernelApp.log_level = 40\n"  # of the notebooks: no word about how it is spoken to
NOTEBOOK = re.compile(r"\(\.\./examples/(\w+\.ipynb)\)")  # a link to one, in docs/notebooks.md
FRONT = "index.md"  # written for the site alone, beside this file
# [docs/costs.md](docs/costs.md): the path is what GitHub's readers want to see, the site has the page's title
PATH_AS_TEXT = re.compile(r"\[(?:docs/)?([a-z_]+\.md)\]\(((?:docs/)?\1(?:#[^)]*)?)\)")


def sources() -> dict[str, str | bytes]:
    """Every file of the site by its path, as Sphinx reads it."""
    found: dict[str, str | bytes] = {name: for_site((ROOT / name).read_text()) for name in PAGES}
    chapters = {page.stem: for_site(page.read_text()) for page in sorted((ROOT / "docs").glob("*.md"))}
    found |= {f"docs/{name}.md": text for name, text in chapters.items()}
    found |= questions.pages(chapters["questions"])
    found["guide.md"] = guide.page(chapters, (ROOT / "README.md").read_text())
    for folder in ("docs/pictures", "benchmarks/results"):
        for pattern in PICTURES:
            found |= {f"{folder}/{file.name}": file.read_bytes() for file in (ROOT / folder).glob(pattern)}
    found |= {f"examples/{file.name}": file.read_text() for file in (ROOT / "examples").glob("*.ipynb")}
    found[FRONT] = front((HERE / FRONT).read_text(), (ROOT / "README.md").read_text())
    return found | notebooks() | gallery.pages() | reference.pages()


def front(text: str, readme: str) -> str:
    """The front page, with the sections of the README that it names: `<!-- README: One minute -->`."""
    found = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", readme, re.DOTALL | re.MULTILINE))
    wanted = re.findall(r"<!-- README: (.*) -->", text)
    if missing := [title for title in wanted if title not in found]:
        raise SystemExit(
            f"docs/site/index.md shows the section {missing[0]!r} of the README, which is not there; "
            f"it has {', '.join(found)}"
        )
    for title in wanted:
        text = text.replace(f"<!-- README: {title} -->", f"## {title}\n{found[title].strip()}")
    return for_site(text)


def for_site(text: str) -> str:
    """A page of the repository as the site shows it."""
    return with_titles(without_last_blank(text))


def without_last_blank(text: str) -> str:
    """The page without the blank line at the end of an example, which doctest wants and readers do not."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        if line.startswith("```"):
            if inside and not lines[-1]:
                lines.pop()
            inside = not inside
        lines.append(line)
    return "\n".join(lines)


def with_titles(text: str) -> str:
    """The page with the titles of the pages it links to in place of their paths.

    >>> with_titles("[docs/costs.md](docs/costs.md) has more")
    '[](docs/costs.md) has more'
    """
    return PATH_AS_TEXT.sub(r"[](\2)", text)


def notebooks() -> dict[str, str]:
    """The list of the notebooks of examples/, each with its first words, in the order to read them."""
    files = in_reading_order((ROOT / "examples").glob("*.ipynb"))
    entries = "\n".join(f"- [](examples/{file.name}): {first_words(file)}" for file in files)
    text = "Each was run when this site was built; `examples/` has the files, to run and to change."
    contents = "\n".join(f"examples/{file.stem}" for file in files)
    return {
        "notebooks.md": f"# Notebooks\n\n{text}\n\n{entries}\n\n```{{toctree}}\n:hidden:\n\n{contents}\n```\n"
    }


def in_reading_order(files: Iterable[Path]) -> list[Path]:
    """Notebooks in the order of the table in docs/notebooks.md; one that is not in it comes last."""
    listed = NOTEBOOK.findall((ROOT / "docs" / "notebooks.md").read_text())
    place = {name: number for number, name in enumerate(listed)}
    return sorted(files, key=lambda file: (place.get(file.name, len(place)), file.name))


def first_words(notebook: Path) -> str:
    """The first paragraph under a notebook's title."""
    cells = json.loads(notebook.read_text())["cells"]
    paragraphs = "".join(cells[0]["source"]).split("\n\n")
    return " ".join(paragraphs[1].split()).rstrip(":.") + "." if len(paragraphs) > 1 else ""


def lay_out(folder: Path, files: dict[str, str | bytes]) -> None:
    """The folder with these files in it and no others; what did not change keeps its date."""
    for old in [file for file in folder.rglob("*") if file.is_file()]:
        if old.relative_to(folder).as_posix() not in files:
            old.unlink()
    for name, content in files.items():
        file, text = folder / name, content if isinstance(content, bytes) else content.encode()
        if not file.exists() or file.read_bytes() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)


def build(site: Path, *, run_notebooks: bool, fresh: bool) -> int:
    """Builds the site; gives Sphinx's exit code, which is not 0 after a warning."""
    from sphinx.cmd.build import build_main

    work = site.with_name(f"{site.name}-build")
    lay_out(work / "source", sources())
    lay_out(work / "ipython", {"profile_default/ipython_kernel_config.py": KERNEL})
    os.environ |= {"PYTHONPATH": str(ROOT / "src"), "IPYTHONDIR": str(work / "ipython")}
    options = ["-E", "-a"] if fresh else []
    options += ["-D", f"nb_execution_mode={'cache' if run_notebooks else 'off'}"]
    if run_notebooks:
        options += ["-D", f"nb_execution_cache_path={outputs(work / 'outputs', fresh=fresh)}"]
    folders = ["-c", str(HERE), "-d", str(work / "doctrees"), str(work / "source"), str(site)]
    return build_main(["-b", "html", "-q", "-W", "--keep-going", *options, *folders])


def outputs(folder: Path, *, fresh: bool) -> Path:
    """Where the outputs of notebooks are kept, of this library as it is: after a change they run again."""
    files = sorted((ROOT / "src" / "lattend").rglob("*.py"))
    wanted = folder / sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    for old in folder.glob("*"):
        if fresh or old != wanted:
            shutil.rmtree(old)
    return wanted


def serve(site: Path) -> None:
    """Shows the site on this machine until it is stopped."""
    handler: Callable[..., SimpleHTTPRequestHandler] = partial(SimpleHTTPRequestHandler, directory=site)
    try:
        server = ThreadingHTTPServer(("127.0.0.1", PORT), handler)
    except OSError:
        raise SystemExit(f"port {PORT} is taken: end what runs there, or open {site}/index.html") from None
    with server:
        print(f"http://127.0.0.1:{PORT} until Ctrl-C", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def main() -> int:
    """Builds, says where the site is, and shows it where that is asked for."""
    parser = argparse.ArgumentParser(description="build the documentation site into out/docs")
    parser.add_argument("--quick", action="store_true", help="show notebooks without running them")
    parser.add_argument("--fresh", action="store_true", help="build and run everything again")
    parser.add_argument("--out", type=Path, default=SITE, help="another folder than out/docs")
    parser.add_argument("--serve", action="store_true", help=f"then show it on port {PORT}")
    chosen = parser.parse_args()
    if code := build(chosen.out.resolve(), run_notebooks=not chosen.quick, fresh=chosen.fresh):
        print("the site is not whole: what is said above must be mended, warnings too", file=sys.stderr)
        return code
    print(
        f"the site is built: open {os.path.relpath(chosen.out)}/index.html in a browser; no server is needed"
    )
    if chosen.serve:
        serve(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
