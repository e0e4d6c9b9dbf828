"""The one table of machines: names, units of one's own, several as one."""

from __future__ import annotations

import pytest

from lattend.errors import DomainError, NamingError
from lattend.machines import MACHINES, Machine, machine


@pytest.mark.parametrize(
    ("text", "rate", "bandwidth", "memory"),
    [
        ("flops=990T,bandwidth=3.35TB/s,memory=80GB", 990e12, 3.35e12, 80e9),
        ("flops=990TFLOP/s, bandwidth=3350GB/s, memory=80GiB", 990e12, 3.35e12, 80 * 1024**3),
        ("bandwidth=5e10,flops=1.5e12", 1.5e12, 5e10, None),
        ("flops=1P,bandwidth=1T,memory=64 GB", 1e15, 1e12, 64e9),
    ],
)
def test_ones_own_numbers(text: str, rate: float, bandwidth: float, memory: float | None) -> None:
    found = machine(text)
    assert found.rate == pytest.approx(rate)
    assert found.bandwidth == pytest.approx(bandwidth)
    assert found.memory == (memory and pytest.approx(memory))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("H1000", 'no machine is named "H1000"; there are H200, H100, A100, L40S, MI300X, laptop'),
        ("flops=1T", '"flops=1T" does not say bandwidth; write a machine as flops=990T'),
        ("flops=fast,bandwidth=1T", "flops=fast is not read; write a number with its unit, as in flops=990T"),
        ("flops=1T,bandwidth=80GB", "bandwidth=80GB is not read; .*bandwidth=3.35TB/s"),
        ("flops=1T,bandwidth=1T,memory=80GB/s", "memory=80GB/s is not read; .*memory=80GB"),
        ("flops=1T,bandwidth=1T,cores=8", 'a machine has no "cores"; it has flops, bandwidth, memory'),
        ("flops=1T,flops=2T,bandwidth=1T", "gives flops twice"),
    ],
)
def test_what_is_wrong_with_a_machine_is_said(text: str, said: str) -> None:
    with pytest.raises(NamingError, match=said):
        machine(text)


def test_nothing_is_no_machine() -> None:
    with pytest.raises(DomainError, match="flops=0 must be above 0"):
        machine("flops=0,bandwidth=1T")


def test_names_are_read_in_any_case() -> None:
    assert machine("mi300x") is MACHINES["MI300X"]
    assert machine("H200, measured") is MACHINES["H200 measured"]


def test_rates_are_dense() -> None:
    """Twice the bf16 rate at most in fp8: a figure with sparsity would be four times."""
    for one in MACHINES.values():
        assert one.fp8 is None or 1.9 < one.fp8 / one.rate < 2.1
        assert one.rate_of("bf16") == one.rate
        assert one.rate_of("fp8") == (one.fp8 or one.rate)


def test_several_are_one() -> None:
    eight = MACHINES["H100"].times(8)
    assert (eight.name, eight.rate, eight.bandwidth) == ("8 × H100", 8 * 989.4e12, 8 * 3.35e12)
    assert (eight.memory, eight.fp8) == (640e9, 8 * 1978.9e12)
    assert Machine("toy", 1.0, 1.0, 2).times(3).memory is None
    with pytest.raises(DomainError, match="at least 1, got 0"):
        eight.times(0)
