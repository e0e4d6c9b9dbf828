"""The numbers that count: tiny expressions, forward and back, whose tallies are plain to see."""

from __future__ import annotations

import math

import pytest
import torch

from lattend.cost.reference.numbers import (
    CountingNumber,
    CountingTape,
    apply,
    backward,
    counting,
    depth,
    exp,
    floats,
    unit,
    value,
)


def given(*values: float) -> tuple[CountingTape, list[CountingNumber]]:
    tape = CountingTape()
    return tape, counting(list(values), tape)


def done(tape: CountingTape) -> tuple[int, int, int, int, int, int]:
    return (
        tape.multiplies,
        tape.adds,
        tape.exponentials,
        tape.divisions,
        tape.functions,
        tape.comparisons,
    )


def test_each_operation_counts_once() -> None:
    tape, (a, b) = given(2.0, 5.0)
    assert value(a * b + 1.0) == 11.0
    assert done(tape) == (1, 1, 0, 0, 0, 0)
    assert value(1.0 - b / a) == -1.5
    assert done(tape) == (1, 2, 0, 1, 0, 0)
    assert value(3.0 * a - b) == 1.0
    assert value(2.0 / a) == 1.0
    assert done(tape) == (2, 3, 0, 2, 0, 0)
    assert value(exp(a)) == math.exp(2)
    assert value(apply("relu", -b)) == 0  # the sign costs nothing
    assert done(tape) == (2, 3, 1, 2, 1, 0)
    assert max([a, b, a]) is b
    assert a < b
    assert a <= 2
    assert b >= a
    assert done(tape) == (2, 3, 1, 2, 1, 5)


def test_floats_are_not_counted() -> None:
    assert exp(0.0) == 1.0
    assert apply("sqrt", 4.0) == 2.0
    assert unit([1.0, [2.0]]) == [1.0, [2.0]]
    assert depth([1.0, [2.0]]) == 0


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu", "gelu", "sqrt"])
@pytest.mark.parametrize("at", [0.3, 1.7])
def test_functions_and_their_slopes_are_torch_s(name: str, at: float) -> None:
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    x = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    y = function(x)
    (slope,) = torch.autograd.grad(y, x)
    tape, (a,) = given(at)
    out = apply(name, a)
    assert value(out) == pytest.approx(y.item(), abs=1e-12)
    back = backward([out])
    assert back.of(a) == pytest.approx(slope.item(), abs=1e-12)
    assert done(tape) == (0, 0, 0, 0, 1, 0)
    assert done(back.tape) == (1, 0, 0, 0, 1, 0)


@pytest.mark.parametrize(
    ("expression", "operations", "gradients"),
    [
        (lambda a, b: a * b, (2, 0, 0, 0, 0, 0), (5, 2)),
        (lambda a, b: a * 3.0, (1, 0, 0, 0, 0, 0), (3, 0)),
        (lambda a, b: a * a, (2, 1, 0, 0, 0, 0), (4, 0)),  # a is met twice: 1 add
        (lambda a, b: a + b - 1.0, (0, 0, 0, 0, 0, 0), (1, 1)),
        (lambda a, b: 1.0 - a - b, (0, 0, 0, 0, 0, 0), (-1, -1)),
        (lambda a, b: a / b, (1, 0, 0, 2, 0, 0), (0.2, -0.08)),
        (lambda a, b: a / 4.0, (0, 0, 0, 1, 0, 0), (0.25, 0)),
        (lambda a, b: 1.0 / b, (1, 0, 0, 1, 0, 0), (0, -0.04)),
        (lambda a, b: exp(a), (1, 0, 0, 0, 0, 0), (math.exp(2), 0)),
        (lambda a, b: a * b + a / b + a, (3, 3, 0, 2, 0, 0), (6.2, 1.92)),  # a met 3 times, b twice
    ],
)
def test_going_back(expression, operations, gradients) -> None:
    _, (a, b) = given(2.0, 5.0)
    back = backward([expression(a, b)])
    assert done(back.tape) == operations
    assert back.of([a, b]) == pytest.approx(gradients)


def test_a_given_gradient_meets_what_comes_from_later_outputs() -> None:
    _, (a, w) = given(2.0, 5.0)
    first = a * w
    back = backward([first, first * w], [1.0, 10.0])
    assert back.of([first, a, w]) == pytest.approx([51, 255, 51 * 2 + 100])
    assert done(back.tape) == (4, 2, 0, 0, 0, 0)


def test_units_are_levels_of_cells() -> None:
    _, (a, b) = given(1.0, 2.0)
    cell = unit([a + b, a * b])
    assert [number.level for number in cell] == [1, 1]
    assert a.level == 0  # what went in stays as it was
    assert floats(cell) == [3, 2]
    beside, above = unit([a]), unit([cell[0] + a])
    assert depth([beside, above]) == 2
    assert depth(unit(beside, after=above)) == 3


def test_marking_costs_nothing() -> None:
    tape, (a, b) = given(1.0, 2.0)
    back = backward(unit([unit([a + b])[0] + a]))
    assert back.of([a, b]) == [2, 1]
    assert done(tape) == (0, 2, 0, 0, 0, 0)
    assert done(back.tape) == (0, 1, 0, 0, 0, 0)


def test_what_no_output_needs_is_gone_back_through_with_zeros() -> None:
    _, (a, b) = given(2.0, 5.0)
    _, used = a * b, a * 3.0
    back = backward([used])
    assert back.of([a, b]) == [3, 0]
    assert done(back.tape) == (3, 1, 0, 0, 0, 0)
