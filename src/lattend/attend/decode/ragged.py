"""Rows of a batch that differ: which of the new tokens are real, and what a caller gives for each row."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.bias import dtype_name, shape_text
from lattend.attend.call.padding import check_lengths
from lattend.attend.decode.step import NewTokens
from lattend.errors import DomainError, TensorError

FILLER = -1  # after the last token of a row in a tensor of paths
NO_DRAFT = "keep chooses among the tokens of the last call; since then the cache was changed"


class RealTokens(NamedTuple):
    """Which of the new tokens of each row are real, `mask` [batch, s], and how many, `sizes` [batch].

    `order` [batch, s] has the real ones first; None where they are. `known_sizes` lie where the caller's do.
    """

    sizes: Tensor
    mask: Tensor
    order: Tensor | None
    known_sizes: Tensor

    def first(self, new: NewTokens) -> NewTokens:
        """The tokens with the real ones first in each row, and zeros for the others."""
        real = torch.arange(self.mask.shape[1], device=self.mask.device) < self.sizes[:, None]
        tensors, entries = (new.q, new.k, new.v), new.entries
        if self.order is not None:
            at = self.order[:, None, :, None]
            tensors = [torch.take_along_dim(x, at, 2) for x in tensors]
            entries = {name: torch.take_along_dim(x, self.order, 1) for name, x in entries.items()}
        q, k, v = (x.masked_fill(~real[:, None, :, None], 0) for x in tensors)
        return NewTokens(q, k, v, entries, self.sizes, self.known_sizes)

    def restored(self, out: Tensor, lse: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The outputs where their tokens stand, zeros and -inf where none is real."""
        if self.order is not None:
            places = self.order.argsort(1)
            out = torch.take_along_dim(out, places[:, None, :, None], 2)
            lse = None if lse is None else torch.take_along_dim(lse, places[:, None], 2)
        return self.emptied(out, lse)

    def emptied(self, out: Tensor, lse: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Zeros and -inf where no token is real."""
        no = ~self.mask[:, None]
        return out.masked_fill(no[..., None], 0), None if lse is None else lse.masked_fill(no, -inf)


def real_tokens(padding: object, q: Tensor) -> RealTokens | None:
    """Which new tokens are real: lengths [batch] or a mask [batch, s], on the device of q or on the host."""
    if padding is None:
        return None
    if not isinstance(padding, Tensor):
        raise TensorError(f"padding must be a tensor of lengths or a mask, got {type(padding).__name__}")
    batch, s = q.shape[0], q.shape[2]
    places = torch.arange(s, device=q.device)
    if padding.dtype == torch.bool and padding.shape == (batch, s):
        mask = padding.to(q.device)
        order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
        return RealTokens(mask.sum(1), mask, order, padding.sum(1))
    if not padding.is_floating_point() and padding.dtype != torch.bool and padding.shape == (batch,):
        if not torch.compiler.is_compiling():
            check_lengths(padding[:, None], s)
        sizes = padding.to(q.device, torch.int64)
        return RealTokens(sizes, places < sizes[:, None], None, padding)
    raise TensorError(
        f"padding is a mask ({batch}, {s}) of bool, True where a new token is real, or ({batch}) lengths; "
        f"got {shape_text(padding)} of {dtype_name(padding.dtype)}"
    )


def whole_numbers(name: str, given: Any) -> NDArray[np.int64]:
    """What a caller gave as an array of integers on the host."""
    try:
        found = given.cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    except ValueError:
        raise TensorError(f"{name} must be whole numbers, or one list of them, got {given!r}") from None
    if found.size and found.dtype.kind not in "iu":
        raise TensorError(f"{name} must be whole numbers, got {found.dtype}")
    return found.astype(np.int64)


def lengths_given(lengths: Any, batch: int) -> Tensor:
    """One length, or one for each row; a tensor stays where it is, and is not read."""
    found = lengths if isinstance(lengths, Tensor) else torch.as_tensor(whole_numbers("lengths", lengths))
    if found.is_floating_point() or found.dtype == torch.bool:
        raise TensorError(f"lengths must be whole numbers, got {found.dtype}")
    if found.shape not in ((), (batch,)):
        raise TensorError(f"crop takes one length, or {batch} for the rows, got shape {tuple(found.shape)}")
    return found


def rows_given(rows: Any, batch: int) -> Tensor:
    """Rows of the batch; a tensor on a GPU stays there, and is not read."""
    if isinstance(rows, Tensor) and rows.device.type != "cpu":
        return rows
    found = whole_numbers("rows", rows)
    if found.ndim != 1:
        raise TensorError(f"rows are a list of numbers, got {rows!r}")
    wrong = found[(found < 0) | (found >= batch)]
    if len(wrong):
        raise DomainError(f"there is no row {wrong[0]}; rows are 0 to {batch - 1}")
    return torch.as_tensor(found)


def paths_given(indices: Any, batch: int) -> list[NDArray[np.int64]]:
    """The tokens to keep, one list for all rows or one for each; -1 fills up."""
    if isinstance(indices, list | tuple) and any(
        isinstance(row, list | tuple) for row in cast("Any", indices)
    ):
        rows = [whole_numbers("indices", row) for row in cast("Any", indices)]
    else:
        found = whole_numbers("indices", indices)
        rows = [_without_fillers(row) for row in found] if found.ndim > 1 else [found]
    if any(row.ndim != 1 for row in rows) or len(rows) not in (1, batch):
        raise TensorError(f"keep takes a list of tokens, or {batch} lists, one for each row of the batch")
    return rows


def check_path(path: NDArray[np.int64], size: int | None) -> None:
    """Raises unless these are tokens of a draft of this size, if it is known, in order."""
    beyond = size is not None and path.max(initial=-1) >= size
    if path.min(initial=0) < 0 or beyond or (np.diff(path) <= 0).any():
        numbers = "" if size is None else f" to {size - 1}"
        raise DomainError(
            f"keep takes tokens of the last call, numbered from 0{numbers}, in order; got {path.tolist()}"
        )


def path_table(indices: Any, batch: int, device: torch.device, sizes: NDArray[np.int64] | None) -> Tensor:
    """The tokens to keep as a tensor [batch, a], -1 after the last of a row.

    `sizes` are the numbers of tokens of the last call, for which the paths are checked; None where the host
    does not know them, and does not read a tensor of paths.
    """
    if isinstance(indices, Tensor):
        if indices.dim() not in (1, 2) or (indices.dim() == 2 and len(indices) not in (1, batch)):
            raise TensorError(
                f"keep takes a tensor (a) or ({batch}, a) of tokens, got shape {tuple(indices.shape)}"
            )
        if indices.is_floating_point() or indices.dtype == torch.bool:
            raise TensorError(f"indices must be whole numbers, got {indices.dtype}")
        table = indices.to(device).expand(batch, -1)
    else:
        rows = paths_given(indices, batch)
        padded = np.full((len(rows), max(map(len, rows), default=0)), FILLER)
        for row, path in zip(padded, rows, strict=True):
            check_path(path, None)
            row[: len(path)] = path
        table = torch.as_tensor(padded, device=device).expand(batch, -1)
    if sizes is not None:
        if (sizes < 0).any():
            raise DomainError(NO_DRAFT)
        for row, size in zip(table.cpu().numpy(), sizes, strict=True):
            check_path(_without_fillers(row), int(size))
    return table


def _without_fillers(row: NDArray[np.int64]) -> NDArray[np.int64]:
    """The path of a row, without those of its numbers that stand after the last token."""
    return row[: np.flatnonzero(row != FILLER).max(initial=-1) + 1]
