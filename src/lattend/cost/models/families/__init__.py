"""Families: one function a family, from the fields of a config to a model."""

from __future__ import annotations

from collections.abc import Callable

from lattend.cost.models.families import rotary
from lattend.cost.models.families.encoder_decoder import bart, t5, whisper
from lattend.cost.models.families.encoders import bert, distilbert, modernbert, roberta
from lattend.cost.models.families.gpt import gpt2, gpt_neox, opt, phi
from lattend.cost.models.families.images import swin, vit
from lattend.cost.models.families.latent import deepseek
from lattend.cost.models.fields import Fields
from lattend.cost.models.model import Model

FAMILIES: dict[str, Callable[[Fields], Model]] = {
    **dict.fromkeys(rotary.STYLES, rotary.rotary),
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "gpt2": gpt2,
    "gpt_neox": gpt_neox,
    "opt": opt,
    "phi": phi,
    "bert": bert,
    "roberta": roberta,
    "distilbert": distilbert,
    "modernbert": modernbert,
    "t5": t5,
    "mt5": t5,
    "bart": bart,
    "whisper": whisper,
    "vit": vit,
    "swin": swin,
}
