"""What attention under a rule costs: the library's numbers and formulas."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

import lattend as lt
from lattend.machines import compared_machines
from lattend.web.worker import reply


def ask(**question: Any) -> tuple[int, Any]:
    status, _, body = reply("rule_cost", "", json.dumps(question).encode())
    return status, json.loads(body)


@pytest.mark.parametrize(
    ("rule", "at"),
    [("strided", {"n": 512, "t": 31}), ("neighbourhood(1)", {"rows": 16, "cols": 8}), ("full", {"n": 64})],
)
def test_the_cost_is_the_librarys(rule: str, at: dict[str, Any]) -> None:
    status, found = ask(rule=rule, numbers=at, heads=4, head_dim=16)
    exact = lt.cost.attention(rule, projections=None, heads=4, D_hid=16, **at)
    rows = {one["name"]: one for one in found["quantities"]}
    work = rows["multiply-adds"]
    assert status == 200
    assert [work["needed"], work["executed"], work["dense"]] == [f"{one:,}" for one in exact.multiply_adds]
    assert work["formula"]["text"] == str(lt.cost.attention(rule, projections=None).multiply_adds.needed)
    kept = rows.get("keys and values of all positions, numbers", {"needed": "0"})
    assert kept["needed"] == f"{exact.cache:,}"
    assert found["time"] == str(exact.time())


def test_a_time_at_measured_speeds_says_so() -> None:
    """The page Price has an H200 of the data sheet too, which is faster."""
    time = ask(rule="causal", numbers={"n": 4096})[1]["time"]
    assert [one.name for one in compared_machines() if one.name in time] == ["H200", "H200, measured"]
    assert " on H200, measured, " in time


def test_a_line_of_any_length_is_priced_without_its_tiles() -> None:
    _, found = ask(rule="causal", numbers={"n": "1" + "0" * 30})
    work = found["quantities"][0]
    assert work["needed"].replace(",", "") == str(10**30 * (10**30 + 1) * 8 * 64)
    assert work["executed"] == ""


@pytest.mark.parametrize(("rule", "pairs"), [("k <= q and q - k <= t", 0), ("k <= q and q - k <= t + 5", 50)])
def test_a_parameter_below_zero_is_priced_like_any_other(rule: str, pairs: int) -> None:
    status, found = ask(rule=rule, numbers={"n": 12, "t": -1}, heads=1, head_dim=1)
    assert status == 200
    assert lt.rule(rule).count(n=12, t=-1) == pairs  # t = 4: 1 + 2 + 3 + 4 + 8 * 5
    rows = {one["name"]: one for one in found["quantities"]}
    assert [rows[name]["needed"] for name in ("multiply-adds", "exponentials")] == [
        str(2 * pairs),
        str(pairs),
    ]
    scope: dict[str, Any] = {}
    exec(found["copies"]["python"].replace("print(", "found = (", 1), scope)
    assert scope["found"].multiply_adds.needed == 2 * pairs


def test_tiles_that_hold_more_pairs_than_there_are_say_why() -> None:
    def work(n: int) -> tuple[list[int], str]:
        _, found = ask(rule="causal", numbers={"n": n}, heads=1, head_dim=1)
        row = found["quantities"][0]
        return [int(row[name].replace(",", "")) for name in ("executed", "dense")], found["note"]

    assert work(12)[0] == [2 * 64 * 64, 2 * 12 * 12]
    assert work(12)[1].startswith("Tiles are whole")
    assert work(128) == ([2 * 3 * 64 * 64, 2 * 128 * 128], "")


def test_the_longest_path_says_where_there_is_one() -> None:
    _, found = ask(rule="k <= q and q - k <= t")
    assert [one["name"] for one in found["quantities"]][-1] == "maximum path length, where t >= 1"


def test_where_queries_attend_to_later_keys_no_cache_is_priced() -> None:
    kept = {rule: [one["name"] for one in ask(rule=rule)[1]["quantities"]] for rule in ("causal", "full")}
    assert [any("keys and values" in name for name in names) for names in kept.values()] == [True, False]


def test_heads_that_share_keys_have_a_smaller_cache() -> None:
    sizes = [
        next(
            one
            for one in ask(rule="causal", kv_heads=kv)[1]["quantities"]
            if "keys and values" in one["name"]
        )
        for kv in (0, 2)
    ]
    assert [one["needed"] for one in sizes] == ["4,194,304", "1,048,576"]  # 2 * 4096 * 64 * (8, 2)
    assert "kv" in sizes[1]["formula"]["text"]


def test_the_lines_to_copy_run() -> None:
    _, found = ask(rule="strided", numbers={"n": 100, "t": 7})
    name, *words = shlex.split(found["copies"]["command"])
    assert (name, words[0]) == ("lattend", "cost")
    scope: dict[str, Any] = {}
    exec(found["copies"]["python"].replace("print(", "made = ("), scope)
    assert f"{scope['made'].multiply_adds.needed:,}" == found["quantities"][0]["needed"]


def test_what_has_no_price_is_answered_with_a_message() -> None:
    assert ask(rule="causal", numbers={"n": 0})[0] == 422
    assert ask(rule="causal", heads=8, kv_heads=3)[0] == 422
    assert ask(rule="k <=")[1]["field"] == "rule"
