"""The product of two tiles, as the Triton kernels of convolutions and of recurrent nets take it."""

# Kernels are read by Triton, not by Python
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(a, b, total, PRECISION: tl.constexpr, UPCAST: tl.constexpr):
    """The total and a matrix product in float32; UPCAST is for the interpreter, whose bfloat16 is wrong."""
    if UPCAST:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), total, input_precision="ieee")
    return tl.dot(a, b, total, input_precision=PRECISION)
