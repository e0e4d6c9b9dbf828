"""A step of decoding on a GPU: launches and calls with numbers and addresses that change and nothing else."""

# Triton has no stubs
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from lattend.attend.decode.step import MAX_CUDNN, Scoring, Slots
from lattend.attend.kernels import gpu_crossovers
from lattend.attend.kernels.sdpa import CUDNN, flash_takes
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.kernels.triton.decode import (
    clear_freed_kernel,
    decode_bias_kernel,
    decode_combine_kernel,
    decode_split_kernel,
)
from lattend.attend.kernels.triton.kernel import DTYPES, MAX_HEAD_DIM
from lattend.attend.kernels.triton.launch_arguments import EXACT_PRODUCTS, INTERPRETED
from lattend.attend.kernels.triton.launch_replay import launch
from lattend.attend.kernels.triton.shapes import padded
from lattend.attend.kernels.triton.source import StepFunctions, generated_step
from lattend.attend.replay.recorder import PerCallNumber, Recorder, Steps

MAX_BLOCK, MIN_BLOCK = 64, 16  # slots at a time
MAX_BYTES = 1 << 15  # of their keys or values
MAX_SUMS = 1 << 14  # of the heads of one kv head, in registers
PROGRAMS = 264  # two for each multiprocessor of an H200
MAX_SPLITS = 64
BIAS_BLOCK = 128  # slots whose bias one program writes


class TritonStep:
    """Steps of one kind: the first notes its launches, the others repeat them.

    They are given q, k and v, the tensors of the bias, and the new token's position and slot, and the slots
    in use; a static cache knows the first two itself. A slot of -1 is none: the key is there.
    """

    def __init__(self, slots: Slots, how: Scoring, functions: StepFunctions) -> None:
        self.slots, self.how, self.functions = slots, how._replace(bias=None), functions
        self.steps: Steps | None = None

    def __call__(self, *given: Any) -> tuple[Tensor, Tensor | None]:
        if self.steps is not None:
            return self.steps(*given)
        numbers = [PerCallNumber(x) for x in given[-3:]]
        recorder = Recorder(*given[:-3], *numbers)
        out, lse = self._taken(recorder, given[:-3], numbers)
        if lse is None:
            found = recorder.steps_to(out)
            self.steps = found and (lambda *given: (found(*given), None))
        else:
            self.steps = recorder.steps(out, lse)
        return out, lse

    def _taken(
        self, recorder: Recorder, given: Any, numbers: list[PerCallNumber]
    ) -> tuple[Tensor, Tensor | None]:
        slots, how, static = self.slots, self.how, bool(self.slots.state)
        q, k, v = (x if x.stride(-1) == 1 else recorder.do(Tensor.contiguous, x) for x in given[:3])
        tables = [*map(recorder.keep, slots.data.values()), *(_on(recorder, x, q.device) for x in given[3:])]
        keys, values = recorder.keep(slots.keys), recorder.keep(slots.values)
        (batch, heads, _, dims), kv_heads, width = q.shape, keys.shape[1], values.shape[3]
        block = block_size(max(dims, width), q.element_size())
        splits, per_split = split_slots(keys.shape[2], block, batch * kv_heads)
        out = recorder.empty((batch, heads, 1, width), q.dtype, q.device)
        acc = recorder.empty((batch, heads, splits, width), torch.float32, q.device)
        sums = recorder.empty((batch, heads, splits, 2), torch.float32, q.device)
        lse = recorder.empty((batch, heads, 1), torch.float32, q.device) if how.return_lse else None
        placed = isinstance(slots.positions, Tensor)
        positions = recorder.keep(slots.positions) if isinstance(slots.positions, Tensor) else sums
        now, high, drafted = map(recorder.keep, slots.state) if static else (sums, sums, sums)
        by_row = positions.shape[1] if placed and len(positions) > 1 else 0
        arguments = (
            q, k, v, keys, values, positions, now, high, acc, sums, tuple(tables) or (sums,),
            float(how.scale), float(how.softcap or 1), *numbers, *slots.ring, by_row,
            *q.stride()[:2], *k.stride()[:2], *v.stride()[:2], *keys.stride()[:3], *values.stride()[:3],
            kv_heads, heads // kv_heads, splits, per_split,
        )  # fmt: skip
        constants = {
            "CONDITION": self.functions.condition,
            "BIAS": self.functions.bias,
            "CAPPED": how.softcap is not None,
            "STATIC": static,
            "PLACED": placed,
            "GROUP": padded(heads // kv_heads),
            "BLOCK_N": block,
            **_sizes(dims, width),
            "PRECISION": EXACT_PRODUCTS if q.dtype == torch.float32 and not uses_tf32() else "tf32",
            "UPCAST": INTERPRETED,
        }
        launch(recorder, decode_split_kernel, batch * kv_heads * splits, arguments, constants)
        sums_of_rows = sums if lse is None else lse
        arguments = acc, sums, out, sums_of_rows, now, high, drafted, *out.stride()[:2], heads, splits
        constants = {"STATIC": static, "HAS_LSE": lse is not None, "SPLITS": padded(splits)}
        constants |= {"DV": width, "DVP": padded(width)}
        launch(recorder, decode_combine_kernel, batch * heads, arguments, constants)
        return out, lse


class CudnnStep(TritonStep):
    """Steps of a static cache by cuDNN, which reads all slots; one launch writes the mask as a bias.

    It plans once for the number of slots, so a CUDA graph may repeat the step while the text grows.
    """

    def _taken(
        self, recorder: Recorder, given: Any, numbers: list[PerCallNumber]
    ) -> tuple[Tensor, Tensor | None]:
        slots, how = self.slots, self.how
        q, k, v = (x if x.stride(-1) == 1 else recorder.do(Tensor.contiguous, x) for x in given)
        assert isinstance(slots.positions, Tensor)
        keys, values, positions = map(recorder.keep, (slots.keys, slots.values, slots.positions))
        now, high, drafted = map(recorder.keep, slots.state)
        (batch, kv_heads, size, dims), width = keys.shape, values.shape[3]
        blocks = -(-size // BIAS_BLOCK)
        bias = recorder.empty((batch, 1, 1, size), q.dtype, q.device)
        arguments = (
            k, v, keys, values, positions, now, high, bias, (now,), size, *slots.ring,
            *k.stride()[:2], *v.stride()[:2], *keys.stride()[:3], *values.stride()[:3], kv_heads, blocks,
        )  # fmt: skip
        constants = {"CONDITION": self.functions.condition, "BLOCK_N": BIAS_BLOCK, **_sizes(dims, width)}
        launch(recorder, decode_bias_kernel, batch * blocks, arguments, constants)
        out, lse = recorder.do(partial(_cudnn, how.scale, how.return_lse), q, keys, values, bias)
        recorder.do(_count, now, high, drafted)
        return out, lse if how.return_lse else None


def clear_freed(keys: Tensor, values: Tensor, positions: Tensor) -> None:
    """Writes zeros into the slots of a static cache whose keys were taken back, and may be NaN or inf."""
    (batch, kv_heads, size, dims), blocks = keys.shape, -(-keys.shape[2] // BIAS_BLOCK)
    if batch:
        strides = *keys.stride()[:3], *values.stride()[:3]
        kernel: Any = clear_freed_kernel
        kernel[(batch * blocks,)](
            keys, values, positions, size, *strides, kv_heads, blocks,
            BLOCK_N=BIAS_BLOCK, D=dims, DV=values.shape[3],
        )  # fmt: skip


def _sizes(dims: int, width: int) -> dict[str, int]:
    return {"D": dims, "DP": padded(dims), "DV": width, "DVP": padded(width)}


def _cudnn(
    scale: float, with_lse: bool, q: Tensor, k: Tensor, v: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor]:
    out, lse, *_ = CUDNN(q, k, v, bias, with_lse, scale=scale)
    return out, lse.reshape(q.shape[:3]) if with_lse else lse


def _count(now: Tensor, high: Tensor, drafted: Tensor) -> None:
    """One more token in each row of a static cache."""
    now.add_(1)
    torch.maximum(high, now, out=high)
    drafted.fill_(1)


def is_for_cudnn(q: Tensor, slots: Slots, how: Scoring) -> bool:
    """Whether cuDNN is faster for steps of a static cache, which attend to all keys in its slots."""
    plain = how.bias is None and how.softcap is None and how.scale > 0 and slots.whole
    size, width = slots.keys.shape[2:]
    fits = size % 64 == 0 and width <= MAX_CUDNN and flash_takes(q, slots.values)
    return plain and fits and size >= gpu_crossovers.cached_keys("token", slots.keys)


def triton_step(q: Tensor, slots: Slots, how: Scoring) -> TritonStep | None:
    """What takes steps on such tensors at once; None where it does not fit."""
    width = max(q.shape[3], slots.values.shape[3])
    if q.dtype not in DTYPES or not q.numel() or width > MAX_HEAD_DIM:
        return None
    if padded(q.shape[1] // slots.keys.shape[1]) * padded(width) > MAX_SUMS:
        return None
    learned = dict[str, Tensor]() if how.bias is None else how.bias.tensors
    tables = {**slots.data, **learned}
    shapes = tuple((name, tuple(x.shape)) for name, x in tables.items())
    term = None if how.bias is None else how.bias.term
    try:
        functions = generated_step(slots.condition, term, shapes, tuple(learned))
    except (LookupError, ValueError):  # a name or a number that they do not take, or nothing to look at
        return None
    return (CudnnStep if is_for_cudnn(q, slots, how) else TritonStep)(slots, how, functions)


def block_size(width: int, size: int) -> int:
    """How many slots are taken at a time, whose rows have so many numbers of so many bytes.

    >>> block_size(128, 2), block_size(128, 4), block_size(512, 4)
    (64, 64, 16)
    """
    return max(MIN_BLOCK, min(MAX_BLOCK, MAX_BYTES // (padded(width) * size)))


def split_slots(slots: int, block: int, rows: int) -> tuple[int, int]:
    """The number of parts that slots are cut into, and the slots of each: enough programs, whole blocks.

    >>> split_slots(1280, 64, rows=2)  # 20 blocks of 64, one a part
    (20, 64)
    >>> split_slots(1280, 64, rows=64)  # 4.1 parts for each row: 5 of 4 blocks
    (5, 256)
    """
    blocks = max(1, -(-slots // block))
    wanted = max(1, min(MAX_SPLITS, blocks, -(-PROGRAMS // rows)))
    each = -(-blocks // wanted)
    return -(-blocks // each), each * block


def _on(recorder: Recorder, x: Tensor, device: torch.device) -> Tensor:
    """A table as a kernel reads it: on the device, its entries in order."""
    x = x if x.device == device else recorder.do(partial(Tensor.to, device=device), x)
    return x if x.is_contiguous() else recorder.do(Tensor.contiguous, x)
