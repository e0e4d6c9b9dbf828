"""FlopCounter: torch's FlopCounterMode, right for causal, windowed and masked attention."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal
from weakref import WeakKeyDictionary

from torch.nn import Module
from torch.utils.flop_counter import shape_wrapper

from lattend.cost.measure.call_sites import CallSite
from lattend.cost.measure.meter import Meter
from lattend.cost.measure.tally import Tally
from lattend.cost.result import not_counted
from lattend.errors import NamingError
from lattend.report.numbers import percent, with_unit
from lattend.report.table import Table

COUNTS = ("needed", "executed", "dense")
WHOLE = "Global"


class FlopCounter:
    """Counts two floating-point operations a multiply-add, as torch does, of those that are needed.

    A drop-in for torch.utils.flop_counter.FlopCounterMode: same arguments, same answers for products and
    convolutions. Attention is counted by its attended pairs, forward and backward, on a CPU, a GPU or
    the meta device; its backward needs twice the forward. count="executed" counts whole tiles, and scores
    that are computed again, count="dense" all pairs. Multiplies by a convolution's padding are counted as
    torch does, unless padding=False leaves them out of what is needed.

    >>> import torch
    >>> q = torch.zeros(1, 1, 8, 4)
    >>> with FlopCounter(display=False) as counter:
    ...     out = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    >>> counter.get_total_flops()  # 36 pairs, 4 + 4 multiply-adds each, two operations a multiply-add
    576
    """

    def __init__(
        self,
        mods: Module | list[Module] | None = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: Mapping[Any, Callable[..., int]] | None = None,
        *,
        count: Literal["needed", "executed", "dense"] = "needed",
        padding: bool = True,
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        if count not in COUNTS:
            raise NamingError(f"count is one of {', '.join(COUNTS)}, not {count!r}")
        self.depth, self.display, self.count, self.padding = depth, display, count, padding
        self._formulas = {
            packet: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for packet, formula in (custom_mapping or {}).items()
        }
        self._names: WeakKeyDictionary[Module, str] = WeakKeyDictionary()
        self._meter: Meter | None = None

    def __enter__(self) -> FlopCounter:
        self._meter = Meter(self._name, formulas=self._formulas)
        self._meter.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._meter is not None:
            self._meter.__exit__(*error)
        if self.display:
            print(self.get_table(self.depth))

    # What was counted

    @property
    def flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, then by operator; under "Global" all of them."""
        counts: dict[str, dict[Any, int]] = {}
        for (place, label, _), tally in ({} if self._meter is None else self._meter.entries).items():
            if not tally.dense:
                continue
            flops = 2 * self._counted(label, tally)
            for name in {step.name or WHOLE for step in place.path()}:
                mine = counts.setdefault(name, {})
                mine[label] = mine.get(label, 0) + flops
        return counts

    def _counted(self, label: Any, tally: Tally) -> int:
        if self.count == "needed" and self.padding and "convolution" in str(label):
            return tally.executed
        return getattr(tally, self.count)

    @property
    def unknown(self) -> dict[str, int]:
        """Operators whose arithmetic is not known, and how often they ran: they are not counted."""
        return {} if self._meter is None else dict(self._meter.unknown)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where a number is not exact: `mask not known: …`."""
        from lattend.cost.measure.measure import notes

        return () if self._meter is None else notes(self._meter)

    def get_total_flops(self) -> int:
        """Twice the multiply-adds of all that ran."""
        return sum(self.flop_counts.get(WHOLE, {}).values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, then by operator; under "Global" all of them."""
        return self.flop_counts

    def get_table(self, depth: int | None = None) -> str:
        """Modules within modules down to `depth`, their operators, and each one's share."""
        depth = self.depth if depth is None else depth
        depth = 10**6 if depth is None else depth
        counts, total = self.flop_counts, self.get_total_flops()
        named = sorted(name for name in counts if name != WHOLE)
        shown = [(name, name.count(".")) for name in named if name.count(".") < depth]
        if all(sum(counts[name].values()) < total for name in named):
            shown = [(WHOLE, 0), *((name, level + 1) for name, level in shown)]
        rows: list[tuple[str, str, str]] = []
        for name, level in shown:
            mine = counts.get(name, {})
            named = {name: sum(mine.values()), **{f" - {label}": flops for label, flops in mine.items()}}
            rows += [
                (" " * level + each, with_unit(flops), percent(flops, total)) for each, flops in named.items()
            ]
        table = Table(("Module", self._heading(), "% Total"), rows).lines()
        return "\n".join([*table, *([not_counted(self.unknown)] if self.unknown else [])])

    def _heading(self) -> str:
        """`FLOP`, or `FLOP executed, by native`."""
        if self.count != "executed":
            return "FLOP"
        tiles = "" if self._meter is None else " and ".join(self._meter.tiles)
        return f"FLOP executed, {tiles}" if tiles else "FLOP executed"

    # Names as torch gives them

    def _name(self, module: Module, parent: CallSite) -> str:
        """The class of the outermost module, then the attributes that lead to this one."""
        if module not in self._names:
            self._names[module] = type(module).__name__
            for name, part in module.named_modules(prefix=type(module).__name__):
                self._names.setdefault(part, name)
        return self._names[module]
