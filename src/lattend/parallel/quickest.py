"""Which strategy a call takes where the cluster is described: the quickest, by what a plan predicts."""

from __future__ import annotations

from lattend.errors import NoClosedForm, NotAffineError, TooLarge
from lattend.parallel.cluster import Cluster
from lattend.parallel.cut import contiguous
from lattend.parallel.layout import Layout
from lattend.parallel.strategies import (
    KEPT_SHARDS,
    Share,
    Strategy,
    Tensors,
    halo_strategy,
    heads_strategy,
    quickest_of,
    staged_strategy,
)
from lattend.parallel.tally import tally_of
from lattend.rules.flat import on_line
from lattend.rules.rule import Rule


def quickest_strategy(
    rule: Rule, layout: Layout, tensors: Tensors, cluster: Cluster, *, trains: bool, by_heads: bool
) -> str | None:
    """The name of the strategy that is over first, its backward pass too where the call trains.

    Heads are shared only if they can be, `by_heads`, and keys do not come at once where these are too many
    to hold. None where the pairs of these shards are not counted, and where heads differ, of which some
    ranks would have more work than others.

    >>> from lattend.rules.reader import rule
    >>> tensors, window = Tensors(8, 8, 64, 64, 2), rule("strided(63)").at(n=4096)
    >>> quickest_strategy(
    ...     window, Layout.on_line(contiguous(4096, 4)), tensors, Cluster(), trains=True, by_heads=True
    ... )
    'halo'
    """
    if rule.has_heads:
        return None
    line = on_line(rule) if len(layout.sizes) == 1 else rule  # a line of pixels may be cut inside a row
    try:
        found = _strategies(line, layout, tensors, cluster, by_heads)
    except (NoClosedForm, NotAffineError, TooLarge):
        return None
    best = quickest_of([*found.values()], cluster, trains)
    return next(name for name, one in found.items() if one is best)


def _strategies(
    rule: Rule, layout: Layout, tensors: Tensors, cluster: Cluster, by_heads: bool
) -> dict[str, Strategy]:
    """What is predicted of each, by the names that they have where they run."""
    tally = tally_of(rule)
    if tally.sizes != layout.sizes:  # an image that is read row by row
        rows, *others = layout.cuts
        if others:
            raise NoClosedForm("blocks of an image whose axes do not part are not counted")
        layout = Layout((rows.times(tally.unit),), tally.sizes)
    share = Share(tally, layout)
    found = {"ring": staged_strategy(share, tensors, cluster, grids=1)}
    if share.halo.max(initial=0) <= KEPT_SHARDS * layout.lengths.max(initial=0):
        found["halo"] = halo_strategy(share, tensors, cluster, grids=1)
    if by_heads:
        whole = Share(tally, Layout((contiguous(tally.sizes[0], 1),), tally.sizes))
        found["ulysses"] = heads_strategy(whole, tensors, cluster, grids=1, groups=layout.ranks)
    return found
