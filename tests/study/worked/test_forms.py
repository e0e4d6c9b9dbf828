"""The work as terminal tables, HTML, LaTeX, Markdown and a picture; every form has the same numbers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import lattend as lt
from lattend.errors import LattendError
from lattend.study.worked.work import EXAMPLE

TEXT = """\
Attention worked through
4 tokens of 2 numbers; 1 head; no scaling; every query attends to every key
tokens are rows: x W, which is W x too, as every matrix is symmetric

Tokens: x   Query matrix: W_q   Key matrix: W_k   Value matrix: W_v
   1  2        1  2                1  2              1  2
1  1  2     1  1  0             1  1  0           1  0  0
2  2  0     2  0  1             2  0  0           2  0  1
3  0  1
4  1  1

Queries: q = x W_q   Keys: k = x W_k   Values: v = x W_v
   1  2                 1  2              1  2
1  1  2              1  1  0           1  0  2
2  2  0              2  2  0           2  0  0
3  0  1              3  0  0           3  0  1
4  1  1              4  1  0           4  0  1

Scores: s = q·k
   1  2  3  4
1  1  2  0  1
2  2  4  0  2
3  0  0  0  0
4  1  2  0  1

Exponentials: e^s
   1    2    3  4          1        2  3       4
1  e    e^2  1  e     2.7183   7.3891  1  2.7183
2  e^2  e^4  1  e^2   7.3891  54.5982  1  7.3891
3  1    1    1  1          1        1  1       1
4  e    e^2  1  e     2.7183   7.3891  1  2.7183

Row sums: sum of e^s over the keys
1  e^2 + 2e + 1     13.8256
2  e^4 + 2e^2 + 1   70.3763
3  4                      4
4  e^2 + 2e + 1     13.8256

Weights: a = e^s / row sum
   1                     2                     3                   4
1  e/(e^2 + 2e + 1)      e^2/(e^2 + 2e + 1)    1/(e^2 + 2e + 1)    e/(e^2 + 2e + 1)
2  e^2/(e^4 + 2e^2 + 1)  e^4/(e^4 + 2e^2 + 1)  1/(e^4 + 2e^2 + 1)  e^2/(e^4 + 2e^2 + 1)
3  1/4                   1/4                   1/4                 1/4
4  e/(e^2 + 2e + 1)      e^2/(e^2 + 2e + 1)    1/(e^2 + 2e + 1)    e/(e^2 + 2e + 1)
        1       2       3       4
1  0.1966  0.5344  0.0723  0.1966
2  0.1050  0.7758  0.0142  0.1050
3  0.2500  0.2500  0.2500  0.2500
4  0.1966  0.5344  0.0723  0.1966

Outputs: z = sum of a v
   1  2                             1       2
1  0  (3e + 1)/(e^2 + 2e + 1)       0  0.6622
2  0  (3e^2 + 1)/(e^4 + 2e^2 + 1)   0  0.3292
3  0  1                             0       1
4  0  (3e + 1)/(e^2 + 2e + 1)       0  0.6622"""

NARROW = """\
Weights: a = e^s / row sum
query 1
  1  1
  2  0
query 2
  1  1/(e^2 + 1)    0.1192
  2  e^2/(e^2 + 1)  0.8808"""


def test_terminal():
    assert lt.study.work(**EXAMPLE).terminal(100) == TEXT


def test_narrow_lists_one_number_a_line():
    result = lt.study.work([[1], [2]], [[1]], [[1]], [[1]], "causal").terminal(27)
    assert NARROW in result


@pytest.mark.parametrize("width", [20, 27, 40, 60, 80])
@pytest.mark.parametrize("show", ["both", "exact", "decimal"])
def test_no_line_is_too_long(width, show):
    cases: list[dict[str, Any]] = [
        {},
        {"rule": "causal", "scale": "sqrt"},
        {"heads": 2, "wo": [[1, "1/3"], [2, 1]]},
    ]
    for options in cases:
        text = lt.study.work(**EXAMPLE, **options).terminal(width, show=show)
        assert max(map(len, text.splitlines())) <= width


def test_a_step_prints_itself():
    assert str(lt.study.work(**EXAMPLE).sums).splitlines()[1] == "1  e^2 + 2e + 1     13.8256"
    assert repr(lt.study.work(**EXAMPLE).weights) == "<Step weights: 4 × 4>"


class Tags(HTMLParser):
    """Fails where an element is not closed by its own end."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_html():
    result = lt.study.work(**EXAMPLE, rule="k <= q")
    page = result.html()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert '<span class="fraction"><span>1</span><span>e<sup>2</sup> + 1</span></span>' in page
    assert "q = x W<sub>q</sub>" in page
    assert "rule k &lt;= q" in page and "−∞" in page and "-inf" not in page
    assert "rgba(47, 111, 181, 0.881)" in page
    assert result._repr_html_() == page


def test_latex():
    page = lt.study.work(**EXAMPLE, rule="causal", scale="sqrt", heads=2, wo=[[1, 2], [3, 4]]).latex()
    assert page.count("{") == page.count("}")
    assert page.count(r"\left(") == page.count(r"\right)") == page.count(r"\begin{array}")
    assert page.count("$") % 2 == 0
    assert r"-\infty" in page and r"\paragraph{Outputs} $[Z_{1}, Z_{2}] W_o$" in page
    assert r"rule k \ensuremath{\le} q\par" in page
    plain = lt.study.work(**EXAMPLE).latex()
    assert r"\frac{e}{1 + 2 e + e^{2}}" in plain and r"\approx" in plain


def test_markdown():
    page = lt.study.work(**EXAMPLE).markdown()
    assert "| 1 | `e/(e^2 + 2e + 1)` ≈ 0.1966 | `e^2/(e^2 + 2e + 1)` ≈ 0.5344 |" in page
    for block in re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_picture():
    figure = lt.study.work(**EXAMPLE, rule="causal").draw(places=2)
    assert figure.panels[0].labels()[1, 1] == "0.88"
    assert (0, 1) not in figure.panels[0].labels()  # hidden by the rule
    assert "2 0.12 0.88 ·" in figure.terminal(60)
    assert len(lt.study.work(**EXAMPLE, heads=2).draw().panels) == 2


def test_numbers_that_have_no_room_are_not_spoken_of():
    small = lt.study.work(**EXAMPLE, rule="causal").draw()
    large = lt.study.work([[1]] * 32, [[1]], [[1]], [[1]], "causal").draw()
    said = "no number: the rule hides the key"
    assert said in small.svg() and said in small.terminal(60)
    assert said not in small.terminal(20)
    assert said not in large.svg() and said not in large.terminal(80)


@pytest.mark.parametrize(
    ("ending", "start"),
    [
        ("html", b"<!doctype html>"),
        ("tex", b"% needs"),
        ("md", b"# Attention"),
        ("json", b"{"),
        ("txt", b"Attention worked through\n4 tokens"),
        ("svg", b"<svg"),
        ("png", b"\x89PNG"),
    ],
)
def test_files(tmp_path, ending, start):
    path = lt.study.work(**EXAMPLE).save(tmp_path / f"head.{ending}")
    assert path.read_bytes().startswith(start)
    if ending == "json":
        assert json.loads(path.read_text())["steps"]["weights"]["decimals"][2] == ["0.2500"] * 4


def test_no_such_ending(tmp_path):
    with pytest.raises(LattendError, match=r"the ending is not one of \.html, \.tex, \.md"):
        lt.study.work(**EXAMPLE).save(tmp_path / "head.doc")
    with pytest.raises(LattendError, match=r'there is no folder ".*no"; make it first'):
        lt.study.work(**EXAMPLE).save(tmp_path / "no" / "head.md")


def test_html_raises_every_power():
    """Powers that are roots, fractions and products of them."""
    result = lt.study.work([[1, 2], [2, 0]], *[[[1, 0], [0, 1]]] * 3, scale="sqrt").html()
    assert "e<sup>2√2</sup>" in result and "e<sup>√2</sup>" in result
    assert "^" not in result and "sqrt" not in result


def test_every_form_begins_with_the_exercise():
    result = lt.study.work(**EXAMPLE, heads=2, wo=[[1, "1/3"], [2, 1]], memory=[[5, 6], [7, 8], [9, 0]])
    assert [step.name for step in result.exercise] == ["tokens", "memory", "wq", "wk", "wv", "wo"]
    assert result.exercise[2].exact == [[[1], [0]], [[0], [1]]]
    text, page, tex, mark = result.terminal(80), result.html(), result.latex(), result.markdown()
    for form, titles in (
        (text, ("Tokens: x", "Memory: y", "Query matrix: W_q", "Output matrix: W_o", "Queries: q")),
        (page, ("Tokens<", "Memory<", "Query matrix<", "Output matrix<", "Queries<")),
        (tex, ("X = ", "Y = ", "W_q^{(1)} = ", "W_q^{(2)} = ", "W_o = ", "Queries")),
        (mark, ("## Tokens", "## Memory", "## Query matrix", "## Output matrix", "## Queries")),
    ):
        places = [form.index(title) for title in titles]
        assert places == sorted(places)
    data = result.json()["given"]
    assert data["wo"]["exact"] == [["1", "1/3"], ["2", "1"]] and data["memory"]["exact"][2] == ["9", "0"]
