"""DiagonalBlocks: what torch's own attention can run of a plan, whole or causal blocks on the diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lattend.plans.order import pairing
from lattend.plans.plan import Plan
from lattend.rules.language.expr import Compare, Name


@dataclass(frozen=True)
class DiagonalBlocks:
    """All pairs of blocks on the diagonal, or those up to it; `window` None is one block."""

    causal: bool
    window: int | None


@lru_cache(maxsize=256)
def diagonal_blocks(found: Plan) -> DiagonalBlocks | None:
    """The blocks a plan consists of, if it is blocks that torch's own attention can run."""
    if len(found.parts) != 1:
        return None
    part, line = found.parts[0], found.axes[0]
    if len(part.axes) > 1:
        return DiagonalBlocks(False, None) if not part.branch else None
    query, key = Name(line.outer), Name(line.inner)
    diagonal = (Compare("<=", key, query), Compare(">=", query, key))
    left = [condition for condition in part.branch if condition not in diagonal]
    causal, window = len(left) < len(part.branch), None
    for condition in list(left):
        pair = pairing(condition, line.outer, line.inner, part.numbers)
        if pair is not None and pair.kind == "windows" and pair.shift == 0:
            left.remove(condition)
            window = pair.modulus
    square = line.outer_size == line.inner_size
    if left or ((causal or window) and not square):
        return None
    if window is not None and window >= line.outer_size:
        window = None
    if window is not None and line.outer_size % window:
        return None
    return DiagonalBlocks(causal, window)
