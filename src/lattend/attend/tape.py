"""Tape: the steps of a call, noted while it runs, so that they can be taken again on other tensors.

The first call of its kind decides everything: which kernel, which tiles, which numbers go with a launch. It
does so in the code that one reads, and notes what it does to tensors. A later call of its kind repeats that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

Step = Callable[..., Any]


class Tape:
    """The steps of a call, each a function of tensors that were given or that an earlier step gave.

    Whatever else a step reads must stay as it is: shapes, strides, dtypes and numbers, and tensors that are
    `kept`. A step on a tensor of unknown origin cannot be repeated, and then the tape cannot.

    >>> x, y = torch.tensor(2.0), torch.tensor(5.0)
    >>> tape = Tape(x, y)
    >>> twice = tape.do(lambda x: 2 * x, x)
    >>> steps = tape.steps(tape.do(torch.add, twice, y))
    >>> steps is not None and steps(torch.tensor(3.0), torch.tensor(1.0))
    [tensor(7.)]
    >>> tape.steps(tape.do(torch.neg, torch.tensor(1.0))) is None
    True
    """

    def __init__(self, *given: Tensor) -> None:
        self._held: list[Any] = []  # holding them keeps their ids apart
        self._places: dict[int, int] = {}
        self._steps: list[tuple[Step, tuple[int, ...]]] = []
        self._known: dict[tuple[Step, tuple[int, ...]], tuple[Any, Sequence[Tensor]]] = {}
        self._repeatable = True
        self._add(given)

    def do(self, step: Step, *tensors: Tensor) -> Any:
        """What the step gives for these tensors: a tensor, a tuple of them, or None."""
        found = step(*tensors)
        self.note(step, tensors, found)
        return found

    def once(self, step: Step, *tensors: Tensor) -> Any:
        """The same, for a step that is asked for several times in a call: it is taken the first time."""
        key = step, tuple(map(id, tensors))
        if key not in self._known:
            self._known[key] = self.do(step, *tensors), tensors
        return self._known[key][0]

    def note(self, step: Step, tensors: Sequence[Tensor], found: Any = None) -> None:
        """Notes a step that was taken on these tensors, and what it gave."""
        places = tuple(self._places.get(id(x), -1) for x in tensors)
        self._repeatable = self._repeatable and -1 not in places
        self._steps.append((step, places))
        self._add(cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,))

    def keep(self, tensor: Tensor) -> Tensor:
        """A tensor that stays as it is from call to call."""
        return self.do(lambda: tensor)

    def empty(
        self,
        shape: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
        strides: Sequence[int] = (),
    ) -> Tensor:
        """A new tensor; contiguous unless its strides are given."""
        if not strides:
            return self.do(partial(torch.empty, tuple(shape), dtype=dtype, device=device))
        return self.do(partial(torch.empty_strided, tuple(shape), tuple(strides), dtype=dtype, device=device))

    def steps(self, *results: Tensor) -> Steps | None:
        """The steps that lead to these results, if they can be repeated."""
        places = [self._places.get(id(x), -1) for x in results]
        return Steps(self._steps, places) if self._repeatable and -1 not in places else None

    def _add(self, found: Sequence[Any]) -> None:
        for x in found:
            self._places[id(x)] = len(self._held)
            self._held.append(x)


class Steps:
    """Steps that can be taken again; they hold no tensor of the call that they were noted in."""

    def __init__(self, steps: Sequence[tuple[Step, tuple[int, ...]]], results: Sequence[int]) -> None:
        self._steps, self._results = tuple(steps), tuple(results)

    def __call__(self, *given: Tensor) -> list[Tensor]:
        """The results for tensors of the same kind."""
        held: list[Any] = [*given]
        for step, places in self._steps:
            found = step(*[held[place] for place in places])
            if isinstance(found, tuple):
                held.extend(cast("tuple[Any, ...]", found))
            else:
                held.append(found)
        return [held[place] for place in self._results]
