"""Equal sets give equal plans: kernel, pairs, KV cache, path, time, text and outputs, however written."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from given_tensors import qkv
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from random_rules import affine
from rewritings import rewritten

import lattend as lt
from lattend.budget import Budget
from lattend.cost.pairs import path_of
from lattend.cost.sizes import read_size
from lattend.errors import DeadlineError, LattendError
from lattend.plans.canonical import canonical_form
from lattend.plans.plan import plan
from lattend.plans.retention import retention
from lattend.rules.rule import Rule

R = lt.rules
IDS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])
RULES = [
    *(
        R.full(),
        R.causal(),
        R.strided(t=3),
        R.windowed(w=4),
        R.band(before=2, after=3),
        R.dilated(t=2, step=3),
    ),
    *(R.sparse_strided(l=4), R.sparse_fixed(l=5, c=2), R.longformer(t=2, g=3), R.bigbird(w=3, t=1, g=1)),
    *(
        R.prefix_lm(p=5),
        R.sinks(s=2, t=3),
        R.chunked(w=4, t=1),
        lt.rule("k <= q and doc[q] == doc[k]", data={"doc": IDS}),
    ),
    *(R.neighbourhood(r=1), R.neighbourhood(r=1, step=2), R.axial(), R.swin(w=4, shift=2), R.raster()),
    lt.rule("k <= q and q - k <= 2 + 3*head"),
    lt.rule("head < 1 and k <= q or q - k <= 2 and k <= q"),
]
WINDOWS = "(qy + 2) // 4 == (ky + 2) // 4 and (qx + 2) // 4 == (kx + 2) // 4"
PATIENT = Budget(60)  # a busy machine makes no difference between two rules
N, ROWS, COLS = 13, 3, 4


@st.composite
def spellings(draw: st.DrawFn) -> tuple[Rule, Rule]:
    """A rule and another spelling of it."""
    known = st.sampled_from(RULES)
    free = affine().map(lt.rule).map(lambda rule: rule.at(t=3) if "t" in rule.parameters else rule)
    rule = draw(st.one_of(known, free))
    condition = rewritten(draw, rule.condition, rule.axes)
    try:
        return rule, replace(rule, condition=condition, about=None, source=None)
    except LattendError:  # more parts than a rule may have
        reject()


def sized(rule: Rule) -> dict[str, Any]:
    return {"n": N} if len(rule.axes) == 1 else {"rows": ROWS, "cols": COLS}


def results_of(rule: Rule) -> dict[str, Any]:
    """All that explain says of a call, but for the rule's own text."""
    found = lt.explain(rule, heads=2, head_dim=16, dtype="bfloat16", device="cuda", **sized(rule)).json()
    here = lt.explain(rule, heads=2, head_dim=16, **sized(rule)).json()
    for one in (found, here):
        del one["rule"], one["title"]
    return {"gpu": found, "cpu": here}


def kept(rule: Rule) -> tuple[Any, ...]:
    """What a KV cache holds of the rule's past."""
    back = replace(rule & (R.causal() if len(rule.axes) == 1 else R.raster()), budget=PATIENT)
    sizes = sized(rule) if rule.data else {name: size for name, size in sized(rule).items() if name == "cols"}
    try:
        found = retention(back, query_heads=2, **sizes)
    except LattendError as refused:
        return (type(refused),)
    return found.most, found.whole, str(found), tuple(found.kept(7).tolist())


def longest_paths(rule: Rule) -> list[str] | None:
    """The maximum path length at N positions and as a formula of n; None where a deadline passes."""
    others = {name: read_size(name, 2) for name in rule.free}
    try:
        return [str(path_of(rule, others | {"n": read_size("n", n)})) for n in (N, "n")]
    except DeadlineError:
        return None


def check(first: Rule, second: Rule, tried: Counter[str]) -> None:
    tried["pairs"] += 1
    forms = [canonical_form(rule) for rule in (first, second)]
    if any(form.as_written for form in forms):
        tried["given up"] += 1
    else:
        assert forms[0] == forms[1]
        assert results_of(first) == results_of(second)
        assert kept(first) == kept(second)
        parts = [[str(part) for part in plan(rule, **numbers(rule)).parts] for rule in (first, second)]
        assert parts[0] == parts[1]
        paths = [longest_paths(rule) for rule in (first, second)]
        tried["paths"] += paths[0] not in (None, ["None", "None"])
        tried["paths given up"] += None in paths
        assert paths[0] == paths[1] or None in paths
    sizes = sized(first)
    width = 16
    x = qkv(N if "n" in sizes else ROWS * COLS, width=width, value_width=width)
    given_sizes = {} if "n" in sizes else sizes
    outputs = [lt.attention(*x, rule, **given_sizes) for rule in (first, second)]
    torch.testing.assert_close(outputs[0], outputs[1])


def numbers(rule: Rule) -> dict[str, Any]:
    return sized(rule) | ({"heads": 2} if rule.has_heads else {})


@pytest.mark.parametrize("examples", [120, pytest.param(3000, marks=pytest.mark.long)])
def test_another_spelling_gives_the_same_plan(examples: int) -> None:
    tried = Counter[str]()

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])
    @given(spellings())
    def law(pair: tuple[Rule, Rule]) -> None:
        check(*pair, tried)

    law()
    assert tried["pairs"] >= examples // 2 and tried["given up"] <= tried["pairs"] // 50
    assert tried["paths"] >= examples // 12 and tried["paths given up"] <= tried["pairs"] // 50


@pytest.mark.usefixtures("without_native")
@pytest.mark.parametrize(
    ("spellings", "kernel", "executed"),
    [
        (["k <= q", "q - k >= 0", "k < q + 1", "not k > q"], "sdpa", 8_650_752),
        (["q // 64 == k // 64 and k <= q", "q - q % 64 <= k <= q"], "sdpa", 262_144),
        (["(q - k) % 16 == 0 and k <= q", "(q - k) // 16 * 16 == q - k and k <= q"], "cpu", 655_360),
        (["k <= q and q - k <= 5000", "k <= q"], "sdpa", 8_650_752),  # wider than the sequence
        (["q % 4 == k % 4", "(q - k) % 4 == 0"], "cpu", 4_194_304),  # 4096 * 1024
        (["q % 2 == k % 2", "(q + k) % 2 == 0"], "cpu", 8_388_608),
        (["q % 2 != k % 2", "(q - k) % 2 == 1"], "cpu", 8_388_608),
    ],
)
def test_known_pairs(spellings: list[str], kernel: str, executed: int) -> None:
    for text in spellings:
        found = lt.explain(lt.rule(text), n=4096)
        assert (found.kernel, found.executed) == (kernel, executed)


@pytest.mark.usefixtures("without_native")
@pytest.mark.parametrize(
    ("rule", "parts", "executed"),
    [  # as many as the condition as it is written needs
        (R.bigbird(w=3, t=1, g=1).at(n=13), 3, 169),
        (R.neighbourhood(r=3, step=2).at(rows=48, cols=40), 1, 196_992),
        (R.dilated(t=20, step=2).at(n=1000), 1, 50_240),
    ],
)
def test_a_form_needs_no_more_tiles_than_the_rule(rule: Rule, parts: int, executed: int) -> None:
    found = lt.explain(rule)
    assert (len(found.parts), found.executed) == (parts, executed)


def test_pieces_that_do_not_touch_are_the_convex_set_they_make() -> None:
    pieces = lt.rule("q <= 1 and k <= q or q <= 2 and 2 <= k <= q")
    assert canonical_form(pieces) == canonical_form(lt.rule("k <= q and 2*q - k <= 2"))


@pytest.mark.parametrize("text", ["n + q >= 2", "n + k >= 2", "not n == 1"])
def test_what_only_asks_for_a_length_says_so(text: str) -> None:
    """At n = 1 no pair, at more all of them."""
    assert canonical_form(lt.rule(text)) == canonical_form(lt.rule("n >= 2"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (WINDOWS, f"{WINDOWS} and (kx < 2 or kx >= 1)"),
        ("qy % 2 == ky % 2 and qx % 2 == kx % 2", "(qy - ky) % 2 == 0 and (qx - kx) % 2 == 0"),
        ("qy % 3 == ky % 3 and qx % 2 != kx % 2", "(qy - ky) % 3 == 0 and (qx - kx) % 2 == 1"),
    ],
)
def test_forms_of_an_image_do_not_depend_on_the_order_of_its_axes(one: str, other: str) -> None:
    assert canonical_form(lt.rule(one)) == canonical_form(lt.rule(other))


def test_a_rule_that_is_not_affine_is_planned_as_written() -> None:
    rule = lt.rule("q * k <= 30 and k <= q")
    assert canonical_form(rule).as_written == "it is not affine"
    x = qkv(9)
    torch.testing.assert_close(lt.attention(*x, rule), lt.attention(*x, rule, kernel="reference"))


def test_a_form_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from lattend.sets import canonical

    monkeypatch.setattr(canonical, "MAX_OPERATIONS", 50)
    rule = lt.rule("k <= q and (q - k) % 5 == 2 or abs(q - 2*k) <= 7")
    form = canonical_form(rule)
    assert form.as_written == "isl needs more than 50 operations for it"
    assert "planned as written" in str(lt.explain(rule, n=64))
    x = qkv(9)
    found: list[list[torch.Tensor]] = []
    for kernel in (None, "reference"):  # some of its tiles have no keys
        given = [y.clone().requires_grad_() for y in x]
        out = lt.attention(given[0], given[1], given[2], rule, kernel=kernel)
        found.append([out, *torch.autograd.grad(out.sin().sum(), given)])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
