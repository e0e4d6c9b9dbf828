"""Panels about images: convolution as attention, the 2-D RNN, patches."""

from __future__ import annotations

from lattend.web.panels.images import (
    conv,
    conv_error,
    conv_leak,
    conv_price,
    conv_same,
    grid,
    grid_check,
    grid_diagram,
    grid_price,
    patches,
    patches_price,
    scores,
)

PANELS = (
    *(conv.PANEL, conv_leak.PANEL, conv_error.PANEL, conv_price.PANEL, conv_same.PANEL),
    *(grid.PANEL, grid_price.PANEL, grid_check.PANEL, grid_diagram.PANEL),
    *(patches.PANEL, patches_price.PANEL, scores.PANEL),
)
