"""Cluster: described GPUs and the links between them, and how long a layer's attention takes on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError, NamingError
from lattend.machines import Machine, amount, machine
from lattend.report.numbers import seconds, significant, with_prefix

Seconds = NDArray[np.float64]
NVLINK = 450e9  # NVIDIA's H100 and H200 data sheets: 900 GB/s a GPU, both ways together
INFINIBAND = 50e9  # NVIDIA's DGX H100 data sheet: a ConnectX-7 adapter of 400 Gb/s for each GPU
LATENCY = 10e-6  # of a message; an assumption, as of NCCL between two GPUs
FORWARD, BACKWARD = 0.83, 0.51  # docs/speed.md, strided t = 4095 on an H200: 2.67 of 3.22 ms, 5.34 of 10.4
SLOWEST = 1e6  # bytes a second of a link: below that its unit was left out
EXAMPLE = "machine=H100,node=8,nvlink=450GB/s,infiniband=50GB/s,latency=10us"


@dataclass(frozen=True)
class Cluster:
    """GPUs in nodes, and the bytes a second that a GPU gets inside its node and from other nodes.

    `forward` and `backward` are the shares of the machine's rate that attention reaches.

    >>> print(Cluster())
    H200, measured (798 TFLOP/s), nodes of 8, 450 GB/s inside and 50 GB/s between them, 10 µs a message
    """

    machine: Machine = machine("H200 measured")  # noqa: RUF009  (a constant)
    node: int = 8
    inside: float = NVLINK
    between: float = INFINIBAND
    latency: float = LATENCY
    forward: float = FORWARD
    backward: float = BACKWARD

    def __post_init__(self) -> None:
        if isinstance(self.node, bool) or not isinstance(self.node, int) or self.node < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(f"node is how many GPUs a node has, from 1 up, got {self.node!r}")
        for name in ("inside", "between"):
            if not 0 < getattr(self, name) < inf:
                raise DomainError(f"{name} is in bytes a second, above 0, got {getattr(self, name)!r}")
        if not 0 <= self.latency < inf:
            raise DomainError(f"latency is in seconds, from 0 up, got {self.latency!r}")
        for name in ("forward", "backward"):
            if not 0 < getattr(self, name) <= 1:
                raise DomainError(f"{name} is a share of the rate, above 0 to 1, got {getattr(self, name)!r}")

    def collective(self, ranks: int) -> float:
        """Bytes a second that each GPU gets of a collective, in which all adapters of a node work."""
        return self.inside if ranks <= self.node else min(self.inside, self.node * self.between)

    def neighbour(self, ranks: int) -> float:
        """Bytes a second to the next rank of a ring, in which all wait for the slowest link."""
        return self.inside if ranks <= self.node else self.between

    def transfer(self, inside: Any, between: Any, messages: Any) -> Any:
        """Seconds to receive these bytes from the same node and from other nodes."""
        return np.maximum(inside / self.inside, between / self.between) + messages * self.latency

    def compute(self, flops: Any, moved: Any, backward: bool = False) -> Any:
        """Seconds of the operations, or of reading and writing the bytes if that takes longer."""
        share = self.backward if backward else self.forward
        return np.maximum(flops / (self.machine.rate * share), moved / self.machine.bandwidth)

    def __str__(self) -> str:
        links = f"{with_prefix(self.inside)}B/s inside and {with_prefix(self.between)}B/s between them"
        rate = f"{with_prefix(self.machine.rate)}FLOP/s"
        return (
            f"{self.machine.name} ({rate}), nodes of {self.node}, {links}, {seconds(self.latency)} a message"
        )

    @property
    def shares(self) -> str:
        """What share of the rate attention is expected to reach, in words."""
        forward, backward = significant(self.forward, 2), significant(self.backward, 2)
        return f"attention at {forward} of the rate forward, {backward} backward"


def cluster_of(given: str | Cluster | None) -> Cluster:
    """A cluster by its numbers, the rest as in the default; or as it is.

    >>> print(cluster_of("machine=A100,node=4,nvlink=300GB/s,infiniband=25GB/s"))
    A100 (312 TFLOP/s), nodes of 4, 300 GB/s inside and 25 GB/s between them, 10 µs a message
    """
    if given is None:
        return Cluster()
    if isinstance(given, Cluster):
        return given
    if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f'a cluster is a text such as "{EXAMPLE}", not {given!r}')
    return _cluster_of_text(given)


@lru_cache(maxsize=64)
def _cluster_of_text(given: str) -> Cluster:
    cluster = Cluster()
    seen: set[str] = set()
    for part in given.split(","):
        name, _, text = (side.strip() for side in part.partition("="))
        if name not in _READ:
            raise NamingError(f'a cluster has no "{name}"; it has {", ".join(_READ)}, as in {EXAMPLE}')
        if name in seen:
            raise NamingError(f'"{given}" gives {name} twice; give it once')
        seen.add(name)
        field, read = _READ[name]
        cluster = replace(cluster, **{field: read(name, text)})
    return cluster


def _rate(name: str, text: str) -> float:
    try:
        found = amount("bandwidth", text)
    except (NamingError, DomainError):
        raise NamingError(f"{name}={text} is not read; write bytes a second, as in {name}=450GB/s") from None
    if found < SLOWEST and text[-1].isdigit():
        raise NamingError(
            f"{name}={text} is {found:g} bytes a second; write the unit, as in {name}={text}GB/s"
        )
    return found


def _count(name: str, text: str) -> int:
    if not text.isdecimal():
        raise NamingError(f"{name}={text} is not read; write a whole number, as in {name}=8")
    return int(text)


def _time(name: str, text: str) -> float:
    units = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
    for unit, size in units.items():
        if text.endswith(unit):
            try:
                return float(text.removesuffix(unit)) * size
            except ValueError:
                break
    raise NamingError(f"{name}={text} is not read; write a time, as in {name}=10us")


def _share(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise NamingError(f"{name}={text} is not read; write a share, as in {name}=0.6") from None


_READ: dict[str, tuple[str, Any]] = {
    "machine": ("machine", lambda _, text: machine(text)),
    "node": ("node", _count),
    "nvlink": ("inside", _rate),
    "infiniband": ("between", _rate),
    "latency": ("latency", _time),
    "forward": ("forward", _share),
    "backward": ("backward", _share),
}
