"""Gradients of a run on numbers that count, and what going back costs.

>>> from lattend.cost.reference.numbers import counting
>>> a, b = counting([2.0, 3.0], CountingTape())
>>> back = backward([a * b + a])  # a is met twice: one add
>>> back.of([a, b]), back.tape.multiplies, back.tape.adds
([4.0, 2.0], 2, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lattend.cost.reference.numbers import FUNCTIONS, CountingNumber, CountingTape, Scalar, numbers, value


@dataclass
class Backward:
    """What going back cost, and the gradient of each number it came to."""

    tape: CountingTape
    gradients: dict[CountingNumber, float]

    def of(self, nested: Any) -> Any:
        """The gradients of lists of numbers, as lists; 0 where none arrived."""
        if isinstance(nested, CountingNumber):
            return self.gradients.get(nested, 0.0)
        return [self.of(part) for part in nested]

    def give(self, to: Scalar, gradient: float) -> None:
        """Add to the gradient of a number; constants take none."""
        if not isinstance(to, CountingNumber):
            return
        if to in self.gradients:
            self.tape.adds += 1
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
    back = Backward(CountingTape(), {})
    for end, seed in zip(ends, seeds or [1.0] * len(ends), strict=True):
        back.give(end, seed)
    for number in reversed(ends[0].tape.numbers):
        if number.parents and (number in back.gradients or number.made_by != "same"):
            _go_back(number, back.gradients.get(number, 0.0), back)
    return back


def _go_back(number: CountingNumber, gradient: float, back: Backward) -> None:
    tape, (first, second) = back.tape, (*number.parents, 0.0)[:2]
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
                if isinstance(one, CountingNumber):
                    tape.multiplies += 1
                    back.give(one, gradient * value(other))
        case "/":
            if isinstance(first, CountingNumber):
                tape.divisions += 1
                back.give(first, gradient / value(second))
            if isinstance(second, CountingNumber):
                tape.multiplies += 1
                tape.divisions += 1
                back.give(second, -gradient * value(number) / value(second))
        case "exp":
            tape.multiplies += 1
            back.give(first, gradient * value(number))
        case name:
            tape.multiplies += 1
            tape.functions += 1
            back.give(first, gradient * FUNCTIONS[name][1](value(first)))
