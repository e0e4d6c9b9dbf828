"""Random affine rules, with and without a symbolic modulus, for checks against plain enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Text = st.SearchStrategy[str]

_LINEAR = ["q", "k", "q - k", "k - q", "q + k", "2*q - k", "q - t", "k + t", "n - 1 - q", "abs(q - k)"]
_FIXED = ["q // 2", "k % 3", "(q - k) % 2", "(q + k) // 3", "min(q, k)", "max(q - t, 0)"]
_SPLIT = [
    "q // w",
    "k // w",
    "q % w",
    "k % w",
    "(q - k) % w",
    "q // w - k // w",
    "(q + 1) // w",
    "(k - 1) % w",
]
_BOUNDS = ["0", "1", "2", "t", "t - 1", "n - 1"]
_SIGNS = ["<", "<=", "==", "!=", ">=", ">"]


def _comparisons(left: list[str], right: list[str]) -> Text:
    return st.builds(
        lambda a, sign, b: f"{a} {sign} {b}",
        st.sampled_from(left),
        st.sampled_from(_SIGNS),
        st.sampled_from(right),
    )


def _joined(parts: Text, most: int) -> Text:
    two = st.builds(lambda a, word, b: f"({a}) {word} ({b})", parts, st.sampled_from(["and", "or"]), parts)
    return st.recursive(
        parts, lambda inner: st.one_of(two, inner.map(lambda a: f"not ({a})")), max_leaves=most
    )


def affine() -> Text:
    """Rules in q, k, n, t with constant divisors only."""
    return _joined(_comparisons(_LINEAR + _FIXED, _BOUNDS), 3)


def split() -> Text:
    """Rules with a symbolic modulus w."""
    blocks = _comparisons(_SPLIT, ["0", "1", "w - 1", "k // w", "k % w", "w // 2", "(w + 1) // 3"])
    plain = _comparisons(["q - k", "k", "q"], ["0", "1", "q", "w", "w - 1"])
    two = st.builds(lambda a, word, b: f"({a}) {word} ({b})", blocks, st.sampled_from(["and", "or"]), plain)
    return st.one_of(blocks, two)


# Calls of attention

_GATES = ["head < 1", "head == 1", "head % 2 == 0", "head > n", "q - k <= head", "k % 2 == head"]
_SOME_QUERIES = ["q == t", "q != t", "q % 7 == 3", "q >= 2", "q // 3 == 1", "n - q <= 2", "q % 3 < 2"]
_EMPTY = ["0 < k - k == -2", "k < 0", "k > q + n + m", "q % 2 == 5", "k < q and q < k"]
_BANDS = [
    "k <= q",
    "k <= q and q - k <= t",
    "abs(q - k) <= t",
    "k <= 2",
    "k % 7 != 0",
    "k <= t - 1",
    "(q - k) % w == 0",
    "q // w == k // w",
    "k % w == w - 1",
    "k % w < 2",
    "k <= q and (q - k) % w == 0",
    "k >= m - 2",
    "q + k < n",
]
_WHOLE_BLOCKS = ["k >= 0", "k <= q", "q // w == k // w", "q // w == k // w and k <= q"]
_PLAIN: dict[str, Any] = {"bound": True, "per_element": False, "tile": 1, "seed": 0}
_ARRAYS = ["doc[q] == doc[k]", "doc[k] == 1", "seen[head, k] == 1", "chosen[q // 4, k // 4] == 1"]
_BOXES = [
    "abs(qx - kx) <= 1",
    "qy == ky",
    "ky < qy or ky == qy and kx <= qx",
    "qy // w == ky // w and qx // w == kx // w",
    "(qx - kx) % w == 0",
    "abs(qy - ky) + abs(qx - kx) <= t",
    "qx % 3 == 1",
    "qy == t",
    "ky >= qy - 1",
    "head < 1",
    "kx % 2 == head",
    "0 < kx - kx == -2",
    "ky > qy + rows",
    "qx == kx and qy != ky",
]
BIASES = {
    1: [
        "slope[head]*(q - k)",
        "near[head, min(max(k - q + 3, 0), 6)]",
        "row[q]*column[k] + scalar",
        "slope[head]*row[q]",
        "table",
        "masked",
    ],
    2: ["slope[head]*(qy - ky)", "near[head, min(max(kx - qx + 3, 0), 6)] + scalar*kx", "table", "masked"],
}


@dataclass(frozen=True)
class Attended:
    """One call of attention: its rule, sizes, kinds of tensors, and where its arrays come from."""

    text: str
    sizes: tuple[int, int]  # n and m on a line, rows and cols on an image
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    batch: int
    bias: str | None
    dtype: str
    t: int
    w: int
    bound: bool  # arrays are the rule's, not given when it is called
    per_element: bool  # arrays differ along the batch
    tile: int  # a choice among the shapes of tiles
    seed: int

    @property
    def on_a_line(self) -> bool:
        return "qx" not in self.text and "kx" not in self.text and "qy" not in self.text


def _unions(pieces: Text) -> Text:
    """One to four pieces, joined by and, or and not: often a union of several parts."""
    two = st.builds(lambda a, b: f"({a}) and ({b})", pieces, pieces)
    one = st.one_of(pieces, two, pieces.map(lambda a: f"not ({a})"))
    return st.lists(one, min_size=1, max_size=3, unique=True).map(" or ".join)


@st.composite
def attended(draw: st.DrawFn) -> Attended:
    """Random calls of attention, made to leave queries, heads or whole parts without keys."""
    image = draw(st.sampled_from([False, False, False, True]))
    kinds = [_BOXES] if image else [_BANDS, _BANDS, _GATES, _SOME_QUERIES, _EMPTY, _ARRAYS]
    text = draw(_unions(st.sampled_from(kinds).flatmap(st.sampled_from)))
    if image and not any(name in text for name in ("qx", "kx", "qy", "ky")):
        text = f"({text}) or qx == kx"
    if image:
        sizes = (draw(st.integers(1, 6)), draw(st.integers(1, 7)))
    else:
        n = draw(st.sampled_from([1, 2, 5, 9, 16, 17, 21]))
        sizes = (n, draw(st.sampled_from([n, n, n, 1, 9, 20])))
    kv_heads, share = draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (1, 3)]))
    head_dim = draw(st.sampled_from([16, 16, 1, 5, 8, 24]))
    if draw(st.integers(0, 9)) == 0:  # what torch's own kernels take
        text, sizes = draw(st.sampled_from(_WHOLE_BLOCKS)), (12, 12)
        drawn = {"bias": None, "dtype": "float32", "t": 3, "w": draw(st.sampled_from([3, 4, 12]))}
        return Attended(text, sizes, kv_heads, kv_heads, head_dim, head_dim, 2, **drawn, **_PLAIN)
    per_element = "[" in text and draw(st.booleans())
    return Attended(
        text, sizes, kv_heads * share, kv_heads, head_dim,
        draw(st.sampled_from([head_dim, head_dim, 3, 16])), 1 + per_element,
        draw(st.sampled_from([None, None, *BIASES[2 if image else 1]])),
        draw(st.sampled_from(["float32", "float32", "float32", "bfloat16", "float16"])),
        draw(st.integers(0, 6)), draw(st.integers(1, 5)), draw(st.booleans()), per_element,
        draw(st.integers(0, 2)), draw(st.integers(0, 999)),
    )  # fmt: skip
