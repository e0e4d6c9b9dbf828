"""Pictures of a VAE show the numbers it gives, in every form."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import NormalDist
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from lattend.draw.picture import Picture
from lattend.errors import DomainError, TensorError
from lattend.study.generative import VAE
from lattend.study.generative.pictures import GREYS
from lattend.study.generative.training import Epoch, History


def make(latent: int = 3, shape: tuple[int, ...] = (4, 4), **more: object) -> VAE:
    torch.manual_seed(0)
    return VAE(shape, latent, hidden=8, **more)  # pyright: ignore[reportArgumentType]


def images(many: int, shape: tuple[int, ...] = (4, 4)) -> torch.Tensor:
    return torch.randint(2, (many, *shape), generator=torch.Generator().manual_seed(0))


def figures() -> dict[str, Picture]:
    vae, x = make(), images(12)
    vae.fit(x, 2, test=x)
    return {
        "samples": vae.draw_samples(12),
        "rebuilt": vae.draw_reconstructions(x),
        "between": vae.draw_interpolation(x[0], x[1]),
        "latent": vae.draw_latent(x, list(range(12))),
        "plane": vae.draw_plane(steps=3),
        "history": vae.history.draw(),
    }


STARTS = {".svg": b"<svg", ".png": b"\x89PNG\r\n", ".pdf": b"%PDF-"}


def test_every_form_of_every_picture(tmp_path: Path) -> None:
    for name, figure in figures().items():
        for ending, start in STARTS.items():
            assert figure.save(tmp_path / f"{name}{ending}").read_bytes().startswith(start)
        drawing = ElementTree.fromstring(figure.svg())
        texts = "".join(drawing.itertext())
        assert figure.title in texts and all(fact in texts for _, fact in figure.facts)
        text = figure.save(tmp_path / f"{name}.txt").read_text()
        assert text.startswith(figure.title) and "\x1b" not in text
        assert max(map(len, figure.terminal(width=40, colour=False).splitlines())) <= 40
        figure.terminal(width=80, encoding="ascii").encode("ascii")
        assert figure.json()["title"] == figure.title


def test_what_is_drawn_are_the_images() -> None:
    vae = make()
    drawn = vae.sample(12, generator=torch.Generator().manual_seed(5))
    figure = vae.draw_samples(12, seed=5)
    rows = figure.json()["rows"]
    assert list(rows) == ["0–9", "10–11"]
    assert torch.equal(torch.tensor(rows["0–9"] + rows["10–11"]), drawn)
    assert len(figure.panels) == 12 and figure.columns == 10
    ink = [[look.fill for look in row] for row in figure.panels[11].rows_of_looks()]
    assert ink == [["#141414" if pixel else "#ffffff" for pixel in row] for row in drawn[11].tolist()]
    means = vae.draw_samples(2, mean=True).json()["rows"]["0–1"]
    assert np.min(means) > 0 and np.max(means) < 1


def test_greys_grow_darker() -> None:
    shades = [int(look.fill[1:3], 16) for look in GREYS]
    assert shades == sorted(shades, reverse=True) and shades[0] == 255
    assert all(look.fill[1:3] == look.fill[3:5] == look.fill[5:7] for look in GREYS)


def test_images_stand_over_what_comes_back() -> None:
    vae, x = make(), images(11)
    figure = vae.draw_reconstructions(x)
    rows = figure.json()["rows"]
    assert list(rows) == ["true", "rebuilt", "true 2", "rebuilt 2"]
    assert rows["true 2"] == x[10:].tolist()
    np.testing.assert_allclose(rows["rebuilt"], vae.reconstruct(x[:10]))
    with torch.no_grad():
        bound = vae.elbo(x, samples=16, generator=torch.Generator().manual_seed(0))
    assert figure.facts[0][1].startswith(f"−{abs(bound.value.item()):.2f} = −")


def test_a_terminal_shows_both_ends() -> None:
    vae, x = make(), images(2)
    figure = vae.draw_interpolation(x[0], x[1], steps=20)
    line = vae.interpolate(x[0], x[1], steps=20)
    strip = figure.rough[0].cells
    assert strip.shape == (4, 36)
    steps = len(GREYS) - 1
    np.testing.assert_array_equal(strip[:, :4], np.rint(steps * line[0].numpy()))
    np.testing.assert_array_equal(strip[:, -4:], np.rint(steps * line[-1].numpy()))
    assert "9 of 20 images in a row" in figure.terminal(width=100)
    assert list(vae.draw_interpolation(x, x.flip(0)).json()["rows"]) == ["line 0", "line 1"]


def test_the_latent_plane_by_principal_axes() -> None:
    vae, x = make(latent=5), images(40)
    figure = vae.draw_latent(x, torch.arange(40) % 3)
    means = vae.encode(x).mean.detach().double().numpy()
    values, axes = np.linalg.eigh(np.cov(means.T))
    expected = (means - means.mean(0)) @ axes[:, :-3:-1]
    points = np.array(figure.json()["points"])
    for axis in (0, 1):
        sign = np.sign(points[0, axis] * expected[0, axis])
        np.testing.assert_allclose(points[:, axis], sign * expected[:, axis], atol=1e-6)
    assert f"which have {values[-2:].sum() / values.sum():.0%} of the variance" in figure.subtitle[0]
    assert [dots.name for dots in figure.charts[0].dots] == ["0", "1", "2"]
    q = vae.encode(x)
    told = torch.distributions.kl_divergence(
        torch.distributions.Normal(q.mean, q.variance.sqrt()), torch.distributions.Normal(0.0, 1.0)
    )
    assert figure.json()["kl"] == pytest.approx(sorted(told.mean(0).tolist(), reverse=True), rel=1e-4)
    assert figure.facts[1] == ("in use", f"{int((told.mean(0) > 0.1).sum())} of 5, with more than 0.1 nats")


def test_two_latents_and_one() -> None:
    x = images(7)
    two = make(latent=2)
    np.testing.assert_allclose(two.draw_latent(x).json()["points"], two.encode(x).mean.detach(), rtol=1e-6)
    one = make(latent=1)
    figure = one.draw_latent(x)
    assert figure.title == "Where 7 images are in 1 latent"
    q = one.encode(x)
    both = torch.cat((q.mean, q.variance.sqrt()), 1).detach()
    np.testing.assert_allclose(figure.json()["points"], both, rtol=1e-6)


def test_the_plane_is_decoded_at_quantiles() -> None:
    vae = make(latent=3)
    figure = vae.draw_plane((2, 0), steps=3)
    rows = figure.json()["rows"]
    far = NormalDist().inv_cdf(5 / 6)
    assert list(rows) == [f"{far:.2f}", "0.00", f"−{far:.2f}"]
    corner = vae.decode(torch.tensor([far, 0.0, -far])).mean.detach()  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(rows[f"{far:.2f}"][0], corner, rtol=1e-5)
    (panel,) = figure.panels
    assert panel.cells.shape == (14, 14) and not panel.cells[4].any() and not panel.cells[:, 9].any()
    assert (panel.rows.label, panel.cols.label) == ("z[0]", "z[2]")
    assert panel.cols.ticks == ((2.0, f"−{far:.2f}"), (7.0, "0.00"), (12.0, f"{far:.2f}"))
    np.testing.assert_array_equal(panel.cells[:4, :4], np.rint((len(GREYS) - 1) * corner.numpy()))


def test_colours_and_vectors() -> None:
    colours = make(shape=(3, 4, 4))
    x = images(2, (3, 4, 4))
    figure = colours.draw_reconstructions(x)
    assert "grey: the mean of 3 channels" in figure.caption
    four = make(shape=(2, 3, 4, 4)).draw_reconstructions(images(2, (2, 3, 4, 4)))
    assert "grey: the mean of 6 channels" in four.caption
    np.testing.assert_allclose(four.json()["rows"]["true"], images(2, (2, 3, 4, 4)).double().mean((1, 2)))
    np.testing.assert_allclose(figure.json()["rows"]["true"], x.double().mean(1))
    assert make(shape=(5,)).draw_samples(2).panels[0].cells.shape == (1, 5)
    numbers = make(shape=(2, 2), decoder="gaussian").draw_reconstructions(torch.tensor([[[0.0, 5], [-3, 1]]]))
    assert (numbers.scales[0].low, numbers.scales[0].high) == (-3.0, 5.0)


def test_history() -> None:
    vae, x = make(), images(8)
    with pytest.raises(DomainError, match="not trained yet, so there is nothing to draw; call fit first"):
        vae.history.draw()
    history = vae.fit(x, 3, test=x)
    figure = history.draw()
    assert figure.charts[0].lines[1].points == [(e.epoch, e.test) for e in history]
    assert figure.charts[1].lines[0].points == [(e.epoch, e.kl) for e in history]
    assert math.isclose(figure.json()["epochs"][2]["elbo"], history[2].elbo)
    assert len(make().fit(x, 1).draw().charts[0].lines) == 1  # no test data


def test_ticks_of_a_history_are_told_apart() -> None:
    terms = (-105.6, -106.9, -107.9)
    figure = History([Epoch(at, nats, nats - 1, 1.0, None, 1.0) for at, nats in enumerate(terms, 1)]).draw()
    texts = "".join(ElementTree.fromstring(figure.svg()).itertext())
    for height in ("−106", "−107"):
        assert height in texts
    assert "2.5" not in texts  # there is no epoch two and a half


def test_one_image_and_labels_of_any_kind() -> None:
    vae, x = make(latent=5), images(3)
    assert vae.draw_latent(x[:1]).json()["points"] == [(0.0, 0.0)]
    for labels in (np.array([1, 0, 1]), torch.tensor([1, 0, 1]), list(np.array([1, 0, 1])), (1, 0, 1)):
        assert json.loads(json.dumps(vae.draw_latent(x, labels).json()))["labels"] == [1, 0, 1]


def test_what_is_refused() -> None:
    vae, x = make(), images(3)
    with pytest.raises(DomainError, match=r"axes are two different latents from 0 to 2, got \(1, 1\)"):
        vae.draw_plane((1, 1))
    with pytest.raises(DomainError, match=r"axes are two different latents from 0 to 2, got \(0, 3\)"):
        vae.draw_plane((0, 3))
    with pytest.raises(TensorError, match="there are 3 images and 2 labels; give one for each"):
        vae.draw_latent(x, [0, 1])
    with pytest.raises(TensorError, match=r"a label is one name or number, got \[0, 0\]"):
        vae.draw_latent(x, torch.zeros(3, 2, dtype=torch.long))
    with pytest.raises(TensorError, match="labels are a list, one for each image, got 3"):
        vae.draw_latent(x, torch.tensor(3))
    for axes in (1, (0, 1, 2), (0, 1.0)):
        with pytest.raises(DomainError, match=r"axes are two different latents from 0 to 2, got "):
            vae.draw_plane(axes)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TensorError, match=r"\[batch, 4, 4\] with at least one example, got \[0, 4, 4\]"):
        vae.draw_interpolation(x[:0], x[:0])
    with pytest.raises(TensorError, match=r"a must be a tensor \[batch, 4, 4\], got list"):
        vae.draw_interpolation([0], [1])  # pyright: ignore[reportArgumentType]
    with pytest.raises(TensorError, match=r"with at least one example, got \[\]"):
        vae.draw_interpolation(torch.tensor(0), torch.tensor(0))
    with pytest.raises(DomainError, match="seed must be a whole number from −2⁶³ to 2⁶⁴ − 1, got 'a'"):
        vae.draw_samples(3, seed="a")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TensorError, match=r"a is \[4, 4\] and b \[3, 4, 4\]; give both the same"):
        vae.draw_interpolation(x[0], x)
