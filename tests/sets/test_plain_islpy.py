"""Without Barvinok (plain islpy, MIT) everything but closed forms works."""

from __future__ import annotations

import islpy
import pytest

import lattend as lt
from lattend.counts import forget


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """isl as plain islpy has it: no Set.card."""
    monkeypatch.delattr(islpy.Set, "card")
    forget()


@pytest.mark.usefixtures("plain")
def test_counts_at_numbers_are_exact_and_formulas_say_what_to_install() -> None:
    assert lt.rules.strided().count(n=1000, t=10) == (2000 - 10) * 11 // 2
    with pytest.raises(lt.errors.EngineMissing, match="pip install islpy-barvinok") as caught:
        lt.rules.strided().count()
    assert "Counting at given numbers works without it" in str(caught.value)


@pytest.mark.usefixtures("plain")
def test_beyond_the_stated_size_it_says_so() -> None:
    with pytest.raises(lt.errors.TooLarge, match="the limit is 268,435,456") as caught:
        lt.rules.neighbourhood().count(rows=1000, cols=1000, r=2)
    assert "islpy-barvinok" in str(caught.value)


@pytest.mark.usefixtures("plain")
def test_sets_pictures_and_reach_work() -> None:
    assert lt.rules.causal().same_as(lt.rule("not k > q"))
    assert lt.rules.strided().reach().back.at(n=12, t=3) == 3
    assert "26 of 64" in lt.rules.strided(3).draw(n=8).svg()
