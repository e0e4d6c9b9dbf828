"""The panels about a rule say what the library says, and hostile texts end in a message."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rules import affine

import lattend as lt
from lattend.budget import Budget
from lattend.draw.grid.samples import catalogue
from lattend.plans.retention import retention
from lattend.rules.language import expr
from lattend.web.worker import LATE, reply

RULES = ("read", "count", "keys", "growth", "reach", "cache", "rules", "code")
PAIRS = ("same", "shared")


def ask(panel: str, **question: Any) -> dict[str, Any]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    assert status == 200, body
    return json.loads(body)


def refused(panel: str, **question: Any) -> dict[str, Any]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    assert status == 422, body
    return json.loads(body)


def test_numbers_give_the_count_its_value_and_share() -> None:
    found = ask("count", rule="strided", numbers={"n": 16, "t": 4, "w": 9})
    assert (found["value"], found["dense"], found["share"]) == ("70", "256", "27.3%")
    assert found["formula"]["text"] == str(lt.rule("strided").count())
    assert found["partly"] is None
    assert found["copies"]["command"] == "lattend count strided --at n=16,t=4"


def test_numbers_of_any_size_are_counted_exactly() -> None:
    assert (
        ask("count", rule="causal", numbers={"n": str(10**30)})["value"] == f"{10**30 * (10**30 + 1) // 2:,}"
    )


def test_some_numbers_give_a_formula_in_the_others() -> None:
    found = ask("count", rule="strided", numbers={"n": 16})
    assert found["partly"]["text"] == str(lt.rule("strided").at(n=16).count())
    assert found["value"] == ""


def test_without_a_closed_form_the_value_is_still_exact() -> None:
    found = ask("count", rule="q*k < 40", numbers={"n": 30})
    assert found["formula"] is None
    assert found["no_formula"]
    assert found["value"] == str(int(lt.rule("q*k < 40").mask(n=30).sum()))
    at_once = ask("count", rule="q*k < 40")
    assert at_once["examples"] == {"n": 12}
    assert at_once["value"] == str(int(lt.rule("q*k < 40").mask(n=12).sum()))


def test_a_rule_without_formulas_says_so_in_one_way_and_without_python() -> None:
    for text in ("k*k <= q", "documents([5, 3, 4])"):
        for panel in ("keys", "growth", "reach"):
            problem = refused(panel, rule=text)
            assert problem["kind"] == "no formula"
            assert "(method=" not in problem["message"]
    assert refused("keys", rule="k*k <= q")["message"].startswith("k * k is not affine in k")
    assert "k <= q and (…)" in ask("cache", rule="k*k <= q")["no_cache"]
    assert (
        "ky == qy and kx <= qx) and (…)"
        in ask("cache", rule="neighbourhood(1)", numbers={"cols": 4})["no_cache"]
    )
    assert ask("count", rule="k*k <= q")["no_formula"].endswith(", or give every letter a number.")
    found = refused("keys", rule="documents([5, 3, 4])")["message"]
    assert found.startswith("it looks up data (doc[...]), so it has no closed form; at given numbers")
    found = refused("same", rule="documents([5, 3, 4])", other="causal")["message"]
    assert found.endswith("at given numbers only: the grid shows where they differ")
    assert refused("keys", rule="q % a == q % b")["message"].endswith("Give one of them a number, as in b=4")


@pytest.mark.parametrize("text", ["causal", "strided", "windowed", "neighbourhood", "k <= q or k < p"])
def test_keys_and_spans_are_the_librarys(text: str) -> None:
    rule = lt.rule(text)
    keys, reach = ask("keys", rule=text), ask("reach", rule=text)
    assert keys["per_query"]["text"] == str(rule.count(per="query"))
    assert keys["per_key"]["text"] == str(rule.count(per="key"))
    expected = [str(count) for axis in rule.reach().axes.values() for count in (axis.back, axis.ahead)]
    assert [span["most"]["text"] for span in reach["spans"]] == expected


def test_an_image_is_written_as_a_product_of_one_axis() -> None:
    found = ask("count", rule="neighbourhood")["formula"]
    assert found["head"] == r"F(\mathrm{rows}) F(\mathrm{cols}),\quad F(n) ="
    assert found["text"] == str(lt.rule("neighbourhood").count())


def test_growth_is_the_librarys() -> None:
    found = ask("growth", rule="strided")["order"]
    assert found["text"] == str(lt.rule("strided").count().order())
    assert [piece["latex"] for piece in found["pieces"]] == [r"O\left(n t\right)", r"O\left(n^{2}\right)"]


def test_the_cache_is_that_of_the_rolling_buffer() -> None:
    found = ask("cache", rule="sinks", numbers={"s": 4, "t": 8})
    assert found["most"] == str(retention(lt.rules.sinks(s=4, t=8)).most)
    drawn = ask("cache", rule="sinks", numbers={"s": 4})
    taken = drawn["examples"]
    assert [*taken] == ["t"]
    assert drawn["most"] == ask("cache", rule="sinks", numbers={"s": 4, **taken})["most"] != ""
    assert ask("cache", rule="causal")["most"] == ""
    assert "attend" in ask("cache", rule="full")["no_cache"]


def test_a_condition_is_told_its_name() -> None:
    found = ask("rules", rule="not k > q and q - k < 256")
    assert (found["name"], found["call"]) == ("strided", "strided(t=255)")
    assert found["canonical"] == "k <= q and q - k <= 255"
    assert "FlashAttention: window_size = (t, 0)" in found["elsewhere"]
    named = ask("rules", rule="strided")
    assert (named["name"], named["examples"]) == ("strided", {"t": 3})
    assert named["canonical"] == "k <= q and q - k <= 3"
    assert ask("rules", rule="q + k < n")["name"] == ""


@pytest.mark.parametrize("text", ["ids[q] == ids[k]", "documents", "lambda q, k: ids[q] == ids[k]"])
def test_an_array_that_is_not_given_is_one_click_away(text: str) -> None:
    problem = refused("read", rule=text)
    assert "write it before the rule" in problem["message"]
    assert "data=" not in problem["message"]
    (fix,) = problem["fixes"]
    assert ask("count", rule=fix["text"])["value"] == str(5 * 5 + 3 * 3 + 4 * 4)


def test_two_rules_are_the_same_or_differ_first_somewhere() -> None:
    same = ask("same", rule="k <= q", other="not k > q")
    assert (same["same"], same["first"]) == (True, None)
    found = ask("same", rule="strided", other="windowed", numbers={"t": 3, "w": 4, "n": 64})
    witness = lt.rule("strided(3)").difference(lt.rule("windowed(4)"))
    assert witness is not None
    assert found["first"] == {"numbers": {"n": 5}, "pair": {"q": 4, "k": 1}, "rule": "rule"}
    assert (witness.values, witness.pair) == ({"n": 5}, (4, 1))
    assert found["here"] == {"numbers": {"n": 64}, "pair": {"q": 4, "k": 1}, "rule": "rule"}
    parts = ask("shared", rule="strided", other="windowed", numbers={"t": 3, "w": 4, "n": 64})["parts"]
    a, b = (lt.rule(text).mask(n=64) for text in ("strided(3)", "windowed(4)"))
    assert [part["value"] for part in parts] == [str(int(m.sum())) for m in (a & b, a & ~b, b & ~a)]
    assert "different axes" in refused("same", rule="causal", other="raster")["message"]
    assert refused("same", rule="causal", other="casual")["fixes"][0]["text"] == "causal"


def test_two_rules_differ_first_at_the_numbers_of_the_grid() -> None:
    window = "k <= q and q - k <= t"
    found = ask("same", rule=window, other="k <= q and q - k <= 5")
    assert found["first"]["numbers"] == {"n": 2, "t": 0}
    only_b = lt.rule("k <= q and 3 < q - k <= 5").mask(n=12)
    q, k = (int(place) for place in np.argwhere(only_b)[0])
    assert (found["drawn"], found["here"]["pair"]) == ({"n": 12, "t": 3}, {"q": q, "k": k})
    assert found["here"]["rule"] == "other"
    alike = ask("same", rule=window, other="k <= q and q - k <= 5", numbers={"n": 4})
    assert (alike["same"], alike["here"], alike["drawn"]["n"]) == (False, None, 4)


@pytest.mark.parametrize("name", [name for name in catalogue() if name != "documents"])
def test_code_runs_as_it_stands(name: str) -> None:
    torch = pytest.importorskip("torch")
    rule = catalogue()[name]
    snippets = {one["title"]: one["code"] for one in ask("code", rule=name)["snippets"]}
    ours: dict[str, Any] = {}
    made: dict[str, Any] = {}
    torch.manual_seed(0)
    exec(snippets["Lattend"], ours)
    torch.manual_seed(0)
    exec(snippets["PyTorch SDPA"], made)
    flat = ours["out"].flatten(2, -2)
    assert torch.allclose(flat, made["out"], atol=1e-5), expr.text(rule.condition)


def test_a_rule_with_data_has_code_for_lattend_alone() -> None:
    (only,) = ask("code", rule="documents([3, 5])")["snippets"]
    made: dict[str, Any] = {}
    exec(only["code"], made)
    assert made["out"].shape[2] == 8


HOSTILE = [
    *(
        "",
        " ",
        "(" * 10_000,
        "not " * 5000,
        "k" * 100_000,
        "k <= q\x00",
        "𝑘 ≤ 𝑞",
        "'; drop table",
        "\\",
        "{}",
    ),
    *("q" * 64, "k <= " + "9" * 18, "q // 0 == k", "q % w % w % w == k", "doc[q] == doc[k]", "strided(-1)"),
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12].encode("unicode_escape").decode())
def test_hostile_texts_end_in_a_message(text: str) -> None:
    for panel in (*RULES, *PAIRS):
        given = {"rule": text, "other": text} if panel in PAIRS else {"rule": text}
        status, _, body = reply(panel, "", json.dumps(given).encode())
        assert status in (200, LATE, 422, 504)
        assert json.loads(body).get("kind") != "mistake", body


@given(affine(), st.dictionaries(st.sampled_from("ntwxq"), st.integers(-2, 40), max_size=3))
@settings(max_examples=8)
def test_no_rule_and_no_numbers_are_a_mistake_of_ours(text: str, numbers: dict[str, int]) -> None:
    for panel in ("count", "keys", "reach", "cache", "rules", "code"):
        status, _, body = reply(panel, "", json.dumps({"rule": text, "numbers": numbers}).encode())
        assert status in (200, LATE, 422, 504)
        assert json.loads(body).get("kind") != "mistake", body


def test_an_answer_that_came_too_late_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = replace(lt.rule("q - 7*k <= t"), budget=Budget(0))
    monkeypatch.setattr("lattend.web.panels.count.read", lambda _: at_once)
    status, _, body = reply("count", "", b'{"rule": "q - 7*k <= t"}')
    assert status == 504  # which the server does not keep
    assert json.loads(body)["kind"] == "no answer"


@pytest.mark.parametrize("name", ["strided", "windowed", "sinks", "dilated", "neighbourhood"])
def test_numbers_beyond_64_bits_are_numbers(name: str) -> None:
    rule = lt.rule(name)
    huge = {letter: str(10**30) for letter in rule.free}
    for panel in ("count", "keys", "reach", "cache", "rules", "code"):
        status, _, body = reply(panel, "", json.dumps({"rule": name, "numbers": huge}).encode())
        assert status in (200, LATE, 422, 504)
        assert json.loads(body).get("kind") != "mistake", body
    every = 10 ** (60 * len(rule.axes))
    assert (ask("count", rule=name, numbers=huge)["dense"]) == f"{every:,}"


def test_formulas_are_in_letters_and_with_the_numbers_put_in() -> None:
    found = ask("keys", rule="windowed", numbers={"n": 64, "w": 16})
    assert found["per_query"]["text"]
    assert ask("count", rule="windowed", numbers={"n": 64})["formula"]["text"] == str(
        lt.rule("windowed").count()
    )
    assert ask("count", rule="windowed", numbers={"w": 16})["formula"]["text"]
    chunked = ask("count", rule="chunked", numbers={"n": 64, "w": 4})
    assert chunked["formula"]["text"] == str(lt.rule("chunked").count())
    assert chunked["partly"][
        "text"
    ].splitlines() == [  # 16 blocks of 4: 16 (t + 1) - t(t + 1)/2 pairs of blocks
        "8(32 - t)(t + 1)  when t <= 16",
        "2176              when t >= 17",
    ]


def test_what_is_open_takes_a_length_that_shows_the_rules_numbers() -> None:
    def example(rule: str) -> int:
        return next(one["example"] for one in ask("read", rule=rule)["letters"] if one["name"] == "n")

    rules = ("causal", "dilated", "q // 64 == k // 64", "strided(t=255)")
    assert [example(rule) for rule in rules] == [12, 16, 192, 768]
    far = "k <= q and q - k <= 4095"
    assert [ask(panel, rule=far)["at"]["n"] for panel in ("explain", "rule_cost")] == [8192, 8192]
    assert [ask(panel, rule="causal")["at"]["n"] for panel in ("explain", "rule_cost")] == [4096, 4096]
