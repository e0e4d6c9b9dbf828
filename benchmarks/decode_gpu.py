"""Device time of decoding on a GPU: both KV caches, and calls of torch on the same keys, in one run.

    python benchmarks/decode_gpu.py --save decode.json  # a grid of sizes in bf16: under 3 minutes on an H200
    python benchmarks/decode_gpu.py --grid rows         # the rows of docs/speed.md alone: under a minute

Device time is measured by CUDA events. Each call waits in a queue behind a kernel that spins until the host
has submitted everything, and a kernel that overwrites the L2 cache. The time of an empty pair of events is
subtracted. The calls of a row take turns, and the table has their medians in microseconds. It also has the
host's time for each call, and the milliseconds of the first call, in which cuDNN plans for the number of
keys. A call that raises prints its error. A call whose output differs from float32's is marked WRONG.

Names of calls: "dynamic" and "static" are caches of Lattend, as they dispatch. "all" attends to every key,
also where a draft must not, so it is only a bound. "folded" makes the query heads of a kv head rows of one
matrix. "tail" joins a call on the first keys with a call on the last keys. "bias" gives the mask as a bias in
bf16. "room" reads all slots of a buffer through a mask, so its shapes stay the same while the text grows.
"tokens as heads" makes each new token of a head a head of its own, with one query.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import lattend as lt
from lattend.attend.decode import step

aten = torch.ops.aten
CUDNN: Any = aten._scaled_dot_product_cudnn_attention.default
FLASH: Any = aten._scaled_dot_product_flash_attention.default
VARLEN: Any = aten._flash_attention_forward.default
BACKENDS = {
    "cudnn": [SDPBackend.CUDNN_ATTENTION],
    "flash": [SDPBackend.FLASH_ATTENTION],
    "efficient": [SDPBackend.EFFICIENT_ATTENTION],
    "default": None,
}
ROOM = 64  # slots beyond the keys
TAIL = 256  # keys after those of the first call
MAX_KEYS = 1 << 20  # of all rows of the batch
ROUNDS, SECONDS = 15, 0.12  # at most, of one row
WRONG = 2e-2  # the error of bf16 is far smaller
SPIN = 2e9  # cycles in a second of the fastest clock
KIND: dict[str, Any] = {}  # the dtype and the device

Call = Callable[[], Any]


class Case(NamedTuple):
    """One row: `keys` are those of the past, or the window where the rule is one."""

    batch: int
    keys: int
    heads: int
    kv_heads: int
    width: int
    tokens: int = 1
    window: bool = False
    ragged: bool = False  # rows have from half the keys to all of them

    def __str__(self) -> str:
        kind = "window" if self.window else "ragged" if self.ragged else "keys"
        shape = f"{self.batch} x {self.keys:,} {kind}, {self.heads} heads on {self.kv_heads}"
        return f"{shape}, D {self.width}, {self.tokens} tokens"

    @property
    def slots(self) -> int:
        """Those of a buffer with room for more."""
        return self.keys + max(ROOM, self.tokens)

    @property
    def rule(self) -> str:
        return f"k <= q and q - k < {self.keys}" if self.window else "k <= q"


ROWS = [
    Case(64, 4096, 32, 8, 128),
    Case(8, 32768, 32, 8, 128),
    Case(64, 1024, 32, 8, 128, window=True),
    Case(32, 8192, 64, 8, 128, tokens=8),
    *(Case(32, 8192, 64, 8, 128, tokens=s) for s in (1, 16)),
    *(Case(1, 131072, 64, 8, 128, tokens=s) for s in (1, 8)),
    Case(8, 32768, 64, 8, 128, tokens=8),
    Case(1, 2048, 64, 8, 128),
    *(Case(b, n, 32, 8, 128, ragged=True) for b, n in ((16, 8192), (64, 4096))),
    *(Case(b, n, 32, 8, 128, window=True) for b, n in ((1, 1024), (8, 4096))),
    Case(64, 1024, 32, 8, 128, tokens=8, window=True),
    *(Case(b, n, 32, 8, 128, tokens=512) for b, n in ((1, 8192), (4, 32768))),
]
# To try the script on a CPU: tokens, and whether the rule is a window and rows differ in length
SMALL = [
    Case(2, 512, 4, 2, 16, s, *kind) for s, *kind in ((1,), (4,), (1, True), (4, True), (1, False, True))
]


def grid() -> Iterator[Case]:
    """The rows, and then sizes from small to large."""
    yield from ROWS
    for width, heads in ((128, 32), (128, 64), (64, 32), (64, 64)):
        for tokens in (1, 8, 4, 16) if width == 128 else (1, 8):
            for batch in (1, 4, 16, 64):
                for keys in (512, 2048, 8192, 32768, 131072):
                    case = Case(batch, keys, heads, 8, width, tokens)
                    if batch * keys <= MAX_KEYS and case not in ROWS:
                        yield case


# Keys, and caches that hold them


class Keys(NamedTuple):
    """The keys and values of the past and of the new tokens, in a buffer with room for more."""

    keys: Tensor
    values: Tensor
    past: int
    lengths: Tensor  # of the past, of each row

    @classmethod
    def made(cls, case: Case) -> Keys:
        shape = case.batch, case.kv_heads, case.slots, case.width
        past = case.keys - 1 if case.window else case.keys
        lengths = torch.full((case.batch,), past)
        if case.ragged:
            lengths = torch.linspace(past // 2, past, case.batch).to(torch.int64)
        return cls(torch.randn(shape, **KIND), torch.randn(shape, **KIND), past, lengths)

    def first(self, size: int) -> tuple[Tensor, Tensor]:
        return self.keys[:, :, :size], self.values[:, :, :size]


def filled(case: Case, held: Keys, **options: Any) -> lt.KVCache:
    """A cache with the keys of the past; nobody computes the outputs of that prompt."""
    sizes = {"batch": case.batch, "heads": case.heads, "kv_heads": case.kv_heads, "head_dim": case.width}
    cache = lt.KVCache(case.rule, **sizes, **options, **KIND)
    k, v = held.first(held.past)
    q = k[:, :1, :, :].expand(-1, case.heads, -1, -1)
    before, step.prefill = step.prefill, lambda rule, new, how: (new.q[..., : new.v.shape[3]], None)
    try:
        cache.attend(q, k, v, padding=held.lengths if case.ragged else None)
    finally:
        step.prefill = before
    return cache


class Cached:
    """Steps of a cache, each on the same number of keys as far as they can be taken back."""

    def __init__(self, cache: lt.KVCache, case: Case, new: tuple[Tensor, Tensor, Tensor]) -> None:
        self.cache, self.case, self.new = cache, case, new

    def __call__(self) -> Tensor:
        return lt.attention(*self.new, self.case.rule, cache=self.cache)


def take_back(call: Call) -> None:
    """Takes the new tokens of a draft back; single tokens stay."""
    if isinstance(call, Cached) and call.case.tokens > 1 and not call.case.window:
        call.cache.crop(call.case.keys)


# Calls of torch


def masks(case: Case, held: Keys, slots: int) -> Tensor:
    """The attended pairs of the new tokens, [batch or 1, 1, tokens, slots]."""
    end = held.lengths[:, None] + torch.arange(1, case.tokens + 1)
    if not case.ragged:
        end = end[:1]
    mask = torch.arange(slots) < end[:, :, None]
    if case.window:
        mask &= torch.arange(slots) > end[:, :, None] - 1 - case.keys
    return mask[:, None].to(KIND["device"])


def as_bias(mask: Tensor, group: int = 1) -> Tensor:
    """The same as numbers to add, one row for each query of a kv head."""
    bias = torch.zeros(mask.shape, **KIND).masked_fill_(~mask, -torch.inf)
    return bias.repeat(1, 1, group, 1)


def joined(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Tensor:
    """Two outputs on different keys as one, by their log-sum-exps."""
    (a, lse_a), (b, lse_b) = one, other
    share = torch.sigmoid(lse_a - lse_b)[..., None]
    return torch.lerp(b.float(), a.float(), share).to(a.dtype)  # a - b in bf16 would lose a small a


def sdpa(backend: str, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    chosen = BACKENDS[backend]
    if chosen is None:
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    with sdpa_kernel(chosen):
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def torch_calls(case: Case, held: Keys, q: Tensor) -> dict[str, Call]:
    """The calls on these keys, by name; the new tokens' own are there."""
    s, group = case.tokens, case.heads // case.kv_heads
    size, slots = held.past + s, held.keys.shape[2]
    k, v = held.first(size)
    rows = q.view(case.batch, case.kv_heads, group * s, case.width)
    shape = q.shape
    whole = masks(case, held, slots)
    mask, plain = whole[..., :size], s == 1 and not case.ragged
    found: dict[str, Call] = {}
    if not case.ragged:
        pairs = "" if plain else "all, "
        for backend in BACKENDS:
            found[f"{pairs}sdpa {backend}"] = partial(sdpa, backend, q, k, v)
        found[f"{pairs}folded cudnn"] = lambda: CUDNN(rows, k, v, None, False)[0].reshape(shape)
        found[f"{pairs}folded flash"] = lambda: FLASH(rows, k, v)[0].reshape(shape)
    if plain:
        found["flash"] = lambda: FLASH(q, k, v)[0]
        found["cudnn"] = lambda: CUDNN(q, k, v, None, False)[0]
        found["cudnn with lse"] = lambda: CUDNN(q, k, v, None, True)[0]
        (k0, k1), (v0, v1) = ((x[:, :, : size - TAIL], x[:, :, size - TAIL :]) for x in (k, v))

        def with_tail() -> Tensor:
            one, other = CUDNN(q, k0, v0, None, True), FLASH(q, k1, v1)
            return joined((one[0], one[1].view(shape[:3])), other[:2])

        found["cudnn + flash tail"] = with_tail
    found["bias, cudnn room"] = bias_call(q, held, as_bias(whole))
    found["bias, folded cudnn room"] = bias_call(rows, held, as_bias(whole, group), shape)
    if s > 1:
        heads = q.reshape(case.batch, case.heads * s, 1, case.width)
        each = as_bias(whole).expand(-1, case.heads, -1, -1).reshape(len(whole), case.heads * s, 1, slots)
        found["bias, cudnn room, tokens as heads"] = bias_call(heads, held, each, shape)
    if not plain:
        for backend in ("cudnn", "efficient", "default"):
            found[f"mask, sdpa {backend}"] = partial(sdpa, backend, q, k, v, mask)
    if s > 1 and not case.window and not case.ragged:
        k0, v0 = held.first(held.past)
        new_k, new_v = k[:, :, held.past :], v[:, :, held.past :]
        found["flash causal"] = lambda: FLASH(q, k, v, 0.0, True)[0]

        def past_and_draft(run: Callable[..., Any], *how: Any) -> Tensor:
            one, other = run(rows, k0, v0, *how), FLASH(q, new_k, new_v, 0.0, True)
            return joined((one[0].reshape(shape), one[1].reshape(shape[:3])), other[:2])

        found["folded flash + draft"] = partial(past_and_draft, FLASH)
        found["folded cudnn + draft"] = partial(past_and_draft, CUDNN, None, True)
    if not case.window:
        found["flash varlen room"] = varlen_call(q, held, case)
    return found


def bias_call(q: Tensor, held: Keys, bias: Tensor, shape: torch.Size | None = None) -> Call:
    return lambda: CUDNN(q, held.keys, held.values, bias, False)[0].reshape(shape or q.shape)


def varlen_call(q: Tensor, held: Keys, case: Case) -> Call:
    """Each kv head of each row as a sequence of its own, in memory that is longer than it."""
    pairs, slots, s = case.batch * case.kv_heads, held.keys.shape[2], case.tokens
    kind: dict[str, Any] = {"dtype": torch.int32, "device": KIND["device"]}
    starts_q = torch.arange(pairs + 1, **kind) * s
    starts_k = torch.arange(pairs + 1, **kind) * slots
    used = (held.lengths + s).repeat_interleave(case.kv_heads).to(**kind)
    k, v = (x.view(pairs * slots, 1, case.width) for x in (held.keys, held.values))
    group = case.heads // case.kv_heads

    def run() -> Tensor:
        rows = q.view(pairs, group, s, case.width).transpose(1, 2).reshape(pairs * s, group, case.width)
        how = (starts_q, starts_k, s, slots, 0.0, s > 1, False)
        out = VARLEN(rows, k, v, *how, seqused_k=used)[0]
        return out.view(pairs, s, group, case.width).transpose(1, 2).reshape(q.shape)

    return run


def wanted(case: Case, held: Keys, q: Tensor) -> Tensor:
    """The output in float32, one kv head after another."""
    mask, group = masks(case, held, held.keys.shape[2]), case.heads // case.kv_heads
    outs: list[Tensor] = []
    for head in range(case.kv_heads):
        k, v = held.keys[:, head : head + 1].float(), held.values[:, head : head + 1].float()
        scores = q[:, head * group : (head + 1) * group].float() @ k.mT * case.width**-0.5
        outs.append(scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v)
    return torch.cat(outs, 1)


# Time


class Timer:
    """Medians of calls that take turns."""

    def __init__(self) -> None:
        self.cuda = KIND["device"] == "cuda"
        self.filler = torch.empty(1 << 27 if self.cuda else 1, dtype=torch.int8, device=KIND["device"])
        self.wait: Call = torch.cuda.synchronize if self.cuda else lambda: None
        self.empty = 0.0
        if self.cuda:
            self.empty = statistics.median(self.once(lambda: None, 1e-4) for _ in range(50))

    def once(self, call: Call, host: float) -> float:
        """Seconds of the device for one call, which takes the host so many."""
        if not self.cuda:
            begin = time.perf_counter()
            call()
            return time.perf_counter() - begin
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(int(min(0.02, 2 * host + 5e-5) * SPIN))
        self.filler.zero_()
        start.record()
        call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 - self.empty

    def host(self, call: Call) -> tuple[Any, float, float]:
        """The output, and the seconds until the call returns and until its output is there."""
        self.wait()
        begin = time.perf_counter()
        output = call()
        returned = time.perf_counter()
        self.wait()
        return output, returned - begin, time.perf_counter() - begin


def measured(case: Case, timer: Timer, only: str) -> list[dict[str, Any]]:
    """All calls of one row: name, microseconds of device and host, milliseconds of the first call, error."""
    held = Keys.made(case)
    q = torch.randn(case.batch, case.heads, case.tokens, case.width, **KIND)
    at = held.lengths[:, None, None, None] + torch.arange(case.tokens)[:, None]
    k, v = (torch.take_along_dim(x, at.to(x.device), 2) for x in (held.keys, held.values))
    new = q, k, v
    capacity = None if case.window else case.slots
    made: dict[str, Callable[[], Call]] = {
        "dynamic": lambda: Cached(filled(case, held), case, new),
        "static": lambda: Cached(filled(case, held, static=True, capacity=capacity), case, new),
    }
    rows, calls = list[dict[str, Any]](), dict[str, Call]()
    right = wanted(case, held, q) if case.batch * case.keys <= MAX_KEYS // 2 else None
    for name, make in [*made.items(), *((n, lambda c=c: c) for n, c in torch_calls(case, held, q).items())]:
        if only not in name:
            continue
        row: dict[str, Any] = {**case._asdict(), "call": name}
        rows.append(row)
        try:
            call = make()
            out, _, first = timer.host(call)
            row["first_ms"] = first * 1e3
            if right is not None and not name.startswith("all"):
                row["error"] = float((out.float() - right).norm() / right.norm())
            for _ in range(2):
                take_back(call)
                row["host_us"] = timer.host(call)[1] * 1e6
            calls[name] = call
        except (RuntimeError, TypeError, ValueError, AttributeError, LookupError) as cause:
            row["raised"] = " ".join(f"{type(cause).__name__}: {cause}".split())[:160]
    hosts = {row["call"]: row["host_us"] / 1e6 for row in rows if row["call"] in calls}
    times = run_in_turns(calls, hosts, timer)
    for row in rows:
        if row["call"] in times:
            row["device_us"] = statistics.median(times[row["call"]]) * 1e6
    return rows


def run_in_turns(calls: dict[str, Call], hosts: dict[str, float], timer: Timer) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    begin = time.perf_counter()
    for done in range(ROUNDS):
        if done >= 5 and time.perf_counter() - begin > SECONDS:
            break
        for name, call in calls.items():
            take_back(call)
            times[name].append(timer.once(call, hosts[name]))
    return times


def line(row: dict[str, Any]) -> str:
    if "device_us" not in row:
        return f"    {row['call']}: {row.get('raised', 'not measured')}"
    mark = f"  WRONG: error {row['error']:.2g}" if row.get("error", 0.0) > WRONG else ""
    times = f"{row['device_us']:10.1f} device{row['host_us']:10.1f} host{row['first_ms']:10.1f} first ms"
    return f"    {row['call']:34}{times}{mark}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--grid", choices=("all", "rows", "small"), default="all")
    parser.add_argument("--only", default="", help="measure calls with this in their name")
    parser.add_argument("--seconds", type=float, default=170, help="begin no row later than this")
    parser.add_argument("--save", type=Path, help="write the numbers to this JSON file")
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch finds no GPU here; --device cpu --grid small tries the script")
    KIND.update(dtype=torch.bfloat16, device=given.device)
    cases = {"all": grid(), "rows": iter(ROWS), "small": iter(SMALL)}[given.grid]
    device = torch.cuda.get_device_name() if given.device == "cuda" else "cpu"
    machine = {"date": time.strftime("%Y-%m-%d %H:%M"), "torch": torch.__version__, "device": device}
    machine["cudnn"] = str(torch.backends.cudnn.version())
    print(machine, flush=True)
    warnings.simplefilter("ignore", UserWarning)  # SDPA's reasons why a backend does not run
    begin, rows, left = time.perf_counter(), list[dict[str, Any]](), 0
    raised: set[str | None] = {None}
    with torch.no_grad():
        timer = Timer()
        print(f"empty pair of events: {timer.empty * 1e6:.1f} us", flush=True)
        for case in cases:
            if time.perf_counter() - begin > given.seconds:
                left += 1
                continue
            found = measured(case, timer, given.only)
            rows += found
            if given.save:  # now, since an error of the device ends them all
                given.save.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
            print(f"{case}  [{time.perf_counter() - begin:.0f} s]", flush=True)
            for row in found:
                if row.get("raised") not in raised or row.get("error", 0.0) > WRONG:
                    print(line(row), flush=True)
                raised.add(row.get("raised"))
            done = sorted((row for row in found if "device_us" in row), key=lambda row: row["device_us"])
            if case in ROWS or given.grid != "all":
                print("\n".join(map(line, done)))
            else:
                print("    " + ", ".join(f"{row['call']} {row['device_us']:.0f}" for row in done))
    if left:
        print(f"{left} rows left out: the time was up")


if __name__ == "__main__":
    main()
