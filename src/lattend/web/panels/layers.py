"""layers: what can be priced: the layers by name, the quantities, machines, and models with their fields."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel

from lattend.web.panel import Panel, Question


class LayersQuestion(Question):
    """Nothing is asked."""


class CatalogueLayer(BaseModel):
    """A layer by name, with what it takes and an example; `rule`: whether it takes an attention mask."""

    name: str
    about: str
    signature: str
    example: str
    rule: bool


class NamedQuantity(BaseModel):
    """What can be asked of a layer, as it is typed and as people read it."""

    name: str
    label: str


class NamedModel(BaseModel):
    """A model that everybody knows, by the fields of its config.json that its price is made from."""

    name: str
    config: dict[str, Any]


class LayersAnswer(BaseModel):
    """The menus of the price page."""

    layers: list[CatalogueLayer]
    quantities: list[NamedQuantity]
    machines: list[str]
    models: list[NamedModel]


@lru_cache(maxsize=1)
def models() -> list[NamedModel]:
    """The models of models.toml."""
    import tomllib

    text = files("lattend.web").joinpath("models.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)["model"]
    return [NamedModel(name=one.pop("name"), config=one) for one in found]


def answer(question: LayersQuestion) -> LayersAnswer:
    """The catalogue of layers, and what is asked of them."""
    from lattend.cost.layer_catalogue import catalogue
    from lattend.cost.quantities import AT_NUMBERS, QUANTITIES, label
    from lattend.machines import MACHINES

    layers = [
        CatalogueLayer(
            name=entry.name,
            about=entry.about,
            signature=entry.signature,
            example=entry.example,
            rule="rule" in entry.arguments,
        )
        for entry in catalogue().entries.values()
    ]
    grow = [NamedQuantity(name=name, label=label(name)) for name in QUANTITIES if name not in AT_NUMBERS]
    return LayersAnswer(layers=layers, quantities=grow, machines=[*MACHINES], models=models())


PANEL = Panel("layers", "What can be priced", answer)
