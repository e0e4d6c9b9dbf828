"""Plain calls: they run what was prepared for their signature, without torch's operator in between.

The operator lattend::attention is for whoever traces or watches a call: torch.compile, torch.func, dispatch
modes. Its way through torch's dispatcher takes longer than a small kernel does. Around a plain call there
is torch.autograd and nothing else, and a call whose signature is known is not checked again.
"""

# torch.autograd.Function has no types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C._autograd import _top_saved_tensors_default_hooks

from lattend.attend.bias import Bias
from lattend.attend.call.attention_call import BackwardInputs, CallSignature
from lattend.attend.call.checked_call import CheckedCall
from lattend.attend.call.options import AttentionOptions
from lattend.attend.operators import attention_operator
from lattend.attend.replay.compiled_call import MAX_CALLS, CompiledCall, compiled_call_of, wants_gradient
from lattend.attend.replay.recorder import Steps
from lattend.attend.replay.signature import PLAIN, is_plain, plain_signature
from lattend.recent import Recent
from lattend.rules.reader import RuleLike, read_rule


class PreparedCall(NamedTuple):
    """A function that runs the calls of one signature, and the names of the rule's arrays it takes."""

    run: Callable[..., Any]
    arrays: tuple[str, ...] = ()

    def tensors(self, options: AttentionOptions, values: Mapping[str, Any]) -> Sequence[Tensor]:
        """Returns the tensors of such a call besides q, k and v."""
        bias, sinks = options.bias, options.sinks
        if not self.arrays and bias is None and sinks is None:
            return ()
        tensors = [values[name] for name in self.arrays]
        if bias is not None:
            tensors += bias.tensors.values() if isinstance(bias, Bias) else (bias,)
        return tensors if sinks is None else [*tensors, sinks]


PREPARED: Recent[CallSignature, PreparedCall] = Recent(MAX_CALLS)


def call_signature(
    qkv: Sequence[Tensor], rule: RuleLike | None, in_signature: tuple[Any, ...] | None,
    bias: Bias | Tensor | None, sinks: Tensor | None, values: Mapping[str, Any],
) -> CallSignature | None:  # fmt: skip
    """Returns everything that decides how a call runs; None for a call that is decided anew each time.

    That is the rule and its numbers, the options without tensors, and of each tensor everything but its
    numbers: dtype, device, shape, strides, alignment, which tensors are the same, requires_grad, and torch's
    settings. A step of a cache may leave out the rule, which is the cache's.
    """
    if in_signature is None:
        return None
    written: CallSignature = rule
    if rule is not None and not isinstance(rule, str):
        read = read_rule(rule)
        written = read.key, tuple(read.values.items())
    plain = not values or all([type(x) is int for x in values.values()])  # noqa: C419 (faster)
    if plain and bias is None and sinks is None:
        tensors = plain_signature(in_signature, *qkv)
        return None if tensors is None else (written, *values.items(), in_signature, tensors)
    numbers: list[Any] = []
    arrays: list[Tensor] = []
    for name, x in values.items():
        if type(x) is int:
            numbers.append((name, x))
        elif type(x) in PLAIN:
            numbers.append((name, Tensor))
            arrays.append(x)
        else:
            return None
    text, in_bias = (bias.key, bias.tensors.values()) if isinstance(bias, Bias) else (None, (bias,))
    others = [x for x in (*arrays, *in_bias, sinks) if x is not None]
    tensors = plain_signature(in_signature, *qkv, *others)
    if tensors is None:
        return None
    return written, tuple(numbers), text, bias is None, sinks is None, in_signature, tensors


def forward(
    call: CheckedCall, signature: CallSignature | None, options: AttentionOptions, values: Mapping[str, Any]
) -> Any:
    """Prepares a call, keeps what was prepared under its signature, and runs it."""
    q, k, v, return_lse = call.q, call.k, call.v, options.return_lse
    record, tensors = compiled_call_of(q, k, v, call.operator_call)
    run = runner_for(record, return_lse, q, k, v, *tensors)
    results = run(q, k, v, *tensors)
    if signature is not None:
        names = {id(x): name for name, x in values.items()}
        arrays = [names.get(id(x)) for x in tensors[: len(record.call.data)]]
        if None not in arrays:  # later calls get them as the caller gives them
            run = partial(_on_image, run, call.image) if call.image else run
            PREPARED.find(signature, lambda: PreparedCall(run, tuple(map(str, arrays))))
    return results if return_lse else (results, None)


def _on_image(
    run: Callable[..., Any], image: tuple[int, ...], q: Tensor, k: Tensor, v: Tensor, *others: Tensor
) -> Any:
    """Runs a call whose positions lie on a line, on an image's."""
    results = run(*(x.flatten(2, -2) for x in (q, k, v)), *others)
    if isinstance(results, Tensor):
        return torch.unflatten(results, 2, image)
    return tuple([torch.unflatten(x, 2, image) for x in results])


def runner_for(record: CompiledCall, with_lse: bool, *tensors: Tensor) -> Callable[..., Any]:
    """Returns what computes the output, or a pair with the log-sum-exp, under autograd where it is needed."""
    if wants_gradient(*tensors):
        alone, both = _apply_without_functorch(_Output), _apply_without_functorch(_OutputAndLse)
        how = record, record.runner(*tensors)
        if with_lse:
            return partial(both, *how)
        if record.call.kernel == attention_operator.DIFFERENTIABLE:  # a second derivative goes through both
            return lambda *tensors: both(*how, *tensors)[0]
        if not record.differentiated_by_torch(*tensors[:3]):
            return partial(alone, *how)
    elif with_lse:
        return record.runner(*tensors)
    return record.output_runner(*tensors)


class _Output(torch.autograd.Function):
    """The output alone, for which autograd has less to keep."""

    @staticmethod
    def forward(ctx: Any, record: CompiledCall, run: Steps, *tensors: Tensor) -> Tensor:
        return _run_and_save(ctx, record, run, tensors)[0]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return _gradients(ctx, grads[0], None)


class _OutputAndLse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, record: CompiledCall, run: Steps, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        return _run_and_save(ctx, record, run, tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        return _gradients(ctx, *grads)


def _apply_without_functorch(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """Returns the function's apply without torch.func's part, which plain calls do not need."""
    return super(torch.autograd.Function, function).apply  # pyright: ignore


def _run_and_save(
    ctx: Any, record: CompiledCall, run: Steps, tensors: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Computes the output and the log-sum-exp, and saves them for the backward pass."""
    results = run(*tensors)
    ctx.record = record
    ctx.save_for_backward(*tensors, *results)
    ctx.as_saved = _top_saved_tensors_default_hooks(True) is None  # pyright: ignore
    return results


def _gradients(ctx: Any, grad_out: Tensor | None, grad_lse: Tensor | None) -> tuple[Any, ...]:
    """Returns the gradient of each argument of the forward pass, None where it has none."""
    saved: tuple[Tensor, ...] = ctx.saved_tensors
    q, k, v, *given, out, lse = saved
    if grad_out is None:
        grad_out = torch.zeros_like(out)
    record: CompiledCall = ctx.record
    inputs = BackwardInputs(grad_out, grad_lse, q, k, v, out, lse)
    data, biases = len(record.call.data), len(record.call.bias)
    learned = biases > 0 and any(ctx.needs_input_grad[5 + data : 5 + data + biases])
    signature = plain_signature((), grad_out)  # sooner than is_plain
    if (
        torch.is_grad_enabled()
        or torch.compiler.is_compiling()
        or (signature is None and not is_plain(grad_out))
    ):
        gradients = _by_operator(record, inputs, given, learned)
    else:
        apart = all([grad_out is not x for x in saved])  # noqa: C419 (a list is faster)
        alone = ctx.as_saved and apart and grad_lse is None
        gradients = record.backward(inputs, given, learned, signature if alone else None)
    if not given:
        return None, None, *gradients
    dq, dk, dv, *others = gradients
    left: list[Any] = [*others[:biases]]
    if record.call.sinks is not None:
        left.append(others[-1])
    none = [None] * (len(given) - data - len(left))
    return None, None, dq, dk, dv, *([None] * data), *left, *none


def _by_operator(
    record: CompiledCall, inputs: BackwardInputs, given: Sequence[Tensor], learned: bool
) -> list[Tensor]:
    """Computes the gradients where somebody watches, or asks for a second derivative."""
    call = record.operator_call.with_tensors(given)
    *grads, others = attention_operator.gradients(inputs, learned, call)
    return [*grads, *others]
