"""The catalogue: known rules by name, one small file each."""

from __future__ import annotations

from collections.abc import Callable

from lattend.rules.catalogue.axial import axial
from lattend.rules.catalogue.band import band, local
from lattend.rules.catalogue.bigbird import bigbird
from lattend.rules.catalogue.causal import causal
from lattend.rules.catalogue.chunked import chunked
from lattend.rules.catalogue.dilated import dilated
from lattend.rules.catalogue.documents import documents
from lattend.rules.catalogue.full import full
from lattend.rules.catalogue.longformer import longformer
from lattend.rules.catalogue.neighbourhood import natten, neighbourhood
from lattend.rules.catalogue.prefix_lm import prefix_lm
from lattend.rules.catalogue.raster import raster
from lattend.rules.catalogue.sinks import sinks
from lattend.rules.catalogue.sparse_fixed import sparse_fixed
from lattend.rules.catalogue.sparse_strided import sparse_strided
from lattend.rules.catalogue.strided import sliding_window, strided
from lattend.rules.catalogue.swin import swin
from lattend.rules.catalogue.windowed import windowed
from lattend.rules.rule import Rule

# From the plain ones to images; each can be called without arguments, but documents, which is data.
_ORDER: tuple[Callable[..., Rule], ...] = (
    *(full, causal, strided, windowed, band, dilated, sparse_strided, sparse_fixed),
    *(longformer, bigbird, prefix_lm, sinks, chunked, documents),
    *(neighbourhood, axial, swin, raster),
)
CATALOGUE: dict[str, Callable[..., Rule]] = {function.__name__: function for function in _ORDER}

# Names from elsewhere, in the order of their rules; About.aliases says what their numbers are
ALIASES: dict[str, Callable[..., Rule]] = {
    **{"bidirectional": full, "autoregressive": causal, "lower_triangular": causal},
    **{"sliding_window": sliding_window, "block_causal": windowed, "banded": band, "local": local},
    **{"fixed": sparse_fixed, "prefix": prefix_lm, "attention_sinks": sinks},
    **{"block_diagonal": documents, "packed": documents, "neighborhood": neighbourhood, "natten": natten},
    **{"criss_cross": axial, "shifted_window": swin, "raster_scan": raster},
}
NAMES = {**CATALOGUE, **ALIASES}
