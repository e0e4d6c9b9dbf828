"""The mask of a Hugging Face model as a rule, with where its queries and keys stand.

transformers describes a mask by functions that it joins with and and or. Those of its functions that hold
tensors are replaced by classes of the same meaning, so that what they hold can be read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

import torch
import transformers
from torch import Tensor, nn
from transformers import masking_utils

from lattend.attend.call.varlen import document_ids
from lattend.attend.operators.tracing import constant, left_to_python
from lattend.errors import ExtraMissing, LattendError, NoTable
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Lookup, Name, Term
from lattend.rules.reader import read_rule, rule

OLDEST = "5.20"  # as in pyproject.toml
AND, OR = " and ", " or "
PACKED = "packed"  # the sequence of each token, where several lie one behind another


class JoinedMasks:
    """Masks of which all hold, or one does."""

    def __init__(self, sign: str, masks: tuple[Any, ...]) -> None:
        self.sign, self.masks = sign, masks

    def __call__(self, batch_idx: Any, head_idx: Any, q_idx: Any, kv_idx: Any) -> Any:
        first, *others = [mask(batch_idx, head_idx, q_idx, kv_idx) for mask in self.masks]
        for other in others:
            first = first & other if self.sign == AND else first | other
        return first


class PackedMask:
    """Tokens see those of their own sequence."""

    def __init__(self, ids: Tensor) -> None:
        self.ids = ids

    def __call__(self, batch_idx: Any, head_idx: Any, q_idx: Any, kv_idx: Any) -> Any:
        return self.ids[batch_idx, q_idx] == self.ids[batch_idx, kv_idx]

    def at(self, positions: Tensor) -> Tensor:
        """The sequence of the token at each of these positions, [batch, positions]."""
        return self.ids[:, positions]


class Blockwise(PackedMask):
    """The same for tokens of a block, such as those of an image; -1 is none."""

    def __call__(self, batch_idx: Any, head_idx: Any, q_idx: Any, kv_idx: Any) -> Any:
        return super().__call__(batch_idx, head_idx, q_idx, kv_idx) & (self.ids[batch_idx, q_idx] >= 0)


class Chunked:
    """Tokens see those of their own chunk; chunks are counted from the first real token."""

    def __init__(self, chunk_size: int, left_padding: Tensor) -> None:
        self.size, self.left = chunk_size, left_padding

    def __call__(self, batch_idx: Any, head_idx: Any, q_idx: Any, kv_idx: Any) -> Any:
        left = self.left[batch_idx]
        return (kv_idx - left) // self.size == (q_idx - left) // self.size

    def at(self, positions: Tensor) -> Tensor:
        """The chunk of each of these positions, [batch, positions]."""
        return (positions - self.left[:, None]) // self.size


class Repositioned:
    """A mask of the positions that tokens have in their own sequence, where several are packed."""

    def __init__(self, mask: Any, positions: Tensor) -> None:
        self.mask, self.positions = mask, positions

    def __call__(self, batch_idx: Any, head_idx: Any, q_idx: Any, kv_idx: Any) -> Any:
        queries, keys = self.positions[batch_idx, q_idx], self.positions[batch_idx, kv_idx]
        return self.mask(batch_idx, head_idx, queries, keys)

    def at(self, positions: Tensor) -> Tensor:
        """The position in its own sequence of the token at each of these positions, [batch, positions]."""
        return self.positions[:, positions]


def replace_mask_functions() -> None:
    """Give transformers, and its models that are loaded already, the classes above for its own functions."""
    if not hasattr(masking_utils, "blockwise_overlay"):
        raise ExtraMissing(
            f"lattend.integrations.transformers needs transformers {OLDEST} or newer, and "
            f'{transformers.__version__} is installed: pip install --upgrade "lattend[transformers]"'
        )
    ours: dict[str, Any] = {
        "and_masks": lambda *masks: JoinedMasks(AND, masks),
        "or_masks": lambda *masks: JoinedMasks(OR, masks),
        "packed_sequence_mask_function": PackedMask,
        "blockwise_overlay": Blockwise,
        "chunked_overlay": Chunked,
        # since transformers 5.23
        "packed_sequence_compatibility_function": lambda mask, positions, ids: JoinedMasks(
            AND, (Repositioned(mask, positions), PackedMask(ids))
        ),
    }
    models = [module for name, module in [*sys.modules.items()] if name.startswith("transformers.models.")]
    for name, new in ours.items():
        old = getattr(masking_utils, name, None)
        for module in (masking_utils, *models):
            if old is not None and vars(module).get(name) is old:
                setattr(module, name, new)


class ModelMask:
    """Who attends to whom in one pass of a model: what its layers are given as their attention mask.

    The rule is a text, which torch.compile holds as a constant. `padding` is [batch, keys], True where a key
    is real. `arrays` are what the rule looks up; where it is `by_side`, those of the queries and of the keys
    apart, named with _q and _k.
    """

    ndim = 4  # transformers asks, and takes what has two axes for padding

    def __init__(
        self,
        rule: str,
        first_query: int | Tensor = 0,
        first_key: int = 0,
        padding: Tensor | None = None,
        arrays: Mapping[str, Tensor] | None = None,
        by_side: bool = False,
    ) -> None:
        self.rule, self.first_query, self.first_key, self.padding = rule, first_query, first_key, padding
        self.arrays = {} if arrays is None else arrays
        self.by_side = by_side
        self.rows: dict[str, Tensor | slice] = {}  # by rule: what its few queries attend to
        self.packed: ModelMask | None = None  # the same for packed sequences

    def contiguous(self) -> ModelMask:
        """Itself: transformers lays a mask out before it compiles a step."""
        return self

    @property
    def from_the_start(self) -> bool:
        return isinstance(self.first_query, int) and self.first_query == self.first_key == 0

    def _no_table(self, *_: Any) -> NoReturn:
        raise NoTable(
            "this model computes its attention itself, with a table of pairs, and does not hand it over: "
            'use attn_implementation="eager" for it'
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __getitem__ = _no_table
    __and__ = __rand__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = _no_table

    def __getattr__(self, name: str) -> Any:
        """Refuses what a table of pairs has, as its dtype."""
        if hasattr(Tensor, name) and not name.startswith("_"):
            self._no_table()
        raise AttributeError(f"{type(self).__name__} has no {name}")


def attention_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Any = None,
    attention_mask: Tensor | ModelMask | None = None,
    device: Any = None,
    **_: Any,
) -> ModelMask:
    """What transformers makes once a pass: the rule of its mask function, and the padding."""
    if isinstance(attention_mask, ModelMask):  # made before, for a step that is compiled
        return attention_mask
    padding = _padding(attention_mask, kv_length, kv_offset)
    first = q_offset.clone() if isinstance(q_offset, Tensor) else q_offset  # a cache counts on in place
    start = isinstance(first, int) and first == kv_offset == 0 and q_length == kv_length
    held: dict[str, Any] = {}
    text = f"lambda q, k: {_described(mask_function, attention_mask is not None, not start, held)}"
    if not held:
        return ModelMask(text, first, kv_offset, padding)
    keys = torch.arange(kv_length, device=device) + kv_offset
    if start:
        return ModelMask(text, padding=padding, arrays={name: one.at(keys) for name, one in held.items()})
    queries = torch.arange(q_length, device=device) + first
    arrays = {f"{name}_q": one.at(queries) for name, one in held.items()}
    arrays |= {f"{name}_k": one.at(keys) for name, one in held.items()}
    return ModelMask(text, first, kv_offset, padding, arrays, by_side=True)


def _described(function: Any, padded: bool, by_side: bool, held: dict[str, Any]) -> str:
    """The rule of a mask function as a text; adds to `held` the masks that it looks up, by their names."""
    if isinstance(function, JoinedMasks):
        parts = [_described(mask, padded, by_side, held) for mask in function.masks]
        return function.sign.join([f"({part})" for part in parts])
    if isinstance(function, Repositioned):
        return _repositioned(function.mask, function.positions, by_side, held)
    if isinstance(function, Blockwise):  # a PackedMask too
        query, key = _lookups("blocks", function, by_side, held)
        return f"{query} == {key} and {query} >= 0"
    if isinstance(function, PackedMask):
        return " == ".join(_lookups(PACKED, function, by_side, held))
    if isinstance(function, Chunked):
        if not padded or (not torch.compiler.is_compiling() and not bool(function.left.any())):
            return f"q // {function.size} == k // {function.size}"
        return " == ".join(_lookups("chunk", function, by_side, held))
    code = getattr(function, "__code__", None)
    closure = code is not None and code.co_freevars and not function.__qualname__.startswith("sliding_window")
    if closure and torch.compiler.is_compiling():  # it may hold tensors; that of a window holds a number
        return _read_by_python(function)
    return _read(function)


def _repositioned(mask: Any, positions: Tensor, by_side: bool, held: dict[str, Any]) -> str:
    """The rule of a mask whose queries and keys stand at these positions of their own sequences."""
    if isinstance(mask, JoinedMasks):
        parts = [_repositioned(part, positions, by_side, held) for part in mask.masks]
        return mask.sign.join([f"({part})" for part in parts])
    if isinstance(mask, PackedMask):
        return _described(type(mask)(mask.ids.gather(1, positions)), False, by_side, held)
    condition = condition_of(f"lambda q, k: {_described(mask, False, by_side, held)}")
    if _depends_on_distance(condition):  # in one sequence q - k is what it was
        return condition
    return _substituted(condition, *_lookups("position", Repositioned(mask, positions), by_side, held))


def _lookups(name: str, mask: Any, by_side: bool, held: dict[str, Any]) -> tuple[str, str]:
    """How a rule looks up this mask at a query and at a key; the second mask of a name has a number."""
    number = 1 + sum(other.rstrip("0123456789") == name for other in held)
    name = name if number == 1 else f"{name}{number}"
    held[name] = mask
    return (f"{name}_q", f"{name}_k") if by_side else (f"{name}[q]", f"{name}[k]")


@constant
def _depends_on_distance(condition: str) -> bool:
    """Whether a condition stays the same when q and k grow by the same number."""
    return _same_when_shifted(condition)


@lru_cache(maxsize=64)  # each pass asks
def _same_when_shifted(condition: str) -> bool:
    moved = _substituted(condition, "q + shift", "k + shift")
    try:
        return rule(condition, where="shift >= 0").same_as(rule(moved, where="shift >= 0"))
    except LattendError:
        return False


@constant
def _substituted(condition: str, query: str, key: str) -> str:
    """The condition with these terms for q and k."""
    terms = {"q": query, "k": key}
    return re.sub(r"\b[qk]\b", lambda name: f"({terms[name[0]]})", condition)


@constant
def _read(mask_function: Any) -> str:
    return _condition_read(mask_function)


def _condition_read(mask_function: Any) -> str:
    found = read_rule(mask_function)
    if found.open or found.data or found.has_heads:
        name = (*found.open, *found.data, "head")[0]
        raise LattendError(
            f"the mask of this model depends on {name}, which is not read; use another attention"
        )
    return expr.text(found.condition)


_read_by_python = left_to_python(_condition_read)


def _padding(mask: Tensor | None, length: int, first: int) -> Tensor | None:
    """The part of a mask [batch, positions] that belongs to the keys; what lies beyond it is not real."""
    if mask is None:
        return None
    mask = mask.bool()
    if mask.shape[1] < first + length:
        mask = nn.functional.pad(mask, (0, first + length - mask.shape[1]))
    mask = mask[:, first : first + length]
    if not torch.compiler.is_compiling() and bool(mask.all()):  # one look a pass, not one a layer
        return None
    return mask


# Sequences one behind another, as FlashAttention takes them


def with_documents(mask: ModelMask, cumulative: Tensor, query: Tensor, key: Tensor) -> ModelMask:
    """The mask of packed sequences, whose cumulative lengths are 0, l1, l1 + l2 and so on."""
    batch, n, m = query.shape[0], query.shape[2], key.shape[2]
    if batch != 1 or n != m or not mask.from_the_start:
        raise LattendError(
            "cu_seq_lens_q packs the sequences of a batch of 1 without a past; this call has a batch of "
            f"{batch}, {n} queries and {m} keys"
        )
    if mask.packed is None:
        ids = document_ids(cumulative, n)[None]
        if PACKED in mask.arrays:  # position_ids begin anew as well: both must agree
            ids = mask.arrays[PACKED] * (n + 1) + ids
            mask.packed = ModelMask(mask.rule, padding=mask.padding, arrays={**mask.arrays, PACKED: ids})
        else:
            rule = f"lambda q, k: ({condition_of(mask.rule)}) and {PACKED}[q] == {PACKED}[k]"
            mask.packed = ModelMask(rule, padding=mask.padding, arrays={**mask.arrays, PACKED: ids})
    return mask.packed


@constant
def condition_of(rule: str) -> str:
    """The condition of a rule, without its lambda."""
    return expr.text(read_rule(rule).condition)


@constant
def shifted(text: str) -> str:
    """The text of the rule whose first query and key stand at the parameters q0 and k0.

    Its names that end in _q and _k are looked up, from the first query and key of the call on.
    """

    def leaf(name: Name) -> Term:
        if name.name in ("q", "k"):
            return Arith("+", (name, Name(f"{name.name}0")))
        if name.name.endswith(("_q", "_k")):
            return Lookup(name.name, (Name(name.name[-1]),))
        return name

    return f"lambda q, k: {expr.text(expr.replaced(read_rule(text).condition, leaf))}"
