"""scan: the recurrence over a grid with its gradients, by the kernel that fits.

Kernels native and gpu are run by records. Kernels diagonals and reference are in plain.py and differentiated
by torch; a second derivative takes diagonals as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch._C._autograd import _top_saved_tensors_default_hooks

from lattend import amx
from lattend.attend.seams import CallSignature, Recorder, Steps, plain_signature
from lattend.errors import LattendError, NamingError
from lattend.nn.grid import native, plain
from lattend.nn.grid.cells import NO_EDGES, CellKind, Edges, Flips, GridOptions
from lattend.nn.grid.layout import by_direction, flipped, framed_states, input_sums, side_by_side
from lattend.nn.grid.steps import backward_steps, forward_steps
from lattend.recent import Recent

KERNELS = ("gpu", "native", "diagonals", "reference")
PLAIN = {"diagonals": plain.by_diagonals, "reference": plain.by_cells}
ON_GPU = (torch.float32, torch.bfloat16, torch.float16)
MAX_RECORDS = 32
MAX_GRADIENTS = 4  # kinds of gradients that one record is given
Tensors = Sequence[Tensor | None]


def why_not(kernel: str, x: Tensor, *weights: Tensor) -> str | None:
    """Why a kernel cannot run on these tensors, or None if it can."""
    if kernel == "gpu":
        interpreted = x.device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1"
        if x.device.type != "cuda" and not interpreted:
            return f"x is on {x.device} and Triton needs a CUDA device (or TRITON_INTERPRET=1, to try it out)"
        if find_spec("triton") is None:
            return "Triton is not installed"
        if x.dtype not in ON_GPU:
            return f'x is {x.dtype}, and it takes float32, bfloat16 and float16; kernel="diagonals" takes all'
    if kernel == "native":
        return native.why_not(x, *weights)
    return None


def chosen(kernel: str | None, x: Tensor, *weights: Tensor) -> str:
    """The kernel that was asked for, or the fastest that can run."""
    if kernel is None:
        fastest = "native" if x.device.type == "cpu" else "gpu"
        return fastest if why_not(fastest, x, *weights) is None else "diagonals"
    known(kernel)
    reason = why_not(kernel, x, *weights)
    if reason is not None:
        raise LattendError(f'kernel="{kernel}" cannot run this: {reason}')
    return kernel


def known(kernel: str) -> None:
    """Raises unless there is a kernel of that name."""
    if kernel not in KERNELS:
        raise NamingError(f"kernel is one of {', '.join(KERNELS)}, not {kernel!r}; leave it out for the best")


def scan(
    cell: CellKind,
    x: Tensor,
    into: Tensor,
    bias: Tensor | None,
    left: Tensor,
    top: Tensor,
    edges: Edges = NO_EDGES,
    mask: Tensor | None = None,
    *,
    flips: Flips = ((),),
    kernel: str | None = None,
    recompute: bool = False,
    joined: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The states h [D, batch, rows, cols, h] of every pixel, for each of D directions, and c for an lstm.

    x [batch, rows, cols, c], and mask [batch, rows, cols]; into [D*gates*h, c], bias [D*gates*h], left and
    top [D*gates*h, h], or with an axis for the directions. Direction d sees the image flipped along the axes
    flips[d] (1 rows, 2 cols); its edges and its states are in the order in which it travels. With
    `recompute` no gates are saved. `joined` gives the map of all directions in the order of the image,
    [batch, rows, cols, D*h], and None.
    """
    amx.check(x)
    name = (
        chosen(kernel, x, into, left, top) if x.shape[0] else "diagonals"
    )  # an empty batch has no work to share
    kind = kind_of((x, into, bias, left, top, mask)) if joined and edges is NO_EDGES else None
    if mask is not None:
        x = _filled(x, mask)
    tensors = (x, into, bias, left, top, *edges)
    graph = torch.is_grad_enabled() and any([t is not None and t.requires_grad for t in tensors])  # noqa: C419
    how = GridOptions(cell, flips, name, graph and not recompute, joined)
    around = surroundings(x)
    with around:
        if name in PLAIN:
            return _plain(how, mask, *tensors)
        record = record_of(how, mask, *tensors)
        found: Any
        if graph:
            found = _Scan.apply(record, mask, *tensors)  # pyright: ignore
        else:
            found = record.output(mask, *tensors) if joined else record.forward(mask, *tensors)[:2]
    if kind is not None and around is AS_IT_IS:
        run = partial(_apply(), record) if graph else record.output_steps or record.output
        CHECKED.find(((cell, flips, kernel, recompute), kind), lambda: run)
    return (found, None) if joined else found


# A repeated call

Options = tuple[CellKind, Flips, str | None, bool]  # cell, flips, kernel, recompute
CHECKED: Recent[tuple[Options, CallSignature | None], Callable[..., Tensor]] = Recent(MAX_RECORDS)


def again(
    options: Options, mask: Tensor | None, x: Tensor, into: Tensor, bias: Tensor | None, left: Tensor,
    top: Tensor,
) -> Tensor | None:  # fmt: skip
    """The map that a joined scan without edges gives, where such a call was checked before; or None."""
    run = CHECKED.get((options, kind_of((x, into, bias, left, top, mask))))
    if run is None:
        return None
    return run(mask, x if mask is None else _filled(x, mask), into, bias, left, top, *NO_EDGES)


def _filled(x: Tensor, mask: Tensor) -> Tensor:
    """The image with zeros where no pixel is: not even a NaN there may reach a sum."""
    return x.masked_fill(~mask[..., None], 0)


def _plain(how: GridOptions, mask: Tensor | None, *tensors: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The states by operations that torch differentiates."""
    x, into, bias, left, top, *edges = tensors
    assert x is not None and into is not None and left is not None and top is not None
    layout = how.layout(x)
    pre = layout.give(input_sums(how.flips, layout, x, into, bias))
    left, top = (by_direction(how.flips, w) for w in (left, top))
    states = framed_states(how.cell.name, layout, left.shape[-1], pre, Edges(*edges))
    there = None if mask is None else flipped(how.flips, mask)
    h, c = PLAIN[how.kernel](how.cell, pre, left, top, *states, there)
    return (side_by_side(how.flips, h.unbind()), None) if how.joined else (h, c)


class _Scan(torch.autograd.Function):
    """The recurrence by a kernel with its own backward."""

    @staticmethod
    def forward(ctx: Any, record: GridRecord, mask: Tensor | None, *tensors: Tensor | None) -> Any:
        *states, h, c, gates = record.forward(mask, *tensors)
        ctx.record = record
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(mask, *tensors, h, c, gates)
        ctx.as_saved = _top_saved_tensors_default_hooks(True) is None  # pyright: ignore
        return states[0] if record.how.joined else tuple(states)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        record, wanted, saved = ctx.record, ctx.needs_input_grad[2:], ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, None, *_twice(record.how, wanted, grads, *saved[:-3])
        return None, None, *record.backward(wanted, grads, saved, as_saved=ctx.as_saved)


def _apply() -> Callable[..., Tensor]:
    """The scan's apply without torch.func, which has no part in plain calls."""
    return super(torch.autograd.Function, _Scan).apply  # pyright: ignore


def _twice(
    how: GridOptions, wanted: tuple[bool, ...], grads: tuple[Tensor | None, ...], mask: Tensor | None,
    *tensors: Tensor | None,
) -> list[Tensor | None]:  # fmt: skip
    """The gradients by the plain path, so that they can be differentiated again."""
    states = _plain(how._replace(kernel="diagonals"), mask, *tensors)
    pairs = zip(states, grads, strict=False)  # one gradient of a map
    given = [(s, g) for s, g in pairs if s is not None and g is not None]
    asked = [t for t, w in zip(tensors, wanted, strict=True) if w and t is not None]
    found = iter(
        torch.autograd.grad(
            [s for s, _ in given], asked, [g for _, g in given], create_graph=True, allow_unused=True
        )
    )
    return [next(found) if w else None for w in wanted]


# Records of calls


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
