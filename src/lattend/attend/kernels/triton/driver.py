"""A compiled kernel launched by CUDA's driver itself: what it is given is a block of memory, made once.

Launches of one kind differ in addresses alone. Triton's own launch takes sixty arguments apart each time, in
Python, and makes the TMA descriptors anew: five times the work of the launch itself.
"""

# Triton has no stubs
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor
from triton.runtime import driver as triton_driver

from lattend.attend.replay import host
from lattend.attend.replay.recorder import PerCallNumber
from lattend.recent import Recent

WORD = 8  # bytes; addresses lie at whole words
DESCRIPTOR = 128  # bytes of a CUtensorMap
MAX_DESCRIPTORS = 64  # of one argument that are kept, by address: torch's allocator gives the same ones again
ADDRESS, DESCRIBED = "address", "described"


@runtime_checkable
class Descriptor(Protocol):
    """A TMA descriptor, Triton's or Gluon's."""

    base: Tensor
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str


GIVEN = (Tensor, Descriptor, PerCallNumber)  # what differs from launch to launch


class Parameter(NamedTuple):
    """One parameter of a kernel: its bytes, or what is to be put there at each launch."""

    size: int
    value: bytes
    kind: str = ""  # ADDRESS, or a number that is given anew, or DESCRIBED; of the tensor with this number
    tensor: int = -1
    descriptor: Descriptor | None = None


class DriverLaunch:
    """Launches of one kernel on tensors of one kind, given in the order of `tensors`.

    `otherwise` is Triton's own launch, for a thread in which CUDA was not used yet.
    """

    def __init__(
        self, compiled: Any, programs: int, parameters: Sequence[Parameter], otherwise: Callable[..., None],
        offsets: Mapping[int, int],
    ) -> None:  # fmt: skip
        places = parameter_places(compiled.function)
        sizes = [parameter.size for parameter in parameters]
        if [size for _, size in places] != [*sizes, *[WORD] * (len(places) - len(sizes))]:  # scratch is last
            raise LookupError("the kernel takes other parameters than these")
        offset, size = places[-1]
        self.words, self.size = array("Q", bytes(-(-(offset + size) // WORD) * WORD)), array("Q", [0])
        self.size[0] = len(self.words) * WORD
        held = memoryview(self.words).cast("B")
        self.addresses: list[tuple[int, int, int]] = []
        self.described: list[tuple[int, int, Descriptors]] = []
        metas = iter(compiled.metadata.tensordesc_meta or ())
        for parameter, (offset, size) in zip(parameters, places, strict=False):
            held[offset : offset + size] = parameter.value
            if parameter.kind == ADDRESS:
                self.addresses.append((offset // WORD, parameter.tensor, offsets.get(parameter.tensor, 0)))
            elif parameter.descriptor is not None:
                describe = Descriptors(parameter.descriptor, next(metas))
                self.described.append((offset // WORD, parameter.tensor, describe))
        shared, threads = compiled.metadata.shared, 32 * compiled.metadata.num_warps
        self.function, self.shape = compiled.function, (programs, threads, shared)
        self.device, self.otherwise = torch.cuda.current_device(), otherwise
        self.launch = driver().cuLaunchKernel
        self.stream: Callable[[int], int] = triton_driver.active.get_current_stream  # pyright: ignore

    def __call__(self, *tensors: Any) -> None:
        words = self.words[:]  # threads may launch at once
        for place, tensor, offset in self.addresses:
            x = tensors[tensor]
            words[place] = x % (1 << 64) if isinstance(x, int) else x.data_ptr() + offset
        for place, tensor, describe in self.described:
            words[place : place + DESCRIPTOR // WORD] = array("Q", describe(tensors[tensor].data_ptr()))
        stream = self.stream(self.device)
        # CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END
        given = array("Q", (1, words.buffer_info()[0], 2, self.size.buffer_info()[0], 0))
        programs, threads, shared = self.shape
        shape = (programs, 1, 1, threads, 1, 1, shared)
        if self.launch(self.function, *shape, stream, None, given.buffer_info()[0]):
            self.otherwise(*tensors)

    def compiled(self, tensors: int) -> Callable[..., None]:
        """The same for so many tensors, in compiled code where there is any."""
        module = host.module()
        if module is None:
            return self
        launch = ctypes.cast(self.launch, ctypes.c_void_p).value
        described = tuple((place, tensor, known.known, known) for place, tensor, known in self.described)
        return module.launcher(
            launch, self.function, *self.shape, self.words.tobytes(), tuple(self.addresses), described,
            tensors, self.stream, self.device, self.otherwise,
        )  # fmt: skip


class Descriptors:
    """The TMA descriptors of tensors that differ from a checked one in their address alone."""

    def __init__(self, checked: Descriptor, meta: Mapping[str, Any]) -> None:
        from triton.backends.nvidia.driver import TMA_DTYPE_DEVICE_TO_HOST

        if meta["fp4_padded"] or checked.strides[-1] != 1:
            raise LookupError("rows that Triton describes in another way")
        self._fill = triton_driver.active.utils.fill_tma_descriptor  # pyright: ignore
        kind = TMA_DTYPE_DEVICE_TO_HOST[meta["elem_type"]]
        self._before = (meta["swizzle"], meta["elem_size"], kind, meta["block_size"])
        self._after = (checked.shape, checked.strides, int(checked.padding == "nan"))
        self.known: Recent[int, bytes] = Recent(MAX_DESCRIPTORS)
        made = self._fill(checked.base.data_ptr(), *self._before, *self._after)
        if type(made).__basicsize__ != 2 * DESCRIPTOR:
            raise LookupError("a descriptor that lies elsewhere in its object")

    def __call__(self, address: int) -> bytes:
        return self.known.get(address) or self.known.find(address, lambda: self._made(address))

    def _made(self, address: int) -> bytes:
        made = self._fill(address, *self._before, *self._after)
        return ctypes.string_at(id(made) + DESCRIPTOR, DESCRIPTOR)  # behind the object's head


def parameters_of(signature: Sequence[Any], arguments: Sequence[Any]) -> Iterator[Parameter]:
    """The parameters of a kernel with these types for these arguments; constants are compiled in.

    Tensors are numbered as they come: a tuple's one by one, of a TMA descriptor its base. So are numbers that
    are given anew.

    >>> [p.value.hex() for p in parameters_of(["i32", "constexpr", "fp32"], [3, 7, 0.5])]
    ['03000000', '0000003f']
    """
    tensors = 0
    for kind, argument in flattened(signature, arguments):
        if isinstance(argument, Descriptor):
            sizes = [*(struct.pack("<i", x) for x in argument.shape)]
            sizes += [struct.pack("<q", x) for x in argument.strides]
            yield Parameter(DESCRIPTOR, bytes(DESCRIPTOR), DESCRIBED, tensors, argument)
            yield from (Parameter(len(packed), packed) for packed in sizes)
        elif isinstance(argument, Tensor | PerCallNumber):
            if isinstance(argument, PerCallNumber) and kind != "i64":
                raise LookupError(f"a number of type {kind} that is given anew")
            if kind != "constexpr":
                yield Parameter(WORD, bytes(WORD), ADDRESS, tensors)
        elif kind != "constexpr":
            packed = packed_number(kind, argument)
            yield Parameter(len(packed), packed)
        tensors += isinstance(argument, GIVEN)


def flattened(signature: Sequence[Any], arguments: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Types and arguments side by side, tuples taken apart."""
    for kind, argument in zip(signature, arguments, strict=True):
        if isinstance(kind, tuple):
            yield from flattened(kind, argument)
        else:
            yield kind, argument


def packed_number(kind: str, value: float) -> bytes:
    """The bytes of a number: i32, u64, fp32 and the like.

    >>> packed_number("i64", -1).hex(), packed_number("i1", True).hex()
    ('ffffffffffffffff', '01')
    """
    if kind == "fp32":
        return struct.pack("<f", value)
    if kind[0] not in "iu" or not kind[1:].isdigit():
        raise LookupError(f"a parameter of type {kind}")
    return int(value).to_bytes(max(1, int(kind[1:]) // 8), "little", signed=kind[0] == "i" and kind != "i1")


@lru_cache(maxsize=1)
def driver() -> ctypes.CDLL:
    """CUDA's driver."""
    found = ctypes.CDLL("libcuda.so.1")
    whole, number = ctypes.c_void_p, ctypes.c_uint
    found.cuLaunchKernel.argtypes = [whole, *[number] * 7, whole, whole, whole]
    found.cuFuncGetParamInfo.argtypes = [whole, ctypes.c_size_t, whole, whole]
    return found


def parameter_places(function: int) -> list[tuple[int, int]]:
    """Where each parameter of a kernel lies in its block, and its size, as the driver says."""
    places: list[tuple[int, int]] = []
    found = array("Q", [0, 0])
    offset, size = found.buffer_info()[0], found.buffer_info()[0] + WORD
    while driver().cuFuncGetParamInfo(function, len(places), offset, size) == 0:
        places.append((found[0], found[1]))
    return places


def driver_launch(
    compiled: Any, programs: int, arguments: Sequence[Any], otherwise: Callable[..., None],
    offsets: Mapping[int, int] | None = None,
) -> Callable[..., None]:  # fmt: skip
    """The kernel launched by the driver; by Triton where this version of it passes arguments otherwise.

    `offsets` says of some tensors, by number, how many bytes from their beginning the kernel's one lies.
    """
    try:
        metadata = compiled.metadata
        if metadata.num_ctas != 1 or metadata.launch_cooperative_grid or metadata.launch_pdl:
            return otherwise
        if metadata.global_scratch_size or metadata.profile_scratch_size:
            return otherwise
        signature = [*compiled.src.signature.values()]
        parameters = [*parameters_of(signature, arguments)]
        if len(metadata.tensordesc_meta or ()) != sum(p.kind == DESCRIBED for p in parameters):
            return otherwise
        tensors = sum(isinstance(x, GIVEN) for _, x in flattened(signature, arguments))
        return DriverLaunch(compiled, programs, parameters, otherwise, offsets or {}).compiled(tensors)
    except (AttributeError, ImportError, LookupError, OSError, ValueError):
        return otherwise
