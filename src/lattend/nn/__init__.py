"""Layers: torch modules on rules and sets; public as `lt.nn`.

Images are [batch, rows, cols, channels] for MultiHeadAttention and GridRNN, whose positions come before
their numbers, and torch's (N, channels, rows, cols) for what cuts them up or stands in for a convolution.

Attention    MultiHeadAttention; encodings Absolute, Sinusoidal, Tables, Relative, Quadratic
Other models replace_attention, for those of torch.nn, timm and diffusers
Images       Patches, ViT
Convolution  from_conv, to_conv, ConvAttention, error_bound, sharpness
Grid         GridRNN, GridStates, ragged_mask, check_grid; PixelModel, complete, sample
Pictures     draw_patches, draw_heads (of kernel_heads), draw_scores, draw_conv, draw_grid

`help(lt.nn.GridRNN)` tells the arguments of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import homes, on_first_use

if TYPE_CHECKING:
    from lattend.nn.attention.attention import MultiHeadAttention as MultiHeadAttention
    from lattend.nn.attention.encodings import Absolute as Absolute
    from lattend.nn.attention.encodings import Quadratic as Quadratic
    from lattend.nn.attention.encodings import Relative as Relative
    from lattend.nn.attention.encodings import Sinusoidal as Sinusoidal
    from lattend.nn.attention.encodings import Tables as Tables
    from lattend.nn.attention.gaussian_heads import kernel_heads as kernel_heads
    from lattend.nn.convolution.convert import from_conv as from_conv
    from lattend.nn.convolution.convert import to_conv as to_conv
    from lattend.nn.convolution.layer import ConvAttention as ConvAttention
    from lattend.nn.convolution.sharpness import sharpness as sharpness
    from lattend.nn.convolution.trial import error_bound as error_bound
    from lattend.nn.grid.check import check_grid as check_grid
    from lattend.nn.grid.complete import complete as complete
    from lattend.nn.grid.complete import sample as sample
    from lattend.nn.grid.pixels import PixelModel as PixelModel
    from lattend.nn.grid.rnn import GridRNN as GridRNN
    from lattend.nn.grid.states import GridStates as GridStates
    from lattend.nn.grid.states import ragged_mask as ragged_mask
    from lattend.nn.images.patches import Patches as Patches
    from lattend.nn.images.vit import ViT as ViT
    from lattend.nn.pictures.conv import draw_conv as draw_conv
    from lattend.nn.pictures.grid import draw_grid as draw_grid
    from lattend.nn.pictures.heads import draw_heads as draw_heads
    from lattend.nn.pictures.patches import draw_patches as draw_patches
    from lattend.nn.pictures.scores import draw_scores as draw_scores
    from lattend.nn.replace.replace import replace_attention as replace_attention

# Where each name lives, loaded when it is first used
_HOME = homes(
    "lattend.nn",
    {
        "attention.attention": "MultiHeadAttention",
        "attention.encodings": "Absolute Sinusoidal Tables Relative Quadratic",
        "attention.gaussian_heads": "kernel_heads",
        "replace.replace": "replace_attention",
        "images.patches": "Patches",
        "images.vit": "ViT",
        "convolution.convert": "from_conv to_conv",
        "convolution.layer": "ConvAttention",
        "convolution.trial": "error_bound",
        "convolution.sharpness": "sharpness",
        "grid.rnn": "GridRNN",
        "grid.states": "GridStates ragged_mask",
        "grid.check": "check_grid",
        "grid.pixels": "PixelModel",
        "grid.complete": "complete sample",
        "pictures.patches": "draw_patches",
        "pictures.heads": "draw_heads",
        "pictures.scores": "draw_scores",
        "pictures.conv": "draw_conv",
        "pictures.grid": "draw_grid",
    },
)

__getattr__, __dir__ = on_first_use(globals(), "lt.nn", _HOME)
