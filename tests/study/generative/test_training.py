"""Training reaches the data's own entropy, repeats itself, and goes on after an interruption."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from lattend.errors import DomainError, LattendError, TensorError
from lattend.study.generative import VAE
from lattend.study.generative.training import Epoch, TrainingPlan, mean_elbo


def two_images(many: int = 64) -> torch.Tensor:
    """Half of one image of 16 pixels and half of its negative: an entropy of log 2 nats."""
    image = torch.tensor([0, 1, 1, 0] * 4).view(4, 4)
    return torch.stack([image, 1 - image]).repeat(many // 2, 1, 1)


def make(**more: Any) -> VAE:
    torch.manual_seed(0)
    return VAE((4, 4), 1, hidden=16, **more)


def weights(vae: VAE) -> torch.Tensor:
    return torch.cat([weight.detach().flatten() for weight in vae.parameters()])


def test_it_learns_what_there_is_to_know() -> None:
    vae, x = make(), two_images()
    assert mean_elbo(vae, x, 0) < -16 * math.log(2) + 1  # knowing nothing
    history = vae.fit(x, 80, batch=16, rate=0.05, decay=0.0)
    with torch.no_grad():
        tighter = vae.importance(x, k=500, generator=torch.Generator().manual_seed(0)).value.item()
    # No model gives data more than minus their entropy on average; half a normal is no Gaussian posterior
    assert -1.3 < mean_elbo(vae, x, seed=0, samples=200) < tighter < -math.log(2)
    assert tighter > -0.95
    assert history is vae.history and len(history) == 80 and history[-1].epoch == 80
    last = history[-1]
    assert last.elbo == pytest.approx(last.reconstruction - last.kl)
    assert 0.6 < last.kl < 3
    assert not vae.training


def test_a_gaussian_decoder_learns_its_noise() -> None:
    """Numbers with one common cause and noise of 0.3: the noise is found, log p(x) nearly reached."""
    torch.manual_seed(0)
    x = torch.randn(256, 1) * torch.tensor([1.0, -1.0, 2.0, 0.5]) + 0.3 * torch.randn(256, 4)
    vae = VAE(4, 1, "gaussian", hidden=24)
    vae.fit(x, 30, rate=0.05, decay=0.0)
    assert vae.pixels.log_variance.item() / 2 == pytest.approx(math.log(0.3), abs=0.1)  # pyright: ignore
    root = torch.tensor([[1.0, -1.0, 2.0, 0.5]])
    true = torch.distributions.MultivariateNormal(torch.zeros(4), root.T @ root + 0.09 * torch.eye(4))
    assert mean_elbo(vae, x, 0, samples=16) == pytest.approx(true.log_prob(x).mean().item(), abs=0.1)


def test_equal_seeds_give_equal_weights_and_leave_torchs_generator() -> None:
    x = two_images()
    runs = []
    for seed in (3, 3, 4):
        vae = make(dropout=0.3)
        torch.manual_seed(9)
        vae.fit(x, 2, seed=seed)
        assert torch.rand(1).item() == torch.rand(1, generator=torch.Generator().manual_seed(9)).item()
        runs.append(weights(vae))
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])


def test_test_data_do_not_change_the_training() -> None:
    x = two_images()
    alone, watched = make(), make()
    alone.fit(x, 2)
    watched.fit(x, 2, test=x[:5])
    assert torch.equal(weights(alone), weights(watched))
    assert alone.history[0].test is None
    assert watched.history[-1].test == pytest.approx(mean_elbo(watched, x[:5], 0))


def test_a_second_call_goes_on() -> None:
    vae, x = make(), two_images()
    vae.fit(x, 2)
    bias = vae.decoder.bias.detach().clone()
    assert [epoch.epoch for epoch in vae.fit(x, 3, rate=1e-9)] == [1, 2, 3, 4, 5]
    torch.testing.assert_close(vae.decoder.bias.detach(), bias)  # not set again


class Stop(Exception):
    pass


def test_an_interrupted_run_ends_in_the_same_numbers(tmp_path: Path) -> None:
    x, path = two_images(), tmp_path / "run.pt"
    whole = make(dropout=0.3)
    whole.fit(x, 5, test=x[:8], seed=1)

    def stop(epoch: Epoch) -> None:
        if epoch.epoch == 2:
            raise Stop

    part = make(dropout=0.3)
    with pytest.raises(Stop):
        part.fit(x, 5, test=x[:8], seed=1, checkpoint=path, progress=stop)
    again, seen = make(dropout=0.3), []
    again.fit(x, 5, test=x[:8], seed=1, checkpoint=path, progress=lambda epoch: seen.append(epoch.epoch))
    assert seen == [3, 4, 5]
    assert torch.equal(weights(again), weights(whole))
    assert [e.elbo for e in again.history] == [e.elbo for e in whole.history]
    assert again.history[-1].test == whole.history[-1].test
    seen.clear()
    again.fit(x, 5, test=x[:8], seed=1, checkpoint=path, progress=lambda epoch: seen.append(epoch.epoch))
    assert not seen and len(again.history) == 5  # it was complete
    assert [result.name for result in tmp_path.iterdir()] == ["run.pt"]


def test_another_run_is_not_taken_up(tmp_path: Path) -> None:
    x, path = two_images(), tmp_path / "run.pt"
    make().fit(x, 1, checkpoint=path)
    with pytest.raises(DomainError) as raised:
        make().fit(x, 2, checkpoint=path)
    assert str(raised.value) == (
        f'"{path}" is the checkpoint of a run with epochs = 1, not 2; '
        "repeat that call to go on with it, or give another path"
    )
    with pytest.raises(DomainError, match=r"a run with beta = 1\.0, not 2\.0"):
        make(beta=2.0).fit(x, 1, checkpoint=path)
    with pytest.raises(DomainError, match="a run with other data"):
        make().fit(1 - x[:10], 1, checkpoint=path)
    with pytest.raises(DomainError, match="a run with no test data; repeat that call"):
        make().fit(x, 1, test=x, checkpoint=path)
    with pytest.raises(LattendError, match=r"there is no folder .*; make it first"):
        make().fit(x, 1, checkpoint=tmp_path / "no" / "run.pt")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({"latent": 2}, {"latent": 3}, "latent = 2, not 3"),
        ({"noise": 1.0}, {"noise": 0.1}, r"noise = 1\.0, not 0\.1"),
        ({"noise": 1.0}, {"noise": None}, r"noise = 1\.0, not None"),
        ({"decoder": "bernoulli"}, {"decoder": "gaussian"}, "decoder = bernoulli, not gaussian"),
        ({"hidden": (4, 4)}, {"hidden": (4,)}, r"hidden = \[4, 4\], not \[4\]"),
        ({"net": "mlp"}, {"net": "conv"}, "net = mlp, not conv"),
        (
            {"decoder": "categorical", "levels": 2},
            {"decoder": "categorical", "levels": 3},
            "levels = 2, not 3",
        ),
    ],
)
def test_a_run_of_another_vae_is_not_taken_up(tmp_path: Path, first: Any, second: Any, said: str) -> None:
    def fit(settings: Any) -> None:
        if "noise" in settings:
            settings = {"decoder": "gaussian", **settings}
        vae = VAE((4, 4), **{"latent": 1, "hidden": 4, **settings})
        images = two_images(8)
        same = images.float() if vae.decoder_name != "categorical" else images
        vae.fit(same, 1, checkpoint=tmp_path / "run.pt")

    fit(first)
    with pytest.raises(DomainError, match=f"a run with {said}; repeat that call"):
        fit(second)


def test_test_data_are_part_of_the_run(tmp_path: Path) -> None:
    x = two_images()
    make().fit(x, 1, test=x[:8], checkpoint=tmp_path / "run.pt")
    with pytest.raises(DomainError, match="a run with other test data; repeat that call"):
        make().fit(x, 1, test=x[:9], checkpoint=tmp_path / "run.pt")


@pytest.mark.parametrize(
    ("left_out", "instead"),
    [("which", None), ("which", 3), ("done", None), ("weights", 3), ("optimiser", None), ("history", 3)],
)
def test_a_file_that_is_no_checkpoint(tmp_path: Path, left_out: str, instead: int | None) -> None:
    x, path = two_images(), tmp_path / "run.pt"
    make().fit(x, 1, checkpoint=path)
    content = torch.load(path, weights_only=True)
    del content[left_out]
    torch.save(content if instead is None else content | {left_out: instead}, path)
    with pytest.raises(LattendError, match=r'run.pt" is no checkpoint of a VAE; give another path'):
        make().fit(x, 1, checkpoint=path)


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "run.pt").write_text("hello")
    with pytest.raises(LattendError, match=r'run.pt" is no checkpoint of a VAE; give another path'):
        make().fit(two_images(), 1, checkpoint=tmp_path / "run.pt")


def test_an_interruption_leaves_dropout_off() -> None:
    vae = make(dropout=0.3)

    def stop(epoch: Epoch) -> None:
        vae.train()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vae.fit(two_images(), 2, progress=stop)
    assert not vae.training


def test_it_trains_where_gradients_are_off() -> None:
    watched, alone = make(), make()
    with torch.no_grad():
        watched.fit(two_images(), 2)
    alone.fit(two_images(), 2)
    assert torch.equal(weights(watched), weights(alone))


def test_wrong_test_data_are_noticed_before_training() -> None:
    vae = make()
    with pytest.raises(DomainError, match="pixels of a Bernoulli decoder are 0 or 1, got 2 at"):
        vae.fit(two_images(), 1, test=2 + two_images())
    assert not len(vae.history)


def test_it_starts_at_the_table() -> None:
    """The first ELBO is that of each pixel on its own; z has said nothing yet."""
    vae, x = make(), two_images(30)
    vae.start(x)
    assert vae.elbo(x).reconstruction.item() == pytest.approx(-16 * math.log(2), rel=1e-5)


def test_constant_data_have_no_noise() -> None:
    """The density has no bound there, and training is on its way: far above 0, higher than at the start."""
    torch.manual_seed(0)
    vae = VAE((4, 4), 2, "gaussian", hidden=16)
    history = vae.fit(torch.full((64, 4, 4), 3.0), 20)
    assert history[-1].elbo > history[0].elbo > 40


def test_beta_rises_in_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    vae, seen = make(beta=2.0), list[float]()
    elbo = vae.elbo
    monkeypatch.setattr(vae, "elbo", lambda x, **more: seen.append(more["beta"]) or elbo(x, **more))
    vae.fit(two_images(), 3, batch=32, warm_up=2)
    assert seen == pytest.approx([0.25, 0.75, 1.25, 1.75, 2.0, 2.0])  # twice (step + ½) / 2 of two epochs


def test_the_rate_rises_and_falls() -> None:
    plan = TrainingPlan(epochs=1, batch=1, rate=2.0, decay=0.0, warm_up=0, seed=0)
    rates = [plan.rate_at(done / 1000) for done in range(1001)]
    assert rates[0] == 0 and rates[-1] == pytest.approx(0)
    assert max(rates) == pytest.approx(2 * (1 + math.cos(math.pi * 0.0978)) / 2, rel=0.01)


def test_it_tells_how_it_goes() -> None:
    epoch = Epoch(7, -84.5, -70.25, 14.25, -88.0, 12.3)
    assert str(epoch) == "epoch   7   ELBO   −84.50 =   −70.25 −  14.25   test   −88.00     12 s"
    vae = make()
    vae.fit(two_images(8), 1, batch=100)  # fewer than a batch
    assert str(vae.history).startswith("epoch   1   ELBO")
    assert vae.history.json()[0].keys() == {"epoch", "elbo", "reconstruction", "kl", "test", "seconds"}


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"epochs": 0}, DomainError, "epochs must be a whole number from 1 on, got 0"),
        ({"batch": 0}, DomainError, "batch must be a whole number from 1 on, got 0"),
        ({"rate": 0.0}, DomainError, "rate must be above 0, got 0.0"),
        ({"rate": "a"}, DomainError, "rate must be above 0, got 'a'"),
        ({"decay": None}, DomainError, "decay must be at least 0, got None"),
        ({"seed": 10**30}, DomainError, "seed must be a whole number from −2⁶³ to 2⁶⁴ − 1, got 1000"),
        ({"seed": 1.5}, DomainError, "seed must be a whole number from −2⁶³ to 2⁶⁴ − 1, got 1.5"),
        ({"decay": -1.0}, DomainError, "decay must be at least 0, got -1.0"),
        ({"test": torch.zeros(3)}, TensorError, "test must be [batch, 4, 4] with at least one"),
    ],
)
def test_what_it_refuses(more: Any, error: type[LattendError], said: str) -> None:
    with pytest.raises(error) as raised:
        make().fit(two_images(), **more)
    assert said in str(raised.value)


def test_a_loss_that_is_lost() -> None:
    vae = VAE(2, 1, "gaussian", noise=1e-60)
    said = r"in epoch 1 the loss or a number of the net is not finite; lower rate, which is 0.003, or scale"
    with pytest.raises(DomainError, match=said):
        vae.fit(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), 1)
    with pytest.raises(DomainError, match=r"is not finite; lower rate, which is 1e18"):
        make().fit(two_images(), 3, rate=1e18)
