"""Random affine rules, with and without a symbolic modulus, for checks against plain enumeration."""

from __future__ import annotations

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
