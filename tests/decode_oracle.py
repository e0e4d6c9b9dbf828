"""Texts of a batch that grow and shrink, and attention over each of them, enumerated in float64."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import lattend as lt

HEADS, KV_HEADS, HEAD_DIM, VALUE_DIM = 4, 2, 8, 6


class Token(NamedTuple):
    q: Tensor  # [heads, D]
    k: Tensor  # [kv_heads, D]
    v: Tensor
    entries: dict[str, int]


class Texts:
    """What each row of a cache should hold, and which outputs it should give."""

    def __init__(
        self, rule: str, batch: int, arrays: Sequence[str] = (), seed: int = 0, **values: int
    ) -> None:
        self.rule, self.arrays, self.numbers = rule, tuple(arrays), values
        self.rows: list[list[Token]] = [[] for _ in range(batch)]
        self.draw = torch.Generator().manual_seed(seed)

    def token(self, **entries: int) -> Token:
        sizes = ((HEADS, HEAD_DIM), (KV_HEADS, HEAD_DIM), (KV_HEADS, VALUE_DIM))
        q, k, v = (torch.randn(size, generator=self.draw, dtype=torch.float64) for size in sizes)
        return Token(q, k, v, entries)

    def attended(self, row: int) -> np.ndarray:
        """The attended pairs of a row's whole text, [n, n] or [heads, n, n], by enumeration."""
        text = self.rows[row]
        data = {name: np.array([token.entries[name] for token in text], np.int64) for name in self.arrays}
        rule = lt.rule(self.rule, data=data) if data else lt.rule(self.rule)
        known = {"n": len(text), "heads": HEADS} | self.numbers
        return rule.mask(**{name: value for name, value in known.items() if name in rule.free})

    def expected(self, row: int, count: int) -> tuple[Tensor, Tensor]:
        """The outputs and the log-sum-exp of a row's last tokens, [heads, count, Dv] and [heads, count]."""
        text = self.rows[row]
        if not count:
            return torch.zeros(HEADS, 0, VALUE_DIM, dtype=torch.float64), torch.zeros(HEADS, 0).double()
        q = torch.stack([token.q for token in text[-count:]], 1)
        k, v = (
            torch.stack(x, 1).repeat_interleave(2, 0)
            for x in ([token.k for token in text], [token.v for token in text])
        )
        mask = torch.from_numpy(self.attended(row)[..., -count:, :])
        scores = (q @ k.mT / HEAD_DIM**0.5).masked_fill(~mask, -inf)
        lse = scores.logsumexp(-1)
        return (scores - lse.masked_fill(lse == -inf, 0)[..., None]).exp() @ v, lse

    def feed(
        self, cache: Any, tokens: Sequence[Sequence[Token]], real: np.ndarray | None = None, **how: Any
    ) -> None:
        """Give the cache new tokens of each row, where `real` [batch, s] says, and compare the outputs."""
        s = max(map(len, tokens)) if real is None else real.shape[1]
        real = np.ones((len(tokens), s), bool) if real is None else real
        shapes = ((HEADS, HEAD_DIM), (KV_HEADS, HEAD_DIM), (KV_HEADS, VALUE_DIM))
        q, k, v = (torch.full((len(tokens), heads, s, size), 1e3).double() for heads, size in shapes)
        entries: dict[str, Any] = {
            name: torch.zeros(len(tokens), s, dtype=torch.int64) for name in self.arrays
        }
        for row, given in enumerate(tokens):
            places = np.flatnonzero(real[row])
            for token, place in zip(given, places, strict=True):
                q[row, :, place], k[row, :, place], v[row, :, place] = token[:3]
                for name in self.arrays:
                    entries[name][row, place] = token.entries[name]
            self.rows[row].extend(given)
        if not real.all():
            how["padding"] = torch.from_numpy(real)
        dtype = cache.keys.dtype
        q, k, v = (tensor.to(cache.keys.device, dtype) for tensor in (q, k, v))
        out, lse = lt.attention(q, k, v, cache_rule(self), cache=cache, return_lse=True, **how, **entries)
        tolerance = 1e-12 if dtype == torch.float64 else 1e-5
        for row, given in enumerate(tokens):
            wanted, sums = self.expected(row, len(given))
            places = np.flatnonzero(real[row])
            torch.testing.assert_close(out[row][:, places].cpu().double(), wanted, atol=tolerance, rtol=0)
            torch.testing.assert_close(lse[row][:, places].cpu().double(), sums, atol=tolerance, rtol=0)
            assert (out[row][:, ~real[row]] == 0).all() and (lse[row][:, ~real[row]] == -inf).all()

    def crop(self, row: int, length: int) -> None:
        text = self.rows[row]
        del text[max(0, length + len(text)) if length < 0 else length :]

    def keep(self, row: int, drafted: int, path: Sequence[int]) -> None:
        text = self.rows[row]
        draft = text[len(text) - drafted :]
        text[len(text) - drafted :] = [draft[i] for i in path]


def cache_rule(texts: Texts) -> lt.Rule:
    return lt.rule(texts.rule, data=dict.fromkeys(texts.arrays)) if texts.arrays else lt.rule(texts.rule)


def cache_of(texts: Texts, **options: Any) -> lt.KVCache:
    sizes: dict[str, Any] = {
        "heads": HEADS,
        "kv_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "value_dim": VALUE_DIM,
    }
    given: dict[str, Any] = {"dtype": torch.float64} | sizes | texts.numbers | options
    return lt.KVCache(cache_rule(texts), batch=len(texts.rows), **given)


RULES = {
    "causal": "k <= q",
    "window": "k <= q and q - k <= 5",
    "blocks": "q // 4 == k // 4 and k <= q",
    "sinks": "k <= q and (k < 2 or q - k <= 3)",
    "dilated": "k <= q and (q - k) % 3 == 0 and q - k <= 6",
    "even keys": "k <= q and k % 2 == 0 and q - k <= 5",
    "columns": "k <= q and (q // 5 == k // 5 or k % 5 >= 3)",
    "heads": "k <= q and q - k <= 2*head",
    "before": "k < q and q - k <= 4",
}
DOCUMENTS = "k <= q and doc[q] == doc[k]"
ROLLBACK = 6
