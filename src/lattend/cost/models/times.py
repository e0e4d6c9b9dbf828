"""Times: the least time a machine needs for a run of a model, and for one more token of it."""

from __future__ import annotations

from lattend.cost.models.model import Model
from lattend.cost.models.work import ModelWork
from lattend.cost.roofline import Floor
from lattend.errors import DomainError
from lattend.machines import Machine, machine


def run_time(work: ModelWork, on: str | Machine = "H200 measured") -> Floor:
    """The least time of a run: its needed multiply-adds, or reading the weights once, whichever takes longer.

    >>> from lattend.cost.models import config
    >>> small = dict(model_type="gpt2", vocab_size=11, n_positions=8, n_embd=4, n_layer=2, n_head=2)
    >>> run_time(config(small).forward(8)).operations  # 2*(8*428 + 576)
    8000
    """
    return _floor(on, work.multiply_adds.needed, work.model.active, 0)


def decode_time(model: Model, length: int, batch: int = 1, on: str | Machine = "H200 measured") -> Floor:
    """The least time to make the last of `length` tokens of each sequence, those before it being cached.

    The weights are read once for all sequences, of experts only those of one token; the KV cache is read
    whole. Numbers are as wide as those the machine's rate was measured with.
    """
    if model.image or not model.is_causal:
        raise DomainError(f"{model.family} makes no tokens one after another")
    step = model.forward(length, batch).multiply_adds.needed
    step -= model.forward(length - 1, batch).multiply_adds.needed if length > 1 else 0
    return _floor(on, step, model.active, model.cache(length, batch, bytes=1))


def _floor(on: str | Machine, multiply_adds: int, weights: int, cached: int) -> Floor:
    chosen = machine(on) if isinstance(on, str) else on
    operations, moved = 2 * multiply_adds, chosen.width * (weights + cached)
    arithmetic, memory = operations / chosen.rate, moved / chosen.bandwidth
    return Floor(chosen, operations, moved, arithmetic, memory, max(arithmetic, memory), chosen.width)
