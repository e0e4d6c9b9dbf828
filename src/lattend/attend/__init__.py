"""Attention over the attended pairs of a rule and no others, with gradients."""

from lattend.attend.bias import Bias as Bias
from lattend.attend.call.attention_call import AttentionCall as AttentionCall
from lattend.attend.call.fp8 import quantize as quantize
from lattend.attend.call.varlen import document_ids as document_ids
from lattend.attend.decode.kv_cache import KVCache as KVCache
from lattend.attend.logits import (
    max_logits as max_logits,
)  # with attention, the operators of a saved program
