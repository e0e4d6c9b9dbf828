"""The bound on the page is the library's, term by term."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.study.exact.writing import decimal, latex
from lattend.study.generative.exact_bound import DiscreteModel, GaussianLine
from lattend.web.worker import reply


def ask(panel: str, **question: Any) -> tuple[int, dict[str, Any]]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


fractions = st.fractions(-3, 3, max_denominator=20).map(str)
above = st.fractions("1/20", 3, max_denominator=20).map(str)


@settings(max_examples=20)
@given(fractions, fractions, above, fractions, fractions, above)
def test_the_terms_are_the_librarys(
    weight: str, bias: str, noise: str, x: str, mean: str, variance: str
) -> None:
    status, found = ask("elbo", weight=weight, bias=bias, noise=noise, x=x, mean=mean, variance=variance)
    assert status == 200
    terms = GaussianLine(weight, bias, noise, x).bound(mean, variance).terms
    assert {one["name"]: one["latex"] for one in found["bound"]["terms"]} == {
        name: latex(term) for name, term in terms.items()
    }
    assert found["bound"]["proved"]


def test_q_on_the_posterior_leaves_no_gap() -> None:
    _, found = ask("elbo", weight="2/3", noise="1/7", x="1.3")
    mean, variance = found["posterior"]
    _, tight = ask("elbo", weight="2/3", noise="1/7", x="1.3", mean=mean, variance=variance)
    assert {one["name"]: one["text"] for one in tight["bound"]["terms"]}["gap"] == "0.000000"
    assert tight["place"] == pytest.approx(found["best"])


def test_densities_have_area_one() -> None:
    _, found = ask("elbo", mean="1/3", variance="1/4")
    for line in found["densities"]:
        pairs = zip(line["points"], line["points"][1:], strict=False)
        assert sum((x2 - x1) * (y1 + y2) / 2 for (x1, y1), (x2, y2) in pairs) == pytest.approx(1, abs=2e-3)


def test_a_discrete_bound_is_the_librarys() -> None:
    prior, seen, q = "1/3, 2/3", "0.9, 1/5", "1/2, 1/2"
    _, found = ask("elbo_discrete", prior=prior, likelihood=seen, guess=q)
    model = DiscreteModel(*([part.strip() for part in text.split(",")] for text in (prior, seen)))
    bound = model.bound(["1/2", "1/2"])
    assert [one["text"].replace("−", "-") for one in found["bound"]["terms"]] == [
        decimal(term, 6) for term in bound.terms.values()
    ]
    assert (
        ask("elbo_discrete", prior=prior, likelihood=seen, guess=found["best"])[1]["bound"]["terms"][3][
            "value"
        ]
        == 0
    )


def test_three_q_of_a_linear_model_reach_the_same_log_probability() -> None:
    _, found = ask("elbo_linear", size=4, latent=2, examples=2, seed=3)
    table = found["parts"][1]
    sums = {row[table["head"].index("ELBO + gap")] for row in table["rows"]}
    assert len(sums) == 1
    assert len(table["rows"]) == 3
    assert [line["points"][-1][0] for line in found["bounds"]] == [512, 512]


@pytest.mark.parametrize(
    ("panel", "question", "message"),
    [
        ("elbo", {"noise": "0"}, "noise must be above 0"),
        ("elbo", {"x": "💥"}, "x: "),
        ("elbo", {"mean": "1e99"}, "mean is a fraction or a decimal"),
        ("elbo", {"weight": "(" * 40}, "weight: "),
        ("elbo_discrete", {"guess": "1"}, "p(z) is of 3 values"),
        ("elbo_discrete", {"prior": ""}, "p(z) has 1 to 12 numbers"),
        ("elbo_discrete", {"likelihood": "0, 0, 0"}, "p(x) is 0"),
        ("elbo_discrete", {"prior": "1,-1,1"}, "fractions from 0 to 1"),
    ],
)
def test_what_is_no_model_says_why(panel: str, question: dict[str, str], message: str) -> None:
    status, found = ask(panel, **question)
    assert status == 422
    assert message in found["message"]


def test_the_picture_is_drawn() -> None:
    status, media, body = reply("elbo", "svg", b"{}")
    assert (status, media) == (200, "image/svg+xml")
    assert b"<svg" in body
