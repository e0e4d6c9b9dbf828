"""What the kernels share: loads, products, functions of a cell, and the spin-wait for the row block above.

A program takes one row block of BR rows of one image and runs along its anti-diagonals: at step s its row i
is at column s - i. It reads the row above its own, which another program writes; that one says in a flag how
many chunks of CHUNK columns of its last row are done. Programs are numbered row block by row block, so each
waits for a lower number only. Where an image is one row block there are no flags.
"""

# Kernels are read by Triton, not by Python: what is None, or not, is known when one is compiled
# ruff: noqa: SIM102
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sigmoid(x):
    """1 / (1 + e^-x)."""
    return 1 / (1 + tl.exp(-x))


@triton.jit
def tanh(x):
    """Tanh from one exponential."""
    return 1 - 2 / (1 + tl.exp(2 * x))


@triton.jit
def activation(x, NAME: tl.constexpr):
    """σ(x)."""
    if NAME == "tanh":
        return tanh(x)
    elif NAME == "relu":
        return tl.maximum(x, 0)
    elif NAME == "sigmoid":
        return sigmoid(x)
    else:
        return x


@triton.jit
def slope(y, NAME: tl.constexpr):
    """σ'(x) from y = σ(x)."""
    if NAME == "tanh":
        return 1 - y * y
    elif NAME == "relu":
        return tl.where(y > 0, 1.0, 0.0)
    elif NAME == "sigmoid":
        return y * (1 - y)
    else:
        return tl.full(y.shape, 1.0, tl.float32)


@triton.jit
def load_rows(Base, place, inside, column, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    """[rows, columns] of a matrix with WIDTH numbers a row, zeros where a row or column is not there.

    Read past the nearest cache: another program may have written it.
    """
    pointers = Base + place[:, None] * WIDTH + column[None, :]
    there = inside[:, None] & (column < SIZE)[None, :]
    return tl.load(pointers, mask=there, other=0.0, cache_modifier=".cg")


@triton.jit
def load_weights(Base, k, n, SIZE_K: tl.constexpr, SIZE_N: tl.constexpr, STEP_K, STEP_N):
    """[k, n] of a weight matrix with these strides, zeros beyond its sizes."""
    there = (k < SIZE_K)[:, None] & (n < SIZE_N)[None, :]
    return tl.load(Base + k[:, None] * STEP_K + n[None, :] * STEP_N, mask=there, other=0.0)


@triton.jit
def wait_for(flag, chunks, Flags, spins):
    """Until the flag says that so many chunks are done, or after `spins` reads of it (-1: for ever).

    Flag 0 is nobody's: it says that somebody gave up.
    """
    reads = 0
    while (tl.atomic_add(flag, 0, sem="acquire", scope="gpu") < chunks) & (reads != spins):
        reads += 1
    if reads == spins:
        tl.store(Flags, 1)


@triton.jit
def announce(Flags, own, done, cols, CHUNK: tl.constexpr):
    """After a step: `done` columns of the last row are written; said at the end of each chunk."""
    if Flags is not None:
        if (done > 0) & (done <= cols) & ((done % CHUNK == 0) | (done == cols)):
            tl.debug_barrier()  # every thread has written before one says so
            tl.atomic_xchg(Flags + own, tl.cdiv(done, CHUNK), sem="release", scope="gpu")


@triton.jit
def product(a, b, total, PRECISION: tl.constexpr, UPCAST: tl.constexpr):
    """The total and a matrix product in float32; UPCAST is for the interpreter, whose bfloat16 is wrong."""
    if UPCAST:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), total, input_precision="ieee")
    return tl.dot(a, b, total, input_precision=PRECISION)
