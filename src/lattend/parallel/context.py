"""sharded(mesh): a context in which lt.attention, and Hugging Face models on it, run over ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from lattend.attend.operators.tracing import left_to_python
from lattend.attend.overrides import OVERRIDES
from lattend.errors import LattendError, NamingError
from lattend.parallel import agreement
from lattend.parallel.cluster import Cluster
from lattend.parallel.layout import Cut
from lattend.parallel.ranks import ranks_of
from lattend.parallel.sharded_attention import attention

NOT_SHARDED = {
    "scales": "multiply q, k and v by their scales first",
    "cu_seqlens": 'give the documents of positions instead: "doc[q] == doc[k]" with doc=…',
    "cache": "decode in one process",
    "return_max_logit": "ask lt.max_logits in one process",
}


@dataclass(frozen=True)
class _OverRanks:
    mesh: Any
    cut: Cut | str | None
    strategy: str | None
    cluster: str | Cluster | None

    @left_to_python
    def attention(
        self, q: Any, k: Any, v: Any, rule: Any, how: Mapping[str, Any], values: Mapping[str, Any]
    ) -> Any:
        """lt.parallel.attention, for what lt.attention was given."""
        for name, instead in NOT_SHARDED.items():
            if name in how:
                self.refuse(NamingError(f"{name}: under lt.parallel.sharded there is none; {instead}"))
        sharing = {"mesh": self.mesh, "cut": self.cut, "strategy": self.strategy, "cluster": self.cluster}
        return attention(q, k, v, rule, **sharing, **how, **values)

    def refuse(self, error: LattendError) -> NoReturn:
        """Raises the error on this rank, and one that quotes it on the others."""
        agreement.refuse(ranks_of(self.mesh), error)


@contextmanager
def sharded(
    mesh: Any = None,
    *,
    cut: Cut | str | None = None,
    strategy: str | None = None,
    cluster: str | Cluster | None = None,
) -> Iterator[None]:
    """Inside it, lt.attention is lt.parallel.attention: every rank runs a model on its own positions.

    A model that says positions to itself, as RoPE does, must be given those of the shard:

        ids = lt.parallel.shard(input_ids, mesh, dim=1)
        places = lt.parallel.positions(input_ids.shape[1], mesh)
        with lt.parallel.sharded(mesh):
            loss = model(ids, position_ids=places[None], …)
            loss.backward()

    With activation checkpointing the backward pass must be inside too, since it runs layers again.
    """
    ranks_of(mesh)  # whoever has no process group hears of it here
    one = _OverRanks(mesh, cut, strategy, cluster)
    OVERRIDES.append(one)
    try:
        yield
    finally:
        OVERRIDES.remove(one)
