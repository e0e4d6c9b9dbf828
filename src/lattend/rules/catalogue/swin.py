"""Swin: w x w windows, shifted by `shift`; pixels attend to one another inside a window.

w*w keys a query inside; a window cut by the border is smaller. shift = 0 is the unshifted layer,
shift = w // 2 the shifted one. Swin rolls the image and masks the regions that a roll joins: the same
pairs when w divides both sizes.

    ...        what the middle pixel of a 3 x 3 image attends to, w = 2, shift = 1
    .##
    .##

Reference: Liu et al. 2021, Swin Transformer: Hierarchical Vision Transformer using Shifted Windows.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="swin",
    meaning="w x w windows, shifted by `shift`; pixels attend to one another inside a window",
    keys="(min(rows, (qy - shift) // w*w + shift + w) - max(0, (qy - shift) // w*w + shift))"
    "*(min(cols, (qx - shift) // w*w + shift + w) - max(0, (qx - shift) // w*w + shift))",
    reference="Liu et al. 2021, Swin Transformer",
    aliases=("shifted_window(w, shift)",),
    elsewhere=("Swin: window_size = w, shift_size = shift",),
)


def swin(w: int | None = None, shift: int | None = None) -> Rule:
    """Shifted windows: `(qy - shift) // w == (ky - shift) // w and (qx - shift) // w == (kx - shift) // w`.

    >>> swin(w=2, shift=1).mask(rows=3, cols=3).sum()  # (1*1 + 2*2)**2
    np.int64(25)
    """
    text = "(qy - shift) // w == (ky - shift) // w and (qx - shift) // w == (kx - shift) // w"
    return entry(text, ABOUT, where="0 <= shift and shift < w", w=w, shift=shift)
