"""AttentionCall: everything that a kernel needs for one run of attention, besides q, k and v."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf
from types import NoneType
from typing import NamedTuple

import torch
from torch import Tensor

from lattend.errors import NamingError
from lattend.rules.language.expr import Term
from lattend.rules.language.key import KNOWN, OPEN, parts_of
from lattend.rules.rule import Rule

_NOTHING = torch.empty(0)
MOST_SCORE = 1e30
Scales = tuple[Tensor, Tensor, Tensor]  # of q, k and v, float32, each [batch or 1, heads or 1]
CallSignature = Hashable  # of a call: all that may decide how it runs, but for the numbers in its tensors
OPTIONS = frozenset((int, float, bool, str, NoneType))  # types of options that kinds may hold


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """A rule with all its numbers, the arrays of this call, and its options.

    An array of `data` has one axis more than the rule looks up when it differs along the batch.
    """

    rule: Rule
    scale: float
    kernel: str | None = None
    deterministic: bool = True
    data: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    term: Term | None = None  # what is added to the scores
    bias: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])  # and the tensors in it
    learned: bool = True  # whether the gradients of those are wanted
    trains: bool = True  # whether a backward pass may follow
    softcap: float | None = None  # scores s become softcap * tanh(s / softcap), before the bias
    sinks: Tensor | None = None  # [heads]: logits that take weight and give no value
    scales: Scales | None = None  # of q, k and v of 8 bits, which are multiplied by them
    dropout: float = 0.0
    seed: Tensor | None = None  # [1], of the dropout
    key_range: Tensor | None = None  # [batch, 2]: all real keys lie from the first to before the second
    key_mask: Tensor | None = None  # [batch, m]: which keys are real, where some within the range are not

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors of the call besides q, k and v."""
        others = (self.sinks, self.seed, self.key_range, self.key_mask)
        return [*self.data.values(), *self.bias.values(), *(x for x in others if x is not None)]

    @property
    def has_elementwise_work(self) -> bool:
        """Whether a pair takes more than its two products and the softmax."""
        return self.term is not None or self.softcap is not None or self.dropout > 0

    def without_tensors(self) -> AttentionCall:
        """Returns the same call with an empty tensor in place of each tensor, so that none is kept alive."""
        return self.with_tensors([_NOTHING] * len(self.tensors))

    def with_tensors(self, tensors: Sequence[Tensor]) -> AttentionCall:
        """Returns the same call with other tensors of the same kind."""
        left = iter(tensors)
        data, bias = ({name: next(left) for name in held} for held in (self.data, self.bias))
        sinks, seed, key_range, key_mask = (
            None if x is None else next(left) for x in (self.sinks, self.seed, self.key_range, self.key_mask)
        )
        return replace(
            self, data=data, bias=bias, sinks=sinks, seed=seed, key_range=key_range, key_mask=key_mask
        )


class BackwardInputs(NamedTuple):
    """The inputs of the backward pass: gradients of the results, inputs and results of the forward pass."""

    grad_out: Tensor
    grad_lse: Tensor | None
    q: Tensor
    k: Tensor
    v: Tensor
    out: Tensor
    lse: Tensor

    def without_unused_queries(self) -> BackwardInputs:
        """Returns the same with zeros for queries without keys, and for those with a NaN and a gradient of 0.

        So has one whose scores are so large that they are rounded to more than the difference of two.
        """
        zero = (self.grad_out == 0).all(-1)
        if self.grad_lse is not None:
            zero = zero & (self.grad_lse == 0)
        unused = (self.lse == -inf) | (zero & ~(self.lse.abs() < MOST_SCORE))
        q, grad_out, out = (x.masked_fill(unused[..., None], 0) for x in (self.q, self.grad_out, self.out))
        return self._replace(q=q, grad_out=grad_out, out=out, lse=self.lse.masked_fill(unused, -inf))


Gradients = tuple[Tensor, Tensor, Tensor, list[Tensor]]  # of q, k, v, and of the tensors of the bias


class ForwardPass(NamedTuple):
    """A forward pass that a kernel has prepared, as functions of q, k, v and the call's other tensors."""

    run: Callable[..., tuple[Tensor, Tensor]]  # the output in q's layout, and the log-sum-exp, contiguous
    output: Callable[..., Tensor]  # the output alone; on a GPU, torch's own attention chooses its layout

    @staticmethod
    def of(run: Callable[..., tuple[Tensor, Tensor]]) -> ForwardPass:
        """Returns a pass that always computes both."""

        def output(*tensors: Tensor) -> Tensor:
            return run(*tensors)[0]

        return ForwardPass(run, output)


# A prepared backward pass: from the BackwardInputs that are not None and the call's other tensors to the
# gradients of q, k and v, in their layouts, and of the bias' tensors
BackwardPass = Callable[..., Sequence[Tensor]]


def backward_inputs(has_grad_lse: bool, tensors: Sequence[Tensor]) -> tuple[BackwardInputs, Sequence[Tensor]]:
    """Splits what a backward pass receives: its inputs, and the call's other tensors."""
    if has_grad_lse:
        return BackwardInputs(*tensors[:7]), tensors[7:]
    grad_out, *others = tensors[:6]
    return BackwardInputs(grad_out, None, *others), tensors[6:]


@lru_cache(maxsize=256)  # keeps the rule of a forward until its backward
def rule_of(key: str) -> Rule:
    """Returns the rule with this key; its numbers are open."""
    known = KNOWN.get(key)
    if known is not None:
        return Rule(known.condition, known.axes, known.where, data=known.data, open=known.open)
    axes, condition, where, digests = parts_of(key)
    lost = [name for name, digest in digests.items() if digest != OPEN]
    if lost:
        raise NamingError(
            f"the array {lost[0]} of a compiled rule is not in this process; "
            "make the rule before its compiled program runs, or give the array at call time"
        )
    return Rule(condition, axes, where, open=tuple(digests))


@lru_cache(maxsize=1024)
def rule_at(key: str, numbers: tuple[int, ...]) -> Rule:
    """Returns the rule with this key at these numbers: its sizes, its parameters, then m if given."""
    rule = rule_of(key)
    return rule.at(**dict(zip([*rule.sizes, *rule.parameters, "m"], numbers, strict=False)))
