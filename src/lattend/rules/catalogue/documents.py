"""Packed documents: a query attends to the positions of its own document, given as data.

As many keys as its document has positions; with causal=True only those up to itself.

    ##..        lengths 2, 1, 1
    ##..
    ..#.
    ...#

Reference: Krell et al. 2021, Efficient Sequence Packing without Cross-contamination.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

BOTH_WAYS = RuleInfo(
    name="documents",
    meaning="a query attends to the positions of its own document, given as data",
    keys="as many as its document has positions",
    reference="Krell et al. 2021, Efficient Sequence Packing without Cross-contamination",
    aliases=("block_diagonal(lengths)", "packed(lengths)"),
    elsewhere=(
        "xformers: BlockDiagonalMask",
        "FlashAttention: varlen, cu_seqlens = 0 and the running sums of lengths",
        "attention-gym: generate_doc_mask_mod",
    ),
)
CAUSAL = replace(
    BOTH_WAYS,
    meaning="a query attends to itself and the positions before it in its own document, given as data",
    keys="as many as its document has positions up to itself",
)


def documents(
    lengths: Sequence[int] | NDArray[np.integer] | None = None,
    *,
    ids: Sequence[int] | NDArray[np.integer] | None = None,
    causal: bool = False,
) -> Rule:
    """Its own document: `doc[q] == doc[k]`, from the documents' lengths or from each position's id.

    With neither, the ids are given when attention runs: `attention(q, k, v, documents(), doc=ids)`.

    >>> documents(lengths=[2, 1]).mask().sum()  # 2*2 + 1*1
    np.int64(5)
    """
    if lengths is not None and ids is not None:
        raise DomainError("documents takes lengths=[3, 5, …] or ids=[0, 0, 0, 1, …], and not both")
    if not isinstance(causal, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(f"documents: causal is True or False, got {causal!r}")
    text = "k <= q and doc[q] == doc[k]" if causal else "doc[q] == doc[k]"
    about = CAUSAL if causal else BOTH_WAYS
    if lengths is None and ids is None:
        return entry(text, about, data={"doc": None})
    doc = _from_lengths(lengths) if lengths is not None else _whole("ids", ids)
    return entry(text, about, data={"doc": doc}, n=len(doc))


def _from_lengths(lengths: object) -> NDArray[np.int64]:
    sizes = _whole("lengths", lengths)
    if (sizes < 0).any():
        raise DomainError(f"documents: a length is at least 0, got {int(sizes.min())}")
    return np.repeat(np.arange(len(sizes)), sizes)


def _whole(name: str, values: object) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in ("biu" if name == "ids" else "iu"):
        raise DomainError(f"documents: {name} is one row of whole numbers, got {array.dtype} {array.shape}")
    return array.astype(np.int64)
