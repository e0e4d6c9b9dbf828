"""Training of a VAE: epochs that can be interrupted, and their history."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lattend.errors import DomainError
from lattend.report.numbers import format_fixed, significant
from lattend.report.shown import Drawn
from lattend.seeds import check_seed
from lattend.study.generative.checks import count, real, seeded
from lattend.study.training import Checkpoint, hash_of, take_step, warm_cosine

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.study.generative.vae import VAE

CLIP = 20.0  # longest gradient
TEST_BATCH = 512


@dataclass(frozen=True)
class Epoch:
    """Means over an epoch, in nats an example; `test` is the ELBO on other data after it."""

    epoch: int
    elbo: float
    reconstruction: float
    kl: float
    test: float | None
    seconds: float

    def __str__(self) -> str:
        test = "" if self.test is None else f"   test {format_fixed(self.test):>8}"
        terms = f"{format_fixed(self.reconstruction):>8} − {format_fixed(self.kl):>6}"
        seconds = f"{format_fixed(self.seconds, 0):>4} s"
        return f"epoch {self.epoch:3}   ELBO {format_fixed(self.elbo):>8} = {terms}{test}   {seconds}"


@dataclass
class History(Drawn):
    """The epochs a VAE was trained for, over all calls of `fit`."""

    epochs: list[Epoch] = field(default_factory=list[Epoch])

    def __len__(self) -> int:
        return len(self.epochs)

    def __getitem__(self, place: int) -> Epoch:
        return self.epochs[place]

    def __str__(self) -> str:
        return "\n".join(map(str, self.epochs)) or "not trained yet"

    def json(self) -> list[dict[str, Any]]:
        """The epochs as plain data."""
        return [asdict(epoch) for epoch in self.epochs]

    def draw(self, title: str = "ELBO over the epochs") -> Picture:
        """The bound over the epochs, in training and on test data, and its two terms."""
        from lattend.study.generative.pictures import course

        return course(self, title)


@dataclass(frozen=True)
class TrainingPlan:
    """How a VAE is trained."""

    epochs: int
    batch: int
    rate: float
    decay: float
    warm_up: int
    seed: int

    def __post_init__(self) -> None:
        count("epochs", self.epochs)
        count("batch", self.batch)
        real("rate", self.rate, "above 0", lambda rate: rate > 0)
        real("decay", self.decay)
        real("warm_up", self.warm_up)
        check_seed(self.seed)

    def rate_at(self, done: float) -> float:
        """The learning rate where a share of the steps is done.

        >>> plan = TrainingPlan(epochs=10, batch=32, rate=1.0, decay=0, warm_up=0, seed=0)
        >>> plan.rate_at(0.05), plan.rate_at(0.5)  # half-way up; half-way down
        (0.5, 0.5)
        """
        return self.rate * warm_cosine(done)


def train(
    vae: VAE,
    data: Tensor,
    test: Tensor | None,
    plan: TrainingPlan,
    checkpoint: str | os.PathLike[str] | None,
    progress: Callable[[Epoch], object] | None,
) -> None:
    """Trains a VAE and writes its history; see `VAE.fit`."""
    home = vae.decoder.bias.device
    weights, others = ([p for p in vae.parameters() if (p.ndim > 1) == many] for many in (True, False))
    optimiser = torch.optim.AdamW(
        [{"params": weights, "weight_decay": plan.decay}, {"params": others, "weight_decay": 0.0}]
    )
    steps = max(1, len(data) // plan.batch)  # what is left over comes in another order next time
    before, done, seconds = len(vae.history), 0, 0.0

    def resume(content: dict[str, Any]) -> None:
        nonlocal before, done, seconds
        vae.history.epochs[:] = [Epoch(**epoch) for epoch in content["history"]]
        done, seconds = content["done"], content["seconds"]
        before = len(vae.history) - done

    def train_epoch() -> tuple[float, float]:
        """Returns reconstruction and KL, means over the steps of an epoch."""
        vae.train()
        sums = torch.zeros(2, dtype=torch.float64)
        for step, rows in enumerate(torch.randperm(len(data)).split(plan.batch)[:steps]):
            passed = done + (step + 0.5) / steps  # epochs so far
            beta = vae.beta * (min(1.0, passed / plan.warm_up) if plan.warm_up else 1.0)
            bound = vae.elbo(data[rows].to(home), beta=beta)
            loss = bound.loss
            if not math.isfinite(loss.item()):
                raise DomainError("the loss is not finite")
            take_step(vae, optimiser, loss, [plan.rate_at(passed / plan.epochs)] * 2, CLIP)
            sums += torch.tensor([bound.reconstruction.item(), bound.kl.item()], dtype=torch.float64)
        reconstruction, kl = (sums / steps).tolist()
        return reconstruction, kl

    try:
        with torch.enable_grad(), torch.random.fork_rng([home] if home.type == "cuda" else []):
            torch.manual_seed(plan.seed)
            file = None
            if checkpoint is not None:
                which = _settings(vae, data, test, plan)
                file = Checkpoint(Path(checkpoint), "a VAE", which, vae, optimiser, home)
            if not (file and file.read(resume)) and not len(vae.history):
                vae.start(data.to(home))
            while done < plan.epochs:
                start = time.monotonic()
                try:
                    reconstruction, kl = train_epoch()
                    test_elbo = None if test is None else mean_elbo(vae, test, plan.seed)
                except DomainError:  # the data were checked before, so the net's own numbers are to blame
                    raise DomainError(
                        f"in epoch {before + done + 1} the loss or a number of the net is not finite; "
                        f"lower rate, which is {significant(plan.rate, 6)}, or scale the data"
                    ) from None
                done, seconds = done + 1, seconds + time.monotonic() - start
                epoch = Epoch(before + done, reconstruction - kl, reconstruction, kl, test_elbo, seconds)
                vae.history.epochs.append(epoch)
                if file:
                    file.write(history=vae.history.json(), done=done, seconds=seconds)
                if progress:
                    progress(epoch)
    finally:
        vae.eval()


def _settings(vae: VAE, data: Tensor, test: Tensor | None, plan: TrainingPlan) -> dict[str, Any]:
    """Everything that makes this run another one than that of a checkpoint."""
    return asdict(plan) | {
        **{name: getattr(vae, name) for name in ("latent", "noise", "beta", "free_bits", "dropout")},
        **{"shape": list(vae.shape), "hidden": list(vae.hidden), "levels": vae.pixels.levels},
        **{"decoder": vae.decoder_name, "net": vae.net_name},
        **{"data": hash_of(data), "test": None if test is None else hash_of(test)},
    }


@torch.no_grad()
def mean_elbo(vae: VAE, data: Tensor, seed: int, samples: int = 1) -> float:
    """The ELBO of all data in nats, dropout off; equal seeds take equal noise."""
    vae.eval()
    home = vae.decoder.bias.device
    noise = seeded(seed, home)
    sums = [
        vae.elbo(part.to(home), samples, generator=noise).values.sum().item()
        for part in data.split(TEST_BATCH)
    ]
    return sum(sums) / len(data)
