"""Rules: who attends to whom. The catalogue by name, `lt.rule` for your own."""

from collections.abc import Callable as _Callable

from lattend.rules.catalogue.blocks import bigbird as bigbird
from lattend.rules.catalogue.blocks import chunked as chunked
from lattend.rules.catalogue.blocks import documents as documents
from lattend.rules.catalogue.blocks import sparse_fixed as sparse_fixed
from lattend.rules.catalogue.blocks import sparse_strided as sparse_strided
from lattend.rules.catalogue.blocks import windowed as windowed
from lattend.rules.catalogue.entry import RuleInfo as RuleInfo
from lattend.rules.catalogue.image import axial as axial
from lattend.rules.catalogue.image import natten as natten
from lattend.rules.catalogue.image import neighbourhood as neighbourhood
from lattend.rules.catalogue.image import raster as raster
from lattend.rules.catalogue.image import swin as swin
from lattend.rules.catalogue.line import band as band
from lattend.rules.catalogue.line import causal as causal
from lattend.rules.catalogue.line import dilated as dilated
from lattend.rules.catalogue.line import full as full
from lattend.rules.catalogue.line import local as local
from lattend.rules.catalogue.line import longformer as longformer
from lattend.rules.catalogue.line import prefix_lm as prefix_lm
from lattend.rules.catalogue.line import sinks as sinks
from lattend.rules.catalogue.line import sliding_window as sliding_window
from lattend.rules.catalogue.line import strided as strided
from lattend.rules.catalogue.line import window_size as window_size
from lattend.rules.catalogue.names import ALIASES as ALIASES
from lattend.rules.catalogue.names import CATALOGUE as CATALOGUE
from lattend.rules.catalogue.names import unknown_rule as _unknown_rule
from lattend.rules.language.symbols import maximum as maximum
from lattend.rules.language.symbols import minimum as minimum
from lattend.rules.rule import Rule as Rule


def __getattr__(name: str) -> _Callable[..., Rule]:
    """A rule by one of its other names, as in lt.rules.autoregressive()."""
    if name in ALIASES:
        return ALIASES[name]
    raise AttributeError(name if name.startswith("_") else _unknown_rule(name))
