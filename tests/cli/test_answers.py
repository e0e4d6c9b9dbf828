"""lattend claim, same, reach and check: what they print and their exit codes."""

import json
from typing import Any

import numpy as np
import pytest

import lattend as lt
from lattend.cli.same import PARTS
from lattend.counts import check as checking
from lattend.counts.counting import closed_count
from lattend.rules.reader import rule


@pytest.mark.parametrize(
    ("arguments", "code", "out"),
    [
        (("causal", "n*(n + 1)/2"), 0, "n*(n + 1)/2: holds for n >= 0"),
        (("causal", r"\frac{n(n+1)}{2}"), 0, r"\frac{n(n+1)}{2}: holds for n >= 0"),
        (("causal", "L*(L + 1)/2", "--rename", "L=n"), 0, "L*(L + 1)/2: holds for n >= 0"),
        (("causal", "O(n^2)"), 0, "O(n^2): holds as n grows"),
        (("causal", "O(n)"), 1, "O(n): fails; along n = s the count grows faster"),
        (("causal", "q + 1", "--per", "query"), 0, "q + 1: holds"),
        (("windowed", "n*(w + 1)/2", "--assume", "w | n"), 0, "n*(w + 1)/2: holds for"),
        (
            ("windowed", "n*(w + 1)/2"),
            1,
            "n*(w + 1)/2: holds only where w divides n; at n = 1, w = 2 it gives 3/2, the count is 1",
        ),
        (
            ("strided", "sum(i, i, n - t, n)"),
            1,
            "sum(i, i, n - t, n): holds only where t <= n; at n = 1, t = 2 it gives 0, the count is 1",
        ),
        (("strided", "4*n - 6", "--at", "t=3", "--assume", "n >= 3"), 0, "4*n - 6: holds for"),
        (
            ("windowed", "n(w+1)/2", "--at", "w=4", "--assume", "w | n"),
            0,
            "n(w+1)/2: holds for n >= 0 and 4 | n",
        ),
        (
            ("windowed", "n(w+1)/2", "--at", "n=12", "--assume", "w | n"),
            0,
            "n(w+1)/2: holds for w >= 1 and w | 12",
        ),
        (("strided", "4n-6", "--at", "t=3", "--assume", "t <= n"), 0, "4n-6: holds for 3 <= n"),
    ],
)
def test_claim(lattend, arguments, code, out):
    ran = lattend("claim", *arguments)
    assert (ran.code, ran.err) == (code, "")
    assert ran.out.startswith(out)


@pytest.mark.parametrize(
    "formula",
    [r"-\frac{1}{2}t^2 - \frac{1}{2}t + nt + n", "-1/2 t^2 - t/2 + n*t + n", "-t(t + 1)/2 + n(t + 1)"],
)
def test_a_formula_may_begin_with_a_minus(lattend, formula):
    ran = lattend("claim", "strided", formula)
    assert (ran.code, ran.err) == (1, "")
    assert ran.out == f"{formula}: holds only where t <= n; at n = 1, t = 2 it gives 0, the count is 1\n"
    ran = lattend("claim", "--assume", "t <= n", "strided", formula, "--json")
    assert (ran.code, json.loads(ran.out)["status"]) == (0, "holds")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("claim", "causal", "n", "-x"), "no such option: -x"),
        (("claim", "causal", "--jsn", "n"), "no such option: --jsn"),
        (("claim", "causal", "-h^2"), "this count has no h"),
        (("claim", "causal", "n", "-n"), "no such option: -n"),
    ],
)
def test_what_is_no_formula_is_an_option(lattend, arguments, said):
    ran = lattend(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_chain_in_one_command(lattend):
    ran = lattend("claim", "causal", r"N = 1 + 2 + \dots + n = n^2/2")
    assert ran.code == 1
    assert "equation 2 of 2 is the first that fails" in ran.out.splitlines()[0]
    found = json.loads(lattend("claim", "causal", "N = 1 + 2 + … + n", "--json").out)
    assert found["readings"][0] == "N read as the count"


def test_letters_may_stand_for_formulas(lattend):
    assert lattend("claim", "causal", "i", "--per", "query", "--rename", "i=q+1").code == 0


def test_the_command_counts_from_one(lattend):
    assert lattend("claim", "causal", "i", "--per", "query", "--from", "1").code == 0
    ran = lattend("claim", "causal", "i", "--per", "query")
    assert ran.code == 1
    assert "with positions from 1, --from 1: i: holds for n >= 0" in ran.out
    assert lattend("count", "causal", "--per", "query", "--from", "1").out == "q\n"
    assert lattend("count", "causal", "--per", "query", "--from", "1", "--at", "n=9,q=4").out == "4\n"
    wrong = lattend("count", "causal", "--from", "1")
    assert wrong.err == "lattend: --from 1 is where positions begin: count --per query or --per key with it\n"


def test_refuted_claim_gives_the_smallest_counterexample(lattend):
    ran = lattend("claim", "strided", "n*t")
    assert ran.code == 1
    assert ran.out.startswith("n*t: fails;")
    assert ran.out.endswith("at n = 1, t = 2 it gives 2, the count is 1\n")


def test_claim_as_json(lattend):
    ran = lattend("claim", "causal", "n^2/2", "--json")
    found = json.loads(ran.out)
    assert (ran.code, found["status"]) == (1, "fails")
    assert found["counterexample"] == {"at": {"n": 1}, "claimed": "1/2", "exact": 1}


def test_undecided_claim_has_its_own_code(lattend, monkeypatch):
    from lattend.counts import claim
    from lattend.counts.verdict import Verdict

    def undecided(*_: object, **__: object) -> Verdict:
        return Verdict("n", "undecided", remaining="n^3 - n = 0")

    monkeypatch.setattr(claim, "judge", undecided)
    ran = lattend("claim", "causal", "n")
    assert (ran.code, ran.out) == (3, "n: undecided; what remains: n^3 - n = 0\n")


def test_claim_with_wrong_input(lattend):
    ran = lattend("claim", "causal", "L*(L + 1)/2")
    assert ran.code == 2
    assert ran.err.splitlines() == [
        'lattend: formula "L*(L + 1)/2": this count has no L; it has n; '
        "did you mean n? Then rename it: --rename L=n",
        "  L*(L + 1)/2",
        "  ^",
    ]
    assert lattend("claim", "causal", "X").err.startswith(
        'lattend: formula "X": this count has no X; it has n; say what it stands for: --rename X=…'
    )
    renamed = lattend("claim", "causal", "n", "--rename", "L=(")
    assert renamed.err.splitlines() == [
        'lattend: --rename: formula "(": a formula is missing after this',
        "  L=(",
        "    ^",
    ]


def test_numbers_are_claims_too(lattend):
    assert lattend("claim", "causal", "28", "--at", "n=7").out == "28: holds for n == 7\n"
    ran = lattend("claim", "causal", "29", "--at", "n=7")
    assert (ran.code, ran.out) == (1, "29: fails; at n = 7 it gives 29, the count is 28\n")
    assert lattend("claim", "strided", "L(L+1)/2", "--at", "n=7,t=9", "--rename", "L=n").code == 0
    assert lattend("claim", "causal", "q + 1", "--at", "n=7,q=3", "--per", "query").code == 0
    assert lattend("claim", "causal", "28", "--at", "n=7", "--assume", "n >= 5").code == 0
    wrong = lattend("claim", "causal", "28", "--at", "n=7", "--assume", "n <= 5")
    assert wrong.err == "lattend: n = 7 contradicts the assumption n <= 5\n"
    order = lattend("claim", "causal", "O(n^2)", "--at", "n=7")
    assert order.err.splitlines()[0] == (
        'lattend: formula "O(n^2)": O(n^2) says how a count grows, and here every size has a number'
    )
    assert lattend("claim", "causal", "t", "--at", "n=7").err.startswith(
        'lattend: formula "t": this count has no t; it has n; say what it stands for'
    )


def test_an_order_is_not_the_count_where_that_is_asked(lattend):
    ran = lattend("claim", "causal", "O(n^2)", "--exact")
    assert (ran.code, ran.out) == (1, "O(n^2): fails; O(n^2) says how the count grows, not what it is\n")
    assert lattend("claim", "causal", "n(n+1)/2", "--exact").code == 0
    assert json.loads(lattend("claim", "causal", "O(n^2)", "--json").out)["is_order"] is True


def test_what_count_prints_at_a_size_can_be_claimed(lattend):
    ran = lattend("claim", "windowed", "n(w+1)/2", "--at", "n=12", "--assume", "w | 12")
    assert (ran.code, ran.out) == (0, "n(w+1)/2: holds for w >= 1 and w | 12\n")
    ran = lattend("claim", "windowed", "n(w+1)/2", "--at", "n=12")
    assert ran.out.startswith(
        "n(w+1)/2: holds only where w <= 4 or w == 12 or w == 6; at w = 5 it gives 36, "
    )
    assert (
        lattend("claim", "windowed", lattend("count", "windowed", "--at", "n=60").out, "--at", "n=60").code
        == 0
    )


def test_same(lattend):
    ran = lattend("same", "k <= q", "not k > q")
    assert (ran.code, ran.out) == (0, "the same pairs, always\n")
    ran = lattend("same", "strided(3)", "windowed(4)")
    assert (ran.code, ran.out) == (
        1,
        "different: at n = 5 only 'k <= q and q - k <= 3' has the pair (4, 1)\n",
    )
    found = json.loads(lattend("same", "strided(3)", "windowed(4)", "--json").out)
    assert found["same"] is False
    assert found["witness"] == {"at": {"n": 5}, "pair": [4, 1], "attended_by": "k <= q and q - k <= 3"}
    assert json.loads(lattend("same", "causal", "k <= q", "--json").out)["witness"] is None


def test_rules_that_cannot_be_compared(lattend):
    ran = lattend("same", "causal", "axial")
    assert (ran.code, ran.out) == (2, "")
    assert 'lives on a line, "qy == ky or qx == kx" on an image' in ran.err


def test_reach(lattend):
    ran = lattend("reach", "causal")
    assert (ran.code, ran.out) == (0, "q - k is at most: n - 1\nk - q is at most: 0\n")
    found = json.loads(lattend("reach", "strided", "--at", "t=3", "--json").out)
    assert found["at"] == {"t": 3}
    assert found["axes"]["q"]["ahead"] == [{"when": "always", "count": "0"}]
    assert {"when": "n >= 4", "count": "3"} in found["axes"]["q"]["back"]
    assert lattend("reach", "documents([2, 2])").code == 3


def test_reach_of_a_stack_of_layers(lattend):
    ran = lattend("reach", "strided", "--at", "t=4095,n=131072", "--layers", "32")
    assert ran.out.splitlines() == [
        "sees: k <= q and q - k <= 131040",
        "q - k is at most: 131040",
        "k - q is at most: 0",
        "keys a query sees:",
        "  q + 1   when q <= 131040",
        "  131041  when q >= 131041",
        "after 33 layers every position sees all before it",
    ]
    found = json.loads(lattend("reach", "windowed", "--at", "w=4,n=9", "--layers", "2", "--json").out)
    assert (found["layers"], found["field"]) == (2, "k <= q and q // 4 == k // 4")
    assert found["until"] == {"layers": 1, "sees": "not all", "apart": {"q": 0, "k": 4}}


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("0", "layers is a number from 1 to"),
        ("-2", "layers is a number from 1 to"),
        ("x", "--layers is a whole number, got x"),
        ("9" * 40, "layers is a number from 1 to"),
    ],
)
def test_layers_are_a_number_from_one_on(lattend, layers, message):
    ran = lattend("reach", "strided", "--layers", layers)
    assert ran.code == 2
    assert message in ran.err


def test_check(lattend):
    ran = lattend("check", "strided")  # 13*13 cases, and 13 times 0 + 1 + 4 + ... + 144 pairs
    assert ran == (0, "count, rows and columns agree in 169 cases, 8,450 pairs: n, t up to 12\n", "")
    found = json.loads(lattend("check", "strided(2)", "--upto", "3", "--json").out)
    assert found == {
        "rule": "k <= q and q - k <= t with t = 2",
        "agrees": True,
        "cases": 4,
        "pairs": 14,
        "upto": {"n": 3},
        "complete": True,
        "mismatch": None,
    }


def test_check_finds_a_wrong_formula(lattend, monkeypatch):
    def wrong(_: object, *rest: Any) -> Any:
        return closed_count(rule("k <= q and q - k <= 1"), *rest)

    monkeypatch.setattr(checking, "closed_count", wrong)
    ran = lattend("check", "causal")  # the third row is the first where t = 1 is too short: 2 keys, not 3
    assert ran.code == 1
    assert ran.out == "at n = 3 the closed form gives 5, enumeration 6\n"
    found = json.loads(lattend("check", "causal", "--json").out)
    assert found["mismatch"] == {"at": {"n": 3}, "closed": 5, "enumerated": 6}


def test_check_without_closed_form(lattend):
    assert lattend("check", "documents([3, 5])").code == 3
    assert lattend("check", "k*k <= q").code == 3
    assert lattend("check", "causal", "--upto", "-1").code == 2


@pytest.mark.parametrize("rules", [("causal", "strided(3)"), ("strided(5)", "windowed(4)"), ("full", "full")])
def test_same_counts_what_both_rules_have(lattend, rules):
    ran = lattend("same", *rules, "--at", "n=13", "--count")
    a, b = (lt.rule(rule).mask(n=13) for rule in rules)
    counts = [(a & b).sum(), (a & ~b).sum(), (b & ~a).sum()]
    said = [f"{name}: {count}" for name, count in zip(PARTS, counts, strict=True)]
    assert ran.code == (0 if (a == b).all() else 1)
    assert ran.out.splitlines()[1:] == said
    data = json.loads(lattend("same", *rules, "--at", "n=13", "--count", "--json").out)
    assert [*data["counts"].values()] == counts


def test_same_counts_in_formulas(lattend, monkeypatch):
    ran = lattend("same", "causal", "strided(3)", "--count")
    assert (ran.code, ran.err) == (1, "")
    assert "only the first:\n  (n - 3)(n - 4)/2  when n >= 5\n" in ran.out
    assert ran.out.endswith("only the second: 0\n")
    data = json.loads(lattend("same", "causal", "strided(3)", "--count", "--json").out)
    assert data["counts"]["only the first"][0] == {"when": "n >= 5", "count": "(n - 3)(n - 4)/2"}
    assert "counts" not in json.loads(lattend("same", "causal", "strided(3)", "--json").out)
    monkeypatch.setenv("COLUMNS", "40")
    narrow = lattend("same", "strided", "windowed", "--at", "t=3,w=4", "--count").out.splitlines()[1:]
    assert max(map(len, narrow)) <= 40


def first_layers(rule: str, **numbers: int) -> list[list[int]]:
    """The least power of the mask, its own position added, in which each pair stands; by products."""
    one = lt.rule(rule).mask(**numbers) | np.eye(numbers["n"], dtype=bool)
    seen, found = np.eye(numbers["n"], dtype=bool), np.where(np.eye(numbers["n"], dtype=bool), 0, -1)
    for layer in range(1, numbers["n"] + 1):
        further = (seen.astype(int) @ one) > 0
        found[further & ~seen] = layer
        seen = further
    return found.tolist()


def test_the_map_of_first_layers(lattend, monkeypatch):
    arguments = ("reach", "strided", "--at", "n=7,t=2", "--map")
    data = json.loads(lattend(*arguments, "--json").out)
    assert data["first_layers"] == first_layers("strided", n=7, t=2)
    assert (data["rows"], data["columns"], data["pixel"]) == ([*range(7)], [*range(7)], None)
    lines = lattend(*arguments).out.splitlines()
    assert lines[1] == "  0 1 2 3 4 5 6"
    assert lines[-1] == "6 3 3 2 2 1 1 0"
    assert lines[2] == "0 0 · · · · · ·"
    monkeypatch.setenv("COLUMNS", "20")
    narrow = lattend("reach", "strided", "--at", "n=12,t=2", "--map").out.splitlines()
    assert max(map(len, narrow)) <= 20
    assert narrow[-1] == "11  3  2  2  1  1  0"


def test_the_map_of_a_pixel(lattend):
    ran = lattend("reach", "neighbourhood(1)", "--at", "rows=3,cols=4", "--map", "--pixel", "0,1")
    said = "the layer that first connects pixel (0, 1) to each other pixel\n"
    assert ran == (0, said + "  0 1 2 3\n0 1 0 1 2\n1 1 1 1 2\n2 2 2 2 2\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("strided", "--map"),
            "--map has a number for each pair, so every letter needs one: give --at n=…,t=…",
        ),
        (("causal", "--at", "n=4", "--map", "--layers", "2"), "--map is of as many layers as it takes"),
        (("causal", "--at", "n=4", "--map", "--pixel", "1,2"), "--pixel is for rules of images"),
        (("causal", "--pixel", "1,2"), "--pixel belongs to --map"),
        (
            ("neighbourhood(1)", "--at", "rows=3,cols=4", "--map", "--pixel", "0,4"),
            "qx = 4 lies outside 0 … 3",
        ),
    ],
)
def test_wrong_maps(lattend, arguments, message):
    ran = lattend("reach", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")
