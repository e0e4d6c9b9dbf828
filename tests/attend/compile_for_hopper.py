"""Compiles kernels for Hopper, no GPU needed: what Triton's interpreter does not look at.

The kernels in Gluon, for images too, of whose machine code it prints counts, and the kernels in Triton with
arrays of every dtype.
"""

# Triton has no stubs
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, rule_of
from lattend.attend.call.varlen import packed_key
from lattend.attend.kernels.triton import careful, device_tables, launch, launch_replay
from lattend.attend.kernels.triton.shapes import choose, on_hopper
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan
from lattend.plans.tables.tile_costs import TileShape

SHARED = "k <= q and q - k <= 300"  # by two heads that share keys
RULES = (SHARED, "k <= q", "doc[q] == doc[k] and k <= q", "k <= q and k >= begin[q]")
HEAD_DIMS = (64, 128, 256)
FEW = (SHARED, "doc[q] == doc[k] and k <= q")  # rules for which a wide head is compiled
# every l-th position, and 8 of each l beside blocks, which join them
ORDERED = ("k <= q and (q - k) % 128 == 0", "k <= q and (q // 128 == k // 128 or k % 128 >= 120)")
# take what is chosen: steps that groups of warps leave out, and products in turn
NARROW = {"k <= q and q - k <= 255": "LEAVES", "k <= q and q - k <= 520": "IN_TURN"}
KERNELS = ("forward", "backward_dq", "backward_dkdv")
ARRAYS = (torch.uint8, torch.int8, torch.bool, torch.int16, torch.int32, torch.int64, torch.uint32)
LOOKED_UP = ("seg[q] - seg[k] <= 0", "seg[seg[q]] == seg[k]")
Compiled = list[tuple[Any, dict[str, Any]]]  # kernels, and what they were told
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


class Hopper:
    """As much of a driver as the compiler asks."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0


def described(compiled: Any) -> dict[str, int]:
    """Counts in its machine code: products of matrices and waits for them; of the loops over a tile's steps
    how many there are, their instructions at most, and of these those that spill registers or fetch them.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        shown = subprocess.run(
            [TOOLS / "nvdisasm", "-c", file.name], capture_output=True, text=True, check=True
        )
    wanted = {"products": r"\b[HQ]GMMA", "waits": r"WARPGROUP\.DEPBAR"}
    found = {name: len(re.findall(pattern, shown.stdout)) for name, pattern in wanted.items()}
    steps = innermost_loops(shown.stdout)
    spilled = [sum(bool(re.match(r"(@!?P\d )?(STL|LDL)", one)) for one in step) for step in steps]
    found |= {"shared": compiled.metadata.shared}
    moved = [sum(bool(re.match(r"(@!?P\d )?(SHFL|PRMT|LDS|STS)", one)) for one in step) for step in steps]
    found |= {"moved": max(moved)}  # what goes from thread to thread, or is put together
    return found | {"steps": len(steps), "longest": max(map(len, steps)), "spills": max(spilled)}


def innermost_loops(machine_code: str) -> list[list[str]]:
    """The instructions of each loop over steps: it waits for products, and no such loop is in it.

    Waits that took long come back from the end of the code unconditionally: those are no loops.
    """
    labels: dict[str, int] = {}
    code: list[str] = []
    for line in machine_code.splitlines():
        if (label := re.match(r"\s*(\.L_\w+):", line)) is not None:
            labels[label[1]] = len(code)
        elif (instruction := re.search(r"/\*[0-9a-f]+\*/\s+(.*?);", line)) is not None:
            code.append(instruction[1])
    ends = [(re.match(r"@.*BRA.*`\((\.L_\w+)\)", one), place) for place, one in enumerate(code)]
    spans = [(labels[to[1]], place + 1) for to, place in ends if to is not None and labels[to[1]] <= place]
    spans = [span for span in spans if any("WARPGROUP.DEPBAR" in one for one in code[slice(*span)])]
    inner = [a for a in spans if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in spans)]
    return [code[slice(*span)] for span in inner]


def shape_of(kernel: str, head_dim: int) -> TileShape:
    """What is taken for a head_dim, or would be: gradients of queries have a shape for 128 alone."""
    costs = (*on_hopper(kernel, head_dim, torch.bfloat16), *on_hopper(kernel, 128, torch.bfloat16))
    return costs[0].shape


def in_gluon(compiled: Compiled) -> dict[str, dict[str, int]]:
    """The machine code of the kernels in Gluon, by rule, head_dim, kernel, and orders of rows and columns."""
    found: dict[str, dict[str, int]] = {}
    for text in (*RULES, *NARROW, *ORDERED):
        names = [name for name in ("doc", "begin") if name in text]
        ids = {name: torch.zeros(1, 4096, dtype=torch.int64) for name in names}
        rule = lt.rule(text, data=dict.fromkeys(ids)) if ids else lt.rule(text)
        for head_dim in HEAD_DIMS if text in FEW else HEAD_DIMS[:2] if text in RULES else HEAD_DIMS[1:2]:
            begin = len(compiled)
            q, lse = torch.empty(1, 2, 4096, head_dim, dtype=torch.bfloat16), torch.empty(1, 2, 4096)
            k = q[:, :1] if text == SHARED else q
            shapes, planned = {kernel: shape_of(kernel, head_dim) for kernel in KERNELS}, plan(rule, n=4096)
            if text in NARROW:
                for kernel in KERNELS:
                    shapes[kernel] = choose(planned, 0, kernel, head_dim, q.dtype, hopper=True).shape
            runner = launch.PlanExecutor(planned, q.device, shapes=lambda name, _, all=shapes: all[name])
            call = AttentionCall(rule, 0.1)
            runner.forward(Recorder(), call, q, k, k, ids)
            runner.backward(Recorder(), call, BackwardInputs(q, None, q, k, k, q, lse), ids)
            if text in NARROW:
                told = [constants for _, constants in compiled[begin:]]
                assert any(one.get(NARROW[text]) for one in told), told
            for one, constants in compiled[begin:]:
                orders = tuple(constants.get(name, 0) for name in ("OUTER", "INNER"))
                if "hopper" in one.metadata.name:
                    found[f"{text}, D = {head_dim}, {one.metadata.name}, orders {orders}"] = described(one)
    return found


def of_8_bits(compiled: Compiled) -> dict[str, dict[str, int]]:
    """The same of the kernel of 8 bits."""
    found: dict[str, dict[str, int]] = {}
    scales = (torch.ones(1, 2), torch.ones(1, 1), torch.ones(1, 1))
    for text in RULES[:2]:
        rule = lt.rule(text)
        for head_dim in HEAD_DIMS[:2]:
            q = torch.empty(1, 2, 4096, head_dim, dtype=torch.float8_e4m3fn)
            runner = launch.PlanExecutor(plan(rule, n=4096), q.device)
            runner.forward(Recorder(), AttentionCall(rule, 0.1, scales=scales), q, q[:, :1], q[:, :1], {})
            found[f"{text}, D = {head_dim}"] = described(compiled[-1][0])
    return found


def on_images(compiled: Compiled) -> dict[str, dict[str, int]]:
    """The machine code of the kernels in Gluon for images, by rule and kernel."""
    found: dict[str, dict[str, int]] = {}
    for r in (3, 6):
        q, lse = torch.empty(1, 2, 16_384, 128, dtype=torch.bfloat16), torch.empty(1, 2, 16_384)
        rule = lt.rules.neighbourhood(r=r)
        runner, call = launch.PlanExecutor(plan(rule, rows=128, cols=128), q.device), AttentionCall(rule, 0.1)
        runner.forward(Recorder(), call, q, q, q, {})
        runner.backward(Recorder(), call, BackwardInputs(q, None, q, q, q, q, lse), {})
        last = [one for one, _ in compiled[-len(KERNELS) :]]
        assert all("images" in one.metadata.name for one in last), [one.metadata.name for one in last]
        names = [f"{2 * r + 1} by {2 * r + 1}, {kernel}" for kernel in KERNELS]
        found |= dict(zip(names, map(described, last), strict=True))
    return found


def with_arrays(compiled: Compiled) -> dict[str, int]:
    """How many kernels were compiled for arrays of each dtype."""
    q, lse = torch.empty(1, 2, 64, 16, dtype=torch.bfloat16), torch.empty(1, 2, 64)
    found: dict[str, int] = {}
    for dtype in ARRAYS:
        compiled.clear()
        for text in LOOKED_UP:
            arrays, rule = {"seg": torch.zeros(1, 64, dtype=dtype)}, lt.rule(text, data={"seg": None})
            runner, call = launch.PlanExecutor(plan(rule, n=64), q.device), AttentionCall(rule, 0.1)
            runner.forward(Recorder(), call, q, q, q, arrays)
            runner.backward(Recorder(), call, BackwardInputs(q, None, q, q, q, q, lse), arrays)
        found[str(dtype)] = len(compiled)
    return found


def packed(compiled: Compiled) -> list[str]:
    """The kernels that were compiled for calls with `cu_seqlens`, those that compute rows again too."""
    n, found = 4096, set[str]()
    arrays = {
        "cu": torch.tensor([[0, 1000, n, n]], dtype=torch.int32),
        "seq": torch.zeros(1, n, dtype=torch.int32),
    }
    rule = rule_of(packed_key(lt.rule("k <= q and q - k <= 300").key, False)).at(n=n)
    for dtype, head_dim, softcap in ((torch.bfloat16, 128, None), (torch.float32, 64, 5.0)):
        q, lse = torch.empty(1, 4, n, head_dim, dtype=dtype), torch.empty(1, 4, n)
        call, k = AttentionCall(rule, 0.1, softcap=softcap), q[:, :2]
        runner = launch.PlanExecutor(plan(rule), q.device)
        runner.forward(Recorder(), call, q, k, k, arrays)
        runner.backward(Recorder(), call, BackwardInputs(q, None, q, k, k, q, lse), arrays)
        found |= {one.metadata.name for one, _ in compiled}
    return sorted(found)


def main() -> None:
    driver.set_active(Hopper())  # pyright: ignore[reportArgumentType]
    compiled: Compiled = []

    def instead(recorder: Recorder, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        compiled.append((kernel.warmup(*arguments, grid=(programs,), **constants), constants))

    launch.launch = device_tables.launch = launch_replay.launch = careful.launch = instead
    asked = {
        "gluon": in_gluon,
        "fp8": of_8_bits,
        "images": on_images,
        "arrays": with_arrays,
        "packed": packed,
    }
    print(json.dumps(asked[sys.argv[1]](compiled)))


if __name__ == "__main__":
    main()
