"""The rules of a model's layers in its configuration: save_pretrained writes them, from_pretrained sets them.

The configuration then names the attention too, so that transformers refuses to load it where Lattend is not
imported, unless it is told to run another attention.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from lattend.cost.models.configuration import RULE
from lattend.errors import LattendError
from lattend.rules.reader import read_rule

RULES = "lattend_rules"  # in config.json: the rule of each layer, by its name in the base model


def save_rules(attention: str) -> None:
    """Have save_pretrained and from_pretrained keep the rules of models that run this attention."""
    PreTrainedModel.save_pretrained = _saving(PreTrainedModel.save_pretrained, attention)
    for name in ("from_pretrained", "_from_config"):
        load = getattr(PreTrainedModel, name).__func__
        setattr(PreTrainedModel, name, classmethod(_loading(load, attention)))


def _saving(save: Callable[..., Any], attention: str) -> Callable[..., Any]:
    @wraps(save)
    def save_pretrained(model: Any, *args: Any, **options: Any) -> Any:
        rules = {name: vars(layer)[RULE] for name, layer in _by_name(model).items() if RULE in vars(layer)}
        config = model.config
        rules = rules or getattr(config, RULES, None)
        if not rules:
            return save(model, *args, **options)
        before = {**vars(config)}
        written = {RULES: rules, "attn_implementation": attention}
        vars(config).update(written)
        try:
            return save(model, *args, **options)
        finally:
            for name in written:
                del vars(config)[name]
            vars(config).update({name: before[name] for name in written if name in before})

    return save_pretrained


def _loading(load: Callable[..., Any], attention: str) -> Callable[..., Any]:
    @wraps(load)
    def loaded(cls: type[Any], *args: Any, **options: Any) -> Any:
        result = load(cls, *args, **options)
        _set_saved_rules(result[0] if isinstance(result, tuple) else result, attention)
        return result

    return loaded


def _set_saved_rules(model: Any, attention: str) -> None:
    """Give the layers the rules of the configuration, or warn that the model runs without them."""
    rules: dict[str, str] | None = getattr(model.config, RULES, None)
    if not rules:
        return
    first = next(iter(rules.values()))
    runs = getattr(model.config, "_attn_implementation", None)
    if runs != attention:
        warnings.warn(
            f'this model was saved with rules of Lattend, such as "{first}", and runs without them: '
            f'load it with attn_implementation="{attention}", not "{runs}"',
            stacklevel=4,
        )
        return
    layers = _by_name(model)
    if missing := [name for name in rules if name not in layers]:
        raise LattendError(
            f'the saved rule "{rules[missing[0]]}" is for the layer {missing[0]}, which '
            f"{type(model).__name__} does not have: load the class that was saved, or delete "
            f"{RULES} from config.json"
        )
    for name, rule in rules.items():
        vars(layers[name])[RULE] = read_rule(rule).text
    delattr(model.config, RULES)


def _by_name(model: Any) -> dict[str, nn.Module]:
    """The modules by their names in the base model, which classes for other tasks have under a prefix."""
    return {
        name.removeprefix(f"{model.base_model_prefix}."): module for name, module in model.named_modules()
    }
