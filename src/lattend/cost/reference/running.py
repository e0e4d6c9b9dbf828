"""A plain layer run once, forward and back, on random numbers that count: what it cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from lattend.cost.reference.gradients import backward
from lattend.cost.reference.numbers import CountingTape, counting, depth, numbers, unit
from lattend.cost.reference.shapes import Shape, Shapes, fill, filled


@dataclass(frozen=True)
class Ran:
    """What a run had and did."""

    parameters: int
    depth: int  # sequential, in units
    forward: CountingTape
    backward: CountingTape


def run(layer: Callable[..., Any], weights: Shapes, *inputs: Shape) -> Ran:
    """What a layer does, called with inputs of these shapes and then its weights; all outputs are used.

    >>> from lattend.cost.reference.tokenwise import linear
    >>> ran = run(linear, {"weight": (4, 3)}, (2, 3))  # two tokens: 2*3*4, and twice that going back
    >>> ran.forward.multiplies, ran.backward.multiplies
    (24, 48)
    """
    source, tape = Random(3), CountingTape()
    counted = counting(filled(weights, source), tape)
    given = [counting(fill(shape, source), tape) for shape in inputs]
    outputs = layer(*given, counted)
    back = backward(outputs).tape
    done = replace(tape, numbers=[])  # what the run made may go
    return Ran(len(list(numbers(counted))), depth(outputs), done, back)


def one(layer: Callable[..., Any]) -> Callable[..., Any]:
    """The layer as a single unit."""
    return lambda *given: unit(layer(*given))
