"""The fitted factor and its interval, claims and their words, and small studies that train."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import lattend as lt
from lattend.errors import DomainError, NamingError, TextError
from lattend.study.gradients.claims import FORMS, STUDENT, ConfidenceInterval, factor, read_claim
from lattend.study.gradients.decay import Gradients, GradientStudy
from lattend.study.gradients.networks import INITIAL, TRAINED


def test_students_t() -> None:
    assert [round(float(stats.t.ppf(0.975, df)), 3) for df in range(1, 10)] == list(STUDENT)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=10))
def test_intervals_are_those_of_scipy(numbers: list[float]) -> None:
    result = ConfidenceInterval.of(numbers)
    error = stats.sem(numbers)
    low, high = (
        stats.t.interval(0.95, len(numbers) - 1, np.mean(numbers), error) if error else (numbers[0],) * 2
    )
    assert (result.low, result.high) == pytest.approx((low, high), abs=1e-3 * (1 + 15 * error))


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 2), st.integers(3, 40), st.floats(0.01, 100))
def test_a_geometric_decay_has_its_own_factor(rate: float, length: int, start: float) -> None:
    rows = np.array([start * rate ** np.arange(length), 7 * start * rate ** np.arange(length)])
    rows[:, 0] = 1e9  # the last input itself is at no distance
    result = factor(rows)
    assert result is not None
    assert (result.mean, result.low, result.high) == pytest.approx((rate,) * 3, rel=1e-6)


def test_sizes_of_0_are_left_out_of_the_fit() -> None:
    result = factor(np.array([[1, 0.5, 0.25, 0.125, 0], [1, 0.5, 0.25, 0.125, 0]]))
    assert result is not None and result.mean == pytest.approx(0.5)
    assert factor(np.array([[1, 0.5, 0, 0], [1, 0.5, 0, 0]])) is None


def study(**factors: tuple[float, float]) -> GradientStudy:
    """A study of networks whose gradients have these factors per step with the two seeds."""
    result = [
        Gradients(
            name,
            stage,
            np.array([rate ** np.arange(9.0) for rate in rates], dtype=np.float64),
            np.array(right),
        )
        for name, rates in factors.items()
        for stage, right in (
            (INITIAL, (0.2, 0.3)),
            (TRAINED, (1.0, 0.95) if name == "attention" else (0.2, 0.3)),
        )
    ]
    return GradientStudy(tuple(result), 9, 32, 2, 150, 0)


MADE = study(rnn=(0.5, 0.5), lstm=(0.5, 1.0), attention=(1.0, 1.0), conv=(1.2, 1.2))


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("rnn vanishes", True),
        ("RNN does not vanish", False),
        ("rnn explodes", False),
        ("attention vanishes", False),
        ("attention does not", True),
        ("attention does not vanish at initialisation", True),
        ("transformer does not explode", True),
        ("conv explodes after training", True),
        ("conv grows", True),
        ("lstm vanishes", None),
        ("lstm does not vanish", None),
        ("rnn < attention at 8", True),
        ("rnn > attention at 8", False),
        ("attention<conv at distance 4 after training", True),
        ("lstm < attention at 8", None),
        ("attention learns", True),
        ("attention does not learn", False),
        ("rnn learns", False),
        ("rnn does not learn", True),
        ("rnn is harder to train than attention", True),
        ("attention is harder to train than rnn", False),
        ("rnn is harder than lstm", None),
    ],
)
def test_claims(claim: str, holds: bool | None) -> None:
    result = MADE.claim(claim)
    assert result.holds is holds and bool(result) is (holds is True)
    assert str(result).startswith(f"{claim}: {({True: 'holds', False: 'fails', None: 'undecided'})[holds]}\n")
    assert json.loads(json.dumps(result.json()))["holds"] is holds


@pytest.mark.parametrize(
    ("rnn", "claim", "holds"),
    [
        ((0.0, 0.0), "rnn < attention at 8", True),
        ((0.0, 0.0), "rnn > attention at 8", False),
        ((0.0, 0.0), "rnn < rnn at 8", False),
        ((0.0, 2.0), "rnn < attention at 8", None),
        ((0.0, 2.0), "rnn > attention at 8", None),
    ],
)
def test_a_gradient_of_0_is_compared_seed_by_seed(
    rnn: tuple[float, float], claim: str, holds: bool | None
) -> None:
    result = study(rnn=rnn, attention=(1.0, 1.0)).claim(claim)
    assert result.holds is holds and bool(result) is (holds is True)
    assert json.loads(json.dumps(result.json()))["holds"] is holds


@pytest.mark.parametrize(
    ("said", "usual"),
    [
        ("RNNs have vanishing gradients", "rnn vanishes"),
        ("the gradients of an RNN vanish", "rnn vanishes"),
        ("rnn gradients vanish", "rnn vanishes"),
        ("attention has no vanishing gradients", "attention does not vanish"),
        ("attention doesn't have vanishing gradients", "attention does not vanish"),
        ("a Transformer doesn’t vanish", "attention does not vanish"),
        ("conv has exploding gradients", "conv explodes"),
        ("RNN  is harder to train than a transformer", "rnn is harder to train than attention"),
    ],
)
def test_other_words_for_the_same(said: str, usual: str) -> None:
    result, wanted = MADE.claim(said), MADE.claim(usual)
    assert (result.holds, result.because) == (wanted.holds, wanted.because) and result.holds is True
    assert result.claim.text == " ".join(said.split())


def test_what_a_claim_says() -> None:
    assert MADE.claim("rnn vanishes").because == (
        "at initialisation its gradient is multiplied by 0.500 (0.500 to 0.500) at every step of distance; "
        "vanishing means below 0.95, with the whole interval"
    )
    assert MADE.claim("rnn < attention at 2").because == (
        "at initialisation at distance 2: 0.25 against 1, 0.250 (0.250 to 0.250) times as large"
    )
    assert MADE.claim("attention learns").because == (
        "it names 95%, 100% of the first symbols; learnt means 90% or more with every seed"
    )


def test_every_form_that_is_offered_is_read() -> None:
    assert [read_claim(form).networks[0] for form in FORMS]
    assert {read_claim(form).stage for form in FORMS} == {INITIAL, TRAINED}


def test_bad_claims() -> None:
    for text in ("", "rnn", "rnn is nice", "rnn < attention", "vanishes"):
        with pytest.raises(TextError, match='one such as "rnn vanishes", "attention does not'):
            read_claim(text)
    with pytest.raises(TextError, match="no network is named gru; there are rnn, lstm") as error:
        read_claim("rnn < gru at 4")
    assert (error.value.start, error.value.end) == (6, 9)
    with pytest.raises(DomainError, match="distance 9 needs a length of 10, and it is 9"):
        MADE.claim("rnn < attention at 9")
    with pytest.raises(NamingError, match="rnn2d was not measured at initialisation; measure again with"):
        MADE.claim("rnn2d vanishes")


def test_at_initialisation() -> None:
    """As torch initialises them: all but attention vanish, and attention is about ‖W_v‖/n everywhere."""
    result = lt.study.gradients.measure(steps=0, seeds=3)
    assert {one.network: one.trend for one in result.found} == {
        **dict.fromkeys(("rnn", "lstm", "rnn2d", "conv"), "vanishes"),
        "attention": "stays",
    }
    assert result["attention"].mean[1:] == pytest.approx(math.sqrt(32 / 3) / 33, rel=0.5)
    assert result.claim("rnn < attention at 32") and result.claim("rnn < lstm at 32")
    assert [one.stage for one in result.found] == [INITIAL] * 5
    again = lt.study.gradients.measure("rnn", steps=0, seeds=3)
    assert (again["rnn"].sizes == result["rnn"].sizes).all()
    other = lt.study.gradients.measure("rnn", steps=0, seeds=2, seed=1)
    assert other["rnn"].sizes == pytest.approx(result["rnn"].sizes[1:], rel=1e-12)


def test_training_for_a_short_distance_makes_the_gradient_reach() -> None:
    """Over 4 steps an RNN learns to recall, and then its gradient at the first input has grown."""
    heard: list[str] = []
    before = torch.get_num_threads()
    result = lt.study.gradients.measure(
        ["rnn", "attention"], length=5, seeds=2, steps=150, progress=heard.append
    )
    assert torch.get_num_threads() == before
    assert result.claim("rnn learns") and result.claim("attention learns")
    for name in ("rnn", "attention"):
        assert (result[name, TRAINED].sizes[:, 4] > 3 * result[name].sizes[:, 4]).all()
    assert len(heard) == 4 and heard[0].startswith("rnn, seed 0: step 150, loss ")
    assert [line.name for line in result.draw().charts[1].lines] == ["rnn", "attention"]
    assert result.draw().charts[1].title == "After 150 steps of training"
    assert "rnn, trained" in str(result) and "recalls" in str(result)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"networks": ["gru"]}, "no network is named gru; there are rnn, lstm, rnn2d, conv, attention"),
        ({"networks": ["rnn2"]}, "did you mean rnn2d?"),
        ({"length": 2}, "length is 2; give a whole number from 3 to 513"),
        ({"seeds": 1}, "seeds is 1; give a whole number from 2 to 10"),
        ({"steps": -1}, "steps is -1; give a whole number from 0 to 100,000"),
        ({"width": 0}, "width is 0"),
    ],
)
def test_bad_input(options: dict[str, object], message: str) -> None:
    with pytest.raises((DomainError, NamingError)) as error:
        lt.study.gradients.measure(**options)  # type: ignore[arg-type]
    assert message in str(error.value)
