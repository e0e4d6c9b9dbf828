"""Methods against steps, checked with eigenvalues computed on their own."""

import numpy as np
import pytest

from lattend.errors import DomainError
from lattend.study.games.game import Game, dirac
from lattend.study.games.methods import consensus, gradient_penalty
from lattend.study.games.pictures import STEPS, compare_methods

PQ = Game("p*q")


@pytest.fixture(scope="module")
def table():
    return compare_methods(PQ)


def cell(table, method, step):
    return table.json()["methods"][method][list(STEPS).index(step)]


def radius(rows):
    return np.abs(np.linalg.eigvals(np.array(rows))).max()


@pytest.mark.parametrize(("text", "h"), [("1/10", 0.1), ("1/2", 0.5), ("3/2", 1.5), ("5/2", 2.5)])
def test_factors_are_those_of_the_steps_matrix(table, text, h):
    one, turn = np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]])  # (p, q) moves by h·turn
    expected = {
        "simultaneous": one + h * turn,
        "alternating, q first": [[1 - h * h, -h], [h, 1]],
        "optimistic": np.block([[one + 2 * h * turn, -h * turn], [one, 0 * one]]),
        "extragradient": one + h * turn @ (one + h * turn),
        "consensus, weight 1": one + h * (turn - one),
        "gradient penalty, weight 1": one + h * (turn - np.diag([0.0, 1.0])),
    }
    for method, rows in expected.items():
        assert cell(table, method, text)["factor"] == pytest.approx(radius(rows)), method


def test_p_times_q_converges_cycles_and_diverges_where_it_should(table):
    kinds = [cell(table, "alternating, q first", step)["kind"] for step in STEPS]
    assert kinds == ["cycles"] * 6 + ["grows", "diverges"]
    assert {cell(table, "simultaneous", step)["kind"] for step in STEPS} == {"diverges"}
    facts = dict(table.facts)
    assert facts["optimistic"] == "converges for 0 < h < sqrt(3)/3; best factor sqrt(2)/2 = 0.7071 at h = 1/2"
    assert facts["extragradient"] == (
        "converges for 0 < h < 1; best factor sqrt(3)/2 = 0.8660 at h = sqrt(2)/2 = 0.7071"
    )
    assert facts["alternating, q first"] == "cycles for 0 < h < 2; grows like t for h = 2; diverges for h > 2"
    assert facts["momentum, mass -1/2, q first"].endswith("best factor 0.8846 at h = 0.8712")


def test_a_terminal_shows_the_factors(table):
    lines = table.terminal(80, colour=False, encoding="utf-8").splitlines()
    assert "          optimistic 0.995  0.966  0.707  1.401  1.932  2.957  3.968  4.975" in lines
    assert "alternating, q first cycles cycles cycles cycles cycles cycles grows  4.000" in lines
    assert "a number below 1 converges, above 1 diverges; cycles: distances stay within" in lines
    narrow = table.terminal(40, colour=False, encoding="utf-8")
    assert max(map(len, narrow.splitlines())) <= 40
    assert "a number below 1" not in narrow  # none are shown


def test_colours_follow_the_factor(table):
    row = [label.text for label in table.panels[0].marks][:8]
    assert row == ["1.005", "1.031", "1.118", "1.250", "1.414", "1.803", "2.236", "2.693"]
    cells = table.panels[0].cells
    assert cells[1, 0] == 32  # the middle of the scale: a factor of 1
    assert cells[0].tolist() == sorted(cells[0].tolist()) and cells[2, 2] < 32


def test_methods_of_one_name_keep_their_numbers():
    figure = compare_methods(PQ, ["1/2"], [consensus(1), consensus("1/2"), gradient_penalty(1)])
    assert [name for _, name in figure.panels[0].rows.ticks] == [
        *("consensus, weight 1", "consensus, weight 1/2"),
        "gradient penalty",
    ]


def test_an_equilibrium_is_chosen():
    game = Game("(p^2 - 1)*q - q^2/4")
    with pytest.raises(DomainError, match=r"several equilibria: .*; say which: at="):
        compare_methods(game, ["1/2"], ["simultaneous"])
    result = compare_methods(game, ["1/16"], ["simultaneous"], at=(1, 0)).json()["methods"]["simultaneous"]
    # The field's matrix at (1, 0) is [[0, -2], [2, -1/2]]
    assert result[0]["factor"] == pytest.approx(radius(np.eye(2) + np.array([[0, -2], [2, -0.5]]) / 16))


def test_where_equilibria_form_a_line_methods_settle_at_one_of_them():
    line = Game("x*q", minimise="x y", maximise="q")
    shown = " ".join(compare_methods(line, 0.5, "extragradient").terminal(80, colour=False).split())
    assert "settles: at one of the equilibria, which form a line" in shown


def test_what_is_not_decided_is_said():
    figure = compare_methods(dirac(), ["1", "5"], "alternating")  # a cycle of the linear part, then growth
    (row,) = figure.json()["methods"].values()
    assert [one["kind"] for one in row] == ["undecided", "diverges"]
    assert figure.caption[0].endswith("; undecided: second derivatives do not decide")


def test_one_step_and_one_method_need_no_list():
    result = compare_methods(PQ, "12", "optimistic").json()
    assert result["steps"] == ["12"] and list(result["methods"]) == ["optimistic"]
    assert list(compare_methods(PQ, 0.5, consensus(1)).json()["methods"]) == ["consensus, weight 1"]


def test_a_table_needs_something():
    with pytest.raises(DomainError, match="a table needs one step and one method, or more"):
        compare_methods(PQ, [])
