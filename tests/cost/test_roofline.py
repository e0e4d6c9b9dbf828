"""Floors of time: arithmetic against memory, machines by name, and this CPU measured once."""

from __future__ import annotations

import json

import pytest

import lattend as lt
from lattend import machines
from lattend.cost.roofline import compulsory, time_of
from lattend.errors import DomainError, NamingError
from lattend.machines import Machine, machine

TOY = Machine("toy", rate=1e9, bandwidth=1e6, width=4)


def test_a_product_of_matrices():
    result = time_of(lt.cost.linear(n=8192, d_in=8192, d_out=8192, bias=False), "H200 measured")
    assert result.operations == 2 * 8192**3
    assert result.bytes == 2 * 3 * 8192**2  # two read, one written, 2 bytes each
    assert result.seconds == result.arithmetic == pytest.approx(2 * 8192**3 / 798e12)
    assert result.memory == pytest.approx(6 * 8192**2 / 4.3e12)
    assert result.binds == "arithmetic"
    assert str(result).startswith("1.38 ms on H200, measured, bound by arithmetic: 1,099,511,627,776")


def test_memory_binds_what_does_little():
    result = time_of(lt.cost.norm(n=8192, d=2048), "h200")
    assert result.binds == "memory"
    assert result.bytes == 2 * (2 * 8192 * 2048 + 2 * 2048)


def test_the_rule_counts():
    shape = {"n": 4096, "heads": 8, "D_hid": 64, "projections": None}
    causal, full = (time_of(lt.cost.attention(rule, **shape), "H200") for rule in ("causal", "full"))
    assert full.operations / causal.operations == pytest.approx(2, rel=1e-3)
    assert full.bytes == causal.bytes == 2 * 4 * 4096 * 8 * 64  # q, k, v and the result
    dense = time_of(lt.cost.attention("causal", **shape).dense, "H200")
    assert dense.operations == full.operations


def test_layers_one_after_another_each_have_their_floor():
    wide, thin = lt.cost.linear(n=512, d_in=512, d_out=512, bias=False), lt.cost.norm(n=512, d=512)
    both = time_of(wide * 3 + thin, TOY)
    assert both.seconds == pytest.approx(3 * time_of(wide, TOY).seconds + time_of(thin, TOY).seconds)
    assert both.operations == 3 * time_of(wide, TOY).operations + time_of(thin, TOY).operations


def test_compulsory_numbers():
    (layer,) = (layer for _, layer in lt.cost.linear(n=2, d_in=3, d_out=5).parts)
    assert compulsory(layer).count() == 2 * 3 + 3 * 5 + 5 + 2 * 5
    assert compulsory(layer, backward=True).count() == 2 * (2 * 3 + 3 * 5 + 5) + 2 * 5
    (table,) = (layer for _, layer in lt.cost.embedding(n=2, vocabulary=50_000, d=3).parts)
    assert compulsory(table).count() == 2 * 2 * 3  # rows looked up and handed on, not the table read through


def test_numbers_may_be_given_later_and_wider():
    cost = lt.cost.linear(d_in=64, d_out=64, bias=False)
    assert time_of(cost.at(n=64), TOY).bytes == 4 * 3 * 64**2
    assert time_of(cost.at(n=64), TOY, width=8).bytes == 8 * 3 * 64**2
    assert time_of(cost.at(n=64).backward, TOY).operations == 2 * time_of(cost.at(n=64), TOY).operations


def test_wrong_input():
    with pytest.raises(NamingError, match="linear needs a number for every size: give n=…"):
        time_of(lt.cost.linear(d_in=4, d_out=4), "H200")
    with pytest.raises(
        NamingError,
        match='no machine is named "A1000"; there are H200, H100, A100, L40S, MI300X, laptop',
    ):
        machine("A1000")
    with pytest.raises(DomainError, match="at least 1, got 0"):
        time_of(lt.cost.linear(n=1, d_in=4, d_out=4), "H200", width=0)


@pytest.fixture
def quick(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machines, "SIDE", 64)
    monkeypatch.setattr(machines, "COPIED", 4096)
    return tmp_path / "lattend" / "machine.json"


def test_this_cpu_is_measured_once(quick):
    first = machine("cpu")
    assert first.rate > 0
    assert first.bandwidth > 0
    assert quick.exists()
    assert machine("this CPU") == first
    stored = json.loads(quick.read_text())
    quick.write_text(json.dumps({**stored, "rate": 5.0}))
    assert machine("cpu").rate == 5
    assert machine("cpu", again=True).rate != 5
    assert machine("cpu").rate != 5


@pytest.mark.parametrize("content", ["", "[]", '{"identity": "another machine"}', '{"rate": 1}'])
def test_what_another_machine_or_version_wrote_is_measured_again(quick, content):
    quick.parent.mkdir()
    quick.write_text(content)
    assert machine("cpu").width == 4


def test_a_folder_that_cannot_be_written_does_not_matter(quick, monkeypatch):
    quick.parent.write_text("a file where the folder should be")
    assert machine("cpu").rate > 0
