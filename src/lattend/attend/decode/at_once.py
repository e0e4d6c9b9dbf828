"""A step of decoding taken at once: by compiled code on a CPU, by two launches on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from lattend.attend.decode.native_step import native_step
from lattend.attend.decode.step import Scoring, Slots


def at_once(q: Tensor, k: Tensor, v: Tensor, slots: Slots, how: Scoring) -> Callable[..., Any] | None:
    """What takes such steps at once; None where they are left to operations of torch.

    It is given q, k and v, the tensors of the bias, the new token's position and slot, and how many slots are
    in use. A slot of -1 is none: the key is there. A static cache knows the position and the slot itself.
    """
    if not q.is_cuda:
        return native_step(q, k, v, slots, how)
    if not _has_triton():
        return None
    from lattend.attend.kernels.triton.decode_step import triton_step

    return triton_step(q, slots, how)


def may_prepare(q: Tensor) -> bool:
    """Whether kernels may be compiled now, which cannot be while a CUDA graph is captured."""
    return not q.is_cuda or not torch.cuda.is_current_stream_capturing()


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None
