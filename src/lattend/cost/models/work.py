"""ModelWork: multiply-adds in three columns, part by part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lattend.cost.models.parts import GROUPS
from lattend.cost.result import Counted, MultiplyAdds, Result, totals
from lattend.cost.statement import COLUMNS
from lattend.errors import NamingError
from lattend.plans.plan import tile_text
from lattend.report.report import Report
from lattend.report.table import Table

if TYPE_CHECKING:
    from lattend.cost.models.model import Model


@dataclass(frozen=True, repr=False)
class ModelWork(Result):
    """One run of a model over `batch` sequences; `work["attention"].needed` is one of its numbers."""

    JSON = "family=model.family way length batch tile parameters multiply_adds parts"

    model: Model
    way: str  # "forward", "training" or "training, checkpointing"
    length: int
    batch: int
    tile: int
    parts: dict[str, Counted]

    @property
    def tokens(self) -> int:
        return self.length * self.batch

    @property
    def parameters(self) -> int:
        """Those of the model."""
        return self.model.parameters

    @property
    def multiply_adds(self) -> Counted:
        """Needed, executed (whole tiles, and what is computed again) and dense, all parts together."""
        return MultiplyAdds(*map(sum, zip(*self.parts.values(), strict=True)))

    def __getitem__(self, name: str) -> Counted:
        if name not in self.parts:
            raise NamingError(f"there is no part {name!r}; there are {', '.join(self.parts)}")
        return self.parts[name]

    @property
    def heading(self) -> str:
        """`gpt2, forward, length 8, batch 2`."""
        batch = f", batch {self.batch:,}" if self.batch > 1 else ""
        return f"{self.model.family}, {self.way}, length {self.length:,}{batch}"

    def report(self) -> Report:
        """What it prints."""
        rows = [(name, *(f"{value:,}" for value in columns)) for name, columns in self.parts.items()]
        parts = Table(("multiply-adds", *COLUMNS), rows)
        return Report(
            self.heading,
            [totals(self.parameters, {"multiply-adds": self.multiply_adds}, tile_text(self.tile)), parts],
        )


def gathered(counts: Iterable[tuple[str, Counted]], times: int = 1) -> dict[str, Counted]:
    """The sum of each kind of part, in the order of GROUPS; every number `times` over."""
    sums: dict[str, Counted] = {name: MultiplyAdds(0, 0, 0) for name in GROUPS}
    for name, more in counts:
        sums[name] = MultiplyAdds(*(a + b * times for a, b in zip(sums[name], more, strict=True)))
    return sums
