"""attention(q, k, v, rule): the front, where every argument is checked before any work.

It is traced by torch.compile, so it reads names and shapes only, and compares sizes where they must fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast, overload

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack, is_batchedtensor
from torch.autograd import forward_ad
from torch.compiler import is_compiling

from lattend.attend.bias import Bias
from lattend.attend.call import fp8
from lattend.attend.call.argument_hints import no_rule
from lattend.attend.call.attention_call import rule_of
from lattend.attend.call.dropout import new_seed
from lattend.attend.call.fp8 import ScalesLike
from lattend.attend.call.inputs import as_one_kind, check_scoring, check_shapes, check_sinks, checked_inputs
from lattend.attend.call.padding import padding_given
from lattend.attend.call.rule_names import rule_names
from lattend.attend.call.varlen import CuSeqlens, of_nested, packed_inputs, unpacked
from lattend.attend.decode.kv_cache import KVCache
from lattend.attend.decode.step_cache import kind_of_step
from lattend.attend.kernels.dispatch import KERNELS
from lattend.attend.operators import attention_operator, onnx
from lattend.attend.operators.max_logits_operator import KERNELS as LARGEST
from lattend.attend.operators.max_logits_operator import largest
from lattend.attend.operators.tracing import constant
from lattend.attend.overrides import RUNNERS
from lattend.attend.replay import plain_call
from lattend.attend.replay.guards import recall
from lattend.errors import LattendError, NamingError
from lattend.rules.reader import RuleLike, arrays_in, read_rule, tensors_by_element
from lattend.rules.rule import Rule

GUARDED = plain_call.CHECKED.guarded


@overload
def attention(
    q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, *, scale: float | None = ...,
    scales: ScalesLike | None = ..., bias: Bias | Tensor | None = ..., padding: Tensor | None = ...,
    cu_seqlens: CuSeqlens | None = ...,
    softcap: float | None = ..., sinks: Tensor | None = ..., dropout: float = ...,
    cache: KVCache | None = ..., return_lse: Literal[False] = ..., return_max_logit: Literal[False] = ...,
    kernel: str | None = ..., deterministic: bool = ..., **values: Any,
) -> Tensor: ...  # fmt: skip
@overload
def attention(
    q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, *, scale: float | None = ...,
    scales: ScalesLike | None = ..., bias: Bias | Tensor | None = ..., padding: Tensor | None = ...,
    cu_seqlens: CuSeqlens | None = ...,
    softcap: float | None = ..., sinks: Tensor | None = ..., dropout: float = ...,
    cache: KVCache | None = ..., return_lse: Literal[True], return_max_logit: Literal[False] = ...,
    kernel: str | None = ..., deterministic: bool = ..., **values: Any,
) -> tuple[Tensor, Tensor]: ...  # fmt: skip
@overload
def attention(
    q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, *, scale: float | None = ...,
    scales: ScalesLike | None = ..., bias: Bias | Tensor | None = ..., padding: Tensor | None = ...,
    cu_seqlens: CuSeqlens | None = ...,
    softcap: float | None = ..., sinks: Tensor | None = ..., dropout: float = ...,
    cache: KVCache | None = ..., return_lse: Literal[False] = ..., return_max_logit: Literal[True],
    kernel: str | None = ..., deterministic: bool = ..., **values: Any,
) -> tuple[Tensor, Tensor]: ...  # fmt: skip
@overload
def attention(
    q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, *, scale: float | None = ...,
    scales: ScalesLike | None = ..., bias: Bias | Tensor | None = ..., padding: Tensor | None = ...,
    cu_seqlens: CuSeqlens | None = ...,
    softcap: float | None = ..., sinks: Tensor | None = ..., dropout: float = ...,
    cache: KVCache | None = ..., return_lse: Literal[True], return_max_logit: Literal[True],
    kernel: str | None = ..., deterministic: bool = ..., **values: Any,
) -> tuple[Tensor, Tensor, Tensor]: ...  # fmt: skip
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rule: RuleLike | None = None,
    *,
    scale: float | None = None,
    scales: ScalesLike | None = None,
    bias: Bias | Tensor | None = None,
    padding: Tensor | None = None,
    cu_seqlens: CuSeqlens | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    dropout: float = 0,
    cache: KVCache | None = None,
    return_lse: bool = False,
    return_max_logit: bool = False,
    kernel: str | None = None,
    deterministic: bool = True,
    **values: Any,
) -> Tensor | tuple[Tensor, ...]:
    """softmax(scale * q k^T) v over the rule's attended pairs, zeros where a query has no key.

    q is [batch, heads, n, D], k [batch, kv_heads, m, D], v [batch, kv_heads, m, Dv]; on an image
    [batch, heads, rows, cols, D], or flattened row by row with rows=… or cols=…. Query heads are a
    multiple of the kv heads, which they share in order. `scale` is 1/sqrt(D) unless given. `values` are
    the rule's open parameters, and a tensor for each array it leaves open. `bias`, a Bias or a tensor
    [n, m], [heads, n, m] or [batch, heads, n, m], the first two of which may be 1, is added to the scaled
    scores. With return_lse, also the log-sum-exp of each query's scores; with return_max_logit, as the last
    result, the largest of them, before sinks: lt.max_logits, which has no gradient and costs one more pass
    over q k^T, about half of the forward.

    `padding` says which keys of each batch element are real: lengths [batch], or a mask [batch, m] that is
    True where a key is real, be the padding left, right or between. A query without real keys gives zeros.

    With `cu_seqlens`, the cumulative lengths (0, l1, l1 + l2, …) of sequences laid end to end, q, k and v
    are [total, heads, D], the output too; log-sum-exps are [total, heads]. The rule and the bias are read
    within each sequence, as if it were called alone: positions begin at 0, n and m are its lengths, and
    `batch` in a bias is the sequence. Nested tensors of the jagged layout, [batch, heads, j, D], are taken
    so too. Where keys have lengths of their own, cu_seqlens is (of queries, of keys), and query 0 stands at
    key 0, unless the rule says otherwise: lt.rules.causal(align="bottom-right").

    A `softcap` c bends the scaled scores s to c·tanh(s/c), before the bias. `sinks`, a tensor [heads], are
    logits that take part in every softmax of their head and give no value. `dropout` is the share of weights
    that are dropped, the others raised to keep the expected sum: for training only, drawn from torch's
    generator, and the same pairs on every kernel.

    q, k and v of 8 bits, torch.float8_e4m3fn, come with `scales` (q_scale, k_scale, v_scale), by which their
    numbers are multiplied: a number each, or a tensor [heads] or [batch, heads], of k and v [kv_heads] or
    [batch, kv_heads], 0 or above. The output is bfloat16, without gradients. On a Hopper GPU products are
    made of 8 bits; else the numbers are dequantized first. lattend.attend.quantize makes both from others.

    Every kernel has first derivatives, by backward. kernel="dense" and kernel="reference" have all:
    torch.func.grad, jacrev, jvp and hessian, and torch.autograd.grad with create_graph=True. The first
    computes every pair, with O(n m) memory; the second goes query by query in float64, slowly.

    With a `cache`, q, k and v are the next positions of its sequences, `padding` says which of them are real,
    and the rows are those of the whole sequences. Arrays that grow get an entry for each new position. It
    keeps no gradients, and torch.compile leaves the call to Python unless the cache is static.

    The rule is a Rule, or whatever lt.rule reads: "k <= q", "strided(255)", a function, a mask_mod.

    >>> import torch
    >>> x = torch.ones(1, 2, 6, 4)
    >>> attention(x, x, x, "k <= q and q - k <= t", t=3).shape
    torch.Size([1, 2, 6, 4])
    """
    if RUNNERS:  # lt.parallel.sharded
        how = {
            "scale": scale, "scales": scales, "bias": bias, "padding": padding, "cu_seqlens": cu_seqlens,
            "softcap": softcap, "sinks": sinks, "dropout": dropout, "cache": cache, "return_lse": return_lse,
            "return_max_logit": return_max_logit, "kernel": kernel, "deterministic": deterministic,
        }  # fmt: skip
        given = {name: value for name, value in how.items() if value is not None and value is not False}
        if rule is None:
            raise no_rule(values)
        return RUNNERS[-1].attention(q, k, v, rule, given | {"deterministic": deterministic}, values)
    if scales is not None:  # the rest is as if there were no such argument
        how = {
            "bias": bias, "padding": padding, "cu_seqlens": cu_seqlens, "softcap": softcap,
            "dropout": dropout, "cache": cache, "return_max_logit": return_max_logit,
        }  # fmt: skip
        return _of_8_bits(
            q, k, v, rule, scales, sinks, (scale, kernel, deterministic, return_lse), how, values
        )
    if getattr(q, "is_nested", False):
        run = partial(
            attention, rule=rule, scale=scale, bias=bias, padding=padding, softcap=softcap, sinks=sinks,
            dropout=dropout, cache=cache, return_lse=return_lse, return_max_logit=return_max_logit,
            kernel=kernel, deterministic=deterministic, **values,
        )  # fmt: skip
        return of_nested(run, (q, k, v), cu_seqlens)
    compiling, kind = is_compiling(), None
    whole = (
        scale, bias, padding, cu_seqlens, softcap, sinks, dropout, cache, return_lse, return_max_logit,
        kernel, deterministic,
    )  # fmt: skip
    if not compiling:
        again = recall(GUARDED, q, k, v, rule, values, whole)
        if again is not None:
            return again(q, k, v)
    if rule is None:
        raise no_rule(values)
    if not compiling and not isinstance(rule, (str, Rule)):
        values = {**tensors_by_element(rule), **values}
    elsewhere = compiling or dropout or return_max_logit
    if not elsewhere and cache is None and padding is None and cu_seqlens is None:
        options = (scale, softcap, dropout, kernel, deterministic, return_lse)
        kind = plain_call.kind_of_call((q, k, v), rule, values, options, bias, sinks)
        known = plain_call.CHECKED.get(kind)
        if known is not None:
            others = known.tensors(values, bias, sinks)
            again = known.run if q.dim() == 4 else partial(_on_images, known.run)
            if not others and isinstance(rule, (str, Rule)):  # what a function means may change
                plain_call.CHECKED.guard(known, again, (q, k, v), rule, values, whole)
            return again(q, k, v, *others)
    if not compiling and type(cache) is KVCache and padding is cu_seqlens is sinks is None:
        options = (scale, softcap, return_lse, dropout, return_max_logit, kernel, deterministic)
        kind = kind_of_step((q, k, v), rule, values, options, bias)
        step = cache.known(kind)
        if step is not None:
            return cache.again(step, q, k, v, bias)
    plain = plain_call.is_plain(q, k, v)
    key, bound = rule_given(rule, values)
    check_scoring(scale, softcap, dropout)
    _check_choice(kernel, deterministic)
    run: Callable[..., Any] = attention_operator.forward
    if not compiling:
        onnx.check_not_traced()
        attention_operator.register_flop_formulas()
        if plain:
            run = partial(plain_call.forward, kind, values, return_lse)
        else:
            run = _run(kernel, bias, sinks, (cu_seqlens, *values.values()), q, k, v)
    if cache is not None:
        if not isinstance(cache, KVCache):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise NamingError(f"cache must be an lt.KVCache, got {type(cache).__name__}")
        if kernel is not None:
            raise NamingError(f'kernel="{kernel}": a cache answers its queries by itself; leave kernel out')
        check_shapes(rule_names(key), q, k, v)
        q, k, v = as_one_kind(q, k, v)
        if return_max_logit:
            raise NamingError(
                "return_max_logit: a cache does not look for the largest scores; leave one of them out"
            )
        if dropout:
            raise NamingError("dropout is for training, and a cache for decoding; leave one of them out")
        if cu_seqlens is not None:
            raise NamingError(
                "cu_seqlens: a cache has a row for each sequence; pad them, and say so with padding"
            )
        check_sinks(sinks, q)
        entries = cache.check_rule(key, bound, values)
        how = {"scale": scale, "bias": bias, "padding": padding, "softcap": softcap, "sinks": sinks}
        found = cache.attend(q, k, v, return_lse=return_lse, **how, **entries)
        cache.remember(kind, (q, k, v), bias, scale, softcap, return_lse)
        return found
    if cu_seqlens is not None:
        if padding is not None:
            raise NamingError("cu_seqlens are the lengths of sequences without padding; leave padding out")
        key, packed, padding = packed_inputs((key, bound), values, (q, k, v), bias, cu_seqlens)
        q, k, v, *given = packed
    else:
        q, k, v, *given = checked_inputs((key, bound), values, (q, k, v), bias)
    real = padding_given(padding, q, k)
    check_sinks(sinks, q)
    seed = new_seed(q) if dropout else None
    how = (*real, sinks, seed, dropout, softcap, scale, kernel, deterministic)
    if onnx.is_exporting():
        onnx.check_exportable(given[0], given[1], kernel, dropout)
        run = attention_operator.by_torch
    flat = _on_a_line(q, k, v)
    results: list[Any] = [*run(*flat, key, *given, *how)]
    found = results if return_lse else results[:1]
    if return_max_logit:
        same = kernel if kernel in LARGEST else None  # others have no such pass
        found.append(largest(flat[0], flat[1], key, given, real, softcap=softcap, scale=scale, kernel=same))
    found = _as_given(q, *found)
    if cu_seqlens is not None:
        found = [unpacked(x) for x in found]
    return found[0] if len(found) == 1 else tuple(found)


def _of_8_bits(
    q: Tensor, k: Tensor, v: Tensor, rule: RuleLike | None, scales: ScalesLike, sinks: Tensor | None,
    options: tuple[float | None, str | None, bool, bool], how: Mapping[str, Any], values: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Attention of 8 bits by its kernel where that takes the call, else on dequantized numbers."""
    if rule is None:
        raise no_rule(values)
    if how["cache"] is not None or how["dropout"]:
        what = (
            "dropout is for training" if how["cache"] is None else "a cache holds numbers of 16 bits or more"
        )
        raise NamingError(f"scales, so q, k and v of 8 bits: {what}; multiply them by their scales first")
    _check_choice(*options[1:3])
    factors = fp8.scales_given(scales, q, k, v)
    fp8.check_no_gradients(q, k, v, factors, how["bias"], sinks)
    others = ("bias", "padding", "cu_seqlens", "softcap")
    if not how["return_max_logit"] and all(how[name] is None for name in others):
        found = fp8.by_kernel(q, k, v, factors, rule, sinks, values, options)
        if found is not None:
            return found
    scale, kernel, deterministic, return_lse = options
    attend: Any = attention
    found = attend(
        *fp8.dequantized(q, k, v, factors), rule, scale=scale, sinks=sinks, kernel=kernel,
        deterministic=deterministic, return_lse=return_lse, **how, **values,
    )  # fmt: skip
    return fp8.with_value_scales(found, q, v, factors)


def _on_a_line(*images: Tensor) -> Sequence[Tensor]:
    """The tensors with one axis for all positions, the last of an image fastest."""
    return images if images[0].dim() == 4 else [x.flatten(2, -2) for x in images]


def _on_images(run: Callable[..., Any], q: Tensor, *others: Tensor) -> Tensor | tuple[Tensor, ...]:
    """What `run` gives for positions on a line, with the axes of q."""
    found: Tensor | tuple[Tensor, ...] = run(*_on_a_line(q, *others[:2]), *others[2:])
    return _as_given(q, found)[0] if isinstance(found, Tensor) else tuple(_as_given(q, *found))


def _as_given(q: Tensor, *found: Tensor) -> list[Tensor]:
    """What was found for each position, with the axes of q."""
    return [*found] if q.dim() == 4 else [torch.unflatten(x, 2, q.shape[2:-1]) for x in found]


def _check_choice(kernel: object, deterministic: object) -> None:
    if not isinstance(deterministic, bool):
        raise NamingError(f"deterministic is True or False, not {deterministic!r}")
    if kernel is not None and (not isinstance(kernel, str) or kernel not in KERNELS):
        raise NamingError(f"kernel is one of {', '.join(KERNELS)}, not {kernel!r}; leave it out for the best")


def rule_given(rule: RuleLike, values: Mapping[str, Any]) -> tuple[str, Mapping[str, int]]:
    """The key of a rule and the numbers it has; arrays among the values are its own."""
    if isinstance(rule, Rule) or not is_compiling():
        found = read_rule(rule, arrays_in(values))
        if not isinstance(rule, Rule):
            rule_of(found.key)  # which keeps its arrays, as nobody else does
        return found.key, found.values
    key, numbers = _read(rule, arrays_in(values))
    return key, dict(numbers)


@constant
def _read(rule: RuleLike, arrays: tuple[str, ...]) -> tuple[str, tuple[tuple[str, int], ...]]:
    """The key and the numbers of a rule that is no Rule yet: all that a compiled call needs of it."""
    found = read_rule(rule, arrays)
    if found.data and not isinstance(rule, str):
        name = next(iter(found.data))
        raise NamingError(
            f"the function reads {name}, which a compiled program would keep as it is: "
            'make a rule of it first, lt.rule(function), or name it: "doc[q] == doc[k]" with doc=tensor'
        )
    return found.key, tuple(found.values.items())


def _run(
    kernel: str | None, bias: object, sinks: object, arrays: Iterable[object], *qkv: object
) -> Callable[..., Any]:
    """What runs a call: the operator; in forward mode and under torch.func.grad, torch operations.

    Raises where forward-mode differentiation would find no tangent and take it for zero, and where torch.func
    would differentiate an operator that only torch.autograd can.
    """
    forward = int(forward_ad._current_level) >= 0  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportUnknownArgumentType]
    layers: list[Any] = get_interpreter_stack() or []
    if layers and all(layer.key() == TransformType.Vmap for layer in layers):
        _check_mapped(bias, arrays, qkv)
    reverse = any(layer.key() == TransformType.Grad for layer in layers)
    if not forward and not reverse:
        return attention_operator.forward
    if kernel in attention_operator.DIFFERENTIABLE:
        return attention_operator.by_torch
    unpack = forward_ad.unpack_dual  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    tensors = _tensors((bias, sinks, *qkv))
    if reverse and any(x.requires_grad for x in tensors):
        raise LattendError(
            "torch.func.grad, vjp and jacrev cannot differentiate this kernel of attention: use backward or "
            f"torch.autograd.grad, or {attention_operator.ALL_DERIVATIVES}, which has all derivatives"
        )
    if forward and any(unpack(x).tangent is not None for x in tensors):
        raise LattendError(
            "this kernel of attention has no forward-mode derivative: use backward or torch.autograd.grad, "
            f"or {attention_operator.ALL_DERIVATIVES}, which has all derivatives"
        )
    return attention_operator.forward


def _check_mapped(bias: object, arrays: Iterable[object], qkv: Iterable[object]) -> None:
    """Raises where vmap maps a bias or an array of the rule, but none of q, k and v."""
    if any(is_batchedtensor(x) for x in _tensors(qkv)):
        return
    if any(is_batchedtensor(x) for x in _tensors([bias])):
        raise LattendError("bias: vmap maps the batch of q, k and v, and bias has none")
    if any(is_batchedtensor(x) for x in _tensors(arrays)):
        raise LattendError(
            "vmap maps an array of the rule, or cu_seqlens, and none of q, k and v: map one of these too"
        )


def _tensors(given: Iterable[object]) -> list[Tensor]:
    """The tensors among these, and those of a bias and of pairs."""
    whole: list[object] = []
    for one in given:
        if isinstance(one, Bias):
            whole.extend(one.tensors.values())
        elif isinstance(one, tuple):
            whole.extend(cast(tuple[object, ...], one))
        else:
            whole.append(one)
    return [x for x in whole if isinstance(x, Tensor)]
