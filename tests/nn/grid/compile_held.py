"""Compiles for Hopper, no GPU needed, the kernels that hold weights on the chip, and counts their code."""

# Triton has no stubs
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from typing import Any

import torch
from attend.compile_for_hopper import TOOLS, Hopper
from triton.runtime import driver

from lattend.attend.replay.recorder import Recorder
from lattend.nn.grid.cells import NO_EDGES, CellKind
from lattend.nn.grid.gpu import backend, launch, weights_on_chip
from lattend.nn.grid.layout import RowMajorLayout


def described(compiled: Any) -> dict[str, int]:
    """Products of matrices, waits for them, bytes of shared memory; spilled registers in a step."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        shown = subprocess.run(
            [TOOLS / "nvdisasm", "-c", file.name], capture_output=True, text=True, check=True
        )
    code = re.findall(r"/\*[0-9a-f]{4}\*/\s+(.*?);", shown.stdout)
    products = [place for place, one in enumerate(code) if "HGMMA" in one]
    step = code[products[0] :]  # what comes before is done once
    return {
        "products": len(products),
        "waits": sum("WARPGROUP.DEPBAR" in one for one in code),
        "spills": sum(bool(re.match(r"(@!?P\d )?(STL|LDL)", one)) for one in step),
        "step": len(step),
        "shared": compiled.metadata.shared,
    }


def main() -> None:
    driver.set_active(Hopper())  # pyright: ignore[reportArgumentType]
    compiled: list[Any] = []

    def instead(recorder: Recorder, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        compiled.append(kernel.warmup(*arguments, grid=(programs,), **constants))

    launch.launch_replay.launch = instead
    launch._fits = lambda *given: 1 << 30
    weights_on_chip.on_hopper = lambda x: True
    found: dict[str, dict[str, int]] = {}
    for name in ("lstm", "gru"):
        for size in weights_on_chip.SIZES:
            for masked in (False, True):
                cell, layout = CellKind(name), RowMajorLayout(1, 1, 32, 8)
                pre = torch.empty(1, 32 * 8, cell.gates * size, dtype=torch.bfloat16)
                weights = torch.empty(1, cell.gates * size, size, dtype=torch.bfloat16)
                mask = torch.ones(1, 32 * 8, dtype=torch.bool) if masked else None
                states = backend.forward(
                    Recorder(), cell, layout, pre, weights, weights, NO_EDGES, mask, save_gates=True
                )
                grad = torch.empty(1, 32 * 8, size, dtype=torch.bfloat16)
                backend.backward(Recorder(), cell, layout, grad, None, weights, weights, *states, mask)
                names = [f"{name} {size} {mask is not None} {work}" for work in ("forward", "backward")]
                found |= dict(zip(names, map(described, compiled[-2:]), strict=True))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
