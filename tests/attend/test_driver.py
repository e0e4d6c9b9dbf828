"""Launches by CUDA's driver: a kernel's parameters as a block of memory, or Triton's own launch."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from triton.tools.tensor_descriptor import TensorDescriptor

import lattend as lt
from lattend.attend.kernels.triton import driver, launch_replay
from lattend.attend.replay.compiled_call import COMPILED_CALLS
from lattend.attend.replay.recorder import PerCallNumber, Recorder


def test_parameters_are_numbered_as_tensors_come() -> None:
    x, y = torch.ones(1, 1, 4, 16), torch.ones(2)
    rows = TensorDescriptor.from_tensor(x, [1, 1, 4, 16])
    kinds = ["*fp32", "tensordesc<fp32[1,1,4,16]>", ("*fp32", "*fp32"), "i64", "constexpr", "i1", "fp32"]
    found = [*driver.parameters_of(kinds, [y, rows, (x, y), -3, 7, True, 0.25])]
    tensors = [(p.kind, p.tensor) for p in found if p.kind]
    assert tensors == [(driver.ADDRESS, 0), (driver.DESCRIBED, 1), (driver.ADDRESS, 2), (driver.ADDRESS, 3)]
    sizes = [struct.pack("<i", n) for n in (1, 1, 4, 16)] + [struct.pack("<q", n) for n in (64, 64, 16, 1)]
    assert [p.value for p in found[2:10]] == sizes
    assert [p.value for p in found[-3:]] == [struct.pack("<q", -3), b"\x01", struct.pack("<f", 0.25)]


def test_numbers_that_are_given_anew_are_numbered_with_tensors() -> None:
    x = torch.ones(2)
    found = [*driver.parameters_of(["*fp32", "i64", "i64", "*fp32"], [x, PerCallNumber(5), 6, x])]
    assert [(p.kind, p.tensor, p.size) for p in found] == [
        (driver.ADDRESS, 0, 8), (driver.ADDRESS, 1, 8), ("", -1, 8), (driver.ADDRESS, 2, 8)
    ]  # fmt: skip
    with pytest.raises(LookupError, match="i32"):
        next(driver.parameters_of(["i32"], [PerCallNumber(5)]))


def kernel(**changes: Any) -> Any:
    """What a compiled kernel says of itself, as far as a launch asks."""
    plain = {"num_ctas": 1, "launch_cooperative_grid": False, "launch_pdl": False, "tensordesc_meta": []}
    sizes = {"global_scratch_size": 0, "profile_scratch_size": 0, "shared": 0, "num_warps": 4}
    source = SimpleNamespace(signature={"x": "*fp32", "n": "i32"})
    return SimpleNamespace(metadata=SimpleNamespace(**{**plain, **sizes, **changes}), src=source, function=1)


@pytest.mark.parametrize("places", [[(0, 8)], [(0, 8), (8, 8)], [(0, 8), (8, 4), (12, 4)]])
def test_triton_launches_a_kernel_with_other_parameters(
    places: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "parameter_places", lambda function: places)
    given = [torch.ones(2), 3]
    assert driver.driver_launch(kernel(), 1, given, otherwise := lambda *tensors: None) is otherwise


@pytest.mark.parametrize("changed", [{"num_ctas": 2}, {"launch_pdl": True}, {"global_scratch_size": 64}])
def test_triton_launches_what_takes_more_than_parameters(changed: dict[str, Any]) -> None:
    given = [torch.ones(2), 3]
    assert driver.driver_launch(kernel(**changed), 1, given, otherwise := lambda *tensors: None) is otherwise


class Written:
    """A kernel, before and after it is compiled, that writes down what it is launched with."""

    arg_names = ("x", "y", "n")

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def run(*given: Any, **constants: Any) -> Any:
            self.seen.append(given)
            return self if len(grid) == 1 else None  # first by the function, then by what it compiled

        return run


def test_a_repeated_launch_finds_parts_where_they_are() -> None:
    kernel, x, y = Written(), torch.arange(8.0), torch.ones(2)
    recorder = Recorder(x, y)
    part = recorder.part(x, (3,), (1,), 4)
    launch_replay.launch(recorder, kernel, 1, (part, y, 7), {})
    assert kernel.seen == [(part, y, 7)] and part.tolist() == [4, 5, 6]
    steps: Any = recorder.steps(y)
    assert (
        sum(name.startswith("step") and name != "steps" for name in steps.__globals__) == 1
    )  # no view is made
    other = torch.zeros(16)[8:]
    steps(other, y)
    assert kernel.seen[1] == (other.data_ptr() + 16, y.data_ptr(), 7)
    read: Any = recorder.steps(part)
    assert read(other + 2, y)[0].tolist() == [2, 2, 2]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_repeated_call_launches_by_the_driver() -> None:
    x = torch.randn(1, 2, 64, 64, device="cuda", dtype=torch.bfloat16)
    wanted = lt.attention(x, x, x, "strided(3)")
    (record,) = [one for one in COMPILED_CALLS.values() if one.call.rule.text == lt.rule("strided(3)").text]
    recorded: Any = record.forward_pass and record.forward_pass.run
    steps = recorded.first_steps
    kinds = driver.DriverLaunch, type(len)  # the latter where it is compiled
    assert any(isinstance(step, kinds) and "aunch" in str(step) for step in steps.__globals__.values())
    assert torch.equal(lt.attention(x, x, x, "strided(3)"), wanted)
