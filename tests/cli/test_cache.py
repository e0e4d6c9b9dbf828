"""lattend cache: the keys a decoder keeps, against a simulation, and what it says where there is no cache."""

import json

import pytest

import lattend as lt


def most_in_use(rule: str, n: int, **numbers: int) -> int:
    """The greatest number of keys up to a query that it or a later one attends, counted in the mask."""
    mask = lt.rule(rule).mask(n=n, **numbers)
    return max(int(mask[q:, : q + 1].any(axis=0).sum()) for q in range(n // 2))


@pytest.mark.parametrize(
    ("rule", "numbers"), [("strided", {"t": 3}), ("windowed", {"w": 5}), ("sinks", {"s": 2, "t": 4})]
)
def test_the_most_keys_are_those_of_a_simulation(lattend, rule, numbers):
    at = ",".join(f"{name}={value}" for name, value in numbers.items())
    found = json.loads(lattend("cache", rule, "--at", at, "--json").out)
    assert found["cache"] is True
    assert found["most"] == most_in_use(rule, 40, **numbers)
    assert f"at most {found['most']} at once" in " ".join(lattend("cache", rule, "--at", at).out.split())


def test_a_sliding_window_has_a_rolling_buffer(lattend):
    said = "key k is kept until query k + 3, the last that reaches it; at most 4 at once\n"
    assert lattend("cache", "strided", "--at", "t=3") == (0, said, "")
    assert lattend("cache", "strided(3)") == (0, said, "")


def test_a_causal_mask_keeps_every_key(lattend):
    ran = lattend("cache", "causal")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("every key is kept")
    assert json.loads(lattend("cache", "causal", "--json").out)["most"] is None


def test_no_cache_where_a_query_attends_ahead(lattend):
    ran = lattend("cache", "full")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.startswith('no cache: rule "true" has query 0 attend to key 1')
    assert "; k <= q and (…) keeps those pairs only" in " ".join(ran.out.split())
    assert lattend("cache", "k <= q and (true)").code == 0
    data = lattend("cache", "full", "--json")
    assert data.code == 1
    assert json.loads(data.out)["cache"] is False
    image = lattend("cache", "neighbourhood(2)", "--at", "cols=5")
    condition = "(ky < qy or ky == qy and kx <= qx)"
    assert f"; {condition} and (…) keeps" in " ".join(image.out.split())
    assert lattend("cache", f"abs(qx - kx) <= 2 and {condition}", "--at", "cols=5").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("strided",), 'rule "k <= q and q - k <= t" needs a value for t; give --at t=…'),
        (("strided", "--at", "t=3,z=4"), 'rule "k <= q and q - k <= t" has no z; it has n, t'),
        (("strided", "--at", "t=x"), "t must be an integer, got x"),
        ((), "cache needs RULE. RULE is a catalogue name"),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("cache", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")


@pytest.mark.parametrize("rule", ["full", "causal", "sinks(s=4, t=1023)"])
def test_lines_fit_a_narrow_terminal(lattend, monkeypatch, rule):
    monkeypatch.setenv("COLUMNS", "30")
    assert max(map(len, lattend("cache", rule).out.splitlines())) <= 30
