"""Pairs: what attention does at attended (query, key) pairs, statement by statement."""

from __future__ import annotations

from lattend.cost.amount import Amount
from lattend.cost.layers.builder import Builder
from lattend.cost.pairs import AttendedPairs
from lattend.cost.points import Sizes
from lattend.cost.sizes import multiply
from lattend.cost.statement import Array, Columns, Statement
from lattend.rules.language.polynomial import Polynomial


class PairStatements(Builder):
    """Statements over the attended pairs of all heads, and the parameters they read."""

    def __init__(self, sizes: Sizes, pairs: AttendedPairs) -> None:
        # Without those of the rule, whose names may be those of indices here
        own = {name: size for name, size in sizes.items() if name not in pairs.rule.parameters}
        super().__init__({**own, "N": pairs.queries, "M": pairs.all_keys})
        self.pairs = pairs
        heads, kv_heads = (
            Amount.of(Polynomial.constant(1) if pairs.per_head else sizes[name])
            for name in ("heads", "kv_heads")
        )
        self.attended, self.rows = pairs.pairs * heads, pairs.rows * heads
        self.keys = pairs.keys * kv_heads

    def of(self, *names: str) -> Amount:
        """The product of these sizes."""
        return Amount.of(multiply(*(self.sizes[name] for name in names)))

    def add(
        self,
        name: str,
        points: Columns,
        reads: tuple[Array, ...],
        out: Array,
        begins: Columns,
        longest: Amount,
        *,
        kind: str = "products",
        and_: str = "",
        over: str = "",
        again: bool = True,
    ) -> None:
        """Sums of products, by default over attended pairs; scores are computed again going back."""
        where = over or ", ".join(part for part in ("attended (q, k)", and_) if part)
        self.statements.append(
            Statement(name, kind, points, reads, out, begins, where, (longest,), again=again)
        )

    def each(self, name: str, kind: str, *reads: Array, saves: str | None = None) -> Array:
        """One operation at every attended pair."""
        made = Array(name, self.attended)
        again = kind in ("exponentials", "constant multiplies", "adds")
        self.statements.append(
            Statement(
                name, kind, self.attended, reads, made, over="attended (q, k)", saves=saves, again=again
            )
        )
        return made
