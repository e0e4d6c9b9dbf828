"""Panels about images: convolution as attention, the 2-D RNN, patches."""

from __future__ import annotations

from lattend.web.panels.images import conv, conv_error, conv_leak, conv_price, conv_same

PANELS = (conv.PANEL, conv_leak.PANEL, conv_error.PANEL, conv_price.PANEL, conv_same.PANEL)
