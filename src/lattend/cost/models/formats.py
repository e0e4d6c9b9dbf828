"""Formats: how many bytes weights and the KV cache take, with exactly what is counted.

fp32 and bf16 hold every parameter. The smaller formats hold the matrices of the layers, projections and
feed-forward or experts, with their scales; tables, the output head, routers, norms, biases and sinks stay
bf16.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lattend.cost.models.model import Model
from lattend.cost.models.parts import FEED_FORWARD, HEAD, PROJECTIONS, ModelPart
from lattend.errors import NamingError

FULL = 2  # bytes of what a smaller format leaves as it is
SCALE = 2  # bytes of a bf16 scale
QUANTISED = (PROJECTIONS, FEED_FORWARD)


@dataclass(frozen=True)
class WeightFormat:
    """Bits of a weight; `group` of them along the inputs (0: all) share a scale of `scale` bytes."""

    name: str
    bits: int
    words: str
    group: int | None = None
    scale: int = 0
    experts_only: bool = False  # where a model has experts

    @property
    def is_full(self) -> bool:
        """Whether every parameter is held so."""
        return self.group is None

    def matrix_bytes(self, inputs: int, outputs: int) -> int:
        """One matrix with its scales.

        >>> WEIGHT_FORMATS["int4"].matrix_bytes(256, 10)  # 10 rows of 128 bytes and 2 scales of 2
        1320
        """
        groups = 0 if self.group is None else -(-inputs // (self.group or inputs))
        return outputs * (-(-inputs * self.bits // 8) + groups * self.scale)


WEIGHT_FORMATS = {
    one.name: one
    for one in (
        WeightFormat("fp32", 32, "4 bytes a parameter"),
        WeightFormat("bf16", 16, "2 bytes a parameter"),
        WeightFormat("fp8", 8, "1 byte, a bf16 scale an output", 0, SCALE),
        WeightFormat("int8", 8, "1 byte, a bf16 scale an output", 0, SCALE),
        WeightFormat("int4", 4, "4 bits, a bf16 scale for 128 inputs", 128, SCALE),
        WeightFormat("mxfp4", 4, "4 bits, a byte for 32 inputs", 32, 1, experts_only=True),
    )
}
CACHE_FORMATS = {"fp32": 4, "bf16": 2, "fp8": 1, "int8": 1}  # bytes a number; scales are not counted


def weight_format(name: str) -> WeightFormat:
    """A format of weights by its name."""
    if name not in WEIGHT_FORMATS:
        raise NamingError(f'no format of weights is named "{name}"; there are {", ".join(WEIGHT_FORMATS)}')
    return WEIGHT_FORMATS[name]


def cache_width(name: str) -> int:
    """The bytes of a number in a KV cache of this format."""
    if name not in CACHE_FORMATS:
        raise NamingError(f'no format of a KV cache is named "{name}"; there are {", ".join(CACHE_FORMATS)}')
    return CACHE_FORMATS[name]


def is_quantised(part: ModelPart, format: WeightFormat, *, mixture: bool) -> bool:
    """Whether a part's matrices are held in a smaller format; those of experts only, where it is for them."""
    if format.is_full or part.group not in QUANTISED or not part.matrices:
        return False
    return part.name == "experts" or not (format.experts_only and mixture)


def part_bytes(part: ModelPart, format: WeightFormat, *, mixture: bool) -> int:
    """The bytes of a part's parameters."""
    if not is_quantised(part, format, mixture=mixture):
        return part.parameters * (format.bits // 8 if format.is_full else FULL)
    held = sum(count * format.matrix_bytes(inputs, outputs) for count, inputs, outputs in part.matrices)
    rest = part.parameters - sum(count * inputs * outputs for count, inputs, outputs in part.matrices)
    return held + FULL * rest


def weight_bytes(model: Model, format: WeightFormat) -> int:
    """The bytes of all parameters of a model."""
    parts = Counter(model.parts)
    return sum(times * part_bytes(part, format, mixture=model.is_mixture) for part, times in parts.items())


def bytes_read(model: Model, format: WeightFormat, tokens: int) -> int:
    """The bytes of the weights that a run over so many tokens reads at least once.

    Of experts those that some token is sent to: a share of 1 − (1 − k/E)^tokens where each token chooses k of
    E, all equally often, so exactly k/E for one token. Tables are only looked up; one that is the head's
    matrix too is read there.
    """
    total = 0
    for part, times in Counter(model.parts).items():
        if part.is_table:
            continue
        held = part_bytes(part, format, mixture=model.is_mixture)
        if part.group == HEAD and not part.parameters:
            held = part.multiply_adds * (format.bits // 8 if format.is_full else FULL)
        idle = 1 - part.used / part.parameters if part.parameters else 0.0
        total += times * (held if not idle else round(held * (1 - idle**tokens)))
    return total
