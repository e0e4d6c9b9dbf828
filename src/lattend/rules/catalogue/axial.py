"""Axial attention: a pixel attends to its row and its column.

rows + cols - 1 keys a query.

    .#.        what the middle pixel of a 3 x 3 image attends to
    ###
    .#.

Reference: Ho et al. 2019, Axial Attention in Multidimensional Transformers.
"""

from __future__ import annotations

from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

ABOUT = RuleInfo(
    name="axial",
    meaning="a pixel attends to its row and its column",
    keys="rows + cols - 1",
    reference="Ho et al. 2019, Axial Attention in Multidimensional Transformers",
    aliases=("criss_cross",),
    elsewhere=(
        "CCNet: criss-cross attention",
        "Axial Transformer: rows and columns in turn, one a layer",
    ),
)


def axial() -> Rule:
    """Its row and its column: `qy == ky or qx == kx`.

    >>> axial().mask(rows=2, cols=3).sum()  # 6 pixels * (2 + 3 - 1)
    np.int64(24)
    """
    return entry("qy == ky or qx == kx", ABOUT)
