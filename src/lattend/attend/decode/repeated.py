"""Steps of decoding that are checked once: a later one of the same kind goes to its keys at once.

A kind is all that the checks look at, the text's length aside: two calls of one kind differ in the numbers
in their tensors, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any

from torch import Tensor

from lattend.attend.bias import Bias
from lattend.attend.call import Kind
from lattend.attend.decode.step import Scoring
from lattend.attend.kinds import kind_of_plain
from lattend.rules.reader import RuleLike
from lattend.rules.rule import Rule

MAX_KINDS = 8  # of one cache
TABLE = object()  # for the text of a bias that is a tensor


class KnownStep:
    """A kind of step that fits its cache: how its scores are made, and what takes it at once, if anything.

    The latter holds addresses, and is made again when the store says that its tensors lie elsewhere.
    """

    def __init__(self, how: Scoring) -> None:
        self.how = how._replace(bias=None)  # no tensor of a first call is kept
        self.text = None if how.bias is None else how.bias.text
        self.place: Any = None  # of the store's tensors
        self.run: Callable[..., Any] | None = None

    def given(self, bias: Bias | Tensor | None) -> Scoring:
        """How scores are made with the tensors that are given now."""
        if self.text is None:
            return self.how
        return self.how._replace(bias=Bias(self.text, **tensors_of(bias)))


def tensors_of(bias: Bias | Tensor | None) -> Mapping[str, Tensor]:
    """The tensors of a bias, by name."""
    if bias is None:
        return {}
    return bias.tensors if isinstance(bias, Bias) else {"table": bias}


def kind_of_step(
    qkv: tuple[Tensor, Tensor, Tensor],
    rule: RuleLike | None,
    values: Mapping[str, Any],
    options: tuple[float | bool | str | None, ...],
    bias: Bias | Tensor | None,
) -> Kind | None:
    """The kind of a call without padding or sinks, on plain tensors; None of other calls.

    `rule` and `values` are those that attention is given, if it is; options are numbers, names and None.
    """
    written: Any = rule
    if type(rule) is Rule:
        written = rule.key, tuple(rule.values.items())
    elif rule is not None and type(rule) is not str:
        return None  # what a function means may change
    if values and any(type(value) is not int for value in values.values()):
        return None
    if bias is None:
        tensors = kind_of_plain(options, *qkv)
        return None if tensors is None else (written, *values.items(), options, tensors)
    text: object = bias.key if type(bias) is Bias else TABLE if isinstance(bias, Tensor) else None
    if text is None:
        return None
    tensors = kind_of_plain(options, *qkv, *tensors_of(bias).values())
    return None if tensors is None else (written, *values.items(), options, text, tensors)


def scoring(q: Tensor, scale: float | None, softcap: float | None, return_lse: bool) -> Scoring:
    """How scores are made of options that were checked."""
    return Scoring(1 / sqrt(q.shape[3]) if scale is None else scale, softcap, None, return_lse)
