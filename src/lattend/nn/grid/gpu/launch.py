"""Launching a kernel over row blocks and images so that no program waits for one that cannot run.

Programs that wait for each other must be on the chip together. So we ask how many fit, and launch no more at
a time: fewer images, or, where one image has more row blocks than fit, some row blocks after the others.
"""

# Kernels take plain numbers for constexpr
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from triton.runtime.errors import OutOfResources

from lattend.attend.kernels.triton import launch_replay
from lattend.attend.seams import Recorder
from lattend.errors import LattendError
from lattend.nn.grid.layout import RowMajorLayout
from lattend.recent import Recent

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
FOR_EVER = -1
BLOCK_SHARED = 1024  # bytes of shared memory that CUDA keeps for itself in each program

spins = FOR_EVER  # how often a program reads the flag it waits for; tests set it to find a deadlock
_room: Recent[object, int] = Recent(1024)


class GridShape(NamedTuple):
    """How many images there are, how many share the weights of a direction, and their size."""

    images: int
    batch: int
    rows: int
    cols: int

    @classmethod
    def of(cls, layout: RowMajorLayout) -> GridShape:
        directions, batch, rows, cols = layout.shape
        return cls(directions * batch, batch, rows, cols)


class LaunchGroup(NamedTuple):
    """Row blocks and images that are launched together."""

    first_block: int
    row_blocks: int
    first_image: int
    images: int


def groups(row_blocks: int, images: int, room: int) -> Iterator[LaunchGroup]:
    """Launches of at most `room` programs; row blocks follow each other in order.

    >>> [(group.first_image, group.images) for group in groups(row_blocks=8, images=4, room=16)]
    [(0, 2), (2, 2)]
    >>> [group.row_blocks for group in groups(row_blocks=10, images=1, room=4)]
    [4, 4, 2]
    """
    if row_blocks == 1:  # nobody waits
        yield LaunchGroup(0, 1, 0, images)
        return
    together = max(1, min(images, room // row_blocks))
    for first in range(0, images, together):
        for row_block in range(0, row_blocks, room):
            yield LaunchGroup(
                row_block, min(room, row_blocks - row_block), first, min(together, images - first)
            )


def launch(
    recorder: Recorder,
    kernel: Any,
    tensors: tuple[Tensor | None, ...],
    grid: GridShape,
    constants: dict[str, Any],
) -> None:
    """Runs the kernel over all row blocks and images, as many at a time as the GPU holds, and notes it."""
    device = next(x.device for x in tensors if x is not None)
    row_blocks = triton.cdiv(grid.rows, constants["BR"])
    flags = None
    if row_blocks > 1:
        count = grid.images * row_blocks + 1
        flags = recorder.do(partial(torch.zeros, count, dtype=torch.int32, device=device))

    def arguments(group: LaunchGroup) -> tuple[Any, ...]:
        where = (group.first_image, group.images, group.first_block, grid.batch, grid.rows, grid.cols)
        return (*tensors, flags, spins, *where)

    try:
        room = _fits(kernel, arguments(LaunchGroup(0, row_blocks, 0, grid.images)), constants, device)
        for group in groups(row_blocks, grid.images, room):
            launch_replay.launch(
                recorder, kernel, group.row_blocks * group.images, arguments(group), constants
            )
    except OutOfResources as error:
        raise LattendError(
            f"the GPU has no room for a row block of {constants['BR']} rows with h = {constants['H']}: "
            f'{error}; take a smaller h, or kernel="diagonals"'
        ) from None
    if spins != FOR_EVER and flags is not None:
        recorder.do(partial(_check_stuck, spins), flags)


def _check_stuck(spins: int, flags: Tensor) -> None:
    if flags[0].item():
        raise LattendError(
            f"a program read the flag of the row block above it {spins} times, and it did not come"
        )


def _fits(kernel: Any, arguments: tuple[Any, ...], constants: dict[str, Any], device: torch.device) -> int:
    """How many programs of this kernel the GPU holds at once; remembered."""
    if INTERPRETED:
        return 1 << 30  # one after the other, in their order
    dtypes = tuple(x.dtype if isinstance(x, Tensor) else None for x in arguments)
    key = (kernel.fn.__name__, dtypes, tuple(constants.items()), device)

    def measured() -> int:
        compiled = kernel.warmup(*arguments, grid=(1,), **constants)
        _ = compiled.run  # loads it, which tells its registers
        return room_for(compiled.n_regs, compiled.metadata.shared, constants["num_warps"], device)

    return _room.find(key, measured)


def room_for(registers: int, shared: int, warps: int, device: torch.device) -> int:
    """How many programs with so many registers a thread and bytes of shared memory the GPU holds at once."""
    gpu = torch.cuda.get_device_properties(device)
    threads = 32 * warps
    each = min(
        gpu.regs_per_multiprocessor // (threads * 8 * triton.cdiv(max(registers, 1), 8)),
        gpu.shared_memory_per_multiprocessor // (shared + BLOCK_SHARED),
        gpu.max_threads_per_multi_processor // threads,
    )
    return gpu.multi_processor_count * max(1, each)  # one always fits, or the launch fails
