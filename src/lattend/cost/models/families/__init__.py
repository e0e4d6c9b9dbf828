"""Families: what makes a model of a config's fields. Text models are data, in text.toml."""

from __future__ import annotations

from collections.abc import Callable

from lattend.cost.models.families.encoder_decoder import bart, t5, whisper
from lattend.cost.models.families.family import TEXT
from lattend.cost.models.families.images import swin, vit
from lattend.cost.models.families.text import text_model
from lattend.cost.models.fields import Fields
from lattend.cost.models.model import Model

FAMILIES: dict[str, Callable[[Fields], Model]] = {
    **dict.fromkeys(TEXT, text_model),
    **{"t5": t5, "mt5": t5, "bart": bart, "whisper": whisper},
    **{"vit": vit, "swin": swin},
}
