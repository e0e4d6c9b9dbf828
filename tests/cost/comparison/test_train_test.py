"""RNN against Transformer: the tables of training and test, against runs of plain code and by hand."""

import pytest

import lattend as lt
from lattend.errors import NamingError

TABLES = lt.cost.train_test()
SIZES = [{"t": 3, "l": 2, "n": 2}, {"t": 4, "l": 1, "n": 3}]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("model", list(TABLES.costs))
def test_times_are_what_plain_code_does(model, sizes):
    rows = {row.quantity: row.counted for row in TABLES.costs[model].check(**sizes).rows}
    assert TABLES["time at test", model].formula.at(**sizes) == rows["multiplies"]
    both = rows["multiplies"] + rows["backward multiplies"]
    assert TABLES["time in training", model].formula.at(**sizes) == both


def test_spaces_by_hand():
    """A recurrent net saves its inputs and states, attention weights too: t(t + 1)/2 of each layer."""
    told = {model: TABLES["space in training", model].formula for model in TABLES.costs}
    for t, n, layers in ((3, 2, 2), (5, 4, 3)):
        assert told["RNN"].at(t=t, n=n, l=layers) == t * n * (layers + 1)
        assert told["attention alone"].at(t=t, n=n, l=layers) == layers * (3 * t * n + t * (t + 1) // 2)
    caches = [str(TABLES["space at test", model].formula) for model in TABLES.costs]
    assert caches == ["n*l", "2n*l*t", "2n*l*t"]


def test_the_usual_claims():
    """What lectures write holds of RNNs and of attention alone in time; not of a whole Transformer."""
    result = {name: [answer.verdict.status for answer in answers] for name, answers in TABLES.tables.items()}
    assert result == {
        "time in training": ["holds", "holds", "fails"],  # projections: t l n^2
        "space in training": ["holds", "fails", "fails"],  # weights: l t^2
        "time at test": ["holds", "holds", "fails"],
        "space at test": ["holds", "holds", "holds"],
    }


def test_forms():
    text = TABLES.text(80)
    assert max(map(len, text.splitlines())) <= 80
    assert "attention alone passes RNN at t = 2n - 1" in text
    assert "Transformer costs more than RNN at every t" in text
    numbers = lt.cost.train_test(t=1024, n=512, l=6)
    assert numbers["space at test", "RNN"].number == 6 * 512
    assert numbers.title.endswith("; at t = 1,024, n = 512, l = 6")
    assert numbers.json()["tables"]["time at test"][0]["number"] == 2 * 512**2 * 6 * 1024


def test_wrong_input():
    with pytest.raises(NamingError, match="the tables have no d; they have t, l, n"):
        lt.cost.train_test(d=3)
    with pytest.raises(NamingError, match="there is no 'time' of 'RNN'; there are time in training, "):
        TABLES["time", "RNN"]
