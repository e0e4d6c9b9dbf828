"""Rules: who attends to whom. The catalogue by name, `lt.rule` for your own."""

from collections.abc import Callable as _Callable

from lattend.rules.catalogue import ALIASES as ALIASES
from lattend.rules.catalogue import CATALOGUE as CATALOGUE
from lattend.rules.catalogue import axial as axial
from lattend.rules.catalogue import band as band
from lattend.rules.catalogue import bigbird as bigbird
from lattend.rules.catalogue import causal as causal
from lattend.rules.catalogue import chunked as chunked
from lattend.rules.catalogue import dilated as dilated
from lattend.rules.catalogue import documents as documents
from lattend.rules.catalogue import full as full
from lattend.rules.catalogue import local as local
from lattend.rules.catalogue import longformer as longformer
from lattend.rules.catalogue import natten as natten
from lattend.rules.catalogue import neighbourhood as neighbourhood
from lattend.rules.catalogue import prefix_lm as prefix_lm
from lattend.rules.catalogue import raster as raster
from lattend.rules.catalogue import sinks as sinks
from lattend.rules.catalogue import sliding_window as sliding_window
from lattend.rules.catalogue import sparse_fixed as sparse_fixed
from lattend.rules.catalogue import sparse_strided as sparse_strided
from lattend.rules.catalogue import strided as strided
from lattend.rules.catalogue import swin as swin
from lattend.rules.catalogue import windowed as windowed
from lattend.rules.catalogue.meant import unknown_rule as _unknown_rule
from lattend.rules.language.symbols import maximum as maximum
from lattend.rules.language.symbols import minimum as minimum
from lattend.rules.rule import About as About
from lattend.rules.rule import Rule as Rule


def __getattr__(name: str) -> _Callable[..., Rule]:
    """A rule by one of its other names, as in lt.rules.autoregressive()."""
    if name in ALIASES:
        return ALIASES[name]
    raise AttributeError(name if name.startswith("_") else _unknown_rule(name))
