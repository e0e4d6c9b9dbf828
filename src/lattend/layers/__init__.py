"""Layers: torch modules on rules and sets; public as `lt.nn`.

Images are [batch, rows, cols, channels] for MultiHeadAttention and GridRNN, whose positions come before
their numbers, and torch's (N, channels, rows, cols) for what cuts them up or stands in for a convolution.

Attention    MultiHeadAttention; encodings Absolute, Sinusoidal, Tables, Relative, Quadratic
Images       Patches, ViT
Convolution  from_conv, to_conv, ConvAttention, error_bound, sharpness
Grid         GridRNN, GridStates, ragged_mask; PixelModel, complete, sample
Pictures     draw_patches, draw_heads, draw_scores, draw_conv, draw_grid

`help(lt.nn.GridRNN)` tells the arguments of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import on_first_use

if TYPE_CHECKING:
    from lattend.layers.attention.attention import MultiHeadAttention as MultiHeadAttention
    from lattend.layers.attention.encodings import Absolute as Absolute
    from lattend.layers.attention.encodings import Relative as Relative
    from lattend.layers.attention.encodings import Sinusoidal as Sinusoidal
    from lattend.layers.attention.encodings import Tables as Tables
    from lattend.layers.attention.quadratic import Quadratic as Quadratic
    from lattend.layers.convolution.bound import error_bound as error_bound
    from lattend.layers.convolution.convert import from_conv as from_conv
    from lattend.layers.convolution.convert import to_conv as to_conv
    from lattend.layers.convolution.layer import ConvAttention as ConvAttention
    from lattend.layers.convolution.sharpness import sharpness as sharpness
    from lattend.layers.grid.complete import complete as complete
    from lattend.layers.grid.complete import sample as sample
    from lattend.layers.grid.pixels import PixelModel as PixelModel
    from lattend.layers.grid.ragged import ragged_mask as ragged_mask
    from lattend.layers.grid.rnn import GridRNN as GridRNN
    from lattend.layers.grid.states import GridStates as GridStates
    from lattend.layers.images.patches import Patches as Patches
    from lattend.layers.images.vit import ViT as ViT
    from lattend.layers.pictures.conv import draw_conv as draw_conv
    from lattend.layers.pictures.grid import draw_grid as draw_grid
    from lattend.layers.pictures.heads import draw_heads as draw_heads
    from lattend.layers.pictures.heads import draw_scores as draw_scores
    from lattend.layers.pictures.patches import draw_patches as draw_patches

# Where each name lives, loaded when it is first used
_HOME: dict[str, str] = {
    "MultiHeadAttention": "lattend.layers.attention.attention",
    "Absolute": "lattend.layers.attention.encodings",
    "Sinusoidal": "lattend.layers.attention.encodings",
    "Tables": "lattend.layers.attention.encodings",
    "Relative": "lattend.layers.attention.encodings",
    "Quadratic": "lattend.layers.attention.quadratic",
    "Patches": "lattend.layers.images.patches",
    "ViT": "lattend.layers.images.vit",
    "from_conv": "lattend.layers.convolution.convert",
    "to_conv": "lattend.layers.convolution.convert",
    "ConvAttention": "lattend.layers.convolution.layer",
    "error_bound": "lattend.layers.convolution.bound",
    "sharpness": "lattend.layers.convolution.sharpness",
    "GridRNN": "lattend.layers.grid.rnn",
    "GridStates": "lattend.layers.grid.states",
    "ragged_mask": "lattend.layers.grid.ragged",
    "PixelModel": "lattend.layers.grid.pixels",
    "complete": "lattend.layers.grid.complete",
    "sample": "lattend.layers.grid.complete",
    "draw_patches": "lattend.layers.pictures.patches",
    "draw_heads": "lattend.layers.pictures.heads",
    "draw_scores": "lattend.layers.pictures.heads",
    "draw_conv": "lattend.layers.pictures.conv",
    "draw_grid": "lattend.layers.pictures.grid",
}

__getattr__, __dir__ = on_first_use(globals(), "lt.nn", _HOME)
