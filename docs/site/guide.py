"""The guide: the chapters of docs/, in groups."""

from __future__ import annotations

import re
from collections.abc import Mapping

GROUPS = {
    "Begin": "tour workbench notebooks coming_from transformers",
    "Rules and counts": "rules counting costs notation",
    "Layers that run": "attention devices images convolution grid",
    "Understand": "worked steering derivations gradients heads generative games",
}
OTHER = "Layers that run"  # where a chapter goes that no group names
ELSEWHERE = {"questions", "speed"}  # on the bar above every page
PROJECT = "/CONTRIBUTING\n/CHANGELOG"


def page(chapters: Mapping[str, str], readme: str) -> str:
    """The index of the chapters, each with what the README says of it."""
    said: dict[str, str] = dict(re.findall(r"^- \[docs/(\w+)\.md\]\([^)]*\): (.*)$", readme, re.MULTILINE))
    named = " ".join(GROUPS.values()).split()
    left = [name for name in chapters if name not in named and name not in ELSEWHERE]
    parts = ["# Guide\n"]
    for group, names in GROUPS.items():
        some = names.split() + (left if group == OTHER else [])
        parts += [f"## {group}\n", *(_entry(name, said.get(name)) for name in some), ""]
        contents = "\n".join(f"docs/{name}" for name in some)
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {group}\n\n{contents}\n```\n")
    parts.append(f"```{{toctree}}\n:hidden:\n:caption: Project\n\n{PROJECT}\n```\n")
    return "\n".join(parts)


def _entry(name: str, words: str | None) -> str:
    return f"- [](docs/{name}.md): {words}" if words else f"- [](docs/{name}.md)"
