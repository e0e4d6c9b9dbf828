"""Raster order: a pixel attends to itself and all pixels before it, row by row.

qy*cols + qx + 1 keys a query: causal on the image's pixels in reading order.

    ###        what the middle pixel of a 3 x 3 image attends to
    ##.
    ...

Reference: van den Oord et al. 2016, Pixel Recurrent Neural Networks; Parmar et al. 2018, Image Transformer.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="raster",
    meaning="a pixel attends to itself and all pixels before it in reading order",
    keys="qy*cols + qx + 1",
    reference="van den Oord et al. 2016, Pixel Recurrent Neural Networks",
    aliases=("raster_scan",),
    elsewhere=("PixelCNN and Image GPT: autoregressive in raster order",),
)


def raster() -> Rule:
    """Causal in reading order: `ky < qy or ky == qy and kx <= qx`.

    >>> raster().mask(rows=2, cols=2).sum()  # 1 + 2 + 3 + 4
    np.int64(10)
    """
    return entry("ky < qy or ky == qy and kx <= qx", ABOUT)
