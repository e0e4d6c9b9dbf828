"""draw_linear: its numbers are those of the model, and it draws in every form."""

import math

import pytest
import torch

import lattend as lt
from lattend.errors import DomainError, NamingError, TensorError

LinearGaussian, draw_linear = lt.study.generative.LinearGaussian, lt.study.generative.draw_linear
F64 = torch.float64
W = torch.tensor([[1.0, 0.5], [0.4, 0.9], [-1.0, -0.7]], dtype=F64)
MODEL = LinearGaussian(W, 0.3, 0.8)
X = MODEL.sample(4, torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def figure():
    return draw_linear(MODEL, X, k=(8, 1, 2), samples=400)


def test_the_table_is_the_identity(figure):
    head, *rows = figure.table
    assert head == ("q", "reconstruction", "KL", "ELBO", "gap", "ELBO + gap")
    assert [row[0] for row in rows] == ["posterior", "best diagonal", "prior"]
    evidence = f"{MODEL.log_prob(X).mean().item():.12f}".replace("-", "−")
    assert {row[-1] for row in rows} == {evidence}
    for row in rows:
        reconstruction, kl, elbo, gap = (float(cell.replace("−", "-")) for cell in row[1:5])
        assert reconstruction - kl == pytest.approx(elbo, abs=1.1e-4)
        assert gap >= 0
    assert rows[0][4] == "0.0000"
    exact = MODEL.elbo(X, MODEL.mean_field(X))
    assert float(rows[1][4]) == pytest.approx(exact.gap.mean().item(), abs=1e-4)


def test_the_curve_falls_to_zero(figure):
    (curve,) = figure.charts
    assert [x for x, _ in curve.lines[0].points] == [1, 2, 8] and curve.log_x == 2
    assert [line.name for line in curve.lines] == ["q = best diagonal", "q = prior"]
    for line in curve.lines:
        bounds = figure.data["bounds"][line.name.removeprefix("q = ")]
        gaps = [y for _, y in line.points]
        assert gaps == sorted(gaps, reverse=True)  # at 400 repeats noise is far smaller than a step
        for gap, bound in zip(gaps, bounds, strict=True):
            assert gap == pytest.approx(figure.data["log_prob"] - bound["bound"])
            assert gap > -4 * bound["standard_error"]


def test_the_scale_is_logarithmic_where_noise_allows(figure):
    assert figure.charts[0].log_y == 10
    alike = LinearGaussian(torch.tensor([[1.0], [0.4]], dtype=F64))  # with one latent diagonal is exact
    unclear = draw_linear(alike, torch.zeros(2, 2, dtype=F64), k=(1, 2), samples=5)
    assert not unclear.charts[0].log_y
    assert "log p(x)" in unclear.svg()


def test_data(figure):
    data = figure.json()
    assert (data["dimensions"], data["latent"], data["examples"]) == (3, 2, 4)
    for name, result in data["identity"].items():
        assert math.isclose(result["elbo"] + result["gap"], data["log_prob"], abs_tol=1e-12), name
        assert result["error"] < 1e-12


def test_the_same_seed_gives_the_same_figure():
    first, again, other = (draw_linear(MODEL, X, k=(2,), samples=5, seed=seed) for seed in (3, 3, 4))
    assert first.json() == again.json() != other.json()


def test_forms(figure, tmp_path):
    assert "log p(x)" in figure.svg() and "q = prior: " in figure.svg()
    for ending in ("png", "pdf", "tex"):
        assert figure.save(tmp_path / f"bound.{ending}").stat().st_size > 1000
    for width in (20, 40, 80):
        assert max(map(len, figure.terminal(width=width, colour=False).splitlines())) <= width


def test_one_k_and_another_type():
    result = draw_linear(LinearGaussian(W.float()), X, k=1, samples=3)
    assert [bound["k"] for bound in result.json()["bounds"]["prior"]] == [1]
    assert "effective sample size 1.0 of 1" in result.caption[1]


def test_wrong_input():
    with pytest.raises(NamingError, match="draw_linear takes a LinearGaussian, got int"):
        draw_linear(3, X)  # pyright: ignore
    with pytest.raises(DomainError, match="a number in k must be a whole number from 1 on, got 0"):
        draw_linear(MODEL, X, k=(1, 0))
    with pytest.raises(DomainError, match="k needs at least one number"):
        draw_linear(MODEL, X, k=())
    with pytest.raises(DomainError, match="samples must be a whole number from 1 on, got 0"):
        draw_linear(MODEL, X, samples=0)
    with pytest.raises(TensorError, match=r"x is \[batch, 3\], got shape \(2, 4\)"):
        draw_linear(MODEL, torch.zeros(2, 4, dtype=F64))
