"""What may import what, what stays unloaded, how long files may be, and that a class name has one meaning."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "lattend"
# A folder imports only from those before it in this list; those below and the files beside them serve all
ORDER = (
    "rules",
    "sets",
    "counts",
    "plans",
    "attend",
    "parallel",
    "cost",
    "nn",
    "study",
    "ask",
    "cli",
    "web",
    "integrations",
    "tour",
)
# Nobody else imports study/: it can go without taking anything along
STUDY_READERS = {"study", "ask", "web", "cli", "tour"}
# What serves all, and what it may import itself
SERVE_ALL = {"report": {"report"}, "draw": {"rules", "sets", "counts", "plans", "report", "draw"}}
# These run; the others count, draw and plan
TORCH = {"attend", "cost/measure", "nn", "integrations", "study/generative", "study/gradients"}
# Loaded when tensors are given
TORCH_FILES = {
    *("study/steering/tensors.py", "study/games/tensors.py", "study/training.py"),
    *("study/image_sets.py", "study/heads/training.py"),
    # shards that run; their plans count
    *(
        f"parallel/{name}.py"
        for name in [
            "arguments",
            "exchange",
            "kv_cache",
            "rank_execution",
            "rank_schedule",
            "ranks",
            "running",
            "sharded_attention",
            "sharding",
        ]
    ),
}
# Rule's methods, lt.cost and `lattend serve` open other folders when they are called
DOORS = {"rules/rule.py", "cost/__init__.py", "cli/serve.py"}
SHARED = {"KVCache"}  # of one device and of several: names that mean the same in two modules
DRAWING = {"PIL", "matplotlib"}  # loaded by the first chart, PNG or PDF


def imports(path: Path, *, inside_functions: bool) -> set[str]:
    """The modules a file imports; those of TYPE_CHECKING blocks are left out."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(child)
        for node in ast.walk(tree)
        if (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        or (not inside_functions and isinstance(node, ast.FunctionDef))
        for child in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_follow_the_order(path: Path) -> None:
    name = path.relative_to(SOURCE).as_posix()
    folder = name.split("/")[0]
    if folder.endswith(".py"):
        return
    assert folder in {*ORDER, *SERVE_ALL}, f"say in ORDER where {folder}/ stands"
    before = SERVE_ALL.get(folder) or {*ORDER[: ORDER.index(folder) + 1], *SERVE_ALL}
    for module in imports(path, inside_functions=name not in DOORS):
        parts = module.split(".")
        runs = any(name.startswith(f"{start}/") for start in TORCH)
        assert parts[0] not in ("torch", "triton") or runs or name in TORCH_FILES, (
            f"{name} imports {parts[0]}"
        )
        assert parts[0] != "islpy" or folder == "sets", f"{name} imports islpy: only sets/ may"
        assert parts[0] != "sympy" or name.startswith("study/exact/"), (
            f"{name} imports sympy: study/exact/ and counts/algebra.py may"
        )
        assert parts[:2] != ["lattend", "study"] or folder in STUDY_READERS, f"{name} imports {module}"
        if parts[0] == "lattend" and len(parts) > 1 and parts[1] in {*ORDER, *SERVE_ALL}:
            assert parts[1] in before, f"{name} imports {module}"


# What folders below attend/ may use of it; attend/seams.py says the rest
OF_ATTEND = {"attention", "bias", "seams", "kernels.triton.launch_replay"}


@pytest.mark.parametrize("folder", ["nn", "parallel", "study"])
def test_attend_is_used_through_its_seams(folder: str) -> None:
    used = {
        f"{path.relative_to(SOURCE).as_posix()}: {module}"
        for path in (SOURCE / folder).rglob("*.py")
        for module in imports(path, inside_functions=True)
        if module.startswith("lattend.attend.")
        and not any(f"{module}.".startswith(f"lattend.attend.{seam}.") for seam in OF_ATTEND)
    }
    assert used == set()


def test_every_seam_has_a_user() -> None:
    seams = {
        module.rpartition(".")[2] for module in imports(SOURCE / "attend/seams.py", inside_functions=True)
    }
    used = {
        module.rpartition(".")[2]
        for folder in ("nn", "parallel")
        for path in (SOURCE / folder).rglob("*.py")
        for module in imports(path, inside_functions=True)
        if module.startswith("lattend.attend.seams.")
    }
    assert used == seams


TRITON = ("attend/kernels/triton/", "attend/decode/", "nn/grid/gpu/", "nn/convolution/gpu/")


def test_triton_is_imported_in_its_folders_alone() -> None:
    importers = {
        path.relative_to(SOURCE).as_posix()
        for path in files()
        if any(module.split(".")[0] == "triton" for module in imports(path, inside_functions=True))
    }
    assert importers and not {name for name in importers if not name.startswith(TRITON)}


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 450


def test_a_class_name_has_one_meaning() -> None:
    """But for what the page asks and is answered, which is called as what it stands for."""
    where: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith("web/"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    where.setdefault(node.name, []).append(name)
    assert {name: files for name, files in where.items() if len(files) > 1 and name not in SHARED} == {}


@pytest.mark.parametrize(
    ("code", "unloaded"),
    [
        ("import lattend", {"torch", "sympy", "islpy", "numpy", *DRAWING, "typer", "rich"}),
        (
            "import lattend as lt; lt.rule('k <= q').mask(n=4)",
            {"torch", "sympy", "islpy", *DRAWING},
        ),
        ("import lattend as lt; lt.rules.strided().count(n=9, t=3)", {"torch", "sympy", *DRAWING}),
        ("import lattend as lt; print(lt.rules.strided().count())", {"torch", *DRAWING}),
        ("import lattend as lt; lt.rules.causal().draw(n=8).svg()", {"torch", "sympy", *DRAWING}),
        (
            "import lattend as lt; lt.parallel.plan('causal', n=64, ranks=4).json()",
            {"torch", "sympy", *DRAWING},
        ),
        (
            "import lattend as lt; lt.study.steer([[1, 0.5]], [1])",
            {"torch", "sympy", *DRAWING},
        ),
        (
            "import torch, lattend as lt; q = torch.ones(1, 1, 9, 8, requires_grad=True); "
            "lt.attention(q, q, q, 'k <= q and q - k <= 1').sum().backward(); q = q[:, :, :1].detach(); "
            "lt.KVCache('k <= q', batch=1, heads=1, head_dim=8).attend(q, q, q)",
            {"sympy", "triton", "torch._dynamo", "torch._inductor", "torch.utils.flop_counter", "PIL"},
        ),
        (
            "import torch, lattend as lt; q = torch.ones(1, 1, 9, 8, requires_grad=True)\n"
            "for rule in ('causal', 'strided(3)', 'windowed(3)', 'neighbourhood(1)'):\n"
            "    rows = {'rows': 3} if 'neigh' in rule else {}\n"
            "    lt.attention(q, q, q, rule, **rows).sum().backward()",
            {"islpy", "sympy", "triton", "torch._dynamo", "torch.utils.flop_counter", *DRAWING},
        ),
    ],
)
def test_what_is_not_needed_is_not_loaded(code: str, unloaded: set[str]) -> None:
    program = f"{code}\nimport sys\nprint('loaded', *sorted({unloaded!r} & set(sys.modules)), sep=' ')"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "loaded"


@pytest.mark.parametrize(
    "asked", ["attention", "KVCache", "Bias", "explain", "nn.GridRNN", "nn.MultiHeadAttention", "cost.of"]
)
def test_without_torch_it_is_said_what_to_install(asked: str) -> None:
    program = (
        f"import sys; sys.modules['torch'] = None\nimport lattend as lt\n"
        f"try:\n    lt.{asked}\nexcept lt.errors.LattendError as error:\n"
        f"    print(isinstance(error, ImportError), error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    wanted = f'{asked} runs on torch, an extra that is not installed: pip install "lattend[torch]"\n'
    assert run.stdout in (f"True lattend.{wanted}", f"True lt.{wanted}")
