"""Lengths: a model's work as its sequences grow, and from where on attention is most of it."""

from __future__ import annotations

from lattend.cost.models.model import Model
from lattend.cost.models.parts import ATTENTION

FAR = 1 << 40  # tokens beyond which nobody asks
USUAL = 1 << 20  # tokens up to which a chart goes where no position is learned


def chart_lengths(model: Model, end: int = 0) -> list[int]:
    """The lengths of a chart: powers of two and halfway between, up to the model's longest, or `end`."""
    last = model.longest or max(USUAL, end)
    steps = (size for power in range(last.bit_length()) for size in (2**power, 3 * 2**power // 2))
    return sorted({*(size for size in steps if size <= last), last})


def attention_passes(model: Model) -> int | None:
    """The shortest sequence whose attention needs more multiply-adds than all matrices together.

    It does so for every longer one too: one more token brings attention at least as many pairs as the one
    before, and the matrices always the same. None where that is never so, where the model takes no such
    length, and for attention in chunks, which begins anew with every chunk.

    >>> from lattend.cost.models import config
    >>> small = dict(model_type="gpt2", vocab_size=11, n_positions=900, n_embd=4, n_layer=2, n_head=2)
    >>> attention_passes(config(small))  # 8n(n + 1) > (128 + 256 + 44)n: n + 1 > 53.5
    53
    """
    if model.image or _in_chunks(model):
        return None

    def passed(length: int) -> bool:
        work = model.forward(length)
        return 2 * work[ATTENTION].needed > work.multiply_adds.needed

    low, high, last = 0, 1, model.longest or FAR
    while not passed(high):
        if high >= last:
            return None
        low, high = high, min(2 * high, last)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passed(middle) else (middle, high)
    return high


def passing_sentence(model: Model, passes: int | None) -> str:
    """Whether `passes`, which `attention_passes` found, is ever reached, as a sentence; "" of an image."""
    if model.image:
        return ""
    if passes is not None:
        return f"Attention needs more multiply-adds than all matrices together from {passes:,} tokens on."
    if _in_chunks(model):
        return "Attention in chunks begins anew with every chunk."
    last = " up to 2^40 tokens"
    if model.longest:
        last = f" up to its {model.longest:,} learned positions"
    elif _lead(model, 2 * FAR) >= _lead(model, FAR):  # attention in windows: both grow by a constant a token
        last = ""
    return f"The matrices need more multiply-adds than attention at every length{last}."


def _lead(model: Model, length: int) -> int:
    """How many multiply-adds more the matrices need than attention."""
    work = model.forward(length)
    return work.multiply_adds.needed - 2 * work[ATTENTION].needed


def _in_chunks(model: Model) -> bool:
    spans = [layer.attention.span for layer in model.layers if layer.attention]
    return any(getattr(span, "kind", "") == "chunk" for span in spans)
