"""Directions and parts of a batch in threads of their own: they never wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

BUSY = 2**21  # multiplies of a step from which on a thread of its own pays


def multiplies(left: Tensor, batch: int, rows: int, cols: int) -> int:
    """The multiplies of a step of one direction, on the average; left is [D, gates*h, h].

    4 images of 3 x 3 pixels have 4*9 cells in 5 steps, each with 2h · gates*h products.
    """
    _, height, size = left.shape
    return batch * rows * cols * 2 * size * height // (rows + cols - 1)


def parts_of(left: Tensor, batch: int, rows: int, cols: int) -> int:
    """In how many equal parts the batch runs: as many as there are threads for, if steps are long enough."""
    most = torch.get_num_threads() // len(left)
    work = multiplies(left, batch, rows, cols)
    fitting = [n for n in range(1, min(most, batch) + 1) if batch % n == 0 and work >= n * BUSY]
    return max(fitting, default=1)


def side_by_side(run: Callable[[int], None], h: Tensor, left: Tensor) -> None:
    """Runs every lane of h [lanes, batch, rows + 1, cols + 1, h], in threads if that pays."""
    lanes, batch, rows, cols, _ = h.shape
    threads = torch.get_num_threads()
    if min(lanes, threads) == 1 or multiplies(left, batch, rows - 1, cols - 1) < BUSY:
        for lane in range(lanes):
            run(lane)
        return
    inference = torch.is_inference_mode_enabled()

    def alone(lane: int) -> None:
        torch.set_num_threads(1)
        with torch.inference_mode(inference), torch.no_grad():
            run(lane)

    try:
        with ThreadPoolExecutor(min(lanes, threads)) as pool:
            for done in [pool.submit(alone, lane) for lane in range(lanes)]:
                done.result()
    finally:
        torch.set_num_threads(threads)  # what a thread sets also holds for those that come later
