"""Rules: who attends to whom. The catalogue by name, `lt.rule` for your own."""

from lattend.rules.catalogue import CATALOGUE as CATALOGUE
from lattend.rules.catalogue import axial as axial
from lattend.rules.catalogue import band as band
from lattend.rules.catalogue import bigbird as bigbird
from lattend.rules.catalogue import causal as causal
from lattend.rules.catalogue import chunked as chunked
from lattend.rules.catalogue import dilated as dilated
from lattend.rules.catalogue import documents as documents
from lattend.rules.catalogue import full as full
from lattend.rules.catalogue import longformer as longformer
from lattend.rules.catalogue import neighbourhood as neighbourhood
from lattend.rules.catalogue import prefix_lm as prefix_lm
from lattend.rules.catalogue import raster as raster
from lattend.rules.catalogue import sinks as sinks
from lattend.rules.catalogue import sparse_fixed as sparse_fixed
from lattend.rules.catalogue import sparse_strided as sparse_strided
from lattend.rules.catalogue import strided as strided
from lattend.rules.catalogue import swin as swin
from lattend.rules.catalogue import windowed as windowed
from lattend.rules.language.symbols import maximum as maximum
from lattend.rules.language.symbols import minimum as minimum
from lattend.rules.reader import from_name as from_name
from lattend.rules.rule import About as About
from lattend.rules.rule import Rule as Rule
