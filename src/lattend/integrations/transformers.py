"""Hugging Face models on lt.attention.

    import lattend.integrations.transformers
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="lattend")

A model says whom a query attends with a mask function; it is read as a rule, once. What a rule cannot say
exactly is refused with the reason, and never run with another mask.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

try:
    import torch
    from torch import Tensor, nn
    from transformers import AttentionInterface, AttentionMaskInterface
except ImportError as missing:
    from lattend.errors import ExtraMissing, first_cause

    reason = first_cause(missing)  # transformers says less than it met
    raise ExtraMissing(
        "lattend.integrations.transformers needs torch and transformers 5.20 or newer, whose import failed "
        f'with {type(reason).__name__}: {reason}. They are an extra: pip install "lattend[transformers]"'
    ) from missing

from lattend.attend.attention import attention
from lattend.attend.call.options import AttentionOptions
from lattend.attend.call.sinks import with_sinks
from lattend.attend.call.tensor_terms import evaluate
from lattend.attend.decode import step
from lattend.attend.decode.step import Scoring, StepMask
from lattend.attend.operators.tracing import constant
from lattend.attend.overrides import OVERRIDES
from lattend.cost.models.configuration import RULE
from lattend.errors import LattendError, NamingError
from lattend.integrations.looking_ahead import check_ahead, looks_ahead
from lattend.integrations.model_mask import (
    PACKED,
    ModelMask,
    attention_mask,
    condition_of,
    replace_mask_functions,
    shifted,
    with_documents,
)
from lattend.integrations.saved_rules import save_rules
from lattend.rules.language import expr
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule

NAME = "lattend"
FEW = 16  # so many queries after a past are answered at once, without a plan
TABLE = "table"  # the array that holds a mask of pairs
CROSS = re.compile("cross|encoder_attn|EncDec")  # in the names of attention to another sequence
FULL, CAUSAL = "q >= 0", "k <= q"


def register() -> None:
    """Make `attn_implementation="lattend"` known; importing this module does so."""
    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, attention_mask)
    replace_mask_functions()
    save_rules(NAME)


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
    cu_seq_lens_q: Tensor | None = None,
    cache: Any = None,
    output_attentions: bool | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """What transformers calls in every layer; the output is [batch, queries, heads, value_dim]."""
    if cache is not None:
        raise LattendError(
            f"a {type(cache).__name__} holds the keys of many sequences in pages, which are not read: "
            'continuous batching takes attn_implementation="sdpa" or "paged|eager"'
        )
    if output_attentions:
        raise LattendError(
            "output_attentions=True asks for the weights of all pairs, which are never made here: "
            'model.set_attn_implementation("eager") gives them'
        )
    mask, added = _mask_and_bias(module, query, key, attention_mask, is_causal, cu_seq_lens_q)
    rule, arrays, by_side = _rule_of(module, mask, query, key)
    bias = None if position_bias is None else position_bias[..., : key.shape[2]]  # [1 or batch, heads, n, m]
    bias = added if bias is None else bias if added is None else bias + added
    options: dict[str, Any] = {"scale": scaling, "softcap": softcap, "sinks": s_aux, "bias": bias}
    how: dict[str, Any] = {**options, "padding": mask.padding, "dropout": dropout}
    whole = mask.from_the_start and not by_side
    if OVERRIDES and (arrays or not whole or position_bias is not None or added is not None):
        _refuse_shards(arrays, whole)
    if whole and (query.shape[2] > 1 or key.shape[2] == 1 or arrays or dropout):
        how |= {} if query.shape[2] == key.shape[2] else {"m": key.shape[2]}
        how |= arrays
        out = attention(query, key, value, rule, **how)
    elif isinstance(mask.first_query, int) and (query.shape[2] > FEW or dropout):
        how |= {"q0": mask.first_query, "k0": mask.first_key, "m": key.shape[2], **arrays}
        out = attention(query, key, value, shifted(rule), **how)
    elif dropout:
        raise LattendError(
            "dropout is for training, and a static cache for decoding: call the model's eval()"
        )
    else:
        out = _rows(query, key, value, rule, mask, arrays, options)
    return out.transpose(1, 2).contiguous(), None


def _refuse_shards(arrays: Mapping[str, Tensor], whole: bool) -> NoReturn:
    """Raises where a model under lt.parallel.sharded asks for what its shards cannot answer by themselves."""
    if not whole:
        error = "its keys are a cache's: give use_cache=False, and generate in one process"
    elif PACKED in arrays:
        error = (
            "it takes position_ids that do not follow each other for packed sequences: give an "
            "attention_mask of the shard too, torch.ones(…); sequences that are packed are cut no further"
        )
    else:
        error = "its mask or bias is a table, or is counted from padding, of which each rank sees a part"
    OVERRIDES[-1].refuse(LattendError(f"a model under lt.parallel.sharded: {error}"))


def _mask_and_bias(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    given: ModelMask | Tensor | None,
    is_causal: bool | None = None,
    cu_seq_lens_q: Tensor | None = None,
) -> tuple[ModelMask, Tensor | None]:
    """The mask of a layer, and what it adds to the scores."""
    given, added = _split(given, query.shape[2], key.shape[2])
    mask = given if isinstance(given, ModelMask) else _mask_of(module, query, key, given, is_causal)
    if cu_seq_lens_q is not None:
        mask = with_documents(mask, cu_seq_lens_q, query, key)
    return mask, added


def _rule_of(
    module: nn.Module, mask: ModelMask, query: Tensor, key: Tensor
) -> tuple[str, Mapping[str, Tensor], bool]:
    """The rule of a layer, what it looks up, and whether that is of queries and keys apart."""
    own: str | None = getattr(module, RULE, None)
    if own is None:
        return mask.rule, mask.arrays, mask.by_side
    if mask.first_key:
        _check_past(own, mask, query.shape[2])
    if looks_ahead(own):
        check_ahead(own, mask, query, key)
    if TABLE in mask.arrays:
        raise LattendError(
            f'the rule "{own}" was set for this layer, and the model is given a mask of pairs too: give its '
            "padding as attention_mask [batch, positions], or take the rule back with set_rule(model, None)"
        )
    packed = {name: ids for name, ids in mask.arrays.items() if name.startswith(PACKED)}
    if packed:  # as padding, packed sequences stay what they are
        names = "head, q, k" if _by_head(own) else "q, k"
        same = " and ".join([f"{name}[q] == {name}[k]" for name in packed])
        return f"lambda {names}: ({own}) and {same}", packed, False
    return own, {}, False


def _mask_of(
    module: nn.Module, query: Tensor, key: Tensor, given: Tensor | None, is_causal: bool | None
) -> ModelMask:
    """The mask of a layer that gets no rule: all keys, those up to a query, or a table of pairs."""
    n, m = query.shape[2], key.shape[2]
    if given is not None:
        return _table_mask(given, query.shape[0], n, m)
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if causal and n > 1 and n != m:
        raise LattendError(
            f"{type(module).__name__} is causal and gave {n} queries and {m} keys without a mask: where the "
            'queries stand is not said. Use attn_implementation="eager" for this model'
        )
    return ModelMask(CAUSAL if causal and n > 1 else FULL)


def _split(
    given: ModelMask | Tensor | None, n: int, m: int
) -> tuple[ModelMask | Tensor | None, Tensor | None]:
    """What is given as a mask, as a mask of pairs and as a bias, [batch, 1 or heads, n, m].

    Numbers that are added are a mask where they are 0 and minus infinity only, or the lowest finite number,
    which stands for it; else a bias.
    """
    if not isinstance(given, Tensor) or given.dtype == torch.bool:
        return given, None
    if given.dim() != 4 or given.shape[2] not in (1, n):
        raise LattendError(f"an attention mask of shape {tuple(given.shape)} cannot be read for {n} queries")
    added = given[..., :m]
    if not torch.compiler.is_compiling() and not added.requires_grad:
        off = added <= torch.finfo(added.dtype).min / 2
        if bool((off | (added == 0)).all()):
            return ~off, None
    return ModelMask(FULL), added.expand(-1, -1, n, -1)


def _table_mask(given: Tensor, batch: int, n: int, m: int) -> ModelMask:
    """A mask [batch, 1 or heads, n, m] of bool that somebody made, pair by pair."""
    if given.dim() != 4 or given.shape[2] not in (1, n):
        raise LattendError(f"an attention mask of shape {tuple(given.shape)} cannot be read for {n} queries")
    table = given[..., :m].expand(batch, -1, n, -1)
    if table.shape[1] == 1:
        return ModelMask("lambda q, k: table[q, k]", arrays={TABLE: table[:, 0]})
    return ModelMask("lambda head, q, k: table[head, q, k]", arrays={TABLE: table})


# A few queries after a past


def _rows(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rule: str,
    mask: ModelMask,
    arrays: Mapping[str, Tensor],
    options: Mapping[str, Any],
) -> Tensor:
    """Attention of a few queries on the keys of a cache, by a mask of these rows alone."""
    attended, bias, sinks = _attended(q, k, rule, mask, arrays), options["bias"], options["sinks"]
    if isinstance(attended, slice):
        if attended.stop - attended.start < k.shape[2]:
            k, v = k[:, :, attended], v[:, :, attended]
            bias = None if bias is None else bias[..., attended]
        attended = None
    how = Scoring.of(q, AttentionOptions(**options, return_lse=sinks is not None))
    out, lse = step.attend(q, k, v, attended, how, bias)
    return out if sinks is None or lse is None else with_sinks(out, lse, sinks)[0]


def _attended(
    q: Tensor, k: Tensor, rule: str, mask: ModelMask, arrays: Mapping[str, Tensor]
) -> Tensor | slice:
    """Which keys these rows attend to: a slice where it is one and nothing is padded, else a mask."""
    if rule in mask.rows:  # another layer has asked
        return mask.rows[rule]
    n, m = q.shape[2], k.shape[2]
    found = None
    alike = isinstance(mask.first_query, int) and mask.padding is None and not arrays
    if alike and not torch.compiler.is_compiling():
        found = _on_host(rule, int(mask.first_query), n, mask.first_key, m)
    if found is None:
        queries = torch.arange(n, device=q.device) + mask.first_query
        keys = torch.arange(m, device=q.device) + mask.first_key
        found = torch.ops.lattend.attended(
            rule, queries, keys, q.shape[1], ",".join(arrays), list(arrays.values())
        )
        if mask.padding is not None:
            found = found & mask.padding[:, None, None, :]
    mask.rows[rule] = found
    return found


@torch.library.custom_op("lattend::attended", mutates_args=())
def _attended_op(
    rule: str, queries: Tensor, keys: Tensor, heads: int, names: str, arrays: list[Tensor]
) -> Tensor:
    """Which of these positions attend to which, [n, m], or [heads, n, m] where heads differ.

    With arrays, [batch, n] or [batch, m] by what their names end in, it is [batch, 1, n, m].
    """
    found = read_rule(rule)
    at: dict[str, Any] = {"q": queries[:, None], "k": keys}
    shape = [len(queries), len(keys)]
    if found.has_heads:
        at["head"] = torch.arange(heads, device=keys.device)[:, None, None]
        shape = [heads, *shape]
    for name, array in zip(names.split(","), arrays, strict=bool(arrays)):
        at[name] = array[:, None, :, None] if name.endswith("_q") else array[:, None, None, :]
    shape = [len(arrays[0]), 1, *shape] if arrays else shape
    held = evaluate(found.condition, at)
    return torch.as_tensor(held, device=keys.device).expand(shape).clone()


@_attended_op.register_fake
def _(rule: str, queries: Tensor, keys: Tensor, heads: int, names: str, arrays: list[Tensor]) -> Tensor:
    shape = (queries.shape[0], keys.shape[0])  # len() would fix a size that a compiled program leaves open
    shape = (heads, *shape) if _by_head(rule) else shape
    return keys.new_empty((arrays[0].shape[0], 1, *shape) if arrays else shape, dtype=torch.bool)


@constant
def _by_head(rule: str) -> bool:
    return read_rule(rule).has_heads


@lru_cache(maxsize=256)
def _step_mask(rule: str) -> StepMask:
    found = read_rule(rule)
    return StepMask(found.condition, found.data, None)


def _on_host(rule: str, first: int, n: int, first_key: int, m: int) -> slice | None:
    """The keys that all of these rows attend to, if there are no others."""
    rows = _step_mask(rule).on_host(np.arange(first, first + n), np.arange(first_key, first_key + m))
    if n > 1 and not (rows == rows[0]).all():
        return None
    places = np.flatnonzero(rows[0])
    if len(places) and places[-1] - places[0] == len(places) - 1:
        return slice(int(places[0]), int(places[-1]) + 1)
    return None


# The rules of a model, and others for it


def layer_rules(model: nn.Module, *inputs: Any, **named: Any) -> dict[str, str]:
    """The rule of each attention layer, by the layer's name, when the model runs once on these inputs.

    Padding is no part of it. What a rule looks up, as in `packed[q] == packed[k]`, comes from the inputs.
    """
    names = {module: name for name, module in model.named_modules()}
    found: dict[str, str] = {}

    def watched(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **options: Any
    ) -> tuple[Tensor, None]:
        said = {name: options.get(name) for name in ("is_causal", "cu_seq_lens_q")}
        mask, _ = _mask_and_bias(module, query, key, attention_mask, **said)
        rule, *_ = _rule_of(module, mask, query, key)
        found[names[module]] = condition_of(rule)
        return attention_forward(module, query, key, value, attention_mask, **options)

    AttentionInterface.register(NAME, watched)
    try:
        with torch.no_grad():
            model(*inputs, **named)
    finally:
        AttentionInterface.register(NAME, attention_forward)
    if not found:
        _check_chosen(model)
        raise _no_layers(model)
    return found


def set_rule(
    model: nn.Module, rule: RuleLike | None, layers: Iterable[int] | int | None = None, **numbers: int
) -> nn.Module:
    """The model, whose self-attention follows this rule from now on; None gives the layers back their own.

    `numbers` are those of the rule's letters, as in set_rule(model, "strided", t=255). `layers` is one number
    or several, all layers unless given; in an encoder-decoder those of both, and of one with
    set_rule(model.get_encoder(), …). Of a model of text and images the layers for text are meant. Padding,
    packed sequences, caches and attention to another sequence stay as they are.
    """
    if not isinstance(model, nn.Module):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(
            f"set_rule changes a loaded model, and got {type(model).__name__}: load it first, "
            'from_pretrained(name, attn_implementation="lattend")'
        )
    _check_chosen(model)
    modules = _layers_of(model)
    wanted = [*modules] if layers is None else _numbers_of(layers)
    for layer in wanted:
        if layer not in modules:
            raise NamingError(f"there is no layer {layer}; layers are 0 to {max(modules)}")
    text = None if rule is None else _text_of(read_rule(rule).at(**numbers))
    for module in (module for layer in wanted for module in modules[layer]):
        if text is None:
            module.__dict__.pop(RULE, None)
        else:
            module.__dict__[RULE] = text
    return model


def _numbers_of(layers: Iterable[int] | int) -> list[int]:
    if isinstance(layers, int):
        return [layers]
    if isinstance(layers, str) or not isinstance(layers, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f"layers are numbers, as in 3, [0, 2] or range(0, 32, 2), not {layers!r}")
    return [*layers]


def _check_chosen(model: nn.Module) -> None:
    if getattr(getattr(model, "config", None), "_attn_implementation", NAME) != NAME:
        raise NamingError('the model runs another attention: model.set_attn_implementation("lattend") first')


def _no_layers(model: nn.Module) -> LattendError:
    return LattendError(
        f"no layer of {type(model).__name__} hands its attention over: the model computes it itself"
    )


def _layers_of(model: nn.Module) -> dict[int, list[nn.Module]]:
    """The modules of self-attention by the number of their layer, or in order where they have none."""
    named = [(name, module) for name, module in model.named_modules() if hasattr(module, "is_causal")]
    found = [module for name, module in named if not CROSS.search(name)]
    if not found:
        raise _no_layers(model)
    modules: dict[int, list[nn.Module]] = {}
    plain: list[nn.Module] = []
    for module in found:
        layer: Any = getattr(module, "layer_idx", None)
        plain.append(module) if layer is None else modules.setdefault(layer, []).append(module)
    # Layers of an image model and of an encoder have no numbers; nor those that see for a language model
    if not modules or getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        for layer, module in enumerate(plain):
            modules.setdefault(layer, []).append(module)
    return modules


def _text_of(rule: Rule) -> str:
    """The condition of a rule for sequences of any length, its numbers written in."""
    missing = [name for name in rule.parameters if name not in rule.values]
    if missing:
        raise NamingError(f'rule "{rule.text}" needs a value for {missing[0]}: set_rule(…, {missing[0]}=…)')
    odd = [*rule.open, *rule.data, *(name for name in ("n", "m") if name in expr.names(rule.condition))]
    if odd or len(rule.axes) > 1:
        reason = f"it names {odd[0]}" if odd else "it is a rule of images"
        raise LattendError(f'rule "{rule.text}" is not one of sequences that grow: {reason}')
    return expr.text(rule.baked().condition)


def _check_past(rule: str, mask: ModelMask, n: int) -> None:
    """Raises where a layer's own rule reaches keys that the model's cache has dropped."""
    first = mask.first_query
    if torch.compiler.is_compiling():
        return
    queries = np.arange(n) + int(first)
    found = StepMask(read_rule(rule).condition, {}, None).on_host(queries, np.arange(mask.first_key))
    if found.any():
        raise LattendError(
            f'the rule "{rule}" reaches key {int(found.any(0).argmax())}, and the cache of this model keeps '
            f"those from {mask.first_key} on: give generate a past_key_values=DynamicCache() without a window"
        )


register()
