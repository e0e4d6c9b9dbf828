"""Times: the least time a machine needs for a run of a model, for a prompt, and for one more token."""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Iterator

from lattend.cost.models.formats import bytes_read, cache_width, is_quantised, weight_format
from lattend.cost.models.model import Model
from lattend.cost.models.parts import ATTENTION, GROUPS, HEAD, Attention, ModelPart
from lattend.cost.models.spans import Span
from lattend.cost.models.work import ModelWork
from lattend.cost.roofline import Floor
from lattend.errors import DomainError
from lattend.machines import Machine, machine

BF16, FP32 = "bf16", "fp32"
CLASSIFIER = "classifier"


def run_time(work: ModelWork, on: str | Machine = "H100") -> Floor:
    """The least time of a run: its needed multiply-adds, or reading the weights once, whichever takes longer.

    >>> from lattend.cost.models import config
    >>> small = dict(model_type="gpt2", vocab_size=11, n_positions=8, n_embd=4, n_layer=2, n_head=2)
    >>> run_time(config(small).forward(8)).operations  # 2*(8*428 + 576)
    8000
    """
    chosen = machine(on)
    operations, moved = 2 * work.multiply_adds.needed, chosen.width * work.model.active
    arithmetic, memory = operations / chosen.rate, moved / chosen.bandwidth
    return Floor(chosen, operations, moved, arithmetic, memory, max(arithmetic, memory), chosen.width)


def prefill_work(model: Model, length: int) -> dict[str, int]:
    """Multiply-adds of a prompt of so many tokens, by kind of part; the head scores its last token alone."""
    pairs = sum(one.multiply_adds * one.span.needed(length) * many for one, many in _attentions(model))
    return _by_group(model, length, pairs)


def decode_work(model: Model, length: int) -> dict[str, int]:
    """Multiply-adds to make the last of `length` tokens, those before it being cached, by kind of part."""
    pairs = sum(one.decoding * last_keys(one.span, length) * many for one, many in _attentions(model))
    return _by_group(model, 1, pairs)


def prefill_time(
    model: Model,
    length: int,
    batch: int = 1,
    on: str | Machine = "H100",
    weights: str = BF16,
    cache: str = BF16,
) -> Floor:
    """The least time to read `batch` prompts of `length` tokens: their work, or what moves."""
    written = model.cache(length, batch, cache_width(cache))
    pairs = prefill_work(model, length)[ATTENTION]
    return _floor(model, length, batch, pairs, written, machine(on), weights)


def decode_time(
    model: Model,
    length: int,
    batch: int = 1,
    on: str | Machine = "H200 measured",
    weights: str = BF16,
    cache: str = BF16,
) -> Floor:
    """The least time to make the last of `length` tokens of each sequence, those before it being cached.

    The weights are read once for all sequences, of experts those that some token is sent to
    (`formats.bytes_read`), and of the KV cache the keys that the last token attends to.
    """
    if not generates(model):
        raise DomainError(f"{model.family} makes no tokens one after another")
    width = batch * cache_width(cache)
    read = sum(width * one.cached * last_keys(one.span, length) * many for one, many in _attentions(model))
    return _floor(model, 1, batch, decode_work(model, length)[ATTENTION], read, machine(on), weights)


def generates(model: Model) -> bool:
    """Whether the model makes tokens one after another."""
    return model.is_causal and not model.image and not model.head.startswith(CLASSIFIER)


def _floor(
    model: Model, tokens: int, batch: int, pairs: int, cached: int, on: Machine, weights: str
) -> Floor:
    """`tokens` of each of `batch` sequences run through the matrices; quantised ones at their own rate."""
    format = weight_format(weights)
    usual = on.rate_of(FP32 if weights == FP32 else BF16)
    operations, arithmetic = 2 * batch * pairs, 2 * batch * pairs / usual
    for part, many in _products(model, tokens):
        work = 2 * batch * many * part.multiply_adds
        small = is_quantised(part, format, mixture=model.is_mixture)
        operations += work
        arithmetic += work / (on.rate_of(weights) if small else usual)
    moved = bytes_read(model, format, batch * tokens) + cached
    memory = moved / on.bandwidth
    return Floor(on, operations, moved, arithmetic, memory, max(arithmetic, memory), None)


def _products(model: Model, tokens: int) -> Iterator[tuple[ModelPart, int]]:
    """Each part that multiplies, and how many rows it takes in all layers; a causal head only the last."""
    for part, times in Counter(model.parts).items():
        if part.multiply_adds:
            last = part.group == HEAD and generates(model)
            yield part, times * (part.rows[0] if part.rows else 1 if last else tokens)


def _attentions(model: Model) -> ItemsView[Attention, int]:
    """Each kind of attention, and how many layers have it."""
    return Counter(layer.attention for layer in model.layers if layer.attention).items()


def last_keys(span: Span, length: int) -> int:
    """The keys that the last of `length` queries attends to, where none attends ahead."""
    return span.needed(length) - (span.needed(length - 1) if length > 1 else 0)


def _by_group(model: Model, tokens: int, pairs: int) -> dict[str, int]:
    totals: dict[str, int] = dict.fromkeys(GROUPS, 0)
    for part, rows in _products(model, tokens):
        totals[part.group] += rows * part.multiply_adds
    totals[ATTENTION] += pairs
    return totals
