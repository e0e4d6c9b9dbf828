"""GridRecord: one kind of call of the recurrence. Its steps, noted on a Tape, are taken again by such calls.

The kind is all that decides: the cell, the directions, the kernel, and of each tensor all but its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from lattend.attend.call import Kind
from lattend.attend.kinds import kind_of_plain
from lattend.attend.tape import Steps, Tape
from lattend.nn.grid import native
from lattend.nn.grid.call import Edges, How
from lattend.nn.grid.gradients import edge_gradients, gates_again, gradients
from lattend.nn.grid.inputs import flipped, inner, input_sums, joined, parted
from lattend.nn.grid.layout import RowMajorLayout
from lattend.recent import Recent

MAX_RECORDS = 32
MAX_GRADIENTS = 4  # kinds of gradients that one record is given
Tensors = Sequence[Tensor | None]


class GridRecord:
    """One kind of call: its steps forward and backward, once they are known."""

    def __init__(self, how: How) -> None:
        self.how = how
        self.steps: Steps | None = None
        self.output_steps: Steps | None = None  # those that lead to the first of what they give alone
        self.backward_steps: Recent[Kind | None, Steps] = Recent(MAX_GRADIENTS)

    def forward(self, mask: Tensor | None, *tensors: Tensor | None) -> Sequence[Any]:
        """The states h and c of all pixels, and what backward needs: both with their edges, and the gates.

        Where `how.joined`, the map of all directions in place of the first two.
        """
        given: Any = (mask, *tensors)
        if self.steps is not None:
            return self.steps(*given)
        tape = Tape(*given)
        found = forward_steps(tape, self.how, *given)
        self.steps, self.output_steps = tape.steps(*found), tape.steps_to(found[0])
        return found

    def output(self, mask: Tensor | None, *tensors: Tensor | None) -> Tensor:
        """The first of what forward gives, alone."""
        steps = self.output_steps
        return self.forward(mask, *tensors)[0] if steps is None else steps(mask, *tensors)

    def backward(
        self, wanted: tuple[bool, ...], grads: Tensors, saved: Tensors, *, as_saved: bool = False
    ) -> Sequence[Tensor | None]:
        """The gradients of all tensors that want one; `saved` are the mask, the tensors, h, c and gates.

        `as_saved`: they are those that forward was given and gave, and so of one kind.
        """
        given: Any = (*grads, *saved)
        new = grads if as_saved and grads[0] is not None and not _shared(grads, saved) else given
        plain = _kind(new)
        kind = None if plain is None else (wanted, plain)
        known = self.backward_steps.get(kind)
        if known is not None:
            return known(*given)
        tape = Tape(*given)
        found = backward_steps(tape, self.how, wanted, *given)
        results: Any = found
        steps = tape.steps(*results)
        if kind is not None and steps is not None:
            self.backward_steps.find(kind, lambda: steps)
        return found


RECORDS: Recent[Kind, GridRecord] = Recent(MAX_RECORDS)


def record_of(how: How, mask: Tensor | None, *tensors: Tensor | None) -> GridRecord:
    """The record of such calls; one that is used once where somebody traces or watches."""
    given = (*tensors, mask)
    kind = _kind(given)
    return GridRecord(how) if kind is None else RECORDS.find((how, kind), lambda: GridRecord(how))


def _shared(grads: Tensors, saved: Tensors) -> bool:
    """Whether a gradient is one of the saved tensors itself."""
    ids = {*map(id, saved)} - {id(None)}
    return any([id(grad) in ids for grad in grads])  # noqa: C419 (a list is faster)


def _kind(given: Tensors) -> Kind | None:
    """Which tensors there are, and all of them but their values; None where somebody traces or watches."""
    if torch.compiler.is_compiling():
        return None
    tensors = kind_of_plain((), *[x for x in given if x is not None])
    return None if tensors is None else (tuple([x is None for x in given]), tensors)


# Steps


def forward_steps(
    tape: Tape, how: How, mask: Tensor | None, x: Tensor, into: Tensor, bias: Any, left: Tensor, top: Tensor,
    *edges: Tensor | None,
) -> tuple[Any, ...]:  # fmt: skip
    """What GridRecord.forward gives, each step noted."""
    small = None
    if how.kernel == "native":
        h, c, gates = native.forward(tape, how, mask, x, into, bias, left, top, *edges)
    else:
        layout, small = how.layout(x), small_images(how, x, left)
        there = _there(tape, how, layout, mask)
        if small is not None:
            given = (x, into, bias, left, top, Edges(*edges), there)
            h, c, gates = small.forward(tape, how, layout, *given)
        else:
            pre = tape.do(partial(input_sums, how.flips, layout), x, into, bias)
            run = backend(how.kernel).forward
            h, c, gates = run(tape, how.cell, layout, pre, left, top, Edges(*edges), there, how.save_gates)
    if not how.joined:
        return *tape.do(inner, h, c), h, c, gates
    if small is not None and len(how.flips) > 1:
        return small.joined(tape, how.flips, tape.do(partial(inner, c=None), h)[0]), h, c, gates
    return tape.do(partial(joined, how.flips), h), h, c, gates


def backward_steps(tape: Tape, how: How, wanted: tuple[bool, ...], *given: Any) -> tuple[Tensor | None, ...]:
    """What GridRecord.backward gives, each step noted."""
    if how.joined:
        grad, *saved = given
        grad_h, small = None, small_images(how, saved[1], saved[4])
        if grad is not None and small is not None and len(how.flips) > 1:
            grad_h = small.parted(tape, how.flips, grad)
        elif grad is not None:
            grad_h = tape.do(partial(parted, how.flips), grad)
        return _backward_steps(tape, how, wanted, grad_h, None, *saved)
    return _backward_steps(tape, how, wanted, *given)


def _backward_steps(
    tape: Tape, how: How, wanted: tuple[bool, ...], grad_h: Any, grad_c: Any, mask: Tensor | None,
    x: Tensor, into: Tensor, bias: Any, left: Tensor, top: Tensor, *others: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The same, from the gradients at the states of each direction."""
    if how.kernel == "native":
        return native.backward(tape, how, wanted, grad_h, grad_c, mask, x, into, bias, left, top, *others)
    h, c, gates = others[-3:]
    layout = how.layout(x)
    if gates is None and how.cell.name != "rnn":
        pre = tape.do(partial(input_sums, how.flips, layout), x, into, bias)
        gates = tape.do(partial(gates_again, how.cell, layout), pre, left, top, h)
    if grad_h is None:
        grad_h = tape.do(_nothing, h)
    there = _there(tape, how, layout, mask)
    run = backend(how.kernel).backward
    found = run(tape, how.cell, layout, grad_h, grad_c, left, top, h, c, gates, there)
    small = small_images(how, x, left)
    if small is None:
        of_all: Any = (x, into, left, top, h, gates, *found)
        return tape.do(partial(gradients, how, layout, wanted), *of_all)
    d_pre, d_hidden, d_state = found
    of_five = small.gradients(tape, how, wanted, x, into, bias, left, top, h, d_pre, d_hidden)
    if not any(wanted[5:]):
        return *of_five, None, None, None, None
    of_edges = tape.do(partial(edge_gradients, how, layout, wanted), left, top, gates, d_hidden, d_state)
    return *of_five, *of_edges


def _there(tape: Tape, how: How, layout: RowMajorLayout, mask: Tensor | None) -> Tensor | None:
    """The mask as each direction meets it, in the kernel's order."""
    return None if mask is None else tape.do(lambda mask: layout.take(flipped(how.flips, mask)), mask)


def _nothing(h: Tensor) -> Tensor:
    return torch.zeros_like(h[:, :, 1:, 1:])


def small_images(how: How, x: Tensor, left: Tensor) -> Any | None:
    """The module for small images on a GPU, if these are; see gpu/small.py."""
    if how.kernel != "gpu":
        return None
    small = import_module("lattend.nn.grid.gpu.small")
    return small if small.fits(how, x, left) else None


@lru_cache(maxsize=2)
def backend(kernel: str) -> Any:
    """The module of a kernel with a forward and a backward of its own."""
    return import_module(f"lattend.nn.grid.{'gpu.backend' if kernel == 'gpu' else kernel}")
