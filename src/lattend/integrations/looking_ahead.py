"""A rule that was set for a model and lets queries attend to keys after them, while the model has a cache.

A cache gives the answers of earlier queries before later keys are there. Where the rule would have such a
query attend to such a key, the step is refused. A prefix, `k <= q or k < 8`, goes on after 8 positions.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from lattend.attend.decode.step import StepMask
from lattend.attend.operators.tracing import constant
from lattend.errors import LattendError
from lattend.integrations.model_mask import ModelMask
from lattend.rules.language import expr
from lattend.rules.reader import read_rule

PAIRS = 1 << 22  # so many are looked at in one go
INSTEAD = "generate(…, use_cache=False) answers all queries anew at every step"


@constant
def looks_ahead(rule: str) -> bool:
    """Whether some query attends to a key after it; True too where that is not found out."""
    return _looks_ahead(rule)


@lru_cache(maxsize=64)  # every layer asks at every step
def _looks_ahead(rule: str) -> bool:
    parts = expr.conjuncts(read_rule(rule).condition)  # one that does not is enough, be the others not affine
    return all(map(_may_look_ahead, (rule, *map(expr.text, parts))))


def _may_look_ahead(rule: str) -> bool:
    try:
        ahead = read_rule(rule) & read_rule("k > q")
        return not ahead.same_as(read_rule("k > q and k < q"))
    except LattendError:
        return True


def check_ahead(rule: str, mask: ModelMask, query: Tensor, key: Tensor) -> None:
    """Raises where a query attends to a key that was not there when it was answered."""
    heads, n, m = query.shape[1], query.shape[2], key.shape[2]
    if mask.from_the_start and n == m:
        return
    if torch.compiler.is_compiling():
        raise LattendError(
            f'the rule "{rule}" lets queries attend to keys after them; whether these are there cannot be '
            f"found out in a compiled step with a cache: run it without torch.compile, or {INSTEAD}"
        )
    first = int(mask.first_query)
    found = _later(rule, first, n, mask.first_key + m, heads)
    if found is not None:
        raise LattendError(
            f'the rule "{rule}" lets query {found[0]} attend to key {found[1]}, and with a cache it is '
            f"answered before that key is there: {INSTEAD}, or set a rule with k <= q"
        )


@lru_cache(maxsize=64)  # the layers of a model ask the same
def _later(rule: str, first: int, n: int, end: int, heads: int) -> tuple[int, int] | None:
    """An attended pair of an earlier query and a new key, or of a new query and a place without a key."""
    found = read_rule(rule)
    mask = StepMask(found.condition, {}, heads if found.has_heads else None)
    new = np.arange(first, first + n)
    for queries, keys in ((np.arange(first), new), (new, np.arange(first + n, end))):
        rows = max(1, PAIRS // max(1, len(keys)))
        for start in range(0, len(queries), rows):
            some = queries[start : start + rows]
            pairs = np.argwhere(mask.on_host(some, keys))
            if len(pairs):
                return int(some[pairs[0][-2]]), int(keys[pairs[0][-1]])
    return None
