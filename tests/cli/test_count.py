"""lattend count: formulas, numbers, forms, and what it says to wrong input."""

import json

import pytest

from lattend.errors import DeadlineError


def test_formula(lattend):
    ran = lattend("count", "k <= q and q - k <= t")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "(2n - t)(t + 1)/2  when t <= n",
        "n(n + 1)/2         when t > n",
    ]
    assert ran.err == ""


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (("strided", "--at", "n=65536,t=255"), "16744576"),
        (("strided", "--at", "n=12", "--at", "t=3"), "42"),  # 1 + 2 + 3 + 9*4
        (("strided(3)", "--at", " n = 12 "), "42"),
        (("strided", "--at", "n=1_000_000,t=0"), "1000000"),
        (("causal", "--at", "n=2,m=4"), "3"),  # top left: 1 + 2
        (("documents([3, 5])",), "34"),  # 9 + 25
        (("strided", "--per", "query", "--at", "n=12,t=3,q=2"), "3"),
        (("strided", "--per", "key", "--at", "n=12,t=3,k=10"), "2"),
        (("strided", "--method", "enumerate", "--at", "n=5,t=2"), "12"),  # 1 + 2 + 3*3
        (("strided", "--assume", "t < n", "--at", "n=5,t=3"), "14"),
        (("k*k <= q", "--at", "n=10"), "26"),  # isqrt(q) + 1 keys a query: 1 + 3*2 + 5*3 + 4 = 26
    ],
)
def test_number(lattend, arguments, value):
    ran = lattend("count", *arguments)
    assert (ran.code, ran.out, ran.err) == (0, f"{value}\n", "")


def test_assumptions_prune(lattend):
    assert lattend("count", "windowed", "--assume", "w | n").out == "n(w + 1)/2\n"
    both = lattend("count", "strided", "--assume", "t >= 2", "--assume", "t < n")
    assert both.out == "(2n - t)(t + 1)/2\n"


def test_order_latex_and_rows(lattend):
    assert lattend("count", "strided", "--order", "n").out == "O(n)\n"
    assert lattend("count", "strided", "--order", "n", "--at", "n=9,t=2").out == "O(n)\n"
    assert lattend("count", "causal", "--latex").out == "\\frac{n(n + 1)}{2}\n"
    assert lattend("count", "causal", "--latex", "--at", "n=4").out == "10\n"
    assert lattend("count", "causal", "--per", "query").out == "q + 1\n"


def test_json_of_a_formula(lattend):
    assert json.loads(lattend("count", "strided", "--json").out) == {
        "rule": "k <= q and q - k <= t",
        "parameters": ["n", "t"],
        "pieces": [
            {"when": "t <= n", "count": "(2n - t)(t + 1)/2"},
            {"when": "t > n", "count": "n(n + 1)/2"},
        ],
        "at": {},
        "value": None,
    }


def test_json_of_a_number_keeps_the_formula(lattend):
    found = json.loads(lattend("count", "strided", "--json", "--at", "n=12,t=3").out)
    assert list(found) == ["rule", "parameters", "pieces", "at", "value"]
    assert found["parameters"] == ["n", "t"]
    assert found["pieces"][0] == {"when": "t <= n", "count": "(2n - t)(t + 1)/2"}
    assert found["at"] == {"n": 12, "t": 3}
    assert found["value"] == 42


def test_json_with_some_numbers(lattend):
    found = json.loads(lattend("count", "strided(3)", "--json").out)
    assert found["parameters"] == ["n"]
    assert found["at"] == {"t": 3}
    assert found["pieces"][0] == {"when": "n >= 3", "count": "4n - 6"}
    assert found["value"] is None


def test_json_without_a_closed_form_says_why(lattend):
    found = json.loads(lattend("count", "documents([3, 5])", "--json").out)
    assert "looks up data (doc[...]), so it has no closed form" in found.pop("no_formula")
    assert found == {"rule": "doc[q] == doc[k]", "parameters": [], "pieces": [], "at": {"n": 8}, "value": 34}
    root = json.loads(lattend("count", "k*k <= q", "--json", "--at", "n=4").out)
    assert "k * k" in root.pop("no_formula")
    assert root == {"rule": "k * k <= q", "parameters": ["n"], "pieces": [], "at": {"n": 4}, "value": 7}
    late = json.loads(lattend("count", "k <= q + 5", "--json", "--at", "n=4", "--deadline", "0").out)
    assert (late["value"], late["pieces"]) == (16, [])
    assert "no answer within 0 seconds" in late["no_formula"]


def test_json_holds_the_order_last(lattend):
    found = json.loads(lattend("count", "strided", "--json", "--order", "n").out)
    assert list(found) == ["rule", "parameters", "pieces", "at", "value", "order"]
    assert found["order"] == "O(n)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--at", "z=4"), 'rule "k <= q and q - k <= t" has no z; it has n, t'),
        (("--at", "n=-4"), 'rule "k <= q and q - k <= t" needs n >= 0, got n = -4'),
        (("--per", "row"), 'per is "query" or "key", not \'row\''),
        (("--method", "guess"), "method is one of auto, closed, enumerate, not 'guess'"),
        (
            ("--method", "enumerate"),
            'rule "k <= q and q - k <= t" needs a value for n and t: give --at n=…,t=…',
        ),
        (("--assume", "z < n"), 'assumption "z < n": this count has no z; it has n, t'),
        (("--assume", "t < n", "--at", "n=5,t=7"), "n = 5, t = 7 contradicts the assumption t < n"),
        (("--order", "z"), "this count has no z; it has n, t"),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("count", "strided", *arguments)
    assert (ran.code, ran.out, ran.err) == (2, "", f"lattend: {message}\n")


def test_no_closed_form_is_no_answer(lattend):
    ran = lattend("count", "documents([3, 5])", "--per", "query")
    assert (ran.code, ran.out) == (3, "")
    assert "looks up data (doc[...]), so it has no closed form" in ran.err


def test_not_affine_names_the_option(lattend):
    ran = lattend("count", "k*k <= q")
    assert ran.code == 3
    message, text, marks = ran.err.splitlines()
    assert message.startswith('lattend: rule "k*k <= q": k * k is not affine in k')
    assert message.endswith("or count by enumeration with --method enumerate and --at.")
    assert (text, marks) == ("  k*k <= q", "  ^^^")


@pytest.mark.parametrize("deadline", ["inf", "1e300", "60"])
@pytest.mark.parametrize("rule", ["causal", "k <= q and k >= 0"])
def test_any_deadline(lattend, rule, deadline):
    ran = lattend("count", rule, "--deadline", deadline)
    assert (ran.code, ran.out) == (0, "n(n + 1)/2\n")


def test_numbers_go_into_the_rule_first(lattend):
    rule = "k <= q and (q - k <= t or k < g or (q - k) % s == 0)"
    ran = lattend("count", rule, "--at", "t=3,g=2,s=6", "--assume", "n <= 4")
    assert (ran.code, ran.out) == (0, "n(n + 1)/2\n")
    assert lattend("count", rule, "--at", "t=3,g=2,s=6,n=9").out == "40\n"  # 45 - 3 - 2
    assert lattend("count", "windowed", "--at", "w=4", "--assume", "w | n").out == "5n/2\n"


def test_a_deadline_that_is_no_number(lattend):
    ran = lattend("count", "k <= q", "--deadline", "nan")
    assert ran.code == 2
    assert "--deadline is at least 0, got nan" in ran.err


def test_deadline_is_no_answer_and_says_what_works(lattend):
    ran = lattend("count", "q*7 - k*5 <= a and (q + k) % 3 <= b", "--deadline", "0")
    assert (ran.code, ran.out) == (3, "")
    assert "no answer within 0 seconds" in ran.err
    assert "give a a number, as in --at a=…, or more time: --deadline 10;" in ran.err
    assert ran.err.endswith("counting at given numbers still works: --at n=…,a=…,b=…\n")


@pytest.mark.parametrize("command", [("count",), ("claim", "n")])
@pytest.mark.parametrize(("deadline", "advised"), [(1.2, 10), (3, 10), (4, 12), (8, 24)])
def test_the_deadline_that_is_advised_is_longer_and_an_option(
    lattend, monkeypatch, command, deadline, advised
):
    def late(*_: object, **__: object) -> None:
        raise DeadlineError(f"no answer within {deadline:g} seconds")

    monkeypatch.setattr("lattend.counts.counting.closed_count", late)
    name, *formula = command
    ran = lattend(name, "q*7 - k*5 <= a", *formula, "--deadline", f"{deadline}")
    assert ran.code == 3
    assert f"or more time: --deadline {advised};" in ran.err


@pytest.mark.parametrize("command", ["same", "reach"])
def test_a_command_without_a_deadline_advises_none(lattend, monkeypatch, command):
    def late(*_: object, **__: object) -> None:
        raise DeadlineError("no answer within 1.2 seconds")

    monkeypatch.setattr("lattend.counts.counting.closed_count", late)
    ran = lattend(
        *{"same": ("same", "k <= q", "k < q", "--count"), "reach": ("reach", "k <= q", "--layers", "2")}[
            command
        ]
    )
    assert "closed form was not found" in ran.out + ran.err
    assert "--deadline" not in ran.out + ran.err
