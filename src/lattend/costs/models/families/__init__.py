"""Families: one function a family, from the fields of a config to a model."""

from __future__ import annotations

from collections.abc import Callable

from lattend.costs.models.families.encoders import bert, distilbert, roberta
from lattend.costs.models.families.gpt import gpt2, gpt_neox, opt
from lattend.costs.models.families.images import swin, vit
from lattend.costs.models.families.latent import deepseek
from lattend.costs.models.families.rotary import STYLES, rotary
from lattend.costs.models.fields import Fields
from lattend.costs.models.model import Model

FAMILIES: dict[str, Callable[[Fields], Model]] = {
    **dict.fromkeys(STYLES, rotary),
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "gpt2": gpt2,
    "gpt_neox": gpt_neox,
    "opt": opt,
    "bert": bert,
    "roberta": roberta,
    "distilbert": distilbert,
    "vit": vit,
    "swin": swin,
}
