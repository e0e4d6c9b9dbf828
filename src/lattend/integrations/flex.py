"""FlexAttention: a rule as its mask_mod and as its BlockMask, and a BlockMask as a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from lattend.errors import DomainError, LattendError, NamingError
from lattend.plans.grid_blocks import GridBlocks, flat_lengths, grid_blocks
from lattend.rules.axes import HEAD, HEADS
from lattend.rules.code import python_code
from lattend.rules.flat import flat_condition
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition, Lookup, Name, Node
from lattend.rules.language.tracing import trace
from lattend.rules.rule import Rule, check_integer

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

MAX_KNOWN = 256
MOST_LISTED = 1 << 16  # entries of a table that lists every block, as torch's do; longer ones share storage
_ARGUMENTS = {"q": Name("q_idx"), "k": Name("kv_idx"), HEAD: Name("h")}
_TAKEN = {"b", "h", "q_idx", "kv_idx", "torch", "make", "mask_mod", "abs", "min", "max"}


def mask_mod(rule: Rule, /, *, device: Any = None, **values: int) -> MaskMod:
    """The rule as a function (b, h, q_idx, kv_idx) for FlexAttention; its arrays become tensors on `device`.

    An image is read row by row: position qy*cols + qx.

    >>> from lattend.rules.reader import rule
    >>> band = mask_mod(rule("k <= q and q - k <= t"), t=2)
    >>> rule(band)
    <Rule k <= q and q - k <= 2>
    """
    bound = rule.at(**values).given()
    inner = [axis.queries for axis in bound.axes[1:]]
    used = {*expr.names(bound.condition), *inner}
    if missing := [name for name in bound.free if name in used]:
        raise NamingError(
            f'a mask_mod of "{rule.text}" needs a value for {" and ".join(missing)}: '
            f"give {', '.join(f'{name}=…' for name in missing)}"
        )
    condition = flat_condition(bound)
    arrays = {name: _name_in_python(name) for name in expr.arrays(condition)}
    written = expr.substituted(_renamed(condition, arrays), _ARGUMENTS)
    code = python_code(written, ("q_idx", "kv_idx", "h"), "torch")
    tensors = [torch.as_tensor(bound.data[name].copy(), device=device) for name in arrays]
    return _maker(code, tuple(arrays.values()))(*tensors)


@lru_cache(MAX_KNOWN)
def _maker(code: str, arrays: tuple[str, ...]) -> Callable[..., MaskMod]:
    """The function that gives a mask_mod of this code its tensors; equal rules share what torch compiles."""
    lines = (
        f"def make({', '.join(arrays)}):",
        "    def mask_mod(b, h, q_idx, kv_idx):",
        f"        return {code}",
        "    return mask_mod",
    )
    names: dict[str, Any] = {"torch": torch, "__name__": __name__}
    exec(compile("\n".join(lines), f"<mask_mod {code}>", "exec"), names)
    return names["make"]


def block_mask(
    rule: Rule, /, *, device: Any = None, block_size: int | tuple[int, int] = 128, **values: int
) -> BlockMask:
    """The rule as FlexAttention's BlockMask with its mask_mod: the blocks of create_block_mask, from the set.

    [1, 1, …], or [1, heads, …] for a rule by head. An image is read row by row.

    The format lists every block of every row, and a table is as wide as its longest row. A window's is
    narrow: 2^20 positions take less than a second and 10 MiB. Causal's has n²/128² entries, and there are
    four: 1 GiB and some seconds at 2^20, whoever makes them. lt.attention needs no table.

    >>> from lattend.rules.reader import rule
    >>> found = block_mask(rule("k <= q and q - k <= t"), n=1 << 20, t=4095)
    >>> int(found.kv_num_blocks.sum()), int(found.full_kv_num_blocks.sum())  # 8192 rows, 32 at the start
    (16352, 253456)
    """
    bound = rule.complete(**values)
    block = _block(block_size)
    lengths = flat_lengths(bound)
    grid = -(-lengths[0] // block[0]), -(-lengths[1] // block[1])
    heads = grid_blocks(bound, block)
    by_key, by_query = (_tables(heads, grid, transposed=turned, device=device) for turned in (True, False))
    mod = mask_mod(bound, device=device)
    return BlockMask(lengths, *by_query, *by_key, BLOCK_SIZE=block, mask_mod=mod)


def _block(size: int | tuple[int, int]) -> tuple[int, int]:
    found = size if isinstance(size, tuple) else (size, size)
    for part in found:
        check_integer("block_size", part)
        if part < 1:
            raise DomainError(f"block_size must be at least 1, got {size}")
    return int(found[0]), int(found[1])


def _tables(
    heads: list[GridBlocks], grid: tuple[int, int], *, transposed: bool, device: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """How many partial blocks each row (or column) of blocks has, and which; then the same of full blocks."""
    rows, columns = grid[::-1] if transposed else grid
    partial, full = (_counts(heads, rows, full=full, transposed=transposed) for full in (False, True))
    small = len(heads) * rows * columns <= MOST_LISTED
    # torch's kernels read both tables with the strides of the first, so they are of one width
    width = columns if small else max(1, int(partial.max(initial=0)), int(full.max(initial=0)))
    found: list[Tensor] = []
    for counts, is_full in ((partial, False), (full, True)):
        # the view of a long table reaches beyond its last row, where nothing is read
        listed = np.zeros(len(heads) * rows * width + (0 if small else columns), np.int32)
        for at, head in enumerate(heads):
            column = _columns(head, is_full, transposed)
            table = listed[at * rows * width : (at + 1) * rows * width].reshape(rows, width)
            if small:
                dense = np.zeros((rows, columns), bool)
                dense[np.repeat(np.arange(rows), counts[at]), column] = True
                table[:] = np.argsort(~dense, axis=1, kind="stable")  # the others follow, as torch has them
            else:
                table[np.arange(width) < counts[at][:, None]] = column
        strides = (len(heads) * rows * width, rows * width, width, 1)
        whole = torch.from_numpy(listed).to(device).as_strided((1, len(heads), rows, columns), strides)
        found += [torch.from_numpy(counts)[None].to(device), whole]
    return found[0], found[1], found[2], found[3]


def _counts(heads: list[GridBlocks], rows: int, *, full: bool, transposed: bool) -> NDArray[np.int32]:
    """How many full blocks, or others, each row of blocks has; each column if transposed."""
    places = [(head.columns if transposed else head.rows)[head.full == full] for head in heads]
    return np.stack([np.bincount(place, minlength=rows) for place in places]).astype(np.int32)


def _columns(head: GridBlocks, full: bool, transposed: bool) -> NDArray[np.int32]:
    """The columns of the full blocks, or of the others, row by row; transposed, the rows column by column."""
    chosen = head.full == full
    if not transposed:
        return head.columns[chosen]
    return head.rows[chosen][np.argsort(head.columns[chosen], kind="stable")]


def _name_in_python(name: str) -> str:
    return f"{name}_" if name in _TAKEN else name


def _renamed(condition: Condition, arrays: dict[str, str]) -> Condition:
    """The condition with its arrays called so."""

    def step(node: Node, parts: Sequence[Node]) -> Node:
        built = expr.rebuilt(node, parts)
        return Lookup(arrays[built.array], built.indices) if isinstance(built, Lookup) else built

    return cast(Condition, expr.fold(condition, step))


# A BlockMask as a rule


class _Blocks(NamedTuple):
    """The blocks that one head of one batch element lists, as numbers row * columns + column."""

    partial: NDArray[np.int64]
    full: NDArray[np.int64]


_READ: WeakKeyDictionary[BlockMask, tuple[object, MaskMod]] = WeakKeyDictionary()


def mask_function(mask: BlockMask, fingerprint: object) -> MaskMod:
    """The pairs of a BlockMask as a mask function: its mask_mod where the table adds nothing, else both.

    A partial block has the pairs of mask_mod, a full one has all, and a block that is not listed has none.
    `fingerprint` is what mask_mod depends on, None where it may change between calls.

    >>> from lattend.rules.reader import rule
    >>> count, first = torch.ones(1, 1, 2, dtype=torch.int32), torch.zeros(1, 1, 2, 2, dtype=torch.int32)
    >>> rule(BlockMask.from_kv_blocks(count, first, BLOCK_SIZE=4, mask_mod=mask_mod(rule("k <= q"))))
    <Rule blocks[q // 4, k // 4] == 1 and k <= q>
    """
    tables = (mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices)
    state = (fingerprint, *((id(table), table._version) for table in tables if table is not None))
    known = _READ.get(mask)
    if known is not None and fingerprint is not None and known[0] == state:
        return known[1]
    blocks = _listed(mask)
    function = mask.mask_mod if _implied(mask, blocks) else _with_table(mask, blocks)
    _READ[mask] = state, function
    return function


def _listed(mask: BlockMask) -> list[list[_Blocks]]:
    """The blocks of each element of the batch and each head."""
    batch, heads, rows = mask.kv_num_blocks.shape
    columns = _columns_of(mask)
    kinds: list[list[NDArray[np.int64]]] = []
    for counts, indices in (
        (mask.kv_num_blocks, mask.kv_indices),
        (mask.full_kv_num_blocks, mask.full_kv_indices),
    ):
        if counts is None or indices is None:
            kinds.append([np.zeros(0, np.int64)] * (batch * heads))
            continue
        number = counts.reshape(-1, rows).cpu().numpy()
        listed = indices[..., : int(number.max(initial=0))].reshape(*number.shape, -1).cpu().numpy()
        used = np.arange(listed.shape[2]) < number[..., None]
        if (outside := used & ((listed < 0) | (listed >= columns))).any():
            raise DomainError(
                f"the BlockMask lists block {listed[outside][0]} of keys, and there are 0 to {columns - 1}"
            )
        places = listed + np.arange(rows, dtype=np.int64)[:, None] * columns
        kinds.append([np.unique(place[at]) for place, at in zip(places, used, strict=True)])
    found = [_Blocks(*both) for both in zip(*kinds, strict=True)]
    return [found[first : first + heads] for first in range(0, len(found), heads)]


def _columns_of(mask: BlockMask) -> int:
    return -(-mask.seq_lengths[1] // mask.BLOCK_SIZE[1])


def _implied(mask: BlockMask, blocks: list[list[_Blocks]]) -> bool:
    """Whether mask_mod alone has the same pairs: none outside the table, and all of each full block."""
    columns = _columns_of(mask)
    if _says_nothing(mask):
        every = len(mask.kv_num_blocks[0, 0]) * columns
        return all(len(np.union1d(*head)) == every for heads in blocks for head in heads)
    traced = trace(mask.mask_mod)
    by_element = {name: traced.tensors[name] for name, array in traced.data.items() if array is None}
    n, m = mask.seq_lengths
    for element in range(max(len(blocks), *map(len, by_element.values()), 1)):
        listed = blocks[element % len(blocks)]
        own = {name: tensor[element % len(tensor)].cpu().numpy() for name, tensor in by_element.items()}
        try:
            rule = Rule.of(traced.condition, cross=True, data={**traced.data, **own})
            if rule.has_heads and len(listed) == 1:  # it says nothing of the other heads
                return False
            heads = {HEADS: len(listed)} if rule.has_heads else {}
            grids = grid_blocks(rule.complete(n=n, m=m, **heads), mask.BLOCK_SIZE)
        except LattendError:  # the table is read then, which is right in any case
            return False
        for at, head in enumerate(listed):
            grid = grids[at % len(grids)]
            attended = grid.rows.astype(np.int64) * columns + grid.columns
            outside = np.setdiff1d(attended, np.concatenate(head))
            partly = np.setdiff1d(head.full, attended[grid.full])
            if len(outside) or len(partly):
                return False
    return True


def _says_nothing(mask: BlockMask) -> bool:
    """Whether the blocks alone are the mask: BlockMask has noop_mask then."""
    return getattr(mask.mask_mod, "__name__", "") == "noop_mask"


def _with_table(mask: BlockMask, listed: list[list[_Blocks]]) -> MaskMod:
    """A mask function that looks the blocks up, 0 for none, 1 for a partial one and 2 for a full one."""
    batch, heads, rows = mask.kv_num_blocks.shape
    table = np.zeros((batch, heads, rows * _columns_of(mask)), np.int8)
    for element in range(batch):
        for head in range(heads):
            table[element, head, listed[element][head].partial] = 1
            table[element, head, listed[element][head].full] = 2
    blocks = torch.from_numpy(table.reshape(batch, heads, rows, -1))
    blocks = blocks if heads > 1 else blocks[:, 0]
    blocks = blocks if batch > 1 else blocks[0]
    q_size, k_size = mask.BLOCK_SIZE
    inner, has_partial, has_full = mask.mask_mod, bool((table == 1).any()), bool((table == 2).any())
    alone = _says_nothing(mask)

    def with_table(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        place: tuple[Any, ...] = (q_idx // q_size, kv_idx // k_size)
        place = (h, *place) if heads > 1 else place
        block = blocks[(b, *place) if batch > 1 else place]
        if alone or not has_partial:
            return block > 0
        partial = (block == 1) & inner(b, h, q_idx, kv_idx)
        return (block == 2) | partial if has_full else partial

    return with_table
