"""The questions, one page a topic, and an index of them all."""

from __future__ import annotations

import re


def pages(text: str) -> dict[str, str]:
    """docs/questions.md as an index and a page for each of its topics."""
    head, *topics = re.split(r"^## ", text, flags=re.MULTILINE)
    found: dict[str, str] = {}
    index = [head.strip(), ""]
    for topic in topics:
        title, _, body = topic.partition("\n")
        name = slug(title)
        found[f"docs/questions/{name}.md"] = page(title, body)
        index += [f"## {title}\n", *links(body), ""]
    names = [path.rpartition("/")[2].removesuffix(".md") for path in found]
    contents = "\n".join(f"questions/{name}" for name in names)
    index.append(f"```{{toctree}}\n:hidden:\n\n{contents}\n```\n")
    return {"docs/questions.md": "\n".join(index), **found}


def page(title: str, body: str) -> str:
    """A topic, its questions one level up with a name each, its pictures one folder up."""
    body = re.sub(r"^### (\d+)", r"(question-\1)=\n\n## \1", body, flags=re.MULTILINE)
    return f"# {title}\n{body}".replace("](pictures/", "](../pictures/")


def links(body: str) -> list[str]:
    """The questions of a topic, each a link to its answer."""
    asked = re.findall(r"^### (\d+)\. (.*)$", body, re.MULTILINE)
    return [f"{number}. [{asks}](#question-{number})" for number, asks in asked]


def slug(title: str) -> str:
    """A file's name, from the words before a colon.

    >>> slug("Sparse patterns: who attends to whom, and how many dot products")
    'sparse-patterns'
    """
    return "-".join(re.findall(r"[a-z0-9]+", re.split("[:,]", title)[0].lower()))
