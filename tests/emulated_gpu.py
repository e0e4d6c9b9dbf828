"""Has calls on a CPU take what an H200 would: kernels in Gluon in an emulator, those in Triton interpreted.

Shapes, parts that join, chunks, steps that groups of warps leave out and strips of images are chosen as they
are there. TRITON_INTERPRET=1 has to be set before Triton is loaded. Launches are noted as on a GPU, so that
later calls of a kind repeat them, under other schedules.
"""

# Triton has no stubs
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import gluon_emulator

from lattend.attend.kernels.triton import kernel, launch
from lattend.attend.kernels.triton.hopper import launches
from lattend.attend.kernels.triton.kernel import may_take_hopper
from lattend.attend.kernels.triton.launch_replay import Launch
from lattend.attend.replay.recorder import Recorder

PROGRAMS = 3  # multiprocessors: each takes many tiles


def install(seed: int = 0, set_attribute: Callable[..., None] = setattr) -> Counter[str]:
    """From now on calls are taken so, under schedules that are drawn; how often each kernel in Gluon has run.

    `set_attribute` puts what stands in for a GPU in its place; pytest's `monkeypatch.setattr` takes it back.
    """
    schedules, ran = count(seed << 20), Counter[str]()

    def launch_emulated(
        recorder: Recorder, gluon: Any, programs: int, arguments: Any, constants: Any
    ) -> None:
        def run(*given: Any) -> None:
            ran[gluon.fn.__name__] += 1
            gluon_emulator.launch(gluon, programs, given, constants, next(schedules))

        run(*arguments)
        again = Launch(run, arguments, lambda x: x)
        recorder.note(again, again.given())

    def as_an_h200(*given: Any, **named: Any) -> bool:
        with patch.object(kernel, "_interpreted", bool), patch.object(kernel, "FEWEST_ROWS", 0):
            return may_take_hopper(*given, **named)

    # of the kernels in Gluon alone
    set_attribute(launches, "launch_replay", SimpleNamespace(launch=launch_emulated))
    set_attribute(launches, "processors", lambda device: PROGRAMS)
    set_attribute(launch, "may_take_hopper", as_an_h200)
    return ran
