"""GridRecord: the recorded steps of one kind of call of the recurrence, for later calls of that kind.

The kind is all that decides: the cell, the directions, the kernel, and of each tensor all but its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import torch
from torch import Tensor

from lattend.attend.call.attention_call import CallSignature
from lattend.attend.replay.recorder import Recorder, Steps
from lattend.attend.replay.signature import plain_signature
from lattend.nn.grid.cells import GridOptions
from lattend.nn.grid.steps import backward_steps, forward_steps
from lattend.recent import Recent

MAX_RECORDS = 32
MAX_GRADIENTS = 4  # kinds of gradients that one record is given
Tensors = Sequence[Tensor | None]


class GridRecord:
    """One kind of call: its steps forward and backward, once they are known."""

    def __init__(self, how: GridOptions) -> None:
        self.how = how
        self.steps: Steps | None = None
        self.output_steps: Steps | None = None  # those that lead to the first of what they give alone
        self.backward_steps: Recent[CallSignature, Steps] = Recent(MAX_GRADIENTS)

    def forward(self, mask: Tensor | None, *tensors: Tensor | None) -> Sequence[Any]:
        """The states h and c of all pixels, and what backward needs: both with their edges, and the gates.

        Where `how.joined`, the map of all directions in place of the first two.
        """
        given: Any = (mask, *tensors)
        if self.steps is not None:
            return self.steps(*given)
        recorder = Recorder(*given)
        found = forward_steps(recorder, self.how, *given)
        self.steps, self.output_steps = recorder.steps(*found), recorder.steps_to(found[0])
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
        new = grads if as_saved and grads[0] is not None else given
        known = self.backward_steps.get((wanted, kind_of(new)))
        if known is not None:
            return known(*given)
        with surroundings(given[len(grads) + 1]):
            kind = wanted, kind_of(new)
            known = self.backward_steps.get(kind)
            if known is not None:
                return known(*given)
            recorder = Recorder(*given)
            found = backward_steps(recorder, self.how, wanted, *given)
        results: Any = found
        steps = recorder.steps(*results)
        apart = new is given or not _shared(grads, saved)  # or the recorder took one for the other
        if kind[1] is not None and steps is not None and apart:
            self.backward_steps.find(kind, lambda: steps)
        return found


RECORDS: Recent[CallSignature, GridRecord] = Recent(MAX_RECORDS)


def record_of(how: GridOptions, mask: Tensor | None, *tensors: Tensor | None) -> GridRecord:
    """The record of such calls; one that is used once where somebody traces or watches."""
    kind = kind_of((*tensors, mask))
    return GridRecord(how) if kind is None else RECORDS.find((how, kind), lambda: GridRecord(how))


def _shared(grads: Tensors, saved: Tensors) -> bool:
    """Whether a gradient is one of the saved tensors itself."""
    ids = {*map(id, saved)} - {id(None)}
    return any([id(grad) in ids for grad in grads])  # noqa: C419 (a list is faster)


def kind_of(given: Tensors) -> CallSignature | None:
    """Which tensors there are, all of them but their values, and the GPU in use, to which launches go.

    None where somebody traces or watches.
    """
    if torch.compiler.is_compiling():
        return None
    there = [x for x in given if x is not None]
    tensors = plain_signature((), *there)
    if tensors is None:
        return None
    device = torch.cuda.current_device() if there[0].is_cuda else None
    return tuple([x is None for x in given]), device, tensors


AS_IT_IS: AbstractContextManager[Any] = nullcontext()


def surroundings(x: Tensor) -> AbstractContextManager[Any]:
    """Where products keep their dtype, as what comes here was cast before, and launches are on x's GPU.

    AS_IT_IS where that is so already.
    """
    device = x.device
    casts = device.type != "meta" and torch.is_autocast_enabled(device.type)
    elsewhere = device.type == "cuda" and device.index != torch.cuda.current_device()
    if not casts and not elsewhere:
        return AS_IT_IS
    found = ExitStack()
    if casts:
        found.enter_context(torch.autocast(device.type, enabled=False))
    if elsewhere:
        found.enter_context(torch.cuda.device(device))
    return found
