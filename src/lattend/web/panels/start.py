"""start: what the page needs once: the catalogue and the examples."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel

from lattend import __version__
from lattend.web.panel import Panel, Question


class StartQuestion(Question):
    """Nothing is asked."""


class CatalogueRule(BaseModel):
    """A rule that has a name."""

    name: str
    meaning: str
    text: str
    parameters: list[str]
    aliases: list[str]


class Example(BaseModel):
    """A page and what is filled in there."""

    title: str
    page: str
    state: dict[str, Any]


class StartAnswer(BaseModel):
    """The page's menus."""

    version: str
    catalogue: list[CatalogueRule]
    examples: list[Example]


@lru_cache(maxsize=1)
def examples() -> list[Example]:
    """The examples of examples.toml, the first of which answers on a first visit."""
    import tomllib

    text = files("lattend.web").joinpath("examples.toml").read_text(encoding="utf-8")
    return [Example.model_validate(example) for example in tomllib.loads(text)["example"]]


def answer(question: StartQuestion) -> StartAnswer:
    """The catalogue of rules, and the examples."""
    from lattend.draw.grid.samples import catalogue

    rules = [
        CatalogueRule(
            name=name,
            meaning=rule.about.meaning if rule.about else "",
            text=rule.text,
            parameters=[*rule.parameters],
            aliases=[*rule.about.alias_names] if rule.about else [],
        )
        for name, rule in catalogue().items()
    ]
    return StartAnswer(version=__version__, catalogue=rules, examples=examples())


PANEL = Panel("start", "The page's menus", answer, first=True)
