"""attention(q, k, v, rule): the front door. Read here how one call runs, from its arguments to a kernel.

1. `AttentionOptions` reads the keyword arguments once (call/options.py).
2. Under lt.parallel.sharded, an override takes the call (overrides.py).
3. `call_signature` says what kind of call this is; a call like an earlier one runs what was prepared for it
   (replay/plain_call.py).
4. `check_call` checks all arguments against each other and makes a CheckedCall (call/checked_call.py).
5. torch.compile, torch.func and whoever else watches tensors get an operator (operators/derivatives.py,
   operators/attention_operator.py); any other call goes on without it (replay/plain_call.py).
6. The dispatcher chooses a kernel (kernels/dispatch.py). Its `prepare` decides everything else, once, and
   returns a pass whose `run` allocates and launches (kernels/).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, overload

from torch import Tensor
from torch.compiler import is_compiling

from lattend.attend.bias import Bias
from lattend.attend.call.checked_call import check_call
from lattend.attend.call.fp8 import ScalesLike, attend_8_bit
from lattend.attend.call.options import AttentionOptions, no_rule
from lattend.attend.call.varlen import CuSeqlens, attend_nested
from lattend.attend.decode.kv_cache import KVCache, attend_cached
from lattend.attend.operators import attention_operator
from lattend.attend.operators.derivatives import operator_for
from lattend.attend.operators.max_logits_operator import max_logits_of
from lattend.attend.operators.tracing import check_exportable
from lattend.attend.overrides import OVERRIDES
from lattend.attend.replay import plain_call
from lattend.attend.replay.signature import is_plain
from lattend.rules.reader import RuleLike, tensors_by_element
from lattend.rules.rule import Rule


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

    Every kernel has first derivatives, by backward. kernel="dense" has all: torch.func.grad, jacrev, jvp and
    hessian, and torch.autograd.grad with create_graph=True. It computes every pair, with O(n m) memory.

    With a `cache`, q, k and v are the next positions of its sequences, `padding` says which of them are real,
    and the rows are those of the whole sequences. Arrays that grow get an entry for each new position. It
    keeps no gradients, and torch.compile leaves the call to Python unless the cache is static.

    The rule is a Rule, or whatever lt.rule reads: "k <= q", "strided(255)", a function, a mask_mod.

    >>> import torch
    >>> x = torch.ones(1, 2, 6, 4)
    >>> attention(x, x, x, "k <= q and q - k <= t", t=3).shape
    torch.Size([1, 2, 6, 4])
    """
    options = AttentionOptions(
        scale, scales, bias, padding, cu_seqlens, softcap, sinks, dropout, cache, return_lse,
        return_max_logit, kernel, deterministic,
    )  # fmt: skip
    return attend(q, k, v, rule, options, values)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rule: RuleLike | None,
    options: AttentionOptions,
    values: Mapping[str, Any],
) -> Any:
    """Runs attention with its options in one object."""
    if rule is None:
        raise no_rule(values)
    if OVERRIDES:  # lt.parallel.sharded
        return OVERRIDES[-1].attention(q, k, v, rule, options.as_keywords(), values)
    if options.scales is not None:
        return attend_8_bit(attend, q, k, v, rule, options, values)
    if getattr(q, "is_nested", False):
        return attend_nested(attend, q, k, v, rule, options, values)
    compiling, signature = is_compiling(), None
    if not compiling and not isinstance(rule, (str, Rule)):
        values = {**tensors_by_element(rule), **values}
    if options.cache is not None:
        return attend_cached(q, k, v, rule, options, values)
    if not compiling:
        signature = plain_call.call_signature(
            (q, k, v), rule, options.in_signature, options.bias, options.sinks, values
        )
        prepared = plain_call.PREPARED.get(signature)
        if prepared is not None:
            return prepared.run(q, k, v, *prepared.tensors(options, values))
        check_exportable()
        attention_operator.register_flop_formulas()
    call = check_call(q, k, v, rule, options, values)
    if compiling:
        results = attention_operator.forward(call.q, call.k, call.v, call.operator_call)
    elif is_plain(q, k, v):
        results = plain_call.forward(call, signature, options, values)
    else:
        results = operator_for(call, options, values)(call.q, call.k, call.v, call.operator_call)
    output, lse = results
    returned = [output, lse] if options.return_lse else [output]
    if options.return_max_logit:
        returned.append(max_logits_of(call.q, call.k, call.operator_call))
    returned = [call.in_callers_shape(x) for x in returned]
    return returned[0] if len(returned) == 1 else tuple(returned)
