"""Values of 8 bits transposed, as the tensor cores of Hopper take them: keys along memory.

Within 16 keys their order is the one in which forward_fp8.py hands on weights: place 4c + 2h + e has key
8h + 2c + e. Beyond the last key there are zeros, up to a multiple of 16.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportMissingTypeStubs=false, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from lattend.attend.call.tensors import row_strides
from lattend.attend.kernels.triton import launch_replay
from lattend.attend.kernels.triton.shapes import padded
from lattend.attend.replay.recorder import Recorder

TOGETHER = 16  # keys, whose order is another
KEYS = 128  # of a program


@triton.jit
def transposed_values_kernel(
    V, Found, batch_stride, head_stride, row_stride, heads, keys, room, blocks,
    KEYS: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
):  # fmt: skip
    """Found [batch, heads, DV, room] of V [batch, heads, keys, DV], in words of four numbers.

    Words of four keys are turned to words of four columns by their thread: the rest moves whole words.
    """
    block, pair = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    batch, head = (pair // heads).to(tl.int64), (pair % heads).to(tl.int64)
    place = block * (KEYS // 4) + tl.arange(0, KEYS // 4)  # of a word of Found
    column = tl.arange(0, DVP // 4)  # of a word of V
    inside = (column < DV // 4)[None, :]
    key = (place >> 2) * 16 + (place & 3) * 2
    rows = V + batch * batch_stride + head * head_stride + key.to(tl.int64)[:, None] * row_stride
    words = rows.to(tl.pointer_type(tl.int32)) + column[None, :]
    row = row_stride // 4
    a = tl.load(words, mask=inside & (key < keys)[:, None], other=0)
    b = tl.load(words + row, mask=inside & (key + 1 < keys)[:, None], other=0)
    c = tl.load(words + 8 * row, mask=inside & (key + 8 < keys)[:, None], other=0)
    d = tl.load(words + 9 * row, mask=inside & (key + 9 < keys)[:, None], other=0)
    to = (Found + pair.to(tl.int64) * DV * room).to(tl.pointer_type(tl.int32))
    to += (column * 4).to(tl.int64)[:, None] * (room // 4) + place[None, :]
    here = (column < DV // 4)[:, None] & (place < room // 4)[None, :]
    for byte in tl.static_range(4):
        low = ((a >> 8 * byte) & 255) | (((b >> 8 * byte) & 255) << 8)
        high = (((c >> 8 * byte) & 255) << 16) | ((d >> 8 * byte) << 24)
        tl.store(to + byte * (room // 4), tl.trans(low | high), mask=here)


def transposed(recorder: Recorder, v: Tensor) -> Tensor:
    """The values [batch, kv_heads, Dv, keys, and zeros up to a multiple of 16]."""
    batch, heads, keys, width = v.shape
    room = -(-keys // TOGETHER) * TOGETHER
    found = recorder.empty((batch, heads, width, room), v.dtype, v.device)
    blocks = -(-room // KEYS)
    arguments = (v, found, *row_strides(v), heads, keys, room, blocks)
    constants = {"KEYS": KEYS, "DV": width, "DVP": padded(width), "num_warps": 4}
    launch_replay.launch(recorder, transposed_values_kernel, batch * heads * blocks, arguments, constants)
    return found
