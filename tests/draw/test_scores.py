"""The four terms of the encodings, against the product they come from, and their heat maps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lattend.draw.formats.palette import AMOUNTS, SIGNED
from lattend.errors import DomainError, NamingError
from lattend.nn.pictures.scores import (
    ENCODINGS,
    _Example,
    draw_scores,
    quadratic_vector,
    shift_vector,
    terms,
    waves,
)


def total(result):
    return np.sum([term.values for term in result], axis=0)


@pytest.mark.parametrize("encoding", ["absolute", "sinusoidal"])
def test_absolute_terms_multiply_out_one_product(encoding):
    example = _Example(4, 5, (1, 2), 8, seed=3)
    y, x = np.indices((4, 5), np.float64)
    p = example.learned if encoding == "absolute" else waves(y, x, 8)
    tokens = example.x + p
    query, keys = tokens[1, 2] @ example.w_q, tokens @ example.w_k
    result = terms(encoding, 4, 5, (1, 2), width=8, seed=3)
    assert total(result) == pytest.approx(keys @ query / np.sqrt(8))
    assert result[0].values == pytest.approx(
        (example.x @ example.w_k) @ (example.x[1, 2] @ example.w_q) / 8**0.5
    )


def test_relative_terms_depend_on_what_they_say():
    example = _Example(6, 6, (2, 2), 8, seed=0)
    result = terms("relative", 6, 6, (2, 2), width=8)
    # (x_q W_q + u) W_kᵀ x_kᵀ + (x_q W_q + v) W̃ r_δ
    dy, dx = np.indices((6, 6), np.float64) - 2
    asked = example.x[2, 2] @ example.w_q
    both = (example.x @ example.w_k) @ (asked + example.u) + (waves(dy, dx, 8) @ example.w_r) @ (
        asked + example.v
    )
    assert total(result) == pytest.approx(both / np.sqrt(8))
    moved = terms("relative", 6, 6, (3, 3), width=8)
    assert moved[3].values[1:, 1:] == pytest.approx(result[3].values[:-1, :-1])  # the shift alone moves along
    assert moved[2].values == pytest.approx(result[2].values)  # the content alone stays


@given(
    st.integers(1, 8), st.integers(1, 8), st.floats(-3, 3), st.floats(-3, 3), st.floats(0.01, 9), st.data()
)
def test_quadratic_scores_are_exact(rows, cols, dy, dx, alpha, data):
    query = data.draw(st.tuples(st.integers(0, rows - 1), st.integers(0, cols - 1)))
    result = terms("quadratic", rows, cols, query, centre=(dy, dx), alpha=alpha)
    assert all((term.values == 0).all() for term in result[:3])
    for (y, x), score in np.ndenumerate(result[3].values):
        shift = np.array([y - query[0], x - query[1]])
        away = np.sum((shift - [dy, dx]) ** 2) - dy**2 - dx**2
        assert score == pytest.approx(-alpha * away, abs=1e-9 * (1 + alpha * 200))


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.01, 9), st.integers(-5, 5), st.integers(-5, 5))
def test_the_quadratic_score_is_a_product_of_two_vectors(dy, dx, alpha, y, x):
    v, r = quadratic_vector((dy, dx), alpha), shift_vector(y, x)
    away = (y - dy) ** 2 + (x - dx) ** 2 - dy**2 - dx**2
    assert float(v @ r) == pytest.approx(-alpha * away, abs=1e-9)


def test_the_vectors_are_told():
    picture = draw_scores("quadratic", centres=[(1, 2)], alpha=[0.5])
    facts = dict(picture.facts)
    assert facts["v"] == "−α(1, −2Δ₁, −2Δ₂) = (−0.5, 1, 2)"
    told = "(‖δ‖², δ₁, δ₂); at the centre δ = (1, 2) it is (5, 1, 2), and vᵀ r_δ = 2.5 = α‖Δ‖²"
    assert facts["r_δ"] == told  # 0.5 * (1 + 4)
    assert picture.data["v"] == [-0.5, 1.0, 2.0]
    assert "v" not in dict(draw_scores("relative").facts)


def test_waves_are_sines_and_cosines():
    result = waves(np.array([2.0]), np.array([5.0]), 8)[0]
    rates = (1.0, 0.01)
    assert result == pytest.approx(
        [np.sin(2 * r) for r in rates]
        + [np.cos(2 * r) for r in rates]
        + [np.sin(5 * r) for r in rates]
        + [np.cos(5 * r) for r in rates]
    )


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_six_maps(encoding):
    result = draw_scores(encoding, size=(5, 7), pixel=(1, 3))
    assert [panel.title for panel in result.panels][4:] == ["sum", "weights"]
    assert all(panel.looks is SIGNED for panel in result.panels[:5])
    assert result.panels[5].looks is AMOUNTS
    assert np.sum(result.data["weights"]) == pytest.approx(1)
    assert np.sum([term["values"] for term in result.data["terms"]], axis=0) == pytest.approx(
        np.array(result.data["sum"])
    )
    made = result.subtitle[0]
    assert ("random, seed 0" in made) == (encoding != "quadratic")
    assert made in result.svg() or encoding == "quadratic"


def test_seeds_differ_and_repeat():
    assert (
        draw_scores("absolute").svg()
        == draw_scores("absolute").svg()
        != draw_scores("absolute", seed=1).svg()
    )


def test_the_numbers_of_seed_0_never_change():
    assert _Example(1, 1, (0, 0), 4, 0).x[0, 0].tolist() == pytest.approx(
        [1.764052345967664, 0.4001572083672233, 0.9787379841057392, 2.240893199201458]
    )


def test_far_scores_are_cut_and_said_to_be():
    result = draw_scores("quadratic", size=9, centres=[(1, 2)], alpha=[1.0])
    assert result.scales[0].ticks() == ((0.0, "−8 or less"), (0.5, "0"), (1.0, "8"))
    assert dict(result.facts)["greatest weight"].endswith("at pixel (5, 6)")
    near = draw_scores("quadratic", size=(3, 3), centres=[(0, 0)], alpha=[0.5])
    assert near.scales[0].ticks()[0] == (0.0, "−1")


@pytest.mark.parametrize(
    ("arguments", "options", "error", "said"),
    [
        (
            ("rotary",),
            {},
            NamingError,
            "an encoding is one of absolute, .*, not rotary",
        ),
        (
            ("absolute",),
            {"size": (65, 4)},
            DomainError,
            "an image has 1 to 64 rows and columns here, got 65 × 4",
        ),
        (
            ("absolute",),
            {"size": 4, "pixel": (0, 4)},
            DomainError,
            r"pixel \(0, 4\) lies outside an image of 4 × 4",
        ),
        (("absolute",), {"size": (0, 4)}, DomainError, "size is a whole number from 1 up"),
        (("absolute",), {"width": 6}, DomainError, "width is a multiple of 4"),
        (("quadratic",), {"alpha": [0]}, DomainError, "alpha must be above 0, got 0"),
    ],
)
def test_wrong_input(arguments, options, error, said):
    with pytest.raises(error, match=said):
        draw_scores(*arguments, **options)
