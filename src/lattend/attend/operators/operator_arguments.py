r"""OperatorCall: the arguments of the operators besides q, k and v, and their short form for torch.

torch's dispatcher turns each argument of an operator into a value of its own and back, at every call. So an
operator has three besides q, k and v: a list of tensors, the numbers, and one text for all the rest, which is
read once. The text is JSON, and what it leaves out is as attention has it by default:

    {"rule": "q k n n\nk <= q\ntrue\n", "dropout": 0.1}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from torch import Tensor

from lattend.attend.bias import parts_of
from lattend.attend.call.attention_call import AttentionCall, rule_at, rule_of
from lattend.attend.call.options import KernelOptions
from lattend.attend.operators.tracing import constant

GIVEN = "Tensor[]? given, str call, SymInt[] numbers"  # AOTInductor passes an empty list of tensors as None


class OperatorCall(NamedTuple):
    """A rule by its key, its numbers, and the tensors and options of a call."""

    rule: str
    numbers: Sequence[int]
    data: Sequence[Tensor]
    term: str | None
    bias: Sequence[Tensor]
    key_range: Tensor | None = None
    key_mask: Tensor | None = None
    sinks: Tensor | None = None
    seed: Tensor | None = None
    options: KernelOptions = KernelOptions()

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors, in the order of AttentionCall.tensors."""
        others = (self.sinks, self.seed, self.key_range, self.key_mask)
        return [*(self.data or ()), *(self.bias or ()), *[x for x in others if x is not None]]

    def without_tensors(self) -> OperatorCall:
        """Returns the call with True in place of each tensor; it identifies the call beside its tensors."""
        data, bias = ((True,) * len(tensors or ()) for tensors in (self.data, self.bias))
        others = [x is not None for x in (self.key_range, self.key_mask, self.sinks, self.seed)]
        fixed: Any = (self.rule, tuple(self.numbers), data, self.term, bias, *others)
        return OperatorCall(*fixed, *self[len(fixed) :])

    def with_tensors(self, tensors: Sequence[Tensor]) -> OperatorCall:
        """Returns the call that `without_tensors` was made of, with these tensors."""
        left = iter(tensors)
        data, bias = ([next(left) for _ in places] for places in (self.data, self.bias))
        sinks, seed, key_range, key_mask = (
            next(left) if there else None for there in (self.sinks, self.seed, self.key_range, self.key_mask)
        )
        return self._replace(
            data=data, bias=bias, sinks=sinks, seed=seed, key_range=key_range, key_mask=key_mask
        )

    def attention_call(self, q: Tensor) -> AttentionCall:
        """Returns the call with its rule and its bias read, as kernels take it."""
        arrays = dict(zip(rule_of(self.rule).open, self.data or (), strict=True))
        names, term = ([], None) if self.term is None else parts_of(self.term)
        biases = dict(zip(names, self.bias or (), strict=True))
        options = self.options._asdict()
        if self.options.scale is None:
            options["scale"] = q.shape[-1] ** -0.5
        return AttentionCall(
            rule_at(self.rule, tuple(self.numbers)), data=arrays, term=term, bias=biases, sinks=self.sinks,
            seed=self.seed, key_range=self.key_range, key_mask=self.key_mask, **options,
        )  # fmt: skip


class _Text(NamedTuple):
    """The content of a text; `others` are the tensors that come after those of the rule and of the bias."""

    rule: str
    term: str | None
    biases: int
    others: tuple[str, ...]
    options: KernelOptions


OTHERS = ("sinks", "seed", "key_range", "key_mask")  # in the order of AttentionCall.tensors


def short(call: OperatorCall) -> tuple[list[Tensor], str, Sequence[int]]:
    """Returns the operator's arguments for a call: its tensors, its text and its numbers."""
    others = (call.sinks, call.seed, call.key_range, call.key_mask)
    text = _text(call.rule, call.term, tuple([x is not None for x in others]), *call.options.as_constants())
    return call.tensors, text, call.numbers


def long(given: Sequence[Tensor] | None, call: str, numbers: Sequence[int]) -> OperatorCall:
    """Returns the call that the operator's arguments stand for."""
    said, tensors = _read(call), given or ()
    arrays = len(tensors) - said.biases - len(said.others)
    others = dict(zip(said.others, tensors[arrays + said.biases :], strict=True))
    return OperatorCall(
        said.rule, numbers, tensors[:arrays], said.term, tensors[arrays : arrays + said.biases],
        **others, options=said.options,
    )  # fmt: skip


@constant
def _text(rule: str, term: str | None, given: tuple[bool, ...], *options: Any) -> str:
    return _written(rule, term, given, KernelOptions(*options))


@lru_cache(maxsize=1024)
def _written(rule: str, term: str | None, given: tuple[bool, ...], options: KernelOptions) -> str:
    others = [name for name, there in zip(OTHERS, given, strict=True) if there]
    said: dict[str, Any] = {"rule": rule}
    said |= {} if term is None else {"bias": term}
    said |= {"given": others} if others else {}
    default = KernelOptions()._asdict()
    chosen = {name: value for name, value in options._asdict().items() if value != default[name]}
    return json.dumps(said | chosen)


@lru_cache(maxsize=1024)
def _read(text: str) -> _Text:
    said: dict[str, Any] = json.loads(text)
    rule, term, others = said.pop("rule"), said.pop("bias", None), said.pop("given", ())
    names = "" if term is None else term.split("\n", 1)[0]
    return _Text(rule, term, len(names.split()), tuple(others), KernelOptions(**said))
