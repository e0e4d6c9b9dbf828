"""complete_digits: it beats the tables, the tables are what they say, and completions keep what is given."""

import math
import sys

import pytest
import torch

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError
from lattend.study.generative.completion import ALONE, LEFT, NOT_GIVEN, OURS, half, table_nats
from lattend.study.image_sets import Digits


@pytest.fixture(scope="module")
def small():
    """Few digits, enough to run; those to test hold one of each."""
    data = lt.study.generative.digits()
    return Digits(data.train[:96], data.train_labels[:96], data.test[:60], data.test_labels[:60], data.levels)


@pytest.fixture(scope="module")
def result(small):
    return lt.study.generative.complete_digits(1, data=small)


def test_it_beats_the_tables():
    told = []
    result = lt.study.generative.complete_digits(2, progress=told.append)
    assert result.nats[OURS] < result.nats[LEFT] < result.nats[ALONE]
    assert result.nats[ALONE] == pytest.approx(107.97, abs=0.01)
    assert result.nats[LEFT] == pytest.approx(101.91, abs=0.01)
    assert [epoch.epoch for epoch in told] == [1, 2] and tuple(told) == result.history
    assert result.nats[OURS] == pytest.approx(float(result.model.nats(result.data.test).mean().detach()))


@pytest.mark.parametrize("left", [False, True])
def test_the_tables_count_and_add_one(left):
    train, test = (torch.randint(17, (many, 8, 8)) for many in (30, 4))
    nats = 0.0
    for image in test.tolist():
        for row in range(8):
            for col in range(8):
                like = [
                    other[row][col]
                    for other in train.tolist()
                    if not (left and col) or other[row][col - 1] == image[row][col - 1]
                ]
                nats -= math.log((like.count(image[row][col]) + 1) / (len(like) + 17))
    labels = torch.zeros(30).long()
    assert table_nats(Digits(train, labels, test, labels[:4], 17), left) == pytest.approx(nats / 4)


@pytest.mark.parametrize("given", ["top", "left"])
def test_completions_keep_what_is_given(result, given):
    picture = result.draw(given, samples=2)
    rows = {name: torch.tensor(images) for name, images in picture.data["rows"].items()}
    assert list(rows) == ["true", "drawn 1", "drawn 2"]
    known = half(given)
    assert known.sum() == 32 and known[0, 0] and not known[7, 7]
    for name in ("drawn 1", "drawn 2"):
        assert torch.equal(rows[name][:, known], rows["true"][:, known])
    assert not torch.equal(rows["drawn 1"], rows["drawn 2"])
    assert len(picture.panels) == 4 * 10
    hidden = picture.panels[10].cells == picture.panels[10].looks.index(NOT_GIVEN)
    assert (hidden == ~known.numpy()).all()
    text = picture.terminal(width=80, colour=False)
    assert "- - - -" in text and "4 of 10 digits" in text and "drawn 2" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_same_from_the_same_seed(small, result):
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    again = lt.study.generative.complete_digits(1, data=small)
    assert again.nats == result.nats
    assert again.draw().data["rows"] == result.draw().data["rows"]
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads
    assert lt.study.generative.complete_digits(1, data=small, seed=1).nats[OURS] != result.nats[OURS]


def test_what_it_prints(result):
    text = str(result)
    assert text.startswith("Nats for a test digit; less is better\n")
    assert "each pixel on its own" in text and "1 epoch of 96 digits" in text
    assert repr(result).startswith("<Completion: nats a test digit: 2-D RNN ")
    assert result.json()["epochs"][0]["epochs"] == 1


def test_wrong_input(result, monkeypatch):
    with pytest.raises(NamingError, match="given is one of top, left, not 'right'"):
        result.draw("right")
    with pytest.raises(DomainError, match="epochs must be a whole number from 1 on, got 0"):
        lt.study.generative.complete_digits(0)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(LattendError, match="the digits come with scikit-learn: pip install scikit-learn"):
        lt.study.generative.complete_digits(1)
