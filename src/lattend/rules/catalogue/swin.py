"""Swin: w x w windows, shifted by s; pixels see one another inside a window.

w*w keys a query inside; a window cut by the border is smaller. s = 0 is the unshifted layer, s = w // 2
the shifted one. Swin rolls the image and masks the regions that a roll joins: the same squares when
w divides both sizes.

    ...        what the middle pixel of a 3 x 3 image sees, w = 2, s = 1
    .##
    .##

Reference: Liu et al. 2021, Swin Transformer: Hierarchical Vision Transformer using Shifted Windows.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import entry
from lattend.rules.rule import About, Rule

ABOUT = About(
    name="swin",
    meaning="w x w windows, shifted by s; pixels see one another inside a window",
    keys="(min(rows, (qy - s) // w*w + s + w) - max(0, (qy - s) // w*w + s))"
    "*(min(cols, (qx - s) // w*w + s + w) - max(0, (qx - s) // w*w + s))",
    reference="Liu et al. 2021, Swin Transformer",
)


def swin(w: int | None = None, s: int | None = None) -> Rule:
    """Shifted windows: `(qy - s) // w == (ky - s) // w and (qx - s) // w == (kx - s) // w`.

    >>> swin(w=2, s=1).mask(rows=3, cols=3).sum()  # (1*1 + 2*2)**2
    np.int64(25)
    """
    text = "(qy - s) // w == (ky - s) // w and (qx - s) // w == (kx - s) // w"
    return entry(text, ABOUT, where="0 <= s and s < w", w=w, s=s)
