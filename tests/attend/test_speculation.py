"""Arrays that grow while decoding, and speculative decoding on trees of drafted tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from decode_oracle import Texts, Token, cache_of
from torch import Tensor

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError, TensorError

TREE = "k <= q and q <= last[k]"
TEXT = 2**31  # the entry of a token that all later ones attend to


def random_tree(size: int, draw: np.random.Generator) -> list[int]:
    """The parents of nodes in depth-first order; -1 is the text before."""
    parents, path = list[int](), list[int]()
    for node in range(size):
        path = path[: int(draw.integers(0, len(path) + 1))]
        parents.append(path[-1] if path else -1)
        path.append(node)
    return parents


def last_descendants(parents: Sequence[int]) -> list[int]:
    """The last descendant of each node, by looking at every pair."""

    def ancestors(node: int) -> list[int]:
        return [node] if parents[node] < 0 else [node, *ancestors(parents[node])]

    nodes = range(len(parents))
    return [max(other for other in nodes if node in ancestors(other)) for node in nodes]


def branch(parents: Sequence[int], node: int) -> list[int]:
    """The nodes from the text to this one."""
    return [] if node < 0 else [*branch(parents, parents[node]), node]


@pytest.mark.parametrize("window", ["", " and place[q] - place[k] <= 6"])
@pytest.mark.parametrize("batch", [1, 3])
def test_drafts_on_trees_are_their_branches(window: str, batch: int) -> None:
    arrays = ("last", "place") if window else ("last",)
    texts = Texts(TREE + window, batch, arrays)
    cache, draw = cache_of(texts), np.random.default_rng(batch)

    def tokens(row: int, parents: Sequence[int], last: Sequence[int]) -> list[Token]:
        start = len(texts.rows[row])
        depth = [start + len(branch(parents, node)) - 1 for node in range(len(parents))]
        every = [{"last": a, "place": b} for a, b in zip(last, depth, strict=True)]
        return [texts.token(**{name: entries[name] for name in arrays}) for entries in every]

    texts.feed(cache, [tokens(row, range(-1, 8), [TEXT] * 9) for row in range(batch)])
    for size in (7, 1, 12, 5):
        drafts = [random_tree(size, draw) for _ in range(batch)]
        starts = [len(row) for row in texts.rows]
        texts.feed(
            cache,
            [
                tokens(row, tree, [starts[row] + last for last in last_descendants(tree)])
                for row, tree in enumerate(drafts)
            ],
        )
        for row, tree in enumerate(
            drafts
        ):  # by the definition of the mask: a node sees its branch and the text
            attended = texts.attended(row)[starts[row] :, starts[row] :]
            if not window:
                assert [np.flatnonzero(x).tolist() for x in attended] == [
                    branch(tree, i) for i in range(size)
                ]
        paths = [branch(tree, int(draw.integers(-1, size))) for tree in drafts]
        cache.keep(paths, last=TEXT)
        for row, path in enumerate(paths):
            texts.keep(row, size, path)
            texts.rows[row] = [x._replace(entries={**x.entries, "last": TEXT}) for x in texts.rows[row]]
    texts.feed(cache, [tokens(row, [-1], [TEXT]) for row in range(batch)])


class Model:
    """Two layers of attention with positions; greedy."""

    def __init__(self, rule: lt.Rule) -> None:
        draw = torch.Generator().manual_seed(5)
        self.table, self.places, *self.weights = (
            torch.randn(shape, generator=draw, dtype=torch.float64)
            for shape in ((11, 16), (99, 16), *[(3, 16, 16)] * 2)
        )
        self.rule = rule
        self.caches = [lt.KVCache(rule, batch=1, heads=2, head_dim=8, dtype=torch.float64) for _ in range(2)]

    def best(self, tokens: Sequence[int], places: Sequence[int], **entries: Any) -> list[int]:
        """The likeliest token after each of these, whose places in the text are given."""
        x = self.table[list(tokens)] + self.places[list(places)]
        for weights, cache in zip(self.weights, self.caches, strict=True):
            q, k, v = ((x @ w / 4).view(1, -1, 2, 8).transpose(1, 2) for w in weights)
            x = x + lt.attention(q, k, v, self.rule, cache=cache, **entries).transpose(1, 2).flatten(2)[0]
        return (x @ self.table.T).argmax(-1).tolist()


def drafted(token: int, depth: int, good: Tensor) -> tuple[list[int], list[int]]:
    """A tree of guesses after a token, in depth-first order, and its parents; `good` are guesses [11, 2]."""
    tokens, parents = [token], [-1]

    def grow(node: int, left: int) -> None:
        for guess in good[tokens[node]].tolist() if left else ():
            tokens.append(guess)
            parents.append(node)
            grow(len(tokens) - 1, left - 1)

    grow(0, depth)
    return tokens, parents


def test_speculation_on_trees_gives_the_tokens_of_greedy_decoding() -> None:
    prompt, count = [3, 1, 4, 1, 5], 40
    plain = Model(lt.rule("k <= q"))
    greedy = plain.best(prompt, range(5))[-1:]
    while len(greedy) < count:
        greedy += plain.best(greedy[-1:], [4 + len(greedy)])
    text, good = [*prompt, *greedy], torch.zeros(11, 2, dtype=torch.int64)
    good[:, 0] = torch.arange(11).roll(1)
    for a, b in pairwise(text):  # guesses that are right now and then
        good[a, b % 2] = b

    model = Model(lt.rule(TREE, data={"last": None}))
    found, calls, longest = model.best(prompt, range(5), last=TEXT)[-1:], 0, 0
    while len(found) < count:
        tokens, parents = drafted(found[-1], 3, good)
        start = len(model.caches[0])
        places = [start + len(branch(parents, node)) - 1 for node in range(len(tokens))]
        best = model.best(tokens, places, last=[start + last for last in last_descendants(parents)])
        path = [0]
        while nodes := [x for x, of in enumerate(parents) if of == path[-1] and tokens[x] == best[path[-1]]]:
            path.append(nodes[0])
        found += [best[node] for node in path]
        for cache in model.caches:
            cache.keep(path, last=TEXT)
        calls, longest = calls + 1, max(longest, len(path))
    assert found[:count] == greedy
    assert calls < count - 5 and longest > 1  # some guesses were accepted


def test_entries_may_be_a_number_a_list_or_a_row_for_each_sequence() -> None:
    rule, x = lt.rule("k <= q and doc[q] == doc[k]", data={"doc": None}), torch.randn(2, 2, 4, 8).double()
    outs = []
    for doc in (3, [3] * 4, np.full(4, 3), torch.full((2, 4), 3, dtype=torch.int32)):
        cache = lt.KVCache(rule, batch=2, heads=2, head_dim=8, dtype=torch.float64)
        outs.append(lt.attention(x, x, x, rule, cache=cache, doc=doc))
    wanted = lt.attention(x, x, x, "k <= q")
    for out in outs:
        torch.testing.assert_close(out, wanted)


@pytest.mark.parametrize("static", [False, True])
def test_an_array_that_the_rule_no_longer_looks_up_still_comes_with_every_call(static: bool) -> None:
    text = "k <= q and q - k <= t and (g[k] > 0 or q - k <= 3)"  # with t = 3 whatever g is
    rule, x = lt.rule(text, data={"g": None}), torch.randn(2, 2, 9, 8).double()
    sizes: dict[str, Any] = {"batch": 2, "heads": 2, "head_dim": 8, "dtype": torch.float64}
    cache = lt.KVCache(rule, t=3, static=static, **sizes)
    g, outs = torch.arange(18).view(2, 9) % 2, list[Tensor]()
    for start, end in ((0, 5), (5, 6), (6, 9)):
        part = x[:, :, start:end]
        outs.append(lt.attention(part, part, part, rule, cache=cache, t=3, g=g[:, start:end]))
    torch.testing.assert_close(torch.cat(outs, 2), lt.attention(x, x, x, "k <= q and q - k <= 3"))
    assert cache.capacity == 4  # as without the array
    with pytest.raises(NamingError, match="give g=…, one entry for each new token"):
        cache.attend(x[:, :, :1], x[:, :, :1], x[:, :, :1])


def test_what_entries_cannot_be() -> None:
    rule, x = lt.rule(TREE, data={"last": None}), torch.zeros(2, 2, 3, 8)
    cache = lt.KVCache(rule, batch=2, heads=2, head_dim=8)
    with pytest.raises(NamingError, match="give last=…, one entry for each new token: its array grows with"):
        lt.attention(x, x, x, rule, cache=cache)
    with pytest.raises(TensorError, match="last must hold whole numbers, got float64"):
        lt.attention(x, x, x, rule, cache=cache, last=[0.5] * 3)
    with pytest.raises(
        TensorError, match=r"last has shape \(2,\): give a number, \(3\) for the new tokens, or"
    ):
        lt.attention(x, x, x, rule, cache=cache, last=[1, 2])
    with pytest.raises(
        DomainError, match=r"last has an entry of size 2199023255552, and 2\*\*40 is the largest"
    ):
        lt.attention(x, x, x, rule, cache=cache, last=2**41)
    with pytest.raises(NamingError, match="the cache takes no doc with a call: only last grows"):
        cache.attend(x, x, x, last=1, doc=1)
    with pytest.raises(
        LattendError, match=r"looks up last\[k - 1\]. An array that grows while decoding is looked"
    ):
        lt.KVCache(lt.rule("k <= q and last[k - 1] > 0", data={"last": None}), batch=1, heads=1, head_dim=8)
    with pytest.raises(
        LattendError, match="may attend to keys k > q, which have not come yet: it looks up data"
    ):
        lt.KVCache(lt.rule("doc[q] == doc[k]", data={"doc": None}), batch=1, heads=1, head_dim=8)
    assert len(cache) == 0
