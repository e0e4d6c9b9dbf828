"""Attention written out as products: which of their pairs turn out not to be needed.

Scores are a product; where a mask puts the lowest number in their place, the pair was not needed. After
a softmax the weights there are zeros, which the product with the values does not need either. Tensors
are followed by their storage, so that a view is the same thing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import Parameter

from lattend.cost.measure.pairs import UNKNOWN, attended_by, has_values, lowest
from lattend.cost.measure.tally import Operation, Tally

FOLLOWED = ("mm", "bmm", "baddbmm")
SAME = {
    "mul", "div", "add", "sub", "neg", "tanh", "clone", "_to_copy", "masked_fill", "where", "native_dropout",
    "_fused_dropout", "clamp", "clamp_min", "clamp_max", "nan_to_num", "copy", "contiguous",
}  # fmt: skip
PICKED = {"index", "index_select", "embedding", "gather", "clone", "_to_copy", "cat", "copy"}
SOFTMAX = ("_softmax", "_safe_softmax")
# What reads scores as they are, beside a mask and a softmax
_READERS = "sum mean amax amin max min argmax argmin topk sort exp sigmoid relu"
READERS = set(_READERS.split())
MOST_NODES = 1 << 16
LOST = "weights not followed: attention in {} is counted dense"


@dataclass
class Product:
    """A product that was counted under `key`: `pairs` of the `of` that it has are needed."""

    key: Any
    tally: Tally
    of: int
    pairs: int = -1
    shared: bool = False  # used in more than one way, so that all of it is needed

    def __post_init__(self) -> None:
        self.pairs = self.of if self.pairs < 0 else self.pairs

    @property
    def needed(self) -> int:
        return self.tally.dense * self.pairs // max(1, self.of)


@dataclass
class TracedScores:
    """Scores on their way to a softmax, or weights after it."""

    product: Product
    numbers: int
    pairs: int  # those that no mask has taken away
    mask: Tensor | None = None
    batched: bool = False
    unknown: bool = False
    weights: bool = False
    sinks: int = 0  # numbers of columns beside the scores, which take part in the softmax alone
    first: int = 0  # where in the storage the others begin
    used: bool = False  # something has been made of it


class WrittenAttention:
    """Follows scores and weights; `lessen` takes back multiply-adds that were counted."""

    def __init__(
        self,
        lessen: Callable[[Any, Tally], None],
        note: Callable[[str, str], None],
        seen: Callable[[Tensor], Tensor],
    ) -> None:
        self._lessen, self._note, self._seen = lessen, note, seen
        self._tensors: dict[int, tuple[StorageWeakRef, TracedScores]] = {}
        self._nodes: dict[int, Product] = {}
        self._learned: dict[int, StorageWeakRef] = {}
        self._room = 1024

    # Products

    def mixed(self, op: Operation, tally: Tally, where: str) -> Tally:
        """The needed part of a product: with weights, only the pairs that are not zero."""
        scores = self._weights(op, where)
        if scores is None:
            return tally
        return Tally(tally.dense * scores.pairs // max(1, scores.numbers), tally.executed, tally.dense)

    def made(self, op: Operation, product: Product, node: int | None) -> None:
        """Follow what a product gave, and remember the node of its gradients."""
        if op.name not in FOLLOWED:
            return
        weights = self._weights(op)
        if weights is not None:
            product.of, product.pairs = weights.numbers, weights.pairs
        if node is not None:
            if len(self._nodes) >= MOST_NODES:
                self._nodes = dict(list(self._nodes.items())[MOST_NODES // 2 :])
            self._nodes[node] = product
        if weights is None:
            numbers = op.result.numel()
            scores = TracedScores(product, numbers, numbers, batched=op.name != "mm")
            self._remember(op.result, scores)
            if op.name == "baddbmm" and op.given.get("beta", 1) != 0:
                self._masked_by_sum(scores, op.given["self"])

    def scaled(self, node: int, tally: Tally) -> Tally:
        """Products of a gradient: those of the pairs that the product itself needed."""
        product = self._nodes.get(node)
        if product is None or product.pairs == product.of:
            return tally
        return Tally(tally.dense * product.pairs // max(1, product.of), tally.executed, tally.dense)

    def _weights(self, op: Operation, where: str | None = None) -> TracedScores | None:
        if op.name not in FOLLOWED:
            return None
        names = ("batch1", "batch2") if op.name == "baddbmm" else ("self", "mat2")
        for name in names:
            scores = self._get(op.given[name])
            if scores is not None and scores.weights:
                if scores.numbers == op.given[name].numel():
                    return scores
                if where is not None and scores.pairs < scores.numbers:
                    self._note(LOST, where)
        return None

    # What is done to scores and weights

    def follow(self, op: Operation, tally: Tally, where: str) -> Tally:
        """Go on from what an operator was given to what it gave; less where a softmax needs less."""
        sources = [x for x in op.given.values() if isinstance(x, Tensor)]
        if sources and self._is_learned(sources[0]):
            self._learn(sources[0])
            if op.name in PICKED:
                self._learn(op.result)
        if op.name in READERS:
            for state in filter(None, map(self._get, sources)):
                if state.pairs == state.numbers:  # a mask has put a constant in place of the others
                    self._use(state, recomputed=True)
        if op.name == "cat":
            self._with_sinks(op)
        if op.name not in SAME and op.name not in SOFTMAX:
            return tally
        source = next((x for x in sources if self._get(x) is not None), None)
        scores = None if source is None else self._get(source)
        if source is None or scores is None or op.result.numel() != scores.numbers:
            return tally
        if _storage(source) != _storage(op.result):
            self._use(scores)
            scores = replace(scores, used=False)
        if op.name in SOFTMAX:
            return self._softmax(op, scores, tally, where)
        if not scores.weights:
            self._look_for_mask(op, scores)
        self._remember(op.result, scores)
        return tally

    def _with_sinks(self, op: Operation) -> None:
        """Scores with columns beside them: these take part in the softmax, and in no product."""
        parts: list[Tensor] = list(op.given["tensors"])
        followed = [(place, state) for place, x in enumerate(parts) if (state := self._get(x)) is not None]
        if len(followed) != 1 or op.given.get("dim", 0) not in (-1, op.result.dim() - 1):
            return
        ((place, state),) = followed
        if state.weights or state.numbers != parts[place].numel():
            return
        self._use(state)
        sinks, first = op.result.numel() - state.numbers, sum(x.shape[-1] for x in parts[:place])
        wide = replace(state, numbers=op.result.numel(), pairs=state.pairs + sinks, mask=None, used=False)
        self._remember(op.result, replace(wide, sinks=sinks, first=first))

    def _use(self, scores: TracedScores, *, recomputed: bool = False) -> None:
        """Scores that are used a second time, or as they are, are needed whole."""
        product = scores.product
        if (scores.used or recomputed) and not scores.weights and not product.shared:
            product.shared = True
            before, product.pairs = product.needed, product.of
            self._lessen(product.key, Tally(needed=product.needed - before))
        scores.used = True

    def _look_for_mask(self, op: Operation, scores: TracedScores) -> None:
        arguments, low = op.given, lowest(op.result.dtype) if op.result.is_floating_point() else 0.0
        match op.name:
            case "masked_fill":
                if self._is_low(arguments["value"], low):
                    self._masked(scores, arguments["mask"], False)
            case "where":
                if self._is_low(arguments["other"], low):
                    self._masked(scores, arguments["condition"], True)
                elif self._is_low(arguments["self"], low):
                    self._masked(scores, arguments["condition"], False)
            case "add":
                for part in (arguments["self"], arguments.get("other")):
                    if isinstance(part, Tensor) and self._get(part) is None:
                        self._masked_by_sum(scores, part)

    def _masked_by_sum(self, scores: TracedScores, part: Tensor) -> None:
        if self._is_learned(part) or not part.is_floating_point() or part.numel() <= 1:
            return  # a bias, or one number for all
        part = self._seen(part)
        if not has_values(part):
            scores.unknown = scores.batched  # what is added to a plain product is hardly a mask
            return
        attended = attended_by(part)
        if not bool(attended.all()):
            self._masked(scores, attended, True)

    def _masked(self, scores: TracedScores, mask: Tensor, attended: bool) -> None:
        mask = self._seen(mask)
        if not has_values(mask):
            scores.unknown = True
            return
        mask = mask.bool() if attended else ~mask.bool()
        if scores.mask is not None:
            try:
                mask = mask & scores.mask
            except RuntimeError:  # of another shape: fewer pairs than either has are not sought
                return
        product = scores.product
        pairs = scores.pairs = int(torch.count_nonzero(mask)) * (scores.numbers // max(1, mask.numel()))
        if pairs < product.pairs and not product.shared:
            before, product.pairs = product.needed, pairs
            self._lessen(product.key, Tally(needed=product.needed - before))
        scores.mask = mask

    def _softmax(self, op: Operation, scores: TracedScores, tally: Tally, where: str) -> Tally:
        if scores.unknown:
            self._note(UNKNOWN, where)
        pairs = scores.pairs
        self._remember(op.result, replace(scores, mask=None, weights=True))
        if pairs == scores.numbers:
            return tally
        rows = scores.numbers // max(1, op.result.shape[op.given["dim"]])
        return Tally(exponentials=pairs, divisions=pairs, adds=max(0, pairs - rows))

    def _is_low(self, value: Any, low: float) -> bool:
        """Whether a number, or a tensor that holds one, takes all weight from a score."""
        if isinstance(value, Tensor):
            value = self._seen(value)
            return value.numel() == 1 and has_values(value) and float(value) <= low
        return isinstance(value, int | float) and value <= low

    # Storages

    def _is_learned(self, x: Tensor) -> bool:
        """Whether numbers are those of a parameter, picked from it perhaps: no mask is."""
        return x.requires_grad or isinstance(x, Parameter) or _storage(x) in self._learned

    def _learn(self, x: Tensor) -> None:
        key = _storage(x)
        if key is not None and key not in self._learned:
            if len(self._learned) >= MOST_NODES:
                self._learned = {k: v for k, v in self._learned.items() if not v.expired()}
            self._learned[key] = StorageWeakRef(x.untyped_storage())

    def _get(self, x: Tensor) -> TracedScores | None:
        """The scores followed in a tensor's storage, without sinks where a view leaves these out."""
        key = _storage(x)
        if key is None or key not in self._tensors:
            return None
        scores = self._tensors[key][1]
        rest = scores.numbers - scores.sinks
        if scores.sinks and x.numel() == rest and x.storage_offset() == scores.first:
            return replace(scores, numbers=rest, pairs=scores.pairs - scores.sinks, sinks=0)
        return scores

    def _remember(self, x: Tensor, scores: TracedScores) -> None:
        key = _storage(x)
        if key is None:
            return
        if len(self._tensors) >= self._room:
            self._tensors = {k: v for k, v in self._tensors.items() if not v[0].expired()}
            self._room = max(1024, 2 * len(self._tensors))
        self._tensors[key] = (StorageWeakRef(x.untyped_storage()), scores)


def _storage(x: Tensor) -> int | None:
    """The identity of a tensor's memory, valid while a reference to it is kept."""
    try:
        return x.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None
