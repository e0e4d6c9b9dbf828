"""Recorder: records the steps of a call while it runs, so that they can be repeated on other tensors.

The first call of a signature decides everything: which kernel, which tiles, which numbers go with a launch.
It does so in the code that one reads, and records what it does to tensors. A later call repeats those steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from lattend.attend.call.tensors import contiguous_strides, strides

Step = Callable[..., Any]
Steps = Callable[..., Any]  # of the tensors that a call is given


class PerCallNumber(int):
    """A number that a call is given, as it is given tensors: another one each time."""


class RecordedStep(NamedTuple):
    """A step that was taken: on what, and what came of it, both as numbers of tensors."""

    step: Step
    places: tuple[int, ...]
    found: tuple[int, ...]
    several: bool  # whether it gave a tuple
    in_place: bool  # whether it changed what it was given: a launch, a copy into memory


class Recorder:
    """The steps of a call, each a function of tensors that were given or that an earlier step gave.

    What is given may also be numbers, each a PerCallNumber of its own.

    Whatever else a step reads must stay as it is: shapes, strides, dtypes and numbers, and tensors that are
    `kept`. A step on a tensor of unknown origin cannot be repeated, and then the recorder cannot.

    >>> x, y = torch.tensor(2.0), torch.tensor(5.0)
    >>> recorder = Recorder(x, y)
    >>> twice = recorder.do(lambda x: 2 * x, x)
    >>> steps = recorder.steps(recorder.do(torch.add, twice, y))
    >>> steps is not None and steps(torch.tensor(3.0), torch.tensor(1.0))
    (tensor(7.),)
    >>> recorder.steps(recorder.do(torch.neg, torch.tensor(1.0))) is None
    True
    """

    def __init__(self, *given: Tensor | PerCallNumber) -> None:
        self._held: list[Any] = []  # holding them keeps their ids apart
        self._places: dict[int, int] = {}
        self._noted: list[RecordedStep] = []
        self._kept: dict[int, Tensor] = {}
        self._origins: dict[int, tuple[Tensor, int]] = {}
        self._known: dict[tuple[Callable[..., Any], tuple[int, ...]], tuple[Any, Sequence[Tensor]]] = {}
        self._repeatable = True
        self._given = len(self._add(given))

    def do(self, step: Step, *tensors: Tensor) -> Any:
        """Returns what the step gives for these tensors: a tensor, a tuple of them, or None."""
        found = step(*tensors)
        self.note(step, tensors, found)
        return found

    def once(self, make: Callable[..., Any], *tensors: Tensor) -> Any:
        """Returns make(recorder, *tensors), whose steps are recorded when it is first asked for."""
        key = make, tuple(map(id, tensors))
        if key not in self._known:
            self._known[key] = make(self, *tensors), tensors
        return self._known[key][0]

    def note(self, step: Step, tensors: Sequence[Tensor], found: Any = None) -> None:
        """Notes a step that was taken on these tensors, and what it gave."""
        places = tuple(self._places.get(id(x), -1) for x in tensors)
        self._repeatable = self._repeatable and -1 not in places
        several = isinstance(found, tuple)
        results = cast("tuple[Any, ...]", found) if several else (found,)
        in_place = found is None or any(x is y for x in results for y in tensors)
        self._noted.append(RecordedStep(step, places, self._add(results), several, in_place))

    def keep(self, tensor: Tensor) -> Tensor:
        """A tensor that stays as it is from call to call."""
        (place,) = self._add((tensor,))
        self._kept[place] = tensor
        return tensor

    def empty(
        self,
        shape: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
        strides: Sequence[int] = (),
    ) -> Tensor:
        """A new tensor; contiguous unless its strides are given."""
        sizes, order = tuple(shape), tuple(strides) or contiguous_strides(shape)
        alike = [x for x in self._held if isinstance(x, Tensor) and x.shape == sizes]
        alike = [x for x in alike if id(x) not in self._origins]  # parts are made for launches alone
        for x in alike:  # made sooner than from numbers
            like = torch.empty_like(x, device="meta")
            if (x.device, like.dtype, like.stride()) == (device, dtype, order):
                return self.do(torch.empty_like, x)
        return self.do(partial(torch.empty_strided, sizes, order, dtype=dtype, device=device))

    def part(self, whole: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int) -> Tensor:
        """A part of a tensor that begins so many numbers on; a launch that is repeated finds it there itself.

        >>> recorder = Recorder(x := torch.arange(6.0))
        >>> (
        ...     recorder.part(x, (2,), (1,), 4),
        ...     recorder.origin(recorder.part(x, (2,), (1,), 4))[1],
        ... )  # 4 numbers of 4 bytes
        (tensor([4., 5.]), 16)
        """
        found = self.do(partial(_part, tuple(shape), tuple(strides), offset), whole)
        self._origins[id(found)] = whole, offset * whole.element_size()
        return found

    def origin(self, x: Tensor) -> tuple[Tensor, int]:
        """Of a part the tensor it is of, and how many bytes on it begins; any other tensor itself, and 0."""
        return self._origins.get(id(x), (x, 0))

    def in_dtype(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """The same numbers in a dtype."""
        return x if x.dtype == dtype else self.do(partial(Tensor.to, dtype=dtype), x)

    def in_layout_of(self, result: Tensor, like: Tensor) -> Tensor:
        """The result [batch, heads, n, width] in the order of `like`, copied if it is in another."""
        order = strides(like, result.shape[-1])
        if result.stride() == order:
            return result
        copy = self.empty(result.shape, result.dtype, result.device, order)
        return self.do(Tensor.copy_, copy, result)

    def steps(self, *results: Tensor) -> Steps | None:
        """The steps that lead to these results, a tuple, if they can be repeated."""
        places = self._places_of(results)
        return None if places is None else self._compiled(places, f"({_names(places)})")

    def steps_to(self, result: Tensor) -> Steps | None:
        """The same for one result, which they give as it is."""
        places = self._places_of([result])
        return None if places is None else self._compiled(places, f"x{places[0]}")

    def _places_of(self, results: Sequence[Tensor]) -> list[int] | None:
        places = [self._places.get(id(x), -1) for x in results]
        return places if self._repeatable and -1 not in places else None

    def _compiled(self, results: Sequence[int], returned: str) -> Steps:
        return _compiled(self._given, self._kept, _needed(self._noted, results), returned)

    def _add(self, found: Sequence[Any]) -> tuple[int, ...]:
        first = len(self._held)
        for x in found:
            self._places[id(x)] = len(self._held)
            self._held.append(x)
        return tuple(range(first, len(self._held)))


class RecordedPass:
    """A function of tensors that decides as it goes: its first call is recorded, later ones repeat its steps.

    >>> double = RecordedPass(lambda recorder, x: [recorder.do(torch.add, x, x)])
    >>> double(torch.tensor(2.0)), double(torch.tensor(5.0))
    ([tensor(4.)], (tensor(10.),))
    """

    def __init__(self, function: Callable[..., Sequence[Tensor]]) -> None:
        self.function = function  # of a Recorder and the tensors
        self.steps: Steps | None = None
        self.first_steps: Steps | None = None  # those that lead to the first result alone

    def __call__(self, *tensors: Tensor) -> Any:
        """Returns all results."""
        if self.steps is not None:
            return self.steps(*tensors)
        recorder = Recorder(*tensors)
        results = self.function(recorder, *tensors)
        self.steps, self.first_steps = recorder.steps(*results), recorder.steps_to(results[0])
        return results

    def first_result(self, *tensors: Tensor) -> Tensor:
        """Returns the first result alone, without the steps that only lead to others."""
        return self(*tensors)[0] if self.first_steps is None else self.first_steps(*tensors)


def _part(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, whole: Tensor) -> Tensor:
    return whole.as_strided(shape, strides, whole.storage_offset() + offset)


def _needed(noted: Sequence[RecordedStep], results: Sequence[int]) -> list[RecordedStep]:
    """The steps without those whose results nobody reads."""
    read, found = set(results), list[RecordedStep]()
    for one in reversed(noted):
        if one.in_place or read.intersection(one.found):
            read.update(one.places)
            found.append(one)
    return found[::-1]


def _compiled(given: int, kept: Mapping[int, Tensor], noted: Sequence[RecordedStep], returned: str) -> Steps:
    """A Python function that takes the steps one after another; of their first call it holds what is kept."""
    lines = [f"def steps({_names(range(given))}):"]
    for number, one in enumerate(noted):
        to = _names(one.found) if one.several else f"x{one.found[0]}"
        lines.append(f"    {to} = step{number}({_names(one.places)})")
    lines.append(f"    return {returned}")
    space: dict[str, Any] = {f"step{number}": one.step for number, one in enumerate(noted)}
    space |= {f"x{place}": tensor for place, tensor in kept.items()}
    exec("\n".join(lines), space)
    return space["steps"]


def _names(places: Iterable[int]) -> str:
    return "".join(f"x{place}, " for place in places)
