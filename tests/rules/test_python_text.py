"""The source of a function, read without running it, is the rule of the function itself."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_rules import affine, split

import lattend as lt
from lattend.errors import TextError
from lattend.rules.language import expr
from lattend.rules.language.python_text import is_python

SOURCES = {
    "causal": "def causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx",
    "lambda": "lambda b, h, q, kv: (kv <= q) & (q - kv < 4)",
    "sliding": """
        def sliding(b, h, q_idx, kv_idx):
            "A window."
            causal = q_idx >= kv_idx
            near = q_idx - kv_idx <= 8
            return causal & near
        """,
    "torch": "def near(b, h, q, kv):\n    return torch.abs(q - kv) <= 3",
    "prefix": "def prefix(b, h, q_idx, kv_idx):\n    return (kv_idx < 5) | (q_idx >= kv_idx)",
    "heads": "def heads(b, h, q_idx, kv_idx):\n    return (q_idx - kv_idx) % (h + 1) == 0",
    "dilated": "def dilated(q, k, t):\n    back = q - k\n    return (back >= 0) & (back <= t)",
    "either": "lambda b, h, q, kv: ~(q < kv) | (kv // 4 == q // 4)",
}


def run(source: str) -> Callable[..., Any]:
    """The function itself: our own texts, run by Python."""
    text = textwrap.dedent(source).strip()
    names: dict[str, Any] = {"torch": torch}
    if text.startswith("lambda"):
        return eval(text, names)
    before = {*names, "__builtins__"}
    exec(text, names)
    return next(value for name, value in names.items() if name not in before)


@pytest.mark.parametrize("name", SOURCES)
def test_it_is_the_rule_of_the_function_that_runs(name: str) -> None:
    assert lt.rule(SOURCES[name]) == lt.rule(run(SOURCES[name]))


@given(st.one_of(affine(), split()))
def test_a_lambda_of_a_condition_is_the_condition(condition: str) -> None:
    text = f"lambda q, k, n, t, w: {condition}"
    read = lt.rule(text).condition
    assert read == lt.rule(condition).condition
    for node in expr.walk(read):
        if isinstance(node, expr.Name):
            assert node.span is not None
            assert text[slice(*node.span)] == node.name


def test_the_numbers_of_the_function_around_it_are_parameters() -> None:
    text = """
        def window_of(size):
            def mask_mod(b, h, q_idx, kv_idx):
                return (q_idx >= kv_idx) & (q_idx - kv_idx < size)
            return mask_mod
        """
    assert lt.rule(text).parameters == ["size"]
    assert lt.rule(text).at(size=4).same_as(lt.rule("strided(3)"))
    assert lt.rule(text.replace("(size)", "(size=4)")).same_as(lt.rule("strided(3)"))


def test_numbers_before_it_are_read() -> None:
    assert lt.rule("W = 4\ncausal = lambda q, k: (k <= q) & (q - k < W)").same_as(lt.rule("strided(3)"))


def test_arrays_are_left_open() -> None:
    rule = lt.rule("def same(b, h, q_idx, kv_idx): return doc[b, q_idx] == doc[b, kv_idx]")
    assert rule.open == ("doc",)
    assert rule == lt.rule("doc[q] == doc[k]", data={"doc": None})


@pytest.mark.parametrize(
    ("text", "part", "message"),
    [
        ("lambda q, k: __import__('os').system('ls')", "__import__('os').system('ls')", "no function system"),
        ("lambda q, k: k in q", "k in q", "compare with"),
        ("lambda q, k: q", "q", "is a number, not a condition"),
        ("lambda q, k: q % 0 == k", "0", "the divisor is 0"),
        ("lambda q, k: (k <= q) + 1 < 2", "k <= q", "is a condition, not a number"),
        ("lambda b, h, q, k: k <= q + b", "b", "the same for every element of the batch"),
        ("lambda q, k: k <= q if", "lambda q, k: k <= q if"[-1], "Python cannot read this"),
        ("def f(q, k):\n    if k > q: return False\n    return True", "if k > q: return False", "no if, for"),
    ],
)
def test_what_is_no_rule_is_pointed_at(text: str, part: str, message: str) -> None:
    with pytest.raises(TextError, match=message) as found:
        lt.rule(text)
    assert text[found.value.start : found.value.end].startswith(part)


@pytest.mark.parametrize("depth", [50, 5_000])
def test_deep_nesting_ends_in_a_message(depth: int) -> None:
    with pytest.raises(lt.errors.LattendError):
        lt.rule(f"lambda q, k: {'(' * depth}k{'-' * depth}<= q")
    with pytest.raises(lt.errors.LattendError):
        lt.rule(f"lambda q, k: {'~' * depth * 2}(k <= q")


@pytest.mark.parametrize(
    "text", ["k <= q", "causal", "strided(3)", "lambda_ <= q", "definite <= q", "q - k <= def_"]
)
def test_conditions_and_names_are_no_functions(text: str) -> None:
    assert not is_python(text)
