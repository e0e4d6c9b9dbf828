"""A rule in LaTeX: read back as Python, it has the pairs of the rule."""

from __future__ import annotations

import itertools
import math
import re
from pickle import dumps, loads
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from random_rules import affine, split
from web.latex_check import faults

import lattend as lt
from lattend.counts.formula_parser import parse_claim
from lattend.counts.latex import attention_latex, claim_latex, condition_latex, maths, set_latex
from lattend.draw.grid.samples import catalogue
from lattend.report.maths import Maths, Sentence
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


WRITTEN = {
    "n(n+1)/2": r"\frac{n (n + 1)}{2}",
    "N = 1 + 2 + ... + n": r"N = \sum_{i=1}^{n} i",
    "-t^2/2 - t/2 + nt + n": r"-\frac{t^{2}}{2} - \frac{t}{2} + n t + n",
    "n - (t - 1)": "n - (t - 1)",
    "n - t - 1": "n - t - 1",
    "(-n)^2": "(-n)^{2}",
    "-n^2": "-n^{2}",
    "2*3*n": r"2 \cdot 3 n",
    "n // w + n % w": r"\left\lfloor n / w \right\rfloor + (n \bmod w)",
    r"\sum_{i=1}^{t+1} i + \sum_{i=t+2}^{n} (t + 1)": (r"\sum_{i=1}^{t + 1} i + \sum_{i=t + 2}^{n} (t + 1)"),
    "n*sum(i, i, 1, n)": r"n (\sum_{i=1}^{n} i)",
    "min(n, t + 1)": r"\min\left(n, t + 1\right)",
    "Theta(n*t)": r"\Theta\left(n t\right)",
    "N_h D_hid": r"N_{\mathrm{h}} D_{\mathrm{hid}}",
    "1/2": r"\frac{1}{2}",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_claim_is_written_as_it_was_read(text: str) -> None:
    assert claim_latex(parse_claim(text, {"n", "t", "w"})) == WRITTEN[text]


PRINTED = {
    "n*d^2*k^2 - d^2(k + 1)/16": r"n d^{2} k^{2} - \frac{d^{2} (k + 1)}{16}",
    "O(n*d^2 + n^2*d)": r"O\left(n d^{2} + n^{2} d\right)",
    "⌈2(s - 1)/(k - 1)⌉": r"\left\lceil \frac{2 (s - 1)}{k - 1} \right\rceil",
    "heads*D_hid": r"\mathrm{heads} \, D_{\mathrm{hid}}",
    "d < t + 1 <= 2d": r"d < t + 1 \le 2 d",
    "n = (d + sqrt(d^2 + 4))/2": r"n = \frac{d + \sqrt{d^{2} + 4}}{2}",
    "1 - h^2/2 ± h*sqrt(h^2 - 4)/2": r"1 - \frac{h^{2}}{2} \pm \frac{h \, \sqrt{h^{2} - 4}}{2}",
    "f' - f = -h*(p + q)*(p - q)": "f' - f = -h (p + q) (p - q)",
    "sqrt(2)/2 = 0.7071": r"\frac{\sqrt{2}}{2} = 0.7071",
}


@pytest.mark.parametrize("text", PRINTED)
def test_what_is_printed_has_its_latex(text: str) -> None:
    found = maths(text)
    assert (found, getattr(found, "latex", "")) == (text, PRINTED[text])


@pytest.mark.parametrize("text", ["(n > 3 or d = 2) and n = 1", "0.5*n", "2sin(pi/6)", ")", "sqrt(", ""])
def test_what_is_no_formula_stays_a_text(text: str) -> None:
    assert maths(text) == text and not isinstance(maths(text), Maths)


def test_formulas_go_through_a_process_with_their_latex() -> None:
    held = Sentence("at ", maths("n = 3"))
    assert [getattr(part, "latex", "") for part in loads(dumps(held)).parts] == ["", "n = 3"]
