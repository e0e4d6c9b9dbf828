"""Constants: the numbers that meta tensors would have where they follow from constants and given tensors.

A mask that a module makes of ones, positions and comparisons is known even where nothing is computed:
the few operators that make it are run on the CPU beside the meta device. A storage stands for all its views.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_map

from lattend.cost.measure.tally import tensors

MOST_BYTES, LARGEST = 1 << 30, 1 << 28  # of all that is kept at a time, and of one tensor
CPU = torch.device("cpu")


class Unknown(Exception):
    """A tensor whose numbers do not follow from constants."""


class Constants:
    """The numbers of meta storages, as tensors on the CPU."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[StorageWeakRef, Tensor]] = {}  # a line of all numbers of a storage
        self._bytes = 0

    def value(self, x: Tensor) -> Tensor | None:
        """The numbers of a tensor, on the CPU if it is a meta tensor; None where they are not known."""
        if not x.is_meta:
            return x
        kept = self._kept.get(_storage(x))
        if kept is None or kept[1].dtype != x.dtype:
            return None
        return kept[1].as_strided(x.shape, x.stride(), x.storage_offset())

    def answer(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The result of an operator that depends on numbers, such as item(); Unknown where these are."""
        if not any(x.is_meta for x in tensors([*args, *kwargs.values()])):
            raise Unknown
        answer = func(*self._on_cpu(args), **self._on_cpu(dict(kwargs)))
        return tree_map(self._as_meta, answer)

    def follow(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> None:
        """Find the numbers of what an operator gave, where those of all it was given are known."""
        results = [x for x in tensors([out]) if x.is_meta]
        if not results:
            return
        if func.is_view and all(_storage(x) in self._kept for x in results):
            return
        try:
            if torch.Tag.nondeterministic_seeded in func.tags:
                raise Unknown
            new = [x for x in results if _storage(x) not in self._kept]
            self._make_room([x.untyped_storage().nbytes() for x in new])
            result = func(*self._on_cpu(args), **self._on_cpu(dict(kwargs)))
        except (Unknown, NotImplementedError, RuntimeError):
            self._forget(func, args, kwargs)
            return
        for meta, real in zip(results, (x for x in tensors([result])), strict=False):
            if _storage(meta) not in self._kept:
                self._keep(meta, real)

    def _on_cpu(self, value: Any) -> Any:
        return tree_map(self._real, value)

    def _real(self, value: Any) -> Any:
        if isinstance(value, torch.device):
            return CPU
        if not isinstance(value, Tensor):
            return value
        real = self.value(value)
        if real is None or real.device != CPU:
            raise Unknown
        return real

    def _as_meta(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        meta = value.to("meta")
        self._keep(meta, value)
        return meta

    def _keep(self, meta: Tensor, real: Tensor) -> None:
        layout = (meta.shape, meta.stride(), meta.storage_offset())
        whole = meta.untyped_storage().nbytes()
        size = (whole // meta.element_size(),)
        if (real.shape, real.stride(), real.storage_offset()) == layout and real.dtype == meta.dtype:
            line = real.as_strided(size, (1,), 0) if real.untyped_storage().nbytes() >= whole else None
        else:
            line = None
        if line is None:
            line = torch.zeros(size, dtype=meta.dtype)
            line.as_strided(*layout).copy_(real)
        self._kept[_storage(meta)] = (StorageWeakRef(meta.untyped_storage()), line)
        self._bytes += line.nbytes

    def _forget(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Forgets the tensors that an operator wrote to."""
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                for x in tensors([value]):
                    self._drop(_storage(x))
        for x in tensors([kwargs.get("out")]):
            self._drop(_storage(x))

    def _drop(self, key: int) -> None:
        if key in self._kept:
            self._bytes -= self._kept.pop(key)[1].nbytes

    def _make_room(self, sizes: list[int]) -> None:
        size = sum(sizes)
        if max(sizes, default=0) > LARGEST:
            raise Unknown
        if self._bytes + size > MOST_BYTES:
            for key in [key for key, (storage, _) in self._kept.items() if storage.expired()]:
                self._drop(key)
        if self._bytes + size > MOST_BYTES:
            raise Unknown


def _storage(x: Tensor) -> int:
    return x.untyped_storage()._cdata


NUMBERS_DECIDE = {"_local_scalar_dense", "equal", "is_nonzero", "nonzero", "masked_select", "_unique2"}
