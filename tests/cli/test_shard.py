"""lattend shard: a rule over many devices, as text, as JSON and as pictures."""

import json

import pytest

import lattend as lt

LLAMA = ("--heads", "32", "--kv-heads", "8", "--head-dim", "128")


def test_text_is_the_plans(lattend):
    ran = lattend("shard", "strided", "--at", "n=1048576,t=4095", "--ranks", "8", *LLAMA)
    assert (ran.code, ran.err) == (0, "")
    found = lt.parallel.plan("strided", n=2**20, t=4095, ranks=8, heads=32, kv_heads=8, head_dim=128)
    assert ran.out == f"{found.text(80)}\n"
    assert "Forward a rank gets at most 16,773,120 bytes (16 MiB); Ulysses 2.2 GiB" in ran.out


@pytest.mark.parametrize("columns", ["24", "40", "60"])
def test_a_narrow_terminal(lattend, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    ran = lattend("shard", "strided", "--at", "n=64,t=5", "--ranks", "3")
    assert ran.code == 0
    longest = max(ran.out.splitlines(), key=len)
    assert len(longest) <= int(columns), longest


def test_json(lattend):
    ran = lattend("shard", "strided(5)", "--n", "64", "--ranks", "4", "--json")
    found = json.loads(ran.out)
    assert found["cuts"][0] == {
        "cut": "contiguous", "pairs": [81, 96, 96, 96], "keys": [0, 5, 5, 5], "balance": 96 * 4 / 369,
    }  # fmt: skip
    assert found["edges"] == [{"from": r - 1, "to": r, "keys": 5} for r in (1, 2, 3)]
    assert found["chosen"]["bytes_forward"] == 5 * found["bytes_per_key"] == 5 * 2 * 64 * 2
    assert found["file"] is None


def test_many_ranks_are_summed_up(lattend):
    ran = lattend("shard", "strided", "--at", "n=1000000000,t=4095", "--ranks", "1024", *LLAMA)
    assert ran.code == 0
    assert "of 1,024 the first, a middle, the last and the fullest" in " ".join(ran.out.split())
    assert len(ran.out.splitlines()) < 80


def test_pictures(lattend, tmp_path):
    shards, chart = tmp_path / "shards.svg", tmp_path / "chart.png"
    ran = lattend("shard", "strided(5)", "--n", "64", "--ranks", "8", "--out", str(shards))
    assert (ran.code, ran.out) == (0, f"{shards}: strided on 8 ranks\n")
    assert "keys come from another rank" in shards.read_text()
    ran = lattend("shard", "causal", "--n", "64", "--ranks", "8", "--strategies", "-o", str(chart))
    assert (ran.code, ran.out) == (0, f"{chart}: Strategies of causal on 8 ranks\n")
    assert chart.read_bytes().startswith(b"\x89PNG")


def test_blocks_of_an_image(lattend):
    ran = lattend("shard", "neighbourhood(6)", "--at", "rows=64,cols=64", "--ranks", "8", "--cut", "4x2")
    assert ran.code == 0
    assert "4 × 2 blocks" in ran.out and "rows 0 … 15, columns 0 … 31" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("strided", "--n", "64"), "needs a value for t: give --at t=…"),
        (("causal", "--n", "64", "--at", "n=3"), "n is given by --n and by --at; give it once"),
        (("causal", "--n", "64", "--ranks", "0"), "ranks = 0 is not one of 1 … 65,536"),
        (("causal", "--n", "64", "--cut", "4xb"), "--cut is a name, or how many ranks along each axis"),
        (("causal", "--n", "64", "--cut", "round"), "cut is one of contiguous, zigzag, balanced"),
        (("causal", "--n", "64", "--strategies"), "--strategies belongs to --out; give both"),
        (("causal", "--n", "64", "--cluster", "nodes=8"), 'a cluster has no "nodes"'),
        (("causal", "--n", "9", "--heads", "3", "--kv-heads", "2"), "3 is no multiple of kv_heads = 2"),
        (("causal", "--n", "64", "--dtype", "int4"), "dtype is one of bfloat16"),
    ],
)  # fmt: skip
def test_wrong_input(lattend, arguments, message):
    ran = lattend("shard", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
