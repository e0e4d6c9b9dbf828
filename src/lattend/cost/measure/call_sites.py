"""CallSites: in which module an operation happens, forward and backward.

Forward, modules are entered and left. Backward, every node of the graph has the number it was given when
it was made, and the numbers at which modules were entered and left say which module made it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

import torch
from torch._C._autograd import _get_sequence_nr
from torch.nn import Module
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from lattend.cost.measure.pairs import Pairs
from lattend.cost.measure.profile import BACKWARD, FORWARD


@dataclass(eq=False)
class CallSite:
    """A module that is being called, or an attention in it.

    A place where a backward pass runs forward again, for what was not saved, has the `first` one beside it.
    """

    name: str
    kind: str
    parent: CallSite | None = None
    first: CallSite | None = None
    pairs: Pairs | None = None
    seen: list[str] = field(default_factory=list[str])  # operators inside an attention
    on_meta: bool = False  # an attention on the meta device
    task: int = -1  # the last backward pass that came by there

    @property
    def again(self) -> bool:
        return self.first is not None

    def path(self) -> list[CallSite]:
        """The place and those it lies in, innermost first."""
        path: list[CallSite] = [self]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        return path


class CallSites:
    """The places an operation may be in; a context that follows modules as they are called."""

    def __init__(
        self, name_of: Callable[[Module, CallSite], str], called: Callable[[CallSite], None]
    ) -> None:
        self._name_of, self._called = name_of, called
        self.root = CallSite("", "")
        self._open = [self.root]
        self._known: dict[tuple[Any, ...], CallSite] = {}
        self._numbers: list[int] = [0]  # from this node on,
        self._made: list[CallSite] = [self.root]  # nodes are made here
        self._thread = get_ident()
        self._task, self._records, self._records_at_all = -1, False, True  # of the last backward pass
        self._hooks: list[Any] = []

    @property
    def here(self) -> CallSite:
        """The innermost place that is open."""
        return self._open[-1]

    def now(self) -> tuple[CallSite, str, int | None]:
        """The site of an operation, its direction, and its node when that is backward."""
        node = torch._C._current_autograd_node()
        if node is None:
            return self.here, FORWARD, None
        if self.running_again():
            site = self.here
            return site if site.again else self._place(site, site.name, True), BACKWARD, None
        number = node._sequence_nr()
        place = self._made[bisect_right(self._numbers, number) - 1]
        return place.first or place, BACKWARD, number

    def running_again(self) -> bool:
        """Whether a backward pass runs forward again what was not saved: only then it keeps a record."""
        if torch._C._current_autograd_node() is None:
            return False
        task = torch._C._current_graph_task_id()
        if task != self._task:
            self._task, self._records = task, self._records_at_all and torch.is_grad_enabled()
        return torch.is_grad_enabled() and not self._records

    def never_records(self) -> None:
        """Say that no backward pass asks for derivatives of derivatives."""
        self._records_at_all = False

    def open(self, place: CallSite) -> None:
        """Enter a place."""
        self._open.append(place)
        self._mark()

    def close(self) -> None:
        """Leave the innermost place."""
        if len(self._open) > 1:
            self._open.pop()
        self._mark()

    def _mark(self) -> None:
        if get_ident() == self._thread and torch.is_grad_enabled():
            self._numbers.append(_get_sequence_nr())
            self._made.append(self.here)

    # Modules

    def _enter(self, module: Module, args: Any) -> None:
        name, recomputing = self._name_of(module, self.here), self.running_again()
        place = self._place(self.here, name, recomputing, type(module).__name__)
        self.open(place)
        self._called(place)

    def _place(self, parent: CallSite, name: str, recomputing: bool, kind: str = "") -> CallSite:
        key = (parent, name, recomputing)
        if key not in self._known:
            first = self._place(parent.first or parent, name, False, kind) if recomputing else None
            self._known[key] = CallSite(name, kind, parent, first)
        return self._known[key]

    def _leave(self, module: Module, args: Any, out: Any) -> None:
        self.close()

    def __enter__(self) -> CallSites:
        self._hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()
        del self._open[1:]
