"""Which strategy is predicted to be the quickest, for shards of a line and of an image."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lattend as lt
from lattend.machines import Machine
from lattend.parallel.cluster import Cluster
from lattend.parallel.layout import Layout, contiguous, zigzag
from lattend.parallel.strategies import Strategy, Tensors, choose_strategy, quickest_of

SLOW = Cluster(Machine("slow", 1e9, 1e12, 8), 8, 1e8, 1e8, latency=0.0)  # it computes, and messages are quick
WAITS = replace(SLOW, inside=1e6, between=1e6)  # it waits for messages
TENSORS = Tensors(heads=12, kv_heads=12, head_dim=16, value_dim=16, item=4)
LINE, IMAGE = {"n": 64}, {"rows": 8, "cols": 8}
ROWS = Layout((contiguous(8, 4),), (8, 8))


@pytest.mark.parametrize(
    ("rule", "layout", "cluster", "wanted"),
    [
        ("full", Layout.on_line(contiguous(64, 4)), SLOW, "ring"),  # three shards of others are not held
        ("full", Layout.on_line(contiguous(64, 3)), SLOW, "halo"),
        ("full", Layout.on_line(contiguous(64, 4)), WAITS, "ulysses"),
        ("k <= q", Layout.on_line(contiguous(64, 4)), SLOW, "ulysses"),  # it evens out
        ("k <= q", Layout.on_line(zigzag(64, 3)), SLOW, "halo"),
        ("k <= q and q - k <= 3", Layout.on_line(contiguous(64, 4)), WAITS, "halo"),
        ("neighbourhood(1)", ROWS, WAITS, "halo"),
        ("neighbourhood(7)", Layout((contiguous(8, 4),), (8, 8)), WAITS, "ulysses"),
        ("neighbourhood(7)", Layout.on_line(contiguous(64, 4)), WAITS, "ulysses"),  # the image as a line
        ("neighbourhood(1)", Layout.of_mesh((8, 8), (2, 2)), WAITS, "halo"),
        ("abs(qy - ky) + abs(qx - kx) <= 1", Layout.of_mesh((8, 8), (2, 2)), WAITS, None),  # not along axes
        ("abs(qy - ky) + abs(qx - kx) <= 1", ROWS, WAITS, "halo"),
        ("k <= q + head and head < heads", Layout.on_line(contiguous(64, 4)), SLOW, None),
    ],
)
def test_quickest(rule: str, layout: Layout, cluster: Cluster, wanted: str | None) -> None:
    read = lt.rule(rule)
    sizes = {"heads": 12} if read.has_heads else {}
    at = read.at(**sizes, **(IMAGE if len(read.axes) > 1 else LINE))
    by_heads = len(layout.cuts) == 1
    assert choose_strategy(at, layout, TENSORS, cluster, trains=True, by_heads=by_heads) == wanted


def test_one_rank_has_nothing_to_choose() -> None:
    whole = Layout.on_line(contiguous(64, 1))
    at = lt.rule("k <= q").at(n=64)
    found = choose_strategy(at, whole, TENSORS, SLOW, trains=False, by_heads=False)
    assert found in ("halo", "ring")


def test_the_backward_pass_counts_where_a_call_trains() -> None:
    def one(name: str, forward: float, backward: float, moved: int = 0, held: int = 0) -> Strategy:
        return Strategy(name, "", moved, moved, 1, held, 1.0, (forward, backward))

    first, second = one("first", 1.0, 5.0), one("second", 2.0, 2.0)
    assert quickest_of([first, second], SLOW) is second
    assert quickest_of([first, second], SLOW, trains=False) is first
    near = one("near", 2.001, 2.001, moved=-1)
    assert quickest_of([second, near], SLOW) is near  # within 1%: the fewest bytes
    small = replace(SLOW, machine=replace(SLOW.machine, memory=10.0))
    assert quickest_of([first, one("large", 0.1, 0.1, held=11)], small) is first
