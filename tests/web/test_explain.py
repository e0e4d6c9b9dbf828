"""The plan on the page is the library's."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import lattend as lt
from lattend.web.worker import reply


def ask(panel: str, **question: Any) -> tuple[int, Any]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("rule", "at"),
    [("strided", {"n": 4096, "t": 255}), ("neighbourhood(2)", {"rows": 32, "cols": 32}), ("full", {"n": 64})],
)
def test_the_plan_is_the_librarys(rule: str, at: dict[str, Any], device: Any) -> None:
    status, found = ask("explain", rule=rule, numbers=at, device=device, dtype="bfloat16")
    exact = lt.explain(rule, device=device, dtype="bfloat16", **at)
    assert status == 200
    assert [one["pairs"] for one in found["amounts"]] == [
        f"{pairs:,}" for pairs in (exact.needed, exact.executed, exact.dense)
    ]
    assert {one["name"]: one["reason"] or None for one in found["kernels"]} == exact.kernels
    assert [one["name"] for one in found["kernels"] if one["chosen"]] == [exact.kernel]
    assert next(fact["words"] for fact in found["facts"] if fact["name"] == "time") == exact.time_text


def test_letters_without_a_number_are_examples_and_are_named() -> None:
    _, found = ask("explain", rule="strided", numbers={"n": 100, "x": 3})
    assert found["at"] == {"n": 100, "t": 3}
    assert found["examples"] == ["t"]
    _, found = ask("explain", rule="strided", numbers={"t": 7})
    assert (found["at"]["n"], found["examples"]) == (4096, ["n"])
    _, found = ask("explain", rule="strided(7)", numbers={"n": 100})
    assert found["examples"] == []


def test_a_rule_that_speaks_of_heads_is_planned_with_its_own_number() -> None:
    rule = "k <= q and q - k <= 8 * head"
    for given, heads in (({}, 8), ({"heads": 4}, 4)):
        _, found = ask("explain", rule=rule, numbers={"n": 256, **given})
        assert found["at"] == {"n": 256, "heads": heads}
        assert found["amounts"][0]["pairs"] == f"{lt.explain(rule, n=256, heads=heads).needed:,}"
        scope: dict[str, Any] = {}
        exec(found["copies"]["python"].replace("print(", "made = ("), scope)
        assert scope["made"].shapes[0][1] == heads


def test_the_lines_to_copy_say_the_same() -> None:
    _, found = ask("explain", rule="strided", numbers={"n": 1000, "t": 7}, device="cuda", heads=4)
    assert found["copies"]["command"] == "lattend explain strided --at n=1000,t=7 --heads 4 --device cuda"
    assert "lt.explain('strided', n=1000, t=7, device='cuda', heads=4)" in found["copies"]["python"]


def test_the_map_is_the_librarys_at_any_zoom() -> None:
    question = {"rule": "strided", "numbers": {"n": 100_000, "t": 300}, "device": "cuda"}
    exact = lt.explain("strided", n=100_000, t=300, device="cuda")
    for view in ([], [5000, 5100, 4900, 5050]):
        status, found = ask("tile_map", **question, tiles_view=view)
        made = exact.tile_map(*([(5000, 5100), (4900, 5050)] if view else []))
        assert status == 200
        assert found["executed"] == made.executed.tolist()
        assert made.needed is not None
        assert found["needed"] == made.needed.tolist()


@pytest.mark.parametrize(
    "question",
    [
        {"rule": "k <= q orr", "numbers": {}},
        {"rule": "causal", "numbers": {"n": "1" + "0" * 30}},
        {"rule": "causal", "numbers": {"n": -1}},
        {"rule": "causal", "heads": 8, "kv_heads": 3},
        {"rule": "(" * 10_000},
        {"rule": "neighbourhood(1)", "numbers": {"rows": 8, "cols": 8}, "tiles_view": [0, 1, 2]},
        {"rule": "causal", "numbers": {"n": 8}, "tiles_view": [7, 3, 0, 8]},
    ],
)
def test_what_cannot_be_planned_is_answered_with_a_message(question: dict[str, Any]) -> None:
    status, problem = ask("tile_map", **question)
    assert status == 422
    assert problem["kind"] in ("input", "no answer")
    assert problem["message"]


@pytest.mark.parametrize("panel", ["explain", "tile_map"])
@pytest.mark.parametrize("rule", ["doc[q] == doc[k]", "documents"])
def test_an_array_that_is_missing_is_asked_for(panel: str, rule: str) -> None:
    status, problem = ask(panel, rule=rule)
    assert (status, problem) == ask("read", rule=rule)
    assert "write it before the rule, as in doc = [0, 0, 1]" in problem["message"]


def test_time_is_predicted_on_as_many_threads_as_a_program_of_its_own_has() -> None:
    """A worker has one; another would print what is copied with more."""
    code = """
import json, torch
torch.set_num_threads(3)
import lattend as lt
from lattend.web.library import load_library
from lattend.web.worker import reply
load_library(torch=True)
_, _, body = reply("explain", "", json.dumps({"rule": "strided", "kernel": "cpu"}).encode())
print(torch.get_num_threads())
print(next(fact["words"] for fact in json.loads(body)["facts"] if fact["name"] == "time"))
torch.set_num_threads(3)
print(lt.explain("strided", t=3, kernel="cpu").time_text)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here, page, elsewhere = ran.stdout.splitlines()
    assert (here, page) == ("1", elsewhere)
    assert page.endswith("on 3 threads of an EPYC")


@pytest.mark.parametrize("kernel", ["dense", "reference"])
def test_a_kernel_of_all_pairs_says_which_it_counts(kernel: str) -> None:
    _, found = ask("explain", rule="causal", numbers={"n": 65536}, heads=4, batch=3)
    reason = next(one["reason"] for one in found["kernels"] if one["name"] == kernel)
    assert reason.endswith(f"batch × heads × queries × keys is {3 * 4 * 65536**2:,}")
