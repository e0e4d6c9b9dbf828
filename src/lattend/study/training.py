"""Shared parts of training: the learning-rate schedule, one step, and a file that resumes a run."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lattend.errors import DomainError, LattendError


def warm_cosine(done: float) -> float:
    """Returns the learning rate as a share of its peak: the smaller of a linear warmup and a half cosine.

    >>> warm_cosine(0.05), warm_cosine(0.5)  # half-way up; half-way down
    (0.5, 0.5)
    """
    return min(10 * done, (1 + math.cos(math.pi * done)) / 2)


def take_step(
    net: nn.Module,
    optimiser: torch.optim.Optimizer,
    loss: Tensor,
    rates: Sequence[float],
    longest: float,
) -> None:
    """Takes one optimizer step on a loss, with clipped gradients and a learning rate for each group."""
    for group, rate in zip(optimiser.param_groups, rates, strict=True):
        group["lr"] = rate
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), longest)
    optimiser.step()


@contextmanager
def one_thread() -> Iterator[None]:
    """Trains with one thread: small products gain nothing from more, and busy threads wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Checkpoint:
    """The file of a run: weights, optimizer, random numbers, and the settings of the run.

    `which` are the settings and data that make it this run and no other; `of` says what is trained.
    """

    def __init__(
        self,
        path: Path,
        of: str,
        which: Mapping[str, Any],
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        home: torch.device,
    ) -> None:
        if not path.parent.is_dir():
            raise LattendError(f'cannot keep "{path}": there is no folder "{path.parent}"; make it first')
        self.path, self.of, self.which = path, of, dict(which)
        self.model, self.optimiser, self.home = model, optimiser, home

    def write(self, **more: Any) -> None:
        """Saves the run, whole or not at all: an interruption leaves the last epoch. `more` is plain data."""
        content = {
            "which": self.which,
            "weights": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state(self.home) if self.home.type == "cuda" else None,
            **more,
        }
        part = self.path.with_name(f"{self.path.name}.part")
        torch.save(content, part)
        part.replace(self.path)

    def read(self, take_up: Callable[[dict[str, Any]], None]) -> bool:
        """Resumes the run from its file, `take_up` the rest; returns False if there is no file."""
        if not self.path.exists():
            return False
        try:
            content = torch.load(self.path, map_location=self.home, weights_only=True)
            self._same(dict(content["which"]))
            self.model.load_state_dict(content["weights"])
            self.optimiser.load_state_dict(content["optimiser"])
            torch.set_rng_state(content["random"].cpu())
            if content["random_cuda"] is not None and self.home.type == "cuda":
                torch.cuda.set_rng_state(content["random_cuda"].cpu(), self.home)
            take_up(content)
        except DomainError:
            raise
        except Exception:  # whatever the bytes of another file lead to
            raise LattendError(f'"{self.path}" is no checkpoint of {self.of}; give another path') from None
        return True

    def _same(self, which: dict[str, Any]) -> None:
        """Raises, naming what differs, unless the file is of this run."""
        for name, wanted in self.which.items():
            stored = which.get(name)
            if stored != wanted:
                hashed = {"data": "other data", "test": "other test data" if stored else "no test data"}
                hashed |= {"labels": "other labels", "test labels": "other test labels"}
                raise DomainError(
                    f'"{self.path}" is the checkpoint of a run with '
                    f"{hashed.get(name, f'{name} = {stored}, not {wanted}')}; "
                    "repeat that call to go on with it, or give another path"
                )


def hash_of(x: Tensor) -> str:
    """A hash of the type, the shape and the numbers of a tensor."""
    numbers = x.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(f"{x.dtype} {tuple(x.shape)} ".encode() + numbers).hexdigest()
