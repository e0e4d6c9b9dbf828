"""Operators that are not products: what each does to every number, and those that only move numbers.

Counted are operations on numbers with a fractional part; those on positions and masks are not. Softmax is
counted plain, with no maximum taken away; sorting and picking compare, and are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch

from lattend.cost.measure.tally import NOTHING, Operation, Tally

Formula = Callable[[Operation], Tally]

# Nothing is computed: allocation, copies, other shapes and types, picking, random and constant numbers
_FREE = """
alias arange argsort as_strided _assert_async _assert_scalar _assert_tensor_metadata bernoulli bincount
bucketize
cat clone complex _conj _conj_physical conj_physical constant_pad_nd contiguous copy _copy_from_and_resize
detach diag diag_embed diagonal diagonal_scatter dropout_mask _efficientzerotensor embedding empty
empty_like empty_permuted empty_quantized empty_strided equal exponential eye fill flip _foreach_copy full
full_like _functional_sym_constrain_range gather histc im2col imag index index_copy index_fill index_put
index_select is_same_size isin item kthvalue lift lift_fresh lift_fresh_copy linspace _local_scalar_dense
logspace masked_fill masked_scatter masked_select max_unpool2d max_unpool3d multinomial narrow_copy
native_channel_shuffle _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned new_empty
new_empty_strided new_full new_ones new_zeros nonzero nonzero_static normal normal_functional ones
ones_like _pack_padded_sequence _pad_packed_sequence permute_copy pin_memory _pin_memory pixel_shuffle
pixel_unshuffle put rand rand_like randint randint_like randn randn_like random randperm real
record_stream reflection_pad1d reflection_pad2d reflection_pad3d repeat replication_pad1d
replication_pad2d replication_pad3d _reshape_alias_copy _reshape_copy resize resize_as resolve_conj
resolve_neg roll rot90 scalar_tensor scatter searchsorted select_backward select_scatter set set_data
slice_backward slice_scatter sort _sparse_coo_tensor_unsafe split_copy stack sym_constrain_range
sym_constrain_range_for_size t_copy take _to_copy to_dense topk transpose_copy tril tril_indices triu
triu_indices unfold_copy uniform _unique2 unique_consecutive unique_dim unsafe_chunk unsafe_split
unsafe_split_with_sizes _unsafe_view upsample_nearest1d upsample_nearest2d upsample_nearest3d
_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d view view_as_complex
view_as_real view_copy where zero zeros zeros_like
"""
FREE = set(_FREE.split())

# What is done for every number of the result
_EACH: dict[str, Tally] = {}
for _names, _tally in (
    ("add sub rsub neg", Tally(adds=1)),
    ("mul ldexp", Tally(multiplies=1)),
    ("div reciprocal true_divide remainder fmod floor_divide", Tally(divisions=1)),
    ("exp exp2 expm1 sinh cosh", Tally(exponentials=1)),
    ("addcmul", Tally(multiplies=1, adds=1)),
    ("addcdiv", Tally(divisions=1, adds=1)),
    ("lerp", Tally(adds=2, multiplies=1)),
    ("square", Tally(multiplies=1)),
    (
        "_prelu_kernel abs acos acosh asin asinh atan atan2 atanh ceil celu cos digamma elu erf erfc "
        "erfinv floor frac gelu hardshrink hardsigmoid hardswish hardtanh hypot leaky_relu lgamma log "
        "log10 log1p log2 log_sigmoid_forward logaddexp logaddexp2 logit mish relu relu6 round "
        "rrelu_with_noise rsqrt selu sgn sigmoid sign silu sin sinc softplus softshrink special_i0 sqrt "
        "tan tanh threshold trunc xlogy",
        Tally(functions=1),
    ),
    (
        "clamp clamp_max clamp_min eq ge gt isfinite isinf isnan le lt maximum minimum fmax fmin ne"
        " logical_and logical_not logical_or logical_xor bitwise_and bitwise_not bitwise_or bitwise_xor"
        " signbit nan_to_num",
        Tally(comparisons=1),
    ),
    ("glu", Tally(functions=1, multiplies=1)),
    ("native_dropout _fused_dropout", Tally(multiplies=2)),
    ("native_dropout_backward", Tally(multiplies=2)),
    ("threshold_backward hardtanh_backward", Tally(comparisons=1)),
    ("tanh_backward sigmoid_backward", Tally(multiplies=2, adds=1)),
    (
        "gelu_backward silu_backward mish_backward hardswish_backward elu_backward leaky_relu_backward"
        " softplus_backward log_sigmoid_backward hardsigmoid_backward logit_backward softshrink_backward"
        " hardshrink_backward glu_backward",
        Tally(functions=1, multiplies=1),
    ),
    ("_prelu_kernel_backward", Tally(comparisons=1, multiplies=2)),
    ("_softmax_backward_data _safe_softmax_backward_data", Tally(multiplies=2, adds=2)),
    ("_log_softmax_backward_data", Tally(exponentials=1, multiplies=1, adds=2)),
    ("upsample_linear1d _upsample_bilinear1d_aa", Tally(multiplies=2, adds=1)),
    ("upsample_bilinear2d _upsample_bilinear2d_aa", Tally(multiplies=4, adds=3)),
    ("upsample_trilinear3d", Tally(multiplies=8, adds=7)),
    ("upsample_bicubic2d _upsample_bicubic2d_aa", Tally(multiplies=16, adds=15)),
    ("mse_loss_backward smooth_l1_loss_backward huber_loss_backward", Tally(multiplies=2, adds=1)),
    ("binary_cross_entropy_backward", Tally(multiplies=1, adds=2, divisions=1)),
    ("nll_loss_backward nll_loss2d_backward", NOTHING),
    ("cumsum logcumsumexp", Tally(adds=1)),
    ("cumprod", Tally(multiplies=1)),
    ("cummax cummin", Tally(comparisons=1)),
    # of the two gate sums, the state kept or mixed, and the new state
    ("_thnn_fused_lstm_cell", Tally(adds=13, multiplies=3, functions=5)),
    ("_thnn_fused_gru_cell", Tally(adds=11, multiplies=3, functions=3)),
):
    _EACH.update(dict.fromkeys(_names.split(), _tally))
# What is done for every number given, as in the gradients of things that made fewer of them
_SPREAD = """
_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool2d_backward
adaptive_max_pool3d_backward avg_pool2d_backward avg_pool3d_backward col2im _embedding_bag_backward
_embedding_bag_dense_backward embedding_dense_backward max_pool2d_with_indices_backward
max_pool3d_with_indices_backward reflection_pad1d_backward reflection_pad2d_backward
reflection_pad3d_backward replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward
unfold_backward upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward
"""
_EACH_GIVEN: dict[str, Tally] = dict.fromkeys(_SPREAD.split(), Tally(adds=1)) | {
    "upsample_linear1d_backward": Tally(multiplies=2, adds=2),
    "upsample_bilinear2d_backward": Tally(multiplies=4, adds=4),
    "upsample_trilinear3d_backward": Tally(multiplies=8, adds=8),
    "upsample_bicubic2d_backward": Tally(multiplies=16, adds=16),
}


def other(func: Any, op: Operation) -> Tally | None:
    """What an operator that is no product does; None where it is not known."""
    if op.name in FREE or func.is_view:
        return NOTHING
    if op.name in _FORMULAS:
        return _FORMULAS[op.name](op) if op.floating else NOTHING
    if op.name in _EACH:
        return _EACH[op.name] * op.result.numel() if op.floating else NOTHING
    if op.name in _EACH_GIVEN:
        return _EACH_GIVEN[op.name] * op.first.numel()
    if torch.Tag.pointwise in func.tags:
        return Tally(functions=op.result.numel()) if op.floating else NOTHING
    return None


def knows(func: Any, name: str) -> bool:
    """Whether `other` can tell what the operator does."""
    tables = (FREE, _FORMULAS, _EACH, _EACH_GIVEN)
    return func.is_view or torch.Tag.pointwise in func.tags or any(name in table for table in tables)


# Sums and the like: n numbers in each of so many groups


def _groups(op: Operation) -> tuple[int, int]:
    """How many numbers go in, and into how many they are gathered."""
    return op.first.numel(), op.result.numel()


def _gathered(operations: Callable[[int, int], Tally]) -> Formula:
    """What is done where so many numbers go in, and so many come out."""
    return lambda op: operations(*_groups(op))


def _most(op: Operation) -> Tally:
    numbers, groups = _groups(op)
    if isinstance(op.given.get("other"), torch.Tensor):  # max(a, b) is taken number by number
        return Tally(comparisons=groups)
    return Tally(comparisons=max(0, numbers - groups))


def _variance(op: Operation) -> Tally:
    """Mean, centred numbers, their squares, and the mean of these."""
    numbers, groups = _groups(op)
    roots = groups if op.name.startswith("std") else 0
    return Tally(
        adds=max(0, 3 * numbers - 2 * groups), multiplies=numbers, divisions=2 * groups, functions=roots
    )


def _softmax(op: Operation) -> Tally:
    """One exponential and one division a number, and the sums; a logarithm a row in place of divisions."""
    numbers = op.result.numel()
    rows = numbers // max(1, op.first.shape[op.given["dim"]]) if op.first.dim() else 1
    if op.name == "_log_softmax":
        return Tally(exponentials=numbers, adds=2 * numbers - rows, functions=rows)
    return Tally(exponentials=numbers, adds=numbers - rows, divisions=numbers)


def _power(op: Operation) -> Tally:
    """Small whole powers are multiplies."""
    exponent, numbers = op.given.get("exponent"), op.result.numel()
    if isinstance(exponent, int | float) and float(exponent).is_integer() and 0 <= exponent <= 4:
        return Tally(multiplies=max(0, int(exponent) - 1) * numbers)
    return Tally(functions=numbers)


# Norms


def _normalised(numbers: int, groups: int, op: Operation) -> Tally:
    """Mean, variance, one over the root of it, then a weight and a bias where there are such."""
    weight, bias = (op.given.get(name) is not None for name in ("weight", "bias"))
    tally = Tally(
        adds=3 * numbers - 2 * groups + groups, multiplies=2 * numbers, divisions=3 * groups, functions=groups
    )
    return tally + Tally(multiplies=numbers * weight, adds=numbers * bias)


def _layer_norm(op: Operation) -> Tally:
    size = prod(op.given["normalized_shape"])
    return _normalised(op.first.numel(), op.first.numel() // max(1, size), op)


def _group_norm(op: Operation) -> Tally:
    return _normalised(op.first.numel(), op.given["N"] * op.given["group"], op)


def _batch_norm(op: Operation) -> Tally:
    """With its own mean and variance while training, else with the ones that were kept."""
    numbers, channels = op.first.numel(), op.first.shape[1] if op.first.dim() > 1 else 1
    kept = op.given.get("running_mean") is not None
    if op.given.get("training", not kept):
        running = Tally(multiplies=4 * channels, adds=2 * channels) if kept else NOTHING
        return _normalised(numbers, channels, op) + running
    weight, bias = (op.given.get(name) is not None for name in ("weight", "bias"))
    tally = Tally(adds=numbers + channels, multiplies=numbers, divisions=channels, functions=channels)
    return tally + Tally(multiplies=numbers * weight, adds=numbers * bias)


def _rms_norm(op: Operation) -> Tally:
    numbers = op.first.numel()
    groups = numbers // max(1, prod(op.given["normalized_shape"]))
    weights = numbers if op.given.get("weight") is not None else 0
    return Tally(multiplies=2 * numbers + weights, adds=numbers, divisions=2 * groups, functions=groups)


def _norm_backward(op: Operation) -> Tally:
    """Of the numbers, the weight and the bias; written with the two means of the gradient."""
    numbers = op.first.numel()
    return Tally(multiplies=6 * numbers, adds=7 * numbers)


# Pools


def _max_pool(op: Operation) -> Tally:
    return Tally(comparisons=op.result.numel() * (_kernel(op) - 1))


def _avg_pool(op: Operation) -> Tally:
    return Tally(adds=op.result.numel() * (_kernel(op) - 1), divisions=op.result.numel())


def _kernel(op: Operation) -> int:
    size = op.given["kernel_size"]
    axes = int(next((digit for digit in op.name if digit.isdigit()), "1"))
    sides = [size] if isinstance(size, int) else list(size)
    return prod(sides * axes if len(sides) == 1 else sides)


# Losses, and sums by place


def _loss(each: Tally) -> Formula:
    """So much for every number, and the sum or mean of them."""

    def formula(op: Operation) -> Tally:
        numbers, results = _groups(op)
        reduced = op.given.get("reduction", 1) != 0
        return each * numbers + (Tally(adds=max(0, numbers - results), divisions=1) if reduced else NOTHING)

    return formula


def _nll(op: Operation) -> Tally:
    return Tally(adds=op.given["target"].numel(), divisions=1)


def _added_in_place(op: Operation) -> Tally:
    source = op.given.get("src", op.given.get("source", op.given.get("values")))
    return Tally(adds=source.numel() if isinstance(source, torch.Tensor) else 0)


def _bag(op: Operation) -> Tally:
    return Tally(adds=max(0, op.given["indices"].numel() * op.first.shape[-1] - op.result.numel()))


_FORMULAS: dict[str, Formula] = {
    **dict.fromkeys(["sum", "nansum", "trace"], _gathered(lambda n, m: Tally(adds=max(0, n - m)))),
    **dict.fromkeys(
        ["mean", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d"],
        _gathered(lambda n, m: Tally(adds=max(0, n - m), divisions=m)),
    ),
    "prod": _gathered(lambda n, m: Tally(multiplies=max(0, n - m))),
    **dict.fromkeys(
        ["max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "any", "all", "median", "mode"], _most
    ),
    **dict.fromkeys(["var", "std", "var_mean", "std_mean"], _variance),
    **dict.fromkeys(
        ["linalg_vector_norm", "norm"],
        _gathered(lambda n, m: Tally(multiplies=n, adds=max(0, n - m), functions=m)),
    ),
    **dict.fromkeys(["_softmax", "_safe_softmax", "_log_softmax"], _softmax),
    "logsumexp": _gathered(lambda n, m: Tally(exponentials=n, adds=max(0, n - m), functions=m)),
    "pow": _power,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "_fused_rms_norm": _rms_norm,
    **dict.fromkeys(
        ["native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
         "_native_batch_norm_legit_functional", "cudnn_batch_norm", "miopen_batch_norm",
         "_batch_norm_with_update", "_batch_norm_no_update", "_batch_norm_impl_index"],
        _batch_norm,
    ),
    **dict.fromkeys(
        ["native_layer_norm_backward", "native_group_norm_backward", "native_batch_norm_backward",
         "cudnn_batch_norm_backward", "batch_norm_backward", "_fused_rms_norm_backward"],
        _norm_backward,
    ),
    **dict.fromkeys(
        ["max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool1d", "max_pool2d", "max_pool3d",
         "mkldnn_max_pool2d", "quantized_max_pool2d"],
        _max_pool,
    ),
    **dict.fromkeys(["avg_pool1d", "avg_pool2d", "avg_pool3d"], _avg_pool),
    **dict.fromkeys(
        ["adaptive_max_pool2d", "adaptive_max_pool3d"],
        _gathered(lambda n, m: Tally(comparisons=max(0, n - m))),
    ),
    "mse_loss": _loss(Tally(adds=1, multiplies=1)),
    **dict.fromkeys(["smooth_l1_loss", "huber_loss"], _loss(Tally(adds=1, functions=1))),
    "binary_cross_entropy": _loss(Tally(adds=2, multiplies=2, functions=2)),
    **dict.fromkeys(["nll_loss_forward", "nll_loss2d_forward"], _nll),
    **dict.fromkeys(["index_add", "scatter_add", "scatter_reduce", "index_reduce"], _added_in_place),
    **dict.fromkeys(["_embedding_bag", "_embedding_bag_forward_only"], _bag),
}  # fmt: skip
