"""Mistyped letters of rules, and the corrections that errors suggest: each is a rule."""

from __future__ import annotations

import pickle

import pytest

from lattend.draw.grid.samples import catalogue
from lattend.errors import LattendError, TextError
from lattend.rules.reader import read_rule, rule
from lattend.rules.typos import corrected, typos


def mistake(text: str) -> TextError:
    with pytest.raises(TextError) as found:
        rule(text)
    return found.value


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("casual", "causal"),
        ("Causal", "causal"),
        ("sliding window", "sliding_window"),
        ("strided(a)", "strided"),
        ("full(3)", "full"),
        ("stridde(3)", "strided(3)"),
        ("causal(3)", "causal"),
        ("dilated(t=3, stp=2)", "dilated(t=3, step=2)"),
        ("j <= i", "k <= q"),
        ("key <= query", "k <= q"),
        ("q_idx >= kv_idx", "q >= k"),
        ("k =< q", "k <= q"),
        ("q => k", "q >= k"),
        ("k <> q", "k != q"),
        ("k < = q", "k <= q"),
        ("|q - k| <= 2", "abs(q - k) <= 2"),
        ("|q - k| < 3 and |k - 2| < 2", "abs(q - k) < 3 and abs(k - 2) < 2"),
        ("k <= q && q - k <= t", "k <= q and q - k <= t"),
        ("k<=q&q-k<=t", "k<=q and q-k<=t"),
        ("(k <= q)&(q - k <= t)", "(k <= q) and (q - k <= t)"),
        ("k <= q || k < p", "k <= q or k < p"),
        ("k <= q ∧ k ⩽ t", "k <= q and k <= t"),
        (r"k \leq q \land q - k < t", "k <= q and q - k < t"),
        ("!(k > q)", "not (k > q)"),
        ("~(k > q)", "not (k > q)"),
        ("k/w == q/w", "k//w == q//w"),
        ("q - k <= t^2", "q - k <= t*t"),
        ("q - k <= t**3", "q - k <= t*t*t"),
        ("q - k <= t²", "q - k <= t*t"),
        ("q - k <= 2·t", "q - k <= 2*t"),
        ("q - k <= 2t", "q - k <= 2*t"),
        ("q - k <= 2.0", "q - k <= 2"),
        ("q - k <= 2(t + 1)", "q - k <= 2*(t + 1)"),
        ("q - k <= t(t + 1)", "q - k <= t*(t + 1)"),
        ("abbs(q - k) <= t", "abs(q - k) <= t"),
        ("{k <= q}", "(k <= q)"),
        ("(k <= q and q - k <= t", "(k <= q and q - k <= t)"),
        ("k <= q) and q - k <= t", "k <= q and q - k <= t"),
        ("min(q, t] <= k", "min(q, t) <= k"),
        ("k <= q, q - k <= t", "k <= q and q - k <= t"),
        ("k <= q q - k <= t", "k <= q and q - k <= t"),
        ("k <= q orr k < p", "k <= q or k < p"),
        ("k <= q AND k < p", "k <= q and k < p"),
        ("q - k <= τ", "q - k <= tau"),
        ("𝑘 <= 𝑞", "k <= q"),
        ("_k <= q", "k <= q"),
        ("j =< i && i - j < 8", "k <= q and q - k < 8"),
    ],
)
def test_the_first_suggestion_is_what_was_meant(typed: str, meant: str) -> None:
    error = mistake(typed)
    assert corrected(error)[0] == meant
    assert all(read_rule(text) for text in corrected(error))
    again: TextError = pickle.loads(pickle.dumps(error))
    assert (again.suggestions, again.reason) == (error.suggestions, error.reason)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("sliding window of 4096", ["sliding_window(4096)"]),
        ("sliding 4096", ["sliding_window(4096)"]),
        ("window: 4096", ["sliding_window(4096)"]),
        ("window size 4096", ["sliding_window(4096)"]),
        ("window_size 128 0", ["window_size(128, 0)"]),
        ("sliding window w=4096", ["sliding_window(4096)"]),
        ("sliding window and causal", []),
        ("causal with q - k < 4096", []),
        ("causal with window 4096", ["sliding_window(4096)"]),
        ("Mistral sliding window 4096", ["sliding_window(4096)"]),
        ("strided 4", ["strided(4)"]),
        ("windowed 4", ["windowed(4)"]),
        ("dilated step = 2", ["dilated(step=2)"]),
        ("bigbird g=3", ["bigbird(g=3)"]),
        ("prefix lm 128", ["prefix_lm(128)"]),
        ("causal 4096", ["causal"]),
        ("local window of 128", ["band", "local", "window_size"]),
        ("sqrt(k) < q", []),
        ("causal and stridde(3)", ["causal and strided(3)"]),
        ("casual and k < 3", ["causal and k < 3"]),
        ("causal & (q_idx - kv_idx < 4096)", ["causal and (q - k < 4096)"]),
    ],
)
def test_only_what_is_read_and_means_the_same_is_suggested(typed: str, meant: list[str]) -> None:
    error = mistake(typed)
    assert corrected(error) == meant
    for suggestion in error.suggestions if meant and "&" not in typed else ():
        assert read_rule(suggestion.applied(typed))


@pytest.mark.parametrize("typed", ["", "k <=", "k <= q and", "q - k", "((((", "9" * 40, "k <= q # why", "§"])
def test_nothing_is_suggested_that_is_no_rule(typed: str) -> None:
    for text in corrected(mistake(typed)):
        assert text != typed
        assert read_rule(text)


def test_nothing_is_suggested_where_another_mistake_stays() -> None:
    assert corrected(mistake("k =< q and §")) == []


def test_a_long_text_is_mended_once() -> None:
    text = " && ".join(["k <= q"] * 2000)[:9000]
    assert corrected(mistake(text)) == [text.replace("&&", "and", 1)]


def test_the_reason_is_the_message_without_the_text() -> None:
    error = mistake("k =< q")
    assert error.message == f'rule "k =< q": {error.reason}'
    assert isinstance(error, LattendError)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("k <= qq", ["k <= q"]),
        ("K <= q", ["k <= q"]),
        ("k <= q and q - k <= N", ["k <= q and q - k <= n"]),
        ("q - k <= window or k < window or k < windw", ["q - k <= window or k < window or k < window"]),
        ("k <= q and q - k <= t", []),
        ("k <= q and q - k <= t and k <= T", []),
        ("k <= q and q // w == k // w", []),
        ("lambda q, k, qq: k <= qq", []),
    ],
)
def test_a_mistyped_letter_is_found(text: str, meant: list[str]) -> None:
    assert [typo.text for typo in typos(rule(text))] == meant


def test_no_rule_of_the_catalogue_has_one() -> None:
    for sample in catalogue().values():
        assert typos(rule(sample.text, data=dict(sample.data))) == []
