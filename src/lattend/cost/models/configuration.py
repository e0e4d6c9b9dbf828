"""config: a model from its Hugging Face config.json, without transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lattend.cost.models.families.encoder_decoder import bart, t5, whisper
from lattend.cost.models.families.family import TEXT
from lattend.cost.models.families.images import swin, vit
from lattend.cost.models.families.text import text_model
from lattend.cost.models.fields import INSIDE, Fields, Source, read
from lattend.cost.models.model import Model
from lattend.errors import LattendError

FAMILIES: dict[str, Callable[[Fields], Model]] = {
    **dict.fromkeys(TEXT, text_model),
    **{"t5": t5, "mt5": t5, "bart": bart, "whisper": whisper},
    **{"vit": vit, "swin": swin},
}
RULE = "lattend_rule"  # the attribute of an attention module that set_rule writes


def config(source: Source, /, **overrides: Any) -> Model:
    """The model that a config.json describes: a path to one, a folder with one, or its fields as a dict.

    A configuration of transformers, or a model of it, is read as well, a model with the rules that `set_rule`
    gave to its layers. Overrides replace fields, as in `config("config.json", num_hidden_layers=4)`.
    Parameters are those of transformers' model of the class that `architectures` names: with the language
    model's head where it names none, BERT with its pooler only, images with a classifier.

    >>> small = dict(model_type="gpt2", vocab_size=11, n_positions=8, n_embd=4, n_layer=2, n_head=2)
    >>> model = config(small)
    >>> model.parameters  # tables 4*(11 + 8), layers 2*(12*5 + 4*5 + 16*5 + 4*17 + 2*8), norm 8
    572
    >>> model.forward(8)["attention"].needed  # 2 layers, 2 heads, 2 + 2 numbers, 36 pairs
    576
    """
    model = _priced(source, overrides)[1]
    for rule, layers in _own_rules(source).items():
        model = model.with_rule(rule, layers)
    return model


def read_fields(source: Source) -> dict[str, Any]:
    """The fields that the price is made from: of a whole config.json, as much as a link can carry.

    >>> read_fields(dict(model_type="gpt2", vocab_size=11, n_positions=8, n_embd=4, n_layer=2, n_head=2, x=1))
    {'model_type': 'gpt2', 'vocab_size': 11, 'n_positions': 8, 'n_embd': 4, 'n_layer': 2, 'n_head': 2}
    """
    return _priced(source, {})[0].read_ones()


def _own_rules(source: Any) -> dict[str, list[int]]:
    """The rules that layers of a loaded model have, each with the numbers of its layers."""
    layers_of: dict[str, list[int]] = {}
    for module in source.modules() if callable(getattr(source, "modules", None)) else ():
        rule: str | None = getattr(module, RULE, None)
        if rule is not None:
            layer = getattr(module, "layer_idx", 0)  # those of images have no numbers: with_rule refuses them
            layers_of.setdefault(rule, []).append(layer)
    return layers_of


def _priced(source: Source, overrides: dict[str, Any]) -> tuple[Fields, Model]:
    fields = read(source, overrides)
    if fields.family not in FAMILIES:
        raise LattendError(
            f"{fields.where} is of the family {fields.family}, which is not known; known are "
            f"{', '.join(sorted({*FAMILIES, *INSIDE}))}; if it is built like one, give that as model_type"
        )
    model = FAMILIES[fields.family](fields)
    fields.check_overrides()
    return fields, model
