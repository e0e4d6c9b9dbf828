"""Multiply-adds of matrix products, convolutions and recurrent layers, from their shapes.

A convolution multiplies its padding in all columns but `needed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from torch import Tensor, dtype

from lattend.cost.measure.tally import Operation, Tally

# The arguments that are multiplied; the last axis of the left one is summed over
MATRICES = {
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "mv": ("self", "vec"),
    "dot": ("self", "tensor"),
    "vdot": ("self", "other"),
    "addmm": ("mat1", "mat2"),
    "_addmm_activation": ("mat1", "mat2"),
    "addbmm": ("batch1", "batch2"),
    "baddbmm": ("batch1", "batch2"),
    "addmv": ("mat", "vec"),
    "_scaled_mm": ("self", "mat2"),
    "_scaled_mm_v2": ("self", "mat2"),
    "_int_mm": ("self", "mat2"),
}
CUDNN_LSTM, CUDNN_GRU = 2, 3  # how cuDNN and oneDNN number the kinds of recurrent layers


def matrices(op: Operation) -> Tally:
    """A product of matrices or vectors; what is added to it is one add each."""
    left, right = (op.given[name] for name in MATRICES[op.name])
    columns = right.shape[-1] if right.dim() > 1 else 1
    adds = op.result.numel() if op.name.lstrip("_").startswith(("add", "badd")) else 0
    return Tally.of(left.numel() * columns, adds=adds)


def grouped(op: Operation) -> Tally:
    """_grouped_mm: rows, columns or terms in groups, each with a matrix of its own, or a batch."""
    left, right = op.given["self"], op.given["mat2"]
    batch = left.shape[0] if left.dim() == right.dim() == 3 else 1
    adds = op.result.numel() if op.given.get("bias") is not None else 0
    return Tally.of(batch * left.shape[-2] * left.shape[-1] * right.shape[-1], adds=adds)


def grouped_on_meta(
    left: Tensor,
    right: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:
    """What _grouped_mm gives, without numbers: torch takes all types but on the meta device, bfloat16 alone.

    Groups of terms give a matrix each, as a batch does; groups of rows or of columns lie in one matrix.
    """
    groups: tuple[int, ...] = ()
    if left.dim() == right.dim() == 2 and offs is not None:
        groups = (offs.shape[0],)
    elif left.dim() == right.dim() == 3:
        groups = (left.shape[0],)
    return left.new_empty((*groups, left.shape[-2], right.shape[-1]), dtype=out_dtype)


def outer(op: Operation) -> Tally:
    """addr: a matrix and the products of two vectors' numbers."""
    return Tally.of(op.result.numel(), adds=op.result.numel())


def trilinear(op: Operation) -> Tally:
    """_trilinear: sums of products of three numbers, a multiply and a multiply-add each."""
    dims = [set(op.given[name]) for name in ("expand1", "expand2", "expand3")]
    parts = [op.given[name] for name in ("i1", "i2", "i3")]
    axes = max(part.dim() + len(expanded) for part, expanded in zip(parts, dims, strict=True))
    sizes = [1] * axes
    for part, expanded in zip(parts, dims, strict=True):
        own = iter(part.shape)
        for axis in range(axes):
            if axis not in expanded:
                sizes[axis] = max(sizes[axis], next(own))
    return Tally.of(prod(sizes), multiplies=prod(sizes))


# Convolutions


def inside(size: int, out: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many pairs of an output and a tap of the kernel read a position within the input, on one axis.

    >>> inside(5, 5, 3, 1, 1, 1)  # the first and the last output have two taps inside: 2 + 3*3 + 2
    13
    """
    total = 0
    for tap in range(kernel):
        shift = padding - tap * dilation  # output o reads position o*stride - shift
        first = max(0, -(-shift // stride))
        last = min(out - 1, (size - 1 + shift) // stride)
        total += max(0, last - first + 1)
    return total


def convolution(op: Operation) -> Tally:
    """A convolution, or a transposed one."""
    source, weight = _source(op), op.given["weight"]
    tally = _passes(op, source, weight, op.result, 1)
    return tally + Tally(adds=op.result.numel() if op.given.get("bias") is not None else 0)


def convolution_backward(op: Operation) -> Tally:
    """Its gradients: as many products for the input's as for the weight's, where each is asked for."""
    wanted = op.given["output_mask"]
    grad = op.given["grad_output"]
    tally = _passes(op, _source(op), op.given["weight"], grad, int(wanted[0]) + int(wanted[1]))
    adds = grad.numel() - grad.shape[1] if wanted[2] else 0
    return tally + Tally(adds=max(0, adds))


def _passes(op: Operation, source: Tensor, weight: Tensor, out: Tensor, times: int) -> Tally:
    """`times` the products of a convolution of `source` that gives `out`."""
    axes = weight.dim() - 2
    stride, padding, dilation = (_each(op.given[name], axes) for name in ("stride", "padding", "dilation"))
    transposed = bool(op.given.get("transposed", False))
    small, large = (source, out) if transposed else (out, source)  # each of `small` meets the whole kernel
    sizes = zip(large.shape[-axes:], small.shape[-axes:], weight.shape[2:], strict=True)
    hows = zip(stride, padding, dilation, strict=True)
    pairs = [inside(*size, *how) for size, how in zip(sizes, hows, strict=True)]
    batch = source.shape[0] if source.dim() == weight.dim() else 1
    groups = op.given.get("groups", 1)
    inputs = weight.shape[0] // groups if transposed else weight.shape[1]
    outputs = weight.shape[1] * groups if transposed else weight.shape[0]
    each = batch * inputs * outputs * times
    every = each * prod(small.shape[-axes:]) * prod(weight.shape[2:])
    return Tally(each * prod(pairs), every, every)


def _source(op: Operation) -> Tensor:
    return op.given["input"] if "input" in op.given else op.given["self"]


def _each(value: int | Sequence[int], axes: int) -> Sequence[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * axes if len(values) == 1 else values


# Recurrent layers that a library runs whole


def library_rnn(op: Operation) -> Tally:
    """A recurrent layer of cuDNN or oneDNN: every step multiplies every matrix once."""
    steps, weights, mode, hidden, biases = _recurrent(op)
    matrices = sum(weight.numel() for weight in weights)
    layers = max(1, len(weights) // 2)
    units = steps * layers * hidden
    gates = {CUDNN_LSTM: 4, CUDNN_GRU: 3}.get(mode, 1)
    others = {
        CUDNN_LSTM: Tally(multiplies=3, adds=1, functions=5),
        CUDNN_GRU: Tally(multiplies=3, adds=2, functions=3),
    }.get(mode, Tally(functions=1))
    sums = Tally(adds=gates * (3 if biases else 1))
    return Tally.of(steps * matrices) + (others + sums) * units


def library_rnn_backward(op: Operation) -> Tally:
    """Its gradients: each matrix once for itself, and once for what it was multiplied by, where asked for."""
    steps, weights, *_ = _recurrent(op)
    both = 2 * steps * sum(weight.numel() for weight in weights)
    stacks = op.given.get("num_layers", 1) if "weight" in op.given else 1
    directions = 2 if op.given.get("bidirectional") and "weight" in op.given else 1
    each = len(weights) // (stacks * directions)  # W_ih, W_hh, and a projection perhaps
    unasked = 0
    if not op.given["input"].requires_grad:
        unasked += steps * sum(weights[each * i].numel() for i in range(directions))
    start = next(op.given[name] for name in ("hx", "hx_") if name in op.given)
    if not start.requires_grad:
        rows = start.numel() // (start.shape[-1] * stacks * directions)
        unasked += rows * sum(weight.numel() for weight in weights[1::each])
    return Tally(both - unasked, both, both)


def _recurrent(op: Operation) -> tuple[int, list[Tensor], int, int, bool]:
    """Steps of the whole batch, the matrices, the kind, the hidden size, and whether there are biases."""
    arguments = op.given
    source = arguments["input"]
    if "weight" in arguments:
        weights = list(arguments["weight"])
    else:
        weights = [
            arguments[name] for name in sorted(arguments) if name.startswith("weight") and name[6:].isdigit()
        ]
    matrices = [weight for weight in weights if weight.dim() == 2]
    biases = any(weight.dim() == 1 for weight in weights) and bool(arguments.get("has_biases", True))
    steps = source.numel() // max(1, source.shape[-1])
    return steps, matrices, int(arguments["mode"]), int(arguments["hidden_size"]), biases


FORMULAS: dict[str, Callable[[Operation], Tally]] = {
    **dict.fromkeys(MATRICES, matrices),
    **dict.fromkeys(["_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2"], grouped),
    "addr": outer,
    "_trilinear": trilinear,
    **dict.fromkeys(
        ["convolution", "_convolution", "convolution_overrideable", "cudnn_convolution", "miopen_convolution",
         "mkldnn_convolution"],
        convolution,
    ),
    "convolution_backward": convolution_backward,
    **dict.fromkeys(["mkldnn_rnn_layer", "_cudnn_rnn", "miopen_rnn"], library_rnn),
    **dict.fromkeys(
        ["mkldnn_rnn_layer_backward", "_cudnn_rnn_backward", "miopen_rnn_backward"], library_rnn_backward
    ),
}  # fmt: skip
