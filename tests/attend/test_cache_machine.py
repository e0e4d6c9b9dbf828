"""A cache does what plain lists of tokens do, whatever is done to it, in any order.

Each row is a list of tokens here. Every output of the cache is compared with attention over that list in
float64, whose pairs Python finds one by one. Slots without a key are filled with NaN, inf or huge numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from math import inf, nan
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from torch import Tensor

import lattend as lt
from lattend.attend.decode.dynamic import DynamicStore
from lattend.errors import DomainError

MAX_LENGTH = 80
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


class Setting(NamedTuple):
    """A rule, the arrays that it has from the start, the names of those that grow, and its numbers."""

    text: str
    data: Mapping[str, np.ndarray] = MappingProxyType({})
    growing: tuple[str, ...] = ()
    numbers: Mapping[str, int] = MappingProxyType({})

    @property
    def rule(self) -> lt.Rule:
        return lt.rule(self.text, data={**self.data, **dict.fromkeys(self.growing)})


DRAW = np.random.default_rng(5)
SETTINGS = {
    "causal": Setting("k <= q"),
    "window": Setting("k <= q and q - k <= 5"),
    "one key": Setting("k <= q and q - k <= 0"),
    "blocks": Setting("q // 4 == k // 4 and k <= q"),
    "sinks": Setting("k <= q and (k < 2 or q - k <= t)", numbers={"t": 3}),
    "dilated": Setting("k <= q and (q - k) % 3 == 0 and q - k <= 6"),
    "even keys": Setting("k <= q and k % 2 == 0 and q - k <= 5"),
    "columns": Setting("k <= q and (q // 5 == k // 5 or k % 5 >= 3)"),
    "heads": Setting("k <= q and q - k <= 2*head"),
    "before": Setting("k < q and q - k <= 4"),
    "documents": Setting("k <= q and doc[q] == doc[k]", {"doc": DRAW.integers(0, 3, MAX_LENGTH)}),
    "window in documents": Setting(
        "k <= q and q - k <= 5 and doc[q] == doc[k]", {"doc": np.arange(MAX_LENGTH) // 9}
    ),
    "growing documents": Setting("k <= q and doc[q] == doc[k]", growing=("doc",)),
    "marked keys": Setting("k <= q and (g[k] > 0 or q - k <= t)", growing=("g",), numbers={"t": 3}),
    "an array that drops out": Setting(
        "k <= q and q - k <= t and (g[k] > 0 or q - k <= 3)", growing=("g",), numbers={"t": 3}
    ),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "sums": {"return_lse": True},
    "softcap": {"softcap": 2.0, "scale": -0.5},
    "bias": {"bias": True},
    "sinks": {"sinks": True, "return_lse": True},
}


SCORES = st.sampled_from(sorted(OPTIONS))
NEXT = st.none() | SCORES


class Token(NamedTuple):
    q: Tensor  # [heads, D], as all of these in float64
    k: Tensor  # [kv_heads, D]
    v: Tensor
    entries: dict[str, int]


class Machine(RuleBasedStateMachine):
    """A cache, and for each of its rows the list of its tokens."""

    name = "causal"
    static = False
    steps = 0  # of all machines

    @initialize(
        dtype=st.sampled_from(list(TOLERANCE)),
        heads=st.sampled_from([(2, 2), (4, 2), (3, 1)]),
        dims=st.sampled_from([(8, 8), (16, 16), (7, 5)]),
        batch=st.integers(1, 4),
        rollback=st.sampled_from([0, 0, 3]),
        junk=st.sampled_from([nan, inf, -inf, 1.0]),
        prompts=st.none() | st.lists(st.integers(0, 9), min_size=4, max_size=4),
        seed=st.integers(0, 2**20),
    )
    def begin(
        self, dtype: torch.dtype, heads: tuple[int, int], dims: tuple[int, int],
        batch: int, rollback: int, junk: float,
        prompts: list[int] | None, seed: int,
    ) -> None:  # fmt: skip
        self.setting, self.rollback = SETTINGS[self.name], rollback
        self.heads, self.kv_heads = heads
        self.dims, self.dtype = dims, dtype
        self.junk = torch.finfo(dtype).max if junk == 1 else junk
        self.normal = torch.Generator().manual_seed(seed)
        self.slopes = torch.rand(self.heads, generator=self.normal).to(torch.float32)
        self.logits = torch.randn(self.heads, generator=self.normal)
        room: dict[str, Any] = {"static": True} if self.static else {}
        made: dict[str, Any] = dict(self.setting.numbers) | ({"n": MAX_LENGTH} if self.setting.data else {})
        self.forgets_none = self.name in (
            "causal",
            "columns",
            "documents",
            "growing documents",
            "marked keys",
        )
        if self.static and self.forgets_none and not self.setting.data:
            room["capacity"] = MAX_LENGTH
        self.cache = lt.KVCache(
            self.setting.rule, batch=batch, heads=self.heads, kv_heads=self.kv_heads, head_dim=dims[0],
            value_dim=dims[1], dtype=dtype, rollback=rollback, **room, **made,
        )  # fmt: skip
        self.rows: list[list[Token]] = [[] for _ in range(batch)]
        self.longest = [0] * batch  # what each row ever was, since it was reset
        self.draft: list[int] | None = None  # the tokens of the last call in each row
        self.fill_unused()
        if prompts is not None:
            prompt = np.arange(9) < np.array(prompts[:batch])[:, None]
            self.feed(prompt, {"padding": torch.from_numpy(prompt)}, "plain")

    # What is done to both

    @rule(
        data=st.data(),
        s=st.sampled_from([0, 1, 2, 3, 9, 21]),
        padding=st.sampled_from(["lengths", "mask", "left"]),
        scores=SCORES,
    )
    def attend_padded(self, data: st.DataObject, s: int, padding: str, scores: str) -> None:
        counts = data.draw(st.lists(st.integers(0, s), min_size=len(self.rows), max_size=len(self.rows)))
        real = np.arange(s) < np.array(counts)[:, None]
        if padding == "left":
            real = real[:, ::-1].copy()
        elif padding == "mask":
            real = np.array([data.draw(st.permutations(row)) for row in real.tolist()], bool).reshape(
                real.shape
            )
        given = torch.tensor(counts) if padding == "lengths" else torch.from_numpy(real)
        self.feed(real, {"padding": given}, scores)

    @rule(s=st.sampled_from([2, 3, 5, 9, 21, 33]), scores=SCORES, by_attention=st.booleans())
    def attend_several(self, s: int, scores: str, by_attention: bool) -> None:
        self.feed(np.ones((len(self.rows), s), bool), {}, scores, by_attention)

    @rule(count=st.integers(1, 6), scores=SCORES, by_attention=st.booleans())
    def attend_one_by_one(self, count: int, scores: str, by_attention: bool) -> None:
        for _ in range(count):
            self.attend_one_token(scores, by_attention)

    @rule(data=st.data(), scores=NEXT)
    def crop(self, data: st.DataObject, scores: str | None) -> None:
        by_row = data.draw(st.booleans())
        lengths = st.integers(-7, max(map(len, self.rows)) + 1)
        count = len(self.rows) if by_row else 1
        given = data.draw(st.lists(lengths, min_size=count, max_size=count))
        if self.refuses(lambda: self.cache.crop(given if by_row else given[0])):
            assert not self.static
            assert any(
                high - self.cropped(row, length) > self.rollback
                for high, row, length in zip(
                    self.longest, self.rows, given * (1 if by_row else len(self.rows)), strict=True
                )
            )
            return
        for row, length in zip(self.rows, given if by_row else given * len(self.rows), strict=True):
            del row[self.cropped(row, length) :]
        self.changed(scores)

    @rule(data=st.data(), scores=NEXT)
    def keep(self, data: st.DataObject, scores: str | None) -> None:
        if self.draft is None:
            with pytest.raises(
                DomainError, match="keep chooses among the tokens of the last call; since then"
            ):
                self.cache.keep([])
            return
        paths = [
            data.draw(st.sets(st.integers(0, size - 1)) if size else st.just(set())) for size in self.draft
        ]
        paths = [sorted(path) for path in paths]
        entries: dict[str, Any] = {}
        table = torch.full((len(paths), max(map(len, paths))), -1)
        for into, path in zip(table, paths, strict=True):
            into[: len(path)] = torch.tensor(path)
        if self.setting.growing and data.draw(st.booleans()):
            entries = {
                name: torch.randint(0, 3, table.shape, generator=self.normal) for name in self.setting.growing
            }
        form = data.draw(st.sampled_from(["lists", "tensor", "wrong"]))
        if form == "wrong":
            with pytest.raises(DomainError, match="keep takes tokens of the last call, numbered from 0"):
                self.cache.keep([[*path, size] for path, size in zip(paths, self.draft, strict=True)])
        if self.refuses(lambda: self.cache.keep(table if form == "tensor" else paths, **entries)):
            assert not self.static
            return
        for number, (row, path, size) in enumerate(zip(self.rows, paths, self.draft, strict=True)):
            kept = [row[len(row) - size + i] for i in path]
            for place, token in enumerate(kept):
                new = {name: int(x[number, place]) for name, x in entries.items()}
                kept[place] = token._replace(entries={**token.entries, **new})
            row[len(row) - size :] = kept
        self.changed(scores)

    @rule(data=st.data(), scores=NEXT)
    def select(self, data: st.DataObject, scores: str | None) -> None:
        batch = len(self.rows)
        if data.draw(st.booleans()):
            self.cache = copy.deepcopy(self.cache)
        size = batch if self.static else data.draw(st.sampled_from([1, 1, 2, batch, batch + 1]))
        order = data.draw(st.lists(st.integers(0, batch - 1), min_size=size, max_size=size))
        self.cache.select(torch.tensor(order) if data.draw(st.booleans()) else order)
        self.rows = [list(self.rows[row]) for row in order]
        self.longest = [self.longest[row] for row in order]
        self.changed(scores)

    @rule(data=st.data(), scores=NEXT)
    def reset(self, data: st.DataObject, scores: str | None) -> None:
        rows = data.draw(st.none() | st.lists(st.integers(0, len(self.rows) - 1), unique=True))
        self.cache.reset(rows)
        for row in range(len(self.rows)) if rows is None else rows:
            self.rows[row], self.longest[row] = [], 0
        self.changed(scores)

    # What it must be

    @invariant()
    def it_counts_its_tokens(self) -> None:
        Machine.steps += 1
        if not hasattr(self, "cache"):
            return
        assert self.cache.lengths.tolist() == [len(row) for row in self.rows]
        assert len(self.cache) == max(map(len, self.rows))

    @staticmethod
    def cropped(row: list[Token], length: int) -> int:
        return min(len(row), max(0, length + len(row)) if length < 0 else length)

    def changed(self, scores: str | None) -> None:
        """Goes on after tokens or rows were taken back, with one token of each row if scores say how."""
        self.draft = None
        self.fill_unused()
        if scores is not None:
            self.attend_one_token(scores)

    def attend_one_token(self, scores: str, by_attention: bool = False) -> None:
        self.feed(np.ones((len(self.rows), 1), bool), {}, scores, by_attention)

    def refuses(self, call: Any) -> bool:
        try:
            call()
        except DomainError as error:
            assert "Make the cache with rollback=" in str(error)
            return True
        return False

    def fill_unused(self) -> None:
        """Whatever a slot holds that holds no key must not matter."""
        store = self.cache._store  # pyright: ignore[reportPrivateUsage]
        positions: Any = store.table.positions if isinstance(store, DynamicStore) else store.positions
        free = (torch.as_tensor(positions) < 0)[:, None, :, None]
        for x in (store.keys, store.values):
            x.masked_fill_(free, self.junk)

    def feed(self, real: np.ndarray, how: dict[str, Any], scores: str, by_attention: bool = False) -> None:
        """Gives both the next tokens, and compares the outputs."""
        batch, s = real.shape
        if s + len(self.cache) > MAX_LENGTH:
            self.cache.reset()
            self.rows, self.longest = [[] for _ in self.rows], [0] * batch
        options = OPTIONS[scores]
        before = [len(row) for row in self.rows]
        sizes = (self.heads, self.dims[0]), (self.kv_heads, self.dims[0]), (self.kv_heads, self.dims[1])
        q, k, v = (torch.randn(batch, h, s, d, generator=self.normal).to(self.dtype) for h, d in sizes)
        entries = {
            name: torch.randint(0, 3, (batch, s), generator=self.normal) for name in self.setting.growing
        }
        for row in range(batch):
            for place in range(s):
                x = [part[row, :, place] for part in (q, k, v)]
                if real[row, place]:
                    own = {name: int(whole[row, place]) for name, whole in entries.items()}
                    self.rows[row].append(Token(x[0].double(), x[1].double(), x[2].double(), own))
                else:
                    for part in x:
                        part.fill_(self.junk)
        given = {name: value for name, value in options.items() if name in ("return_lse", "softcap", "scale")}
        if "bias" in options:
            given["bias"] = lt.Bias("-slopes[head]*(q - k)", slopes=self.slopes)
        if "sinks" in options:
            given["sinks"] = self.logits.to(self.dtype)
        attend: Any = self.cache.attend
        if by_attention:
            whole: Any = lt.attention
            attend = partial(whole, rule=self.setting.rule, cache=self.cache)
        with torch.no_grad():
            found = attend(q, k, v, **how, **given, **entries)
        out, lse = found if options.get("return_lse") else (found, None)
        for row in range(batch):
            count = int(real[row].sum())
            wanted, sums = self.expected(row, count, options)
            got = out[row][:, real[row]].double()
            loose = self.static and not self.forgets_none and self.longest[row] - before[row] > self.rollback
            if loose:  # keys may be gone: a row of NaN says so
                gone = got.isnan().all(-1)
                wanted, sums = wanted.masked_fill(gone[..., None], nan), sums.masked_fill(gone, nan)
            close(got, wanted, TOLERANCE[self.dtype])
            assert (out[row][:, ~real[row]] == 0).all()
            if lse is not None:
                close(lse[row][:, real[row]].double(), sums, TOLERANCE[self.dtype])
                assert (lse[row][:, ~real[row]] == -inf).all()
            self.longest[row] = max(self.longest[row], len(self.rows[row]))
        self.draft = real.sum(1).tolist()

    def expected(self, row: int, count: int, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """The outputs and sums of a row's last tokens, [heads, count, Dv] and [heads, count]."""
        text = self.rows[row]
        if not count:
            return torch.zeros(self.heads, 0, self.dims[1]).double(), torch.zeros(self.heads, 0).double()
        q = torch.stack([token.q for token in text[-count:]], 1)
        group = self.heads // self.kv_heads
        both = [token.k for token in text], [token.v for token in text]
        k, v = (torch.stack(x, 1).repeat_interleave(group, 0) for x in both)
        scores = q @ k.mT * options.get("scale", self.dims[0] ** -0.5)
        if "softcap" in options:
            scores = options["softcap"] * (scores / options["softcap"]).tanh()
        if "bias" in options:
            distance = torch.arange(len(text) - count, len(text))[:, None] - torch.arange(len(text))
            scores = scores - self.slopes.double()[:, None, None] * distance
        scores = scores.masked_fill(~self.attended(text, count), -inf)
        if "sinks" in options:
            sinks = self.logits.to(self.dtype).double()[:, None, None].expand(-1, count, 1)
            scores, v = torch.cat([scores, sinks], 2), torch.cat([v, torch.zeros_like(v[:, :1])], 1)
        lse = scores.logsumexp(-1)
        return (scores - lse.masked_fill(lse == -inf, 0)[..., None]).exp() @ v, lse

    def attended(self, text: list[Token], count: int) -> Tensor:
        """Which pairs of the last queries are attended, [heads, count, n], one by one."""
        names: dict[str, Any] = {**self.setting.numbers}
        names |= {name: array.tolist() for name, array in self.setting.data.items()}
        names |= {name: [token.entries[name] for token in text] for name in self.setting.growing}
        holds = eval(f"lambda q, k, head: {self.setting.text}", names)
        n = len(text)
        return torch.tensor(
            [
                [[bool(holds(q, k, head)) for k in range(n)] for q in range(n - count, n)]
                for head in range(self.heads)
            ]
        )


def close(found: Tensor, wanted: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(found, wanted, atol=tolerance, rtol=tolerance, equal_nan=True)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Steps are small: threads that wait for each other only slow them down."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


def run(name: str, static: bool, examples: int, steps: int) -> None:
    """Runs caches of one setting; they vary less where the setting is drawn too."""
    machine = type("Machine", (Machine,), {"name": name, "static": static})
    chosen = settings(max_examples=examples, stateful_step_count=steps, suppress_health_check=QUIET)
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_cache_does_what_lists_of_tokens_do(name: str, static: bool) -> None:
    run(name, static, 8, 15)


@pytest.mark.long
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize("name", SETTINGS)
def test_so_it_does_for_long(name: str, static: bool) -> None:
    run(name, static, 300, 50)
