"""Costs: the exact price of whole layers, as formulas; public as `lt.cost`.

Layers: linear, feed_forward, norm, embedding, patch_embedding, attention, conv, rnn, lstm, gru, rnn2d,
transformer_block, encoder, decoder, vit, vae. Real models: of (a torch module), config (a Hugging Face
configuration), mfu (utilisation), serving (tokens a second on a machine). Side by side as a size grows:
compare; RNN against Transformer in training and at test: train_test. `print(lt.cost.catalogue())` has the
arguments of every layer and an example, `help(lt.cost.attention)` what they mean, and
`lt.cost.rnn2d().check(n=4, h=3, c=2)` runs one and compares what it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import homes, on_first_use

if TYPE_CHECKING:
    from lattend.cost.comparison.comparison import compare as compare
    from lattend.cost.comparison.tables import train_test as train_test
    from lattend.cost.cost import Cost as Cost
    from lattend.cost.layers.attention import attention as attention
    from lattend.cost.layers.conv import conv as conv
    from lattend.cost.layers.conv import patch_embedding as patch_embedding
    from lattend.cost.layers.recurrent import gru as gru
    from lattend.cost.layers.recurrent import lstm as lstm
    from lattend.cost.layers.recurrent import rnn as rnn
    from lattend.cost.layers.recurrent import rnn2d as rnn2d
    from lattend.cost.layers.tokenwise import embedding as embedding
    from lattend.cost.layers.tokenwise import feed_forward as feed_forward
    from lattend.cost.layers.tokenwise import linear as linear
    from lattend.cost.layers.tokenwise import norm as norm
    from lattend.cost.layers.transformer import decoder as decoder
    from lattend.cost.layers.transformer import encoder as encoder
    from lattend.cost.layers.transformer import transformer_block as transformer_block
    from lattend.cost.layers.transformer import vae as vae
    from lattend.cost.layers.transformer import vit as vit
    from lattend.cost.measure.measure import FlopCounter as FlopCounter
    from lattend.cost.measure.measure import of as of
    from lattend.cost.models import config as config
    from lattend.cost.models import mfu as mfu
    from lattend.cost.models import serving as serving
    from lattend.cost.reader import catalogue as catalogue

# The modules that hold these names, loaded when one is first used
_HOME = homes(
    "lattend.cost",
    {
        "cost": "Cost",
        "reader": "catalogue",
        "layers.attention": "attention",
        "layers.conv": "conv patch_embedding",
        "layers.recurrent": "gru lstm rnn rnn2d",
        "layers.tokenwise": "embedding feed_forward linear norm",
        "layers.transformer": "decoder encoder transformer_block vit vae",
        "models": "config mfu serving",
        "comparison.comparison": "compare",
        "comparison.tables": "train_test",
        "measure.measure": "of FlopCounter",  # needs torch
    },
)

__getattr__, __dir__ = on_first_use(globals(), "lt.cost", _HOME)
