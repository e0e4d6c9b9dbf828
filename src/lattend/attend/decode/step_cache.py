"""Steps of decoding that are checked once: a later step of the same kind runs without checks.

A kind is all that the checks look at, the text's length aside: two calls of one kind differ in the numbers
in their tensors, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from lattend.attend.bias import Bias
from lattend.attend.call.attention_call import CallSignature
from lattend.attend.decode.step import Scoring
from lattend.attend.replay.signature import is_plain, tensor_signature
from lattend.recent import Recent

MAX_KINDS = 8  # of one cache


class KnownStep:
    """A kind of step: its scoring, and the fused step that runs it, if there is one.

    A fused step holds addresses, and is made again when the store's tensors lie elsewhere.
    """

    def __init__(self, how: Scoring, plain: bool = True) -> None:
        self.how = how._replace(bias=None)  # no tensor of a first call is kept
        self.plain = plain
        self.text = None if how.bias is None else how.bias.text
        self.run: Callable[..., Any] | None = None
        self.places: tuple[object, object] = (None, None)  # of the store's keys and positions
        self.device = -1  # the current one when `run` was made

    def is_for(self, keys: Tensor, positions: object) -> bool:
        """Whether `run` was made for these tensors; none is made where somebody watches."""
        there = self.places[0] is keys and self.places[1] is positions and self.device == current(keys)
        return there or not self.plain

    def made(self, run: Callable[..., Any] | None, keys: Tensor, positions: object) -> None:
        """Keeps the fused step on these tensors."""
        self.run, self.places, self.device = run, (keys, positions), current(keys)

    def given(self, bias: Bias | Tensor | None) -> Scoring:
        """Returns the scoring with the bias of this call."""
        if self.text is None:
            return self.how
        return self.how._replace(bias=Bias(self.text, **tensors_of(bias)))


def current(x: Tensor) -> int:
    """Returns the index of the current GPU; -1 for a tensor on a CPU."""
    return torch.cuda.current_device() if x.is_cuda else -1


def tensors_of(bias: Bias | Tensor | None) -> Mapping[str, Tensor]:
    """Returns the tensors of a bias, by name."""
    if bias is None:
        return {}
    return bias.tensors if isinstance(bias, Bias) else {"table": bias}


class KnownSteps(Recent[CallSignature, KnownStep]):
    """The kinds of steps that a cache has run; a copy has other addresses, and begins with none."""

    def __init__(self) -> None:
        super().__init__(MAX_KINDS)

    def __reduce__(self) -> tuple[Any, ...]:
        return KnownSteps, ()

    def let_go(self) -> None:
        """Forgets the fused steps: the keys lie elsewhere now, and the old ones are not held."""
        for known in self.values():
            known.run, known.places = None, (None, None)

    def of(self, q: Tensor, k: Tensor, v: Tensor, how: Scoring) -> KnownStep:
        """Returns the step for these tensors and this scoring."""
        text, tensors = (None, ()) if how.bias is None else (how.bias.key, how.bias.tensors.values())
        if not is_plain(q, k, v, *tensors):
            return KnownStep(how, plain=False)
        kind = how._replace(bias=None), text, tensor_signature(q, k, v, *tensors)
        return self.find(kind, lambda: KnownStep(how))
