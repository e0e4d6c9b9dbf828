"""Keys of rules: the same for the same pairs, and a way back; arrays that are left open."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import lattend as lt
from lattend.errors import NamingError
from lattend.rules.axes import CROSS, VOLUME
from lattend.rules.language.key import KNOWN, parts_of

BAND = lt.rule("k <= q and q - k <= t")
PACKED = lt.rule("doc[q] == doc[k]", data={"doc": [0, 0, 1]})
OPEN = lt.rule("doc[q] == doc[k]", data={"doc": None})


def test_a_key_says_all_but_the_numbers() -> None:
    assert BAND.key == "q k n n\nk <= q and q - k <= t\ntrue\n"
    assert BAND.key == BAND.at(t=3, n=9).key == lt.rule(lambda q, k, t: (k <= q) & (q - k <= t)).key
    others = [lt.rule(BAND.text, where="t >= 1"), lt.rule(BAND.text, cross=True), BAND.at(m=3), ~BAND]
    assert len({rule.key for rule in (BAND, *others)}) == 4  # cross and at(m=3) are alike


def test_a_key_leads_back() -> None:
    cross = lt.rule("k - q <= far", where="far >= 0", cross=True)
    assert parts_of(cross.key) == (CROSS, cross.condition, cross.where, {})
    volume = lt.rule("abs(qz - kz) <= 1 and seen[kx, ky] == 1", data={"seen": None})
    assert parts_of(volume.key) == (VOLUME, volume.condition, volume.where, {"seen": "?"})


def test_arrays_are_told_apart_by_what_they_hold() -> None:
    assert PACKED.key == lt.rule("doc[q] == doc[k]", data={"doc": np.array([0, 0, 1])}).key
    for other in ([0, 1, 1], [[0, 0, 1]], [0, 0, 1, 1]):
        assert PACKED.key != lt.rule("doc[q] == doc[k]", data={"doc": other}).key
    assert PACKED.key != OPEN.key and PACKED != OPEN


def test_an_array_does_not_change_under_its_rule() -> None:
    doc = np.array([0, 0, 1])
    rule = lt.rule("doc[q] == doc[k]", data={"doc": doc})
    doc[:] = 0
    assert rule == PACKED and rule.mask(n=3).sum() == 5
    with pytest.raises(ValueError, match="read-only"):
        rule.data["doc"][0] = 1
    assert rule.at(n=3).data["doc"] is rule.data["doc"]


def test_a_rule_is_known_by_its_key_while_one_of_its_kind_lives() -> None:
    first = lt.rule("q - k == 12345 + t")
    second, key = first.at(t=1), first.key
    del first
    assert KNOWN[key].key == key
    del second
    assert key not in KNOWN


@pytest.mark.parametrize("rule", [BAND.at(t=3), PACKED.at(n=3), OPEN, lt.rules.strided(2)])
def test_copies(rule: lt.Rule) -> None:
    for twin in (copy.deepcopy(rule), pickle.loads(pickle.dumps(rule))):
        assert twin == rule
        assert (twin.key, twin.open, twin.about) == (rule.key, rule.open, rule.about)


def test_combining_open_arrays() -> None:
    both = OPEN & lt.rule("seen[k] == 1", data={"seen": None}) & lt.rule("doc[k] >= 0", data={"doc": None})
    assert both.open == ("doc", "seen")
    assert (OPEN & lt.rule("seen[k] == 1", data={"seen": [1]})).data.keys() == {"seen"}
    with pytest.raises(NamingError, match="both rules bring data named doc, and the two differ; rename one"):
        _ = OPEN | PACKED
