"""A rule in LaTeX: read back as Python, it has the pairs of the rule."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from random_rules import affine, split
from web.latex_check import faults

import lattend as lt
from lattend.counts.latex import attention_latex, condition_latex, set_latex
from lattend.draw.grid.samples import catalogue
from lattend.rules import Rule

SIGNS = {
    r"\left\lfloor": " floor(",
    r"\right\rfloor": " )",
    r"\left|": " abs(",
    r"\right|": " )",
    r"\left(": "(",
    r"\right)": ")",
    r"\,": "",
    r"\cdot": "*",
    r"\bmod": "%",
    r"\wedge": "&&",
    r"\vee": "||",
    r"\neg": "!",
    r"\le": "<=",
    r"\ge": ">=",
    r"\ne": "~=",
    r"\min": "min",
    r"\max": "max",
}
WORDS = {"&&": " and ", "||": " or ", "!": " not ", "~=": "!="}


def in_python(latex: str) -> str:
    """The condition as Python: products get their sign back, and a floor is that of a quotient."""
    text = re.sub(r"\\mathrm\{(\w+)\}", r"\1", re.sub(r"([qk])_\{(\w)\}", r"\1\2", latex))
    for sign, plain in SIGNS.items():
        text = text.replace(sign, plain)
    assert "\\" not in text
    text = re.sub(r"(?<![<>~])=", "==", text)
    text = re.sub(r"(?<=[\w)]) +(?=[\w(])", " * ", text)
    for sign, word in WORDS.items():
        text = text.replace(sign, word)
    return text.strip()


def mask_of(rule: Rule, **values: int) -> list[bool]:
    code = compile(in_python(condition_latex(rule, rule.condition)), "latex", "eval")
    known: dict[str, Any] = {**rule.values, **values}
    ranges = [range(known[size]) for size in rule.limits.values()]
    names: dict[str, Any] = {"floor": math.floor, "true": True, **rule.data, **known}
    return [
        bool(eval(code, {**names, **dict(zip(rule.positions, place, strict=True))}))
        for place in itertools.product(*ranges)
    ]


@pytest.mark.parametrize("name", [*catalogue()])
def test_the_catalogue_reads_back(name: str) -> None:
    rule = catalogue()[name]
    small = {"n": 9, "m": 7, "rows": 4, "cols": 5, "depth": 2, "shift": 1}
    values = {name: small.get(name, 2) for name in rule.free}
    if rule.condition != lt.rules.full().condition:
        assert mask_of(rule, **values) == rule.mask(**values).ravel().tolist()
    assert faults(set_latex(rule)) == faults(attention_latex(rule)) == []


@given(text=affine() | split())
def test_random_rules_read_back(text: str) -> None:
    rule = lt.rule(text)
    values = {name: {"n": 5, "w": 3, "t": 2}[name] for name in rule.free}
    assert mask_of(rule, **values) == rule.mask(**values).ravel().tolist()
    assert not faults(set_latex(rule))


@pytest.mark.parametrize(
    "text",
    [
        "q - (k - 1) <= 2",
        "(q + k) * 2 % 5 == 3",
        "q % 5 - k % 3 == 1",
        "-(q - k) < 2",
        "2 * (q // 2) <= k * 3",
        "not (k <= q or q % 3 == 1) and (k > 2 or q < 1)",
        "min(q, 2, k) == max(k - 3, 0)",
        "q // (1 + 2) == k // 2 // 2",
    ],
)
def test_brackets_stand_where_they_must(text: str) -> None:
    assert mask_of(lt.rule(text), n=7) == lt.rule(text).mask(n=7).ravel().tolist()


def test_numbers_of_the_rule_are_put_in() -> None:
    assert set_latex(lt.rule("strided(3)").at(n=8)) == (
        r"\left\{ (q, k) \;\middle|\; 0 \le q, k < 8,\; k \le q \wedge q - k \le 3 \right\}"
    )


def test_everything_is_attended_without_a_condition() -> None:
    assert set_latex(lt.rules.full()) == r"\left\{ (q, k) \;\middle|\; 0 \le q, k < n \right\}"
    assert attention_latex(lt.rules.full()).splitlines()[2] == "M_{q, k} &= 0"


def test_arrays_and_names_of_several_letters() -> None:
    rule = lt.rule("doc[q] == doc[k] and q - k <= far_off", data={"doc": np.array([0, 0, 1])})
    said = r"\mathrm{doc}[q] = \mathrm{doc}[k] \wedge q - k \le \mathrm{far}_{\mathrm{off}}"
    assert condition_latex(rule, rule.condition) == said
