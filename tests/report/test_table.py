"""Tables and facts: numbers to the right, what is too wide below, nothing wider than asked; and as HTML."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from lattend.report.report import Report
from lattend.report.table import Facts, Table

TABLE = Table(("", "formula", "number"), [("first", "n^2*h(2h + c - 1)", "1,312"), ("second", "a\nb", "7")])


def test_columns_of_numbers_stand_to_the_right() -> None:
    assert TABLE.lines() == [
        "        formula            number",
        "first   n^2*h(2h + c - 1)   1,312",
        "second  a                       7",
        "        b",
    ]


@pytest.mark.parametrize("width", [33, 32, 28])
def test_what_is_too_wide_goes_below(width: int) -> None:
    folded = [
        *("        number", "first    1,312", "  formula  n^2*h(2h + c - 1)"),
        *("second       7", "  formula  a", "           b"),
    ]
    assert TABLE.lines(width) == (TABLE.lines() if width == 33 else folded)


def test_a_long_name_is_cut() -> None:
    found = Table(("module", "dense"), [("a" * 50, "12")]).lines(40)
    assert found == [f"{'module':33}  dense", f"{'a' * 32}…     12"]


def test_html_is_escaped() -> None:
    found = Report("a < b", [Table(("", "x"), [("<b>", "1")]), "c & d"]).html()
    rows: Any = ElementTree.fromstring(f"<div>{found}</div>")
    assert [cell.text for cell in rows.iter("td")] == ["<b>", "1"]
    assert "text-align: right" in found


def test_a_letter_with_an_accent_of_its_own_is_one_wide() -> None:
    assert Table(("", "x"), [("y\u0302", "1"), ("ab", "2")]).lines() == ["    x", "y\u0302   1", "ab  2"]


def test_every_cell_below_its_row_where_nothing_else_fits() -> None:
    found = Table(("step", "what happens"), [("1", "it converges to the equilibrium")]).lines(20)
    assert found == ["step 1", "  what happens: it", "  converges to the", "  equilibrium"]


def test_facts_in_two_columns_or_below_each_other() -> None:
    facts = Facts([("period", "6, proved: the state after 8 steps is that after 2")])
    assert facts.lines(40) == ["period  6, proved: the state after 8", "        steps is that after 2"]
    assert facts.lines(20) == [
        "period",
        "  6, proved: the",
        "  state after 8",
        "  steps is that",
        "  after 2",
    ]


def test_facts_in_several_lines_stay_so_in_a_narrow_terminal() -> None:
    assert Facts([("count", "n when n >= 2\n0 otherwise")]).lines(20) == [
        "count",
        "  n when n >= 2",
        "  0 otherwise",
    ]


WORDS = st.text("ab 0123456789,.=−", max_size=30)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5), st.integers(24, 90))
def test_no_line_is_wider_than_asked(rows: list[tuple[str, str, str]], width: int) -> None:
    lines = Table(("name", "first", "second"), rows).lines(width)
    assert max(map(cell_len, lines)) <= width
    everything = "".join("".join(lines).split())
    if not any("…" in line for line in lines):
        assert all("".join(cell.split()) in everything for row in rows for cell in row if cell != "=")


def test_words_are_wrapped_beside_each_other_where_columns_stay_wide_enough() -> None:
    table = Table(
        ("rule", "meaning"), [("causal", "a query and all keys before it, and no other")], wraps=True
    )
    assert table.lines(30) == [
        "rule    meaning",
        "causal  a query and all keys",
        "        before it, and no",
        "        other",
    ]
    assert max(map(len, table.lines(20))) <= 20


def test_facts_keep_the_lines_they_are_given() -> None:
    assert Facts([("count", "1  when n = 1\nn  otherwise")]).lines(80) == [
        "count  1  when n = 1",
        "       n  otherwise",
    ]


def test_pieces_of_a_formula_keep_their_lines_in_a_narrow_terminal() -> None:
    rows = [("1,024", "2n when n >= 2, and more words\n0 when n == 1"), ("7", "")]
    found = Table(("t", "formula"), rows).lines(20)
    assert found == [
        "t 1,024",
        "  formula: 2n when",
        "  n >= 2, and more",
        "  words",
        "    0 when n == 1",
        "t 7",
    ]


def test_a_table_is_text_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """rich would show it as an output of its own, and leave nothing to print."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert Table(("", "pairs"), [("causal", "36")]).lines() == ["        pairs", "causal     36"]
