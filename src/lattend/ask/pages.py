"""All questions as one page of Markdown, and as a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from lattend.ask.question import Question
from lattend.errors import LattendError

HEAD = """# Questions

What people ask of attention layers, and how to ask it here: {count} questions from the course notes that
Lattend grew from, each with what the notes say, the command, its answer, the same in Python, and where the
notes are wrong. `lattend ask` lists them, `lattend ask window` finds those with a word, `lattend ask 7` runs
one, and `lattend ask --out questions.ipynb` writes them as a notebook. In what is printed `...` stands for
lines left out, and Python begins with `import lattend as lt`.
"""


def save(questions: Sequence[Question], path: str) -> Path:
    """Write the questions into a file: Markdown or a notebook, by the ending of its name."""
    writers = {".md": markdown, ".ipynb": notebook}
    target = Path(path)
    if target.suffix not in writers:
        raise LattendError(f"{path}: questions are written as a page, .md, or as a notebook, .ipynb")
    target.write_text(writers[target.suffix](questions), encoding="utf-8")
    return target


def markdown(questions: Sequence[Question]) -> str:
    """The questions as Markdown, as in docs/questions.md."""
    parts = [HEAD.format(count=len(questions))]
    for topic, group in groupby(questions, key=lambda one: one.topic):
        parts += [f"## {topic}\n", *("\n".join(_markdown(one)) for one in group)]
    return "\n".join(parts)


def _markdown(one: Question) -> Iterator[str]:
    yield f"### {one.number}. {one.asks}\n"
    if one.notes:
        yield f"The notes: {one.notes}\n"
    yield f"```console\n{one.run.strip()}\n```\n"
    if one.python:
        yield f"```python\n{one.python.strip()}\n```\n"
    if one.picture:
        yield f"![{one.asks}](pictures/{one.picture})\n"
    if one.remark:
        yield f"{one.remark}\n"


def notebook(questions: Sequence[Question]) -> str:
    """The questions as a notebook: each in words, then its Python in a cell."""
    cells = [_cell("markdown", HEAD.format(count=len(questions))), _cell("code", "import lattend as lt")]
    for topic, group in groupby(questions, key=lambda one: one.topic):
        cells.append(_cell("markdown", f"## {topic}"))
        for one in group:
            commands = "\n".join(f"$ {command}" for command, _ in one.commands)
            words = [f"### {one.number}. {one.asks}", f"The notes: {one.notes}" if one.notes else ""]
            words += [f"```console\n{commands}\n```", one.remark]
            cells.append(_cell("markdown", "\n\n".join(filter(None, words))))
            if one.python:
                cells.append(_cell("code", _source(one.python)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    data = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, source: str) -> dict[str, object]:
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source, **code}


def _source(python: str) -> str:
    """The code typed at the prompt, without its output; values are displayed."""
    import doctest

    examples = doctest.DocTestParser().get_examples(python)
    lines: list[str] = []
    for index, example in enumerate(examples):
        source = example.source.rstrip()
        shown = example.want and index < len(examples) - 1 and not source.startswith("print(")
        lines.append(f"display({source})" if shown and "\n" not in source else source)
    return "\n".join(lines)
