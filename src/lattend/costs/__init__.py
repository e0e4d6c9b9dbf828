"""Costs: the exact price of whole layers, as formulas; public as `lt.cost`.

Layers: linear, feed_forward, norm, embedding, patch_embedding, attention, conv, rnn, lstm, gru, rnn2d,
transformer_block, encoder, decoder, vit, vae. Real models: of (a torch module), config (a Hugging Face
configuration), mfu (utilisation). `help(lt.cost.attention)` tells the arguments of one, and
`lt.cost.rnn2d().check(n=4, h=3, c=2)` runs one and compares what it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import on_first_use

if TYPE_CHECKING:
    from lattend.costs.cost import Cost as Cost
    from lattend.costs.layers.attention import attention as attention
    from lattend.costs.layers.conv import conv as conv
    from lattend.costs.layers.conv import patch_embedding as patch_embedding
    from lattend.costs.layers.grid import rnn2d as rnn2d
    from lattend.costs.layers.recurrent import gru as gru
    from lattend.costs.layers.recurrent import lstm as lstm
    from lattend.costs.layers.recurrent import rnn as rnn
    from lattend.costs.layers.simple import embedding as embedding
    from lattend.costs.layers.simple import feed_forward as feed_forward
    from lattend.costs.layers.simple import linear as linear
    from lattend.costs.layers.simple import norm as norm
    from lattend.costs.layers.transformer import decoder as decoder
    from lattend.costs.layers.transformer import encoder as encoder
    from lattend.costs.layers.transformer import transformer_block as transformer_block
    from lattend.costs.layers.transformer import vit as vit
    from lattend.costs.layers.vae import vae as vae
    from lattend.costs.models import config as config
    from lattend.costs.models import mfu as mfu
    from lattend.meters import of as of

# Where each name lives, loaded when it is first used
_HOME = {
    "Cost": "lattend.costs.cost",
    "attention": "lattend.costs.layers.attention",
    "conv": "lattend.costs.layers.conv",
    "patch_embedding": "lattend.costs.layers.conv",
    "gru": "lattend.costs.layers.recurrent",
    "lstm": "lattend.costs.layers.recurrent",
    "rnn": "lattend.costs.layers.recurrent",
    "rnn2d": "lattend.costs.layers.grid",
    "embedding": "lattend.costs.layers.simple",
    "feed_forward": "lattend.costs.layers.simple",
    "linear": "lattend.costs.layers.simple",
    "norm": "lattend.costs.layers.simple",
    "decoder": "lattend.costs.layers.transformer",
    "encoder": "lattend.costs.layers.transformer",
    "transformer_block": "lattend.costs.layers.transformer",
    "vit": "lattend.costs.layers.transformer",
    "vae": "lattend.costs.layers.vae",
    "config": "lattend.costs.models",
    "mfu": "lattend.costs.models",
    "of": "lattend.meters",  # needs torch
}

__getattr__, __dir__ = on_first_use(globals(), "lt.cost", _HOME)
