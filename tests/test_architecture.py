"""What may import what, what stays unloaded, and how long files may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "lattend"
# A folder may import from these, besides itself and errors
ALLOWED = {
    "rules": set[str](),
    "sets": {"rules"},
    "counts": {"rules", "sets"},
    "draw": {"rules", "counts"},
    "plans": {"rules", "sets", "counts"},
    "kernels": {"rules", "plans", "counts", "draw"},
    "costs": {"rules", "sets", "counts", "plans", "draw", "plain"},
    "plain": set[str](),
    "layers": {"rules", "sets", "counts", "draw", "plans", "kernels", "plain", "costs"},
    "comparisons": {"rules", "sets", "counts", "costs", "draw"},
    "meters": {"rules", "counts", "plans", "kernels", "costs"},
    "exact": set[str](),
    "worked": {"exact", "rules", "draw"},
    "steering": {"exact", "draw"},
    "generative": {"costs", "draw"},
    "games": {"exact", "draw"},
    "cli": {
        *("rules", "sets", "counts", "draw", "kernels", "costs", "plain", "comparisons", "layers"),
        *("exact", "worked", "steering", "generative", "games"),
    },
    "tour": {"rules", "counts", "draw", "cli"},
}
TORCH = {"kernels", "meters", "layers", "generative"}  # these run; the others count, draw and plan
TORCH_FILES = {"steering/tensors.py", "games/gan.py", "games/tensors.py"}  # loaded when tensors are given
# Rule's methods and lt.cost open other folders when they are called
DOORS = {"rules/rule.py", "costs/__init__.py"}


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
def test_imports_follow_the_arrows(path: Path) -> None:
    name = str(path.relative_to(SOURCE))
    folder = path.relative_to(SOURCE).parts[0]
    if folder.endswith(".py"):
        return
    assert folder in ALLOWED, f"say in ALLOWED what {folder}/ may import"
    for module in imports(path, inside_functions=name not in DOORS):
        parts = module.split(".")
        assert parts[0] not in ("torch", "triton") or folder in TORCH or name in TORCH_FILES, (
            f"{name} imports {parts[0]}"
        )
        assert parts[0] != "islpy" or folder == "sets", f"{name} imports islpy: only sets/ may"
        assert parts[0] != "sympy" or folder == "exact", (
            f"{name} imports sympy: exact/ and counts/algebra.py may"
        )
        if parts[0] == "lattend" and len(parts) > 1 and parts[1] in ALLOWED:
            assert parts[1] == folder or parts[1] in ALLOWED[folder], f"{name} imports {module}"


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize(
    ("code", "unloaded"),
    [
        ("import lattend", {"torch", "sympy", "islpy", "numpy", "PIL", "fpdf", "typer", "rich"}),
        ("import lattend as lt; lt.rule('k <= q').mask(n=4)", {"torch", "sympy", "islpy", "PIL", "fpdf"}),
        ("import lattend as lt; lt.rules.strided().count(n=9, t=3)", {"torch", "sympy", "PIL", "fpdf"}),
        ("import lattend as lt; print(lt.rules.strided().count())", {"torch", "PIL", "fpdf"}),
        ("import lattend as lt; lt.rules.causal().draw(n=8).svg()", {"torch", "sympy", "PIL", "fpdf"}),
        ("import lattend as lt; lt.steer([[1, 0.5], [0, 1]], [0.5, 0.5])", {"torch", "sympy", "PIL", "fpdf"}),
    ],
)
def test_what_is_not_needed_is_not_loaded(code: str, unloaded: set[str]) -> None:
    program = f"{code}\nimport sys\nprint('loaded', *sorted({unloaded!r} & set(sys.modules)), sep=' ')"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "loaded"
