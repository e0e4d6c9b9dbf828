"""What is remembered from call to call is bounded: every cache of the package, found in its source."""

from __future__ import annotations

import ast
import gc
import linecache
import weakref
from pathlib import Path

import torch

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.kernels.triton import kernel, source
from lattend.attend.kernels.triton.launch import PlanExecutor
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import MAX_KNOWN, plan
from lattend.recent import Recent

SOURCE = Path(__file__).parents[1] / "src" / "lattend"
# Memories of a module that are not Recent, and what bounds them
OTHERS = {
    "rules/language/key.py: KNOWN": "rules that are alive",
    "rules/language/key.py: _DIGESTS": "arrays that are alive",
    "attend/overrides.py: OVERRIDES": "contexts that are open",
    "attend/kernels/cpu/kernel.py: _KNOWN": "plans that are alive, and none of its values holds one",
    "attend/kernels/native/tile_lists.py: _KNOWN": "plans that are alive, and none of its values holds one",
    "attend/kernels/triton/source.py: _FILES": "MOST_FILES",
    "command.py: @cache commands": "commands of lattend",
    "integrations/flex.py: _READ": "block masks that are alive, and none of its values holds one",
    "parallel/ranks.py: _MADE": "sets of ranks that were grouped, a number each",
}
EMPTY = {"dict", "list", "set", "deque", "OrderedDict", "defaultdict", "Counter"}
EMPTY |= {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet"}


def memories(path: Path) -> list[str]:
    """The empty collections that a module begins with, and caches of functions without a bound."""
    found: list[str] = []
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and is_empty(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            found.append(f"{path.relative_to(SOURCE).as_posix()}: {ast.unparse(target)}")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            texts = [ast.unparse(decorator) for decorator in node.decorator_list]
            found += [f"{path.name}: @{x} {node.name}" for x in texts if x in ("cache", "functools.cache")]
            found += [f"{path.name}: @{x} {node.name}" for x in texts if x.endswith(("=None)", "(None)"))]
    return found


def is_empty(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).split(".")[-1] in EMPTY and not value.args
    return isinstance(value, (ast.Dict, ast.List)) and not ast.unparse(value)[1:-1]


def test_every_memory_is_bounded() -> None:
    found = [memory for path in sorted(SOURCE.rglob("*.py")) for memory in memories(path)]
    assert sorted(found) == sorted(OTHERS), "make it a lattend.recent.Recent, or say here what bounds it"


def test_the_oldest_makes_room() -> None:
    memory: Recent[int, int] = Recent(3)
    made: list[int] = []
    for i in (0, 1, 2, 0, 3, 0):
        memory.find(i, lambda: made.append(i) or i)  # noqa: B023  (called at once)
    assert made == [0, 1, 2, 3, 0] and list(memory) == [2, 3, 0]
    memory.find(9, lambda: None)  # pyright: ignore[reportArgumentType]
    assert memory.find(9, lambda: 1) is None  # None is a value too


def test_runners_and_plans_of_many_lengths_are_let_go() -> None:
    rule, q = lt.rule("k <= q and q - k <= 2"), torch.zeros(1, 1, 1, 16)
    alive, plans = weakref.WeakSet[PlanExecutor](), weakref.WeakSet[object]()

    def prepare(n: int) -> None:
        runner = kernel._executor(AttentionCall(rule.at(n=n), 1.0), q.device)  # pyright: ignore[reportPrivateUsage]
        runner.part(Recorder(), "forward", 0, q, q, {})
        alive.add(runner)
        plans.add(runner.plan)

    for n in range(1, 1001):
        prepare(n)
    gc.collect()
    assert len(alive) <= MAX_KNOWN and len(plans) <= 2 * MAX_KNOWN


def test_one_runner_remembers_few_tables() -> None:
    rule = lt.rule("doc[k] == 1", data={"doc": None})
    runner = PlanExecutor(plan(rule, n=8), torch.device("cpu"))
    q = torch.zeros(1, 1, 8, 16)
    for size in range(8, 200):
        runner.part(Recorder(), "forward", 0, q, q, {"doc": torch.ones(1, size, dtype=torch.int64)})
    assert len(runner.sent) == runner.sent.most and not runner.prepared


def test_sources_of_kernels_are_let_go() -> None:
    for i in range(source.MOST_FILES + 40):
        source._function("bounds", f"def bounds():\n    return {i}\n")  # pyright: ignore[reportPrivateUsage]
    ours = [file for file in linecache.cache if file.startswith("<lattend ")]
    assert len(ours) == source.MOST_FILES
