"""Ranks that disagree, die or are slow: one clear error on every rank, in time, and no wrong mask."""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest
import torch
from gloo_ranks import Crew
from parallel_faults import begun_again, destroyed, dies, different, filled, is_slow

import lattend as lt
from lattend.parallel.layout import of_lengths

DISAGREE = "RankError: the 3 ranks do not make the same call: "
DIFFERENT: dict[str, tuple[dict[str, Any], str]] = {
    "rule": ({"rule": "k < q"}, r"rule is '.*k <= q.*' on ranks 0, 2 and '.*k < q.*' on rank 1"),
    "its numbers": ({"rule": "strided(3)"}, "its numbers is"),
    "heads": (
        {"heads": 4},
        "heads is 2 on ranks 0, 2 and 4 on rank 1; kv heads is 2 on ranks 0, 2 and 4 on rank 1",
    ),
    "width": ({"width": 4}, "head dimension is 3 on ranks 0, 2 and 4 on rank 1"),
    "dtype": ({"dtype": torch.float64}, "dtype is 'float32' on ranks 0, 2 and 'float64' on rank 1"),
    "scale": ({"scale": 0.5}, "scale, softcap, dropout, kernel, deterministic is"),
    "dropout": ({"dropout": 0.5}, "scale, softcap, dropout, kernel, deterministic is"),
    "strategy": ({"strategy": "ring"}, "strategy is None on ranks 0, 2 and 'ring' on rank 1"),
    "cluster": ({"cluster": "machine=H100"}, "cluster is None on ranks 0, 2 and 'H100 .*' on rank 1"),
    "cut": ({"cut": "zigzag"}, "cut is None on ranks 0, 2 and 'zigzag' on rank 1"),
    "sinks": ({"sinks": torch.zeros(2)}, "sinks is None on ranks 0, 2 and 'float32' on rank 1"),
    "padding": ({"padding": torch.tensor([3, 4])}, "padding is None on ranks 0, 2 and 'lengths' on rank 1"),
    "gradients": ({"gradients": False}, "gradients is True on ranks 0, 2 and False on rank 1"),
    "bias": ({"bias": lt.Bias("q - k")}, "bias is None on ranks 0, 2 and"),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_ranks_that_disagree(crew: Crew, what: str) -> None:
    call, said = DIFFERENT[what]
    found = crew.run(3, different, {1: call}, {})
    assert len(set(found)) == 1
    assert found[0].startswith(DISAGREE)
    assert found[0].endswith(
        "Every rank must give the same rule, options and shapes but for its number of positions"
    )
    with pytest.raises(lt.errors.RankError, match=said):
        raise lt.errors.RankError(found[0])


def test_lengths_that_differ(crew: Crew) -> None:
    lengths = {"padding": torch.tensor([7, 9])}
    found = crew.run(3, different, {1: {"padding": torch.tensor([7, 8])}}, lengths)
    assert set(found) == {
        DISAGREE
        + "lengths of padding is (7, 9) on ranks 0, 2 and (7, 8) on rank 1. Every rank must give the same "
        "rule, options and shapes but for its number of positions"
    }


def test_a_rank_that_refuses(crew: Crew) -> None:
    """One rank's arguments are wrong: it says so, and the others say that it did."""
    said = "softcap bends scores to within ±softcap, a number above 0; got -1"
    found = crew.run(3, different, {1: {"softcap": -1}}, {})
    told = f"RankError: rank 1 of 3 cannot run this call: DomainError: {said}"
    assert found == [told, f"DomainError: {said}", told]


def test_all_ranks_wrong_alike(crew: Crew) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        (
            {"strategy": "tree"},
            "NamingError: strategy is one of halo, gather, ring, ulysses, not 'tree'; leave it out for that "
            "of fewest bytes",
        ),
        (
            {"strategy": "halo", "cluster": "machine=H100"},
            "NamingError: a cluster says which strategy is quickest: give that or a strategy, not both",
        ),
        (
            {"cluster": "nodes=8"},
            'NamingError: a cluster has no "nodes"; it has machine, node, nvlink, infiniband, latency, '
            "forward, backward, as in "
            "machine=H100,node=8,nvlink=450GB/s,infiniband=50GB/s,latency=10us",
        ),
        ({"cut": "spiral"}, "NamingError: cut is a Cut, or one of contiguous, zigzag, not 'spiral'"),
        (
            {"cut": of_lengths([5, 10])},
            "DomainError: cut is for 2 ranks, and there are 3: make one for these",
        ),
        (
            {"cut": of_lengths([4, 5, 6])},
            "DomainError: cut contiguous gives the ranks 4, 5, 6 positions, and they came with 5, 5, 5 "
            "queries: cut tensors with lt.parallel.shard(x, mesh, cut=…)",
        ),
        (
            {"strategy": "ulysses"},
            "DomainError: 2 heads of q on 2 of k cannot be shared evenly by 3 ranks: take a strategy that "
            'shares keys, "halo" or "ring"',
        ),
        (
            {"padding": torch.tensor([3, 16])},
            "DomainError: padding has a length of 16, and there are 15 keys on all ranks",
        ),
        ({"rule": "strided"}, 'NamingError: rule "k <= q and q - k <= t" needs a value for t: give t=…'),
        ({"n": 5}, "DomainError: n = 5 is given, but the tensors have n = 15; leave it out"),
        (
            {"bias": torch.zeros(5, 5)},
            "TensorError: bias has shape (5, 5), and a table has a row for each of this rank's queries and a "
            "column for each key of all ranks: (n, 15), (2, n, 15) or (2, 2, n, 15), where the first two may "
            "be 1",
        ),
    ]
    for call, said in wrong:
        assert crew.run(3, different, {}, call) == [said] * 3


def test_a_kernel_that_cannot(crew: Crew) -> None:
    """The block of one rank alone cannot be run by the kernel that was asked for: all hear of it."""
    found = crew.run(3, different, {}, {"rule": "abs(q - k) <= 2", "kernel": "sdpa", "strategy": "halo"})
    assert all("cannot run this" in one for one in found)


def test_arrays_that_differ(crew: Crew) -> None:
    same = {"rule": "doc[q] == doc[k]", "doc": torch.zeros(15, dtype=torch.int64)}
    other = {"doc": torch.ones(15, dtype=torch.int64)}
    assert set(crew.run(3, different, {2: other}, same)) == {
        "RankError: doc: it is not the same on every rank; give all of it everywhere, or everywhere the "
        "rank's own entries"
    }
    shard = {"doc": torch.ones(5, dtype=torch.int64)}
    assert set(crew.run(3, different, {2: shard}, same)) == {
        "RankError: doc: some ranks gave it whole and some their shard; give all of it everywhere, or "
        "everywhere the rank's own entries"
    }


def test_caches_that_are_filled_otherwise(crew: Crew) -> None:
    for said in crew.run(2, filled, "cut"):
        assert "the 2 ranks do not make the same call: cut is None on rank 0 and 'zigzag' on rank 1" in said
    quoted, own = crew.run(2, filled, "values")
    wanted = "k has shape (1, 1, 4, 2) and v (1, 1, 3, 2): a prompt has as many keys as values"
    assert own == wanted and quoted.endswith(wanted)


def test_a_rank_that_dies() -> None:
    when = ("before", "forward", "backward")
    with Crew(3, timeout=15) as first, Crew(3, timeout=15) as second, Crew(3, timeout=15) as third:
        crews = dict(zip(when, (first, second, third), strict=True))
        for name, one in crews.items():
            one.start(3, dies, 1, name)
        answers = {name: [one.answer(rank) for rank in range(3)] for name, one in crews.items()}
    for found in answers.values():
        assert found[1] == ("died", None)
        for rank in (0, 2):
            kind, (said, seconds) = found[rank]
            assert kind == "gave"
            assert said.startswith(f"RankError: lt.parallel, rank {rank}, ")
            assert "no answer of rank 1 of ranks 0, 1, 2" in said
            assert seconds < 20
            lost = r"The connection was lost (at once|after \d+\.\d s), before the timeout of 15 s, which "
            assert re.search(
                lost + r"init_process_group\(timeout=…\) sets\. Look for the first error", said
            ), said


def test_a_rank_that_is_slow() -> None:
    with Crew(2, timeout=8) as crew:  # in which the first call too must be through
        crew.start(2, is_slow, 1, 13.0)
        kind, (said, seconds) = crew.answer(0)
        late = crew.answer(1)
    assert kind == "gave"
    assert "RankError: lt.parallel, rank 0, agreeing on a call: no answer of rank 1 of ranks 0, 1" in said
    assert "Nothing came within the timeout of 8 s, which init_process_group(timeout=…) sets. Look" in said
    assert seconds < 13
    assert late[1][0].startswith("RankError: ")


def test_groups_that_are_destroyed() -> None:
    """They are let go: a thread of gloo that is left when Python exits can abort it.

    An equal mesh of a world that was destroyed says nothing about the next.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Crew(2) as crew:
        gone = crew.run(2, destroyed)
        sums = crew.run(2, begun_again, port)
    said = (
        "RankError: the process group of these ranks was destroyed: after destroy_process_group() and "
        "init_process_group(), make meshes and caches again"
    )
    assert gone == [(True, True, 0, said)] * 2
    assert sums == [sums[0]] * 2 and sums[0][0] == sums[0][1] > 0
