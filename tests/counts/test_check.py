"""Checking: what is looked at, how far, and that a wrong formula is found where it is wrong first."""

from __future__ import annotations

from typing import Any

import pytest

from lattend.budget import Budget
from lattend.counts import check as checking
from lattend.counts.check import check
from lattend.counts.counting import closed_count
from lattend.errors import DomainError, NoClosedForm, TooLarge
from lattend.rules.reader import rule


@pytest.mark.parametrize(
    ("text", "upto", "cases", "pairs"),
    [
        ("k <= q", 3, 4, 0 + 1 + 4 + 9),
        ("q - k <= t", 2, 3 * 3, 3 * (0 + 1 + 4)),  # n = 0, 1, 2 and t = 0, 1, 2
        ("strided", 2, 3 * 3, 3 * (0 + 1 + 4)),  # t >= 0
        ("windowed", 2, 3 * 2, 2 * (0 + 1 + 4)),  # w >= 1
        ("sparse_fixed", 2, 3 * (2 + 3), 5 * (0 + 1 + 4)),  # l = 1: c = 0, 1; l = 2: c = 0, 1, 2
        ("k <= q and k < m", 2, 9, (1 + 2) * (1 + 2)),
        ("axial", 2, 9, (1 + 4) * (1 + 4)),
        ("k <= q + head", 2, 9, (0 + 1 + 2) * (0 + 1 + 4)),
        ("strided(1)", 2, 3, 0 + 1 + 4),
    ],
)
def test_every_small_case_is_looked_at(text: str, upto: int, cases: int, pairs: int) -> None:
    found = check(rule(text), upto)
    assert found
    assert found.complete
    assert (found.cases, found.pairs) == (cases, pairs)


def test_all_numbers_given_leave_one_case() -> None:
    found = check(rule("strided(2)").at(n=5))
    assert (found.cases, found.pairs, found.upto) == (1, 25, {})
    assert str(found) == "count, rows and columns agree in 1 case, 25 pairs"


def test_bounds_are_kept_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MAX_PAIRS", 1000)
    found = check(rule("q - k <= t"), 12)  # 25 values of t: 25*(1 + 4 + 9 + 16) = 750, and n = 5 adds 625
    assert found.upto == {"n": 4, "t": 12}
    assert not found.complete
    assert str(found).endswith("n up to 4; t up to 12")
    monkeypatch.setattr(checking, "MOST_COMBINATIONS", 30)
    assert check(rule("a <= q - k and q - k <= b"), 12).upto == {"n": 4, "a": 2, "b": 2}


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = check(rule("band"), 4)
    monkeypatch.setattr(checking, "CHUNK", 7)
    assert check(rule("band"), 4) == whole


def test_progress_ends_at_the_total() -> None:
    told: list[tuple[int, int]] = []
    check(rule("strided"), 3, lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize(
    ("wrong_for", "at"),
    [
        ((), {"n": 3}),
        (("q",), {"n": 3, "q": 2}),
        (("k",), {"n": 3, "k": 0}),
    ],
)
def test_the_first_mismatch_is_found(
    monkeypatch: pytest.MonkeyPatch, wrong_for: tuple[str, ...], at: dict[str, int]
) -> None:
    def mixed(asked: Any, fixed: tuple[str, ...], budget: Budget) -> Any:
        return closed_count(rule("k <= q and q - k <= 1") if fixed == wrong_for else asked, fixed, budget)

    monkeypatch.setattr(checking, "closed_count", mixed)
    found = check(rule("k <= q"))
    assert not found
    assert found.mismatch is not None
    assert found.mismatch.at == at
    assert found.mismatch.enumerated - found.mismatch.closed == 1
    assert str(found) == f"at {', '.join(f'{name} = {value}' for name, value in at.items())} " + (
        f"the closed form gives {found.mismatch.closed}, enumeration {found.mismatch.enumerated}"
    )


def test_what_cannot_be_checked_says_so() -> None:
    with pytest.raises(NoClosedForm, match="looks up data"):
        check(rule("documents([2, 3])"))
    with pytest.raises(DomainError, match="at least 0, got -1"):
        check(rule("k <= q"), -1)


def test_numbers_of_any_size() -> None:
    assert check(rule("strided").at(t=10**26), upto=5)
    with pytest.raises(TooLarge, match="checking looks at every pair, here 400,000,000 of them"):
        check(rule("k <= q").at(n=20_000))
    with pytest.raises(TooLarge, match="the limit is 268,435,456"):
        check(rule("strided").at(n=10**26))
