"""Hugging Face models on lt.attention.

    import lattend.integrations.transformers
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="lattend")

A model says whom a query attends with a mask function; it is read as a rule, once. What a rule cannot say
exactly is refused with the reason, and never run with another mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, masking_utils

from lattend.attend.attention import attention
from lattend.attend.compiled import constant
from lattend.attend.decode import step
from lattend.attend.decode.step import Scoring, StepMask
from lattend.attend.sinks import with_sinks
from lattend.attend.tensor_terms import evaluate
from lattend.errors import LattendError, NamingError
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Name, Term
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule

NAME = "lattend"
AND, OR = " and ", " or "
FEW = 16  # so many queries after a past are answered at once, without a plan
RULE = "lattend_rule"  # the attribute of an attention module that holds its own rule
FULL, CAUSAL = "q >= 0", "k <= q"


def register() -> None:
    """Make `attn_implementation="lattend"` known; importing this module does so."""
    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, attention_mask)
    masking_utils.and_masks = lambda *masks: Joined(AND, masks)
    masking_utils.or_masks = lambda *masks: Joined(OR, masks)
    masking_utils.packed_sequence_mask_function = Packed
    masking_utils.blockwise_overlay = Blockwise


# What transformers joins masks with. Its own functions hide what they hold from torch.compile


class Joined:
    """Masks of which all hold, or one does."""

    def __init__(self, sign: str, masks: tuple[Any, ...]) -> None:
        self.sign, self.masks = sign, masks

    def __call__(self, batch_idx: Any, head_idx: Any, q_idx: Any, kv_idx: Any) -> Any:
        first, *others = [mask(batch_idx, head_idx, q_idx, kv_idx) for mask in self.masks]
        for other in others:
            first = first & other if self.sign == AND else first | other
        return first


class Packed:
    """Tokens see those of their own sequence."""

    def __init__(self, ids: Tensor) -> None:
        self.ids = ids

    def __call__(self, batch_idx: Any, head_idx: Any, q_idx: Any, kv_idx: Any) -> Any:
        return self.ids[batch_idx, q_idx] == self.ids[batch_idx, kv_idx]


class Blockwise(Packed):
    """The same for tokens of a block, such as those of an image; -1 is none."""

    def __call__(self, batch_idx: Any, head_idx: Any, q_idx: Any, kv_idx: Any) -> Any:
        return super().__call__(batch_idx, head_idx, q_idx, kv_idx) & (self.ids[batch_idx, q_idx] >= 0)


# The mask of a model: a rule, and where its queries and keys stand


class ModelMask:
    """Who attends to whom in one pass of a model: what its layers are given as their attention mask.

    The rule is a text, which torch.compile holds as a constant. `padding` is [batch, keys], True where a key
    is real.
    """

    ndim = 4  # transformers asks, and takes what has two axes for padding

    def __init__(
        self,
        rule: str,
        first_query: int | Tensor = 0,
        first_key: int = 0,
        padding: Tensor | None = None,
        arrays: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.rule, self.first_query, self.first_key, self.padding = rule, first_query, first_key, padding
        self.arrays = {} if arrays is None else arrays
        self.rows: dict[str, Tensor | slice] = {}  # by rule: what its few queries attend to

    def contiguous(self) -> ModelMask:
        """Itself: transformers lays a mask out before it compiles a step."""
        return self

    @property
    def from_the_start(self) -> bool:
        return isinstance(self.first_query, int) and self.first_query == self.first_key == 0


def attention_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Any = None,
    attention_mask: Tensor | ModelMask | None = None,
    **_: Any,
) -> ModelMask:
    """What transformers makes once a pass: the rule of its mask function, and the padding."""
    if isinstance(attention_mask, ModelMask):  # made before, for a step that is compiled
        return attention_mask
    condition, arrays = _described(mask_function)
    padding = _padding(attention_mask, kv_length, kv_offset)
    first = q_offset.clone() if isinstance(q_offset, Tensor) else q_offset  # a cache counts on in place
    return ModelMask(f"lambda q, k: {condition}", first, kv_offset, padding, arrays)


def _described(function: Any) -> tuple[str, dict[str, Tensor]]:
    """The rule of a mask function as a text, and the tensors it looks up."""
    if isinstance(function, Joined):
        found = [_described(one) for one in function.masks]
        arrays: dict[str, Tensor] = {}
        for _, held in found:
            arrays.update(held)
        return function.sign.join([f"({text})" for text, _ in found]), arrays
    if isinstance(function, Blockwise):  # a Packed too
        return "blocks[q] == blocks[k] and blocks[q] >= 0", {"blocks": function.ids}
    if isinstance(function, Packed):
        return "packed[q] == packed[k]", {"packed": function.ids}
    return _read(function), {}


@constant
def _read(mask_function: Any) -> str:
    found = read_rule(mask_function)
    if found.open or found.data or found.has_heads:
        name = (*found.open, *found.data, "head")[0]
        raise LattendError(
            f"the mask of this model depends on {name}, which is not read; use another attention"
        )
    return expr.text(found.condition)


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


# Attention


def attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: ModelMask | Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """What transformers calls in every layer; the output is [batch, queries, heads, value_dim]."""
    given = attention_mask
    mask = given if isinstance(given, ModelMask) else _mask_of(module, query, key, given, is_causal)
    rule = getattr(module, RULE, mask.rule)
    if rule is not mask.rule:
        _check_past(rule, mask, query.shape[2])
    bias = None if position_bias is None else position_bias[..., : key.shape[2]]  # [1 or batch, heads, n, m]
    options: dict[str, Any] = {"scale": scaling, "softcap": softcap, "sinks": s_aux, "bias": bias}
    how: dict[str, Any] = {**options, "padding": mask.padding, "dropout": dropout}
    arrays = mask.arrays if rule is mask.rule else {}
    if mask.from_the_start and (query.shape[2] > 1 or key.shape[2] == 1 or arrays or dropout):
        how |= {} if query.shape[2] == key.shape[2] else {"m": key.shape[2]}
        how |= arrays
        out = attention(query, key, value, rule, **how)
    elif arrays:
        name = next(iter(arrays))
        raise LattendError(f"the mask of this model looks up {name}, which is not read after a past")
    elif isinstance(mask.first_query, int) and (query.shape[2] > FEW or dropout):
        how |= {"q0": mask.first_query, "k0": mask.first_key, "m": key.shape[2]}
        out = attention(query, key, value, _shifted(rule), **how)
    elif dropout:
        raise LattendError(
            "dropout is for training, and a static cache for decoding: call the model's eval()"
        )
    else:
        out = _rows(query, key, value, rule, mask, options)
    return out.transpose(1, 2).contiguous(), None


def _mask_of(
    module: nn.Module, query: Tensor, key: Tensor, given: Tensor | None, is_causal: bool | None
) -> ModelMask:
    """The mask of a layer that gets no rule: all keys, those up to a query, or a table of pairs."""
    n, m = query.shape[2], key.shape[2]
    if given is not None:
        return _table_mask(given, n, m)
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if causal and n > 1 and n != m:
        raise LattendError(
            f"{type(module).__name__} is causal and gave {n} queries and {m} keys without a mask: where the "
            'queries stand is not said. Use attn_implementation="eager" for this model'
        )
    return ModelMask(CAUSAL if causal and n > 1 else FULL)


def _table_mask(given: Tensor, n: int, m: int) -> ModelMask:
    """A mask [batch, 1 or heads, n, m] that somebody made, pair by pair."""
    if given.dim() != 4 or given.shape[2] not in (1, n):
        raise LattendError(f"an attention mask of shape {tuple(given.shape)} cannot be read for {n} queries")
    table = given[..., :m] if given.dtype == torch.bool else given[..., :m] >= 0
    if given.dtype != torch.bool:
        if torch.compiler.is_compiling():
            raise LattendError(
                "under torch.compile a mask of pairs is one of bool, True where a pair is attended"
            )
        if bool((given[..., :m][table] != 0).any()):
            raise LattendError(
                "a mask that adds other numbers than 0 and minus infinity is a bias; give it so"
            )
    if table.shape[1] == 1:
        return ModelMask("lambda q, k: table[q, k]", arrays={"table": table[:, 0].expand(-1, n, -1)})
    return ModelMask("lambda head, q, k: table[head, q, k]", arrays={"table": table.expand(-1, -1, n, -1)})


@constant
def _shifted(text: str) -> str:
    """The text of the rule whose first query and key stand at the parameters q0 and k0."""
    moved: dict[str, Term] = {x: Arith("+", (Name(x), Name(f"{x}0"))) for x in ("q", "k")}
    return expr.text(expr.replaced(read_rule(text).condition, lambda name: moved.get(name.name, name)))


# A few queries after a past


def _rows(q: Tensor, k: Tensor, v: Tensor, rule: str, mask: ModelMask, options: Mapping[str, Any]) -> Tensor:
    """Attention of a few queries on the keys of a cache, by a mask of these rows alone."""
    attended, bias, sinks = _attended(q, k, rule, mask), options["bias"], options["sinks"]
    if isinstance(attended, slice):
        k, v = k[:, :, attended], v[:, :, attended]
        bias = None if bias is None else bias[..., attended]
        attended = None
    scale = q.shape[3] ** -0.5 if options["scale"] is None else options["scale"]
    how = Scoring(scale, options["softcap"], return_lse=sinks is not None)
    out, lse = step.attend(q, k, v, attended, how, bias)
    return out if sinks is None or lse is None else with_sinks(out, lse, sinks)[0]


def _attended(q: Tensor, k: Tensor, rule: str, mask: ModelMask) -> Tensor | slice:
    """Which keys these rows attend to: a slice where it is one and nothing is padded, else a mask."""
    if rule in mask.rows:  # another layer has asked
        return mask.rows[rule]
    n, m = q.shape[2], k.shape[2]
    found = None
    if isinstance(mask.first_query, int) and mask.padding is None and not torch.compiler.is_compiling():
        found = _on_host(read_rule(rule), mask.first_query, n, mask.first_key, m)
    if found is None:
        queries = torch.arange(n, device=q.device) + mask.first_query
        keys = torch.arange(m, device=q.device) + mask.first_key
        found = torch.ops.lattend.attended(rule, queries, keys, q.shape[1])
        if mask.padding is not None:
            found = found & mask.padding[:, None, None, :]
    mask.rows[rule] = found
    return found


@torch.library.custom_op("lattend::attended", mutates_args=())
def _attended_op(rule: str, queries: Tensor, keys: Tensor, heads: int) -> Tensor:
    """Which of these positions attend to which, [n, m], or [heads, n, m] where heads differ."""
    found = read_rule(rule)
    names: dict[str, Any] = {"q": queries[:, None], "k": keys}
    shape = [len(queries), len(keys)]
    if found.has_heads:
        names["head"] = torch.arange(heads, device=keys.device)[:, None, None]
        shape = [heads, *shape]
    held = evaluate(found.condition, names)
    return torch.as_tensor(held, device=keys.device).expand(shape).clone()


@_attended_op.register_fake
def _(rule: str, queries: Tensor, keys: Tensor, heads: int) -> Tensor:
    shape = (len(queries), len(keys))
    return keys.new_empty((heads, *shape) if _by_head(rule) else shape, dtype=torch.bool)


@constant
def _by_head(rule: str) -> bool:
    return read_rule(rule).has_heads


def _on_host(rule: Rule, first: int, n: int, first_key: int, m: int) -> slice | None:
    """The keys that all of these rows attend to, if there are no others."""
    rows = StepMask(rule.condition, rule.data, None).on_host(
        np.arange(first, first + n)[:, None], np.arange(first_key, first_key + m)
    )
    if not (rows == rows[0]).all():
        return None
    places = np.flatnonzero(rows[0])
    if len(places) and places[-1] - places[0] == len(places) - 1:
        return slice(int(places[0]), int(places[-1]) + 1)
    return None


# Another rule for a model


def set_rule(model: nn.Module, rule: RuleLike | None, layers: Iterable[int] | None = None) -> nn.Module:
    """The model, whose attention layers follow this rule from now on; None gives them back their own.

    `layers` are numbers of layers, all unless given. Padding and caches stay as they are.
    """
    if getattr(getattr(model, "config", None), "_attn_implementation", NAME) != NAME:
        raise NamingError('the model runs another attention: model.set_attn_implementation("lattend") first')
    modules: dict[int, list[nn.Module]] = {}
    for module in model.modules():
        if hasattr(module, "layer_idx") and hasattr(module, "is_causal"):
            modules.setdefault(module.layer_idx, []).append(module)  # pyright: ignore[reportArgumentType]
    if not modules:
        raise LattendError(f"no attention layers are found in {type(model).__name__}")
    wanted = [*modules] if layers is None else [*layers]
    for layer in wanted:
        if layer not in modules:
            raise NamingError(f"there is no layer {layer}; layers are 0 to {max(modules)}")
    text = None if rule is None else _text_of(read_rule(rule))
    for module in (module for layer in wanted for module in modules[layer]):
        if text is None:
            module.__dict__.pop(RULE, None)
        else:
            module.__dict__[RULE] = text
    return model


def _text_of(rule: Rule) -> str:
    """The condition of a rule for sequences of any length, its numbers written in."""
    missing = [name for name in rule.parameters if name not in rule.values]
    if missing:
        raise NamingError(f'rule "{rule.text}" needs a value for {missing[0]}: rule.at({missing[0]}=…)')
    odd = [*rule.open, *rule.data, *(name for name in ("n", "m") if name in expr.names(rule.condition))]
    if odd or len(rule.axes) > 1:
        reason = f"it names {odd[0]}" if odd else "it is a rule of images"
        raise LattendError(f'rule "{rule.text}" is not one of sequences that grow: {reason}')
    return expr.text(rule.baked().condition)


def _check_past(rule: str, mask: ModelMask, n: int) -> None:
    """Raises where a layer's own rule reaches keys that the model's cache has dropped."""
    first = mask.first_query
    if not mask.first_key or torch.compiler.is_compiling():
        return
    queries = np.arange(n)[:, None] + int(first)
    found = StepMask(read_rule(rule).condition, {}, None).on_host(queries, np.arange(mask.first_key))
    if found.any():
        raise LattendError(
            f'the rule "{rule}" reaches key {int(found.any(0).argmax())}, and the cache of this model keeps '
            f"those from {mask.first_key} on: give generate a past_key_values=DynamicCache() without a window"
        )


register()
