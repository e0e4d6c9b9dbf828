"""Launches of Triton kernels, noted on a recorder: launched again without Triton's own look-up."""

# Triton has no stubs
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from lattend.attend.kernels.triton.driver import Descriptor, driver_launch
from lattend.attend.replay.recorder import PerCallNumber, Recorder


def launch(
    recorder: Recorder, kernel: Any, programs: int, arguments: Sequence[Any], constants: Mapping[str, Any]
) -> None:
    """Launches a kernel, and notes it; arguments are tensors, tuples of them, TMA descriptors and numbers.

    Numbers stay as they are, but for those that are PerCallNumber: the kernel takes them with 64 bits.
    """
    plain = [int(x) if isinstance(x, PerCallNumber) else x for x in arguments]
    compiled = kernel[(programs,)](*plain, **constants)
    if compiled is None:  # by Triton's interpreter
        again = Launch(partial(kernel[(programs,)], **constants), arguments, _itself)
        recorder.note(again, again.given())
    else:
        names = kernel.arg_names[len(arguments) :]
        whole = [*arguments, *(constants[name] for name in names)]
        again = Launch(compiled[(programs, 1, 1)], whole, _address, recorder.origin)
        recorder.note(driver_launch(compiled, programs, whole, again, again.offsets), again.given())


class Launch:
    """A kernel that was compiled for such arguments; the numbers among them stay, and tensors are given anew.

    Triton compiles for the alignment of addresses too: tensors of one kind have the same. `seen` is what the
    kernel takes for a tensor: its address, since of a tensor Triton would ask the driver where it lies.
    `origin` says of a tensor that is a part of another which one, and where it begins, in bytes: that one is
    given in its place.
    """

    def __init__(
        self, run: Callable[..., Any], arguments: Sequence[Any], seen: Callable[[Any], Any],
        origin: Callable[[Tensor], tuple[Tensor, int]] = lambda x: (x, 0),
    ) -> None:  # fmt: skip
        self._run, self._arguments, self._seen = run, [*arguments], seen
        self.tensors: list[Any] = []  # until they are asked for: nothing of a first call is kept
        self.offsets: dict[int, int] = {}  # of tensors that are parts of others
        self._plain: list[tuple[int, int]] = []  # the places of an argument and of its tensor
        self._made: list[tuple[int, Callable[..., Any], slice]] = []  # of one that is made of some tensors
        for place, argument in enumerate(arguments):
            begin = len(self.tensors)
            if isinstance(argument, PerCallNumber):
                self.tensors.append(argument)
                self._plain.append((place, begin))
            elif isinstance(argument, Tensor):
                whole, offset = origin(argument)
                self.tensors.append(whole)
                self._plain.append((place, begin))
                if offset:
                    self.offsets[begin] = offset
            elif isinstance(argument, Descriptor):
                self.tensors.append(argument.base)
                self._made.append((place, _Described(argument), slice(begin, begin + 1)))
            elif isinstance(argument, tuple) and isinstance(argument[0], Tensor):
                self.tensors += argument
                self._made.append((place, self._together, slice(begin, len(self.tensors))))
            else:
                continue
            self._arguments[place] = None

    def given(self) -> list[Any]:
        """The tensors and numbers of the first call, in the order in which later ones are given."""
        found, self.tensors = self.tensors, []
        return found

    def __call__(self, *tensors: Any) -> None:
        arguments, seen = self._arguments.copy(), self._seen
        for place, tensor in self._plain:
            arguments[place] = seen(tensors[tensor])
        for place, tensor in self._plain if self.offsets else ():
            arguments[place] += self.offsets.get(tensor, 0)
        for place, make, which in self._made:
            arguments[place] = make(*tensors[which])
        self._run(*arguments)

    def _together(self, *tensors: Tensor) -> tuple[Any, ...]:
        return tuple(map(self._seen, tensors))


class _Described:
    """Makes the TMA descriptor of a tensor that is of the same kind as another's, which was checked."""

    def __init__(self, checked: Descriptor) -> None:
        self.kind, self.fields = type(checked), {**vars(checked), "base": None}

    def __call__(self, x: Tensor) -> Descriptor:
        made = object.__new__(self.kind)
        made.__dict__.update(self.fields, base=x)
        return made


def _itself(x: Any) -> Any:
    return x


def _address(x: Tensor | int) -> int:
    return x if isinstance(x, int) else x.data_ptr()
