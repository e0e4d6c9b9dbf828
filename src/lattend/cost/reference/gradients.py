"""Gradients of a run on numbers that count, and what going back costs.

>>> from lattend.cost.reference.numbers import counting
>>> a, b = counting([2.0, 3.0], Tally())
>>> back = backward([a * b + a])  # a is met twice: one add
>>> back.of([a, b]), back.tally.multiplies, back.tally.adds
([4.0, 2.0], 2, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lattend.cost.reference.numbers import FUNCTIONS, Number, Scalar, Tally, numbers, value


@dataclass
class Backward:
    """What going back cost, and the gradient of each number it came to."""

    tally: Tally
    gradients: dict[Number, float]

    def of(self, nested: Any) -> Any:
        """The gradients of lists of numbers, as lists; 0 where none arrived."""
        if isinstance(nested, Number):
            return self.gradients.get(nested, 0.0)
        return [self.of(part) for part in nested]

    def give(self, to: Scalar, gradient: float) -> None:
        """Add to the gradient of a number; constants take none."""
        if not isinstance(to, Number):
            return
        if to in self.gradients:
            self.tally.adds += 1
            gradient += self.gradients[to]
        self.gradients[to] = gradient


def backward(outputs: Any, seeds: Sequence[float] | None = None) -> Backward:
    """Gradients of all numbers of a run, those of its outputs given (1 unless said); constants get none.

    Back through a*b of two numbers is 2 multiplies, of a number and a constant 1; through exp 1 multiply;
    through a/b a division for a, a multiply and a division for b; through a function a multiply and a
    function, its slope. Where several gradients meet they are added: one add less than there are. Every
    operation of the run is gone back through; where no output needs it the gradient is a given 0.
    """
    ends = list(numbers(outputs))
    back = Backward(Tally(), {})
    for end, seed in zip(ends, seeds or [1.0] * len(ends), strict=True):
        back.give(end, seed)
    for number in reversed(ends[0].tally.numbers):
        if number.parents and (number in back.gradients or number.made_by != "same"):
            _go_back(number, back.gradients.get(number, 0.0), back)
    return back


def _go_back(number: Number, gradient: float, back: Backward) -> None:
    tally, (first, second) = back.tally, (*number.parents, 0.0)[:2]
    match number.made_by:
        case "same":
            back.give(first, gradient)
        case "+":
            back.give(first, gradient)
            back.give(second, gradient)
        case "-":
            back.give(first, gradient)
            back.give(second, -gradient)
        case "*":
            for one, other in (first, second), (second, first):
                if isinstance(one, Number):
                    tally.multiplies += 1
                    back.give(one, gradient * value(other))
        case "/":
            if isinstance(first, Number):
                tally.divisions += 1
                back.give(first, gradient / value(second))
            if isinstance(second, Number):
                tally.multiplies += 1
                tally.divisions += 1
                back.give(second, -gradient * value(number) / value(second))
        case "exp":
            tally.multiplies += 1
            back.give(first, gradient * value(number))
        case name:
            tally.multiplies += 1
            tally.functions += 1
            back.give(first, gradient * FUNCTIONS[name][1](value(first)))
