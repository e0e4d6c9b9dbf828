"""What `import lattend` gives, and what it leaves unloaded."""

import subprocess
import sys

import pytest

import lattend as lt

HEAVY = ("numpy", "sympy", "islpy", "torch", "rich", "typer", "PIL")


def _loaded_after(code: str) -> set[str]:
    probe = f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    assert _loaded_after("import lattend") == set()


def test_rules_load_numpy_only() -> None:
    assert _loaded_after("import lattend as lt\nlt.rules.strided(3).mask(n=5)") == {"numpy"}


def test_public_names() -> None:
    assert len(lt.__all__) <= 15
    assert set(lt.__all__) <= set(dir(lt))
    for name in lt.__all__:
        assert getattr(lt, name) is not None
    with pytest.raises(
        AttributeError, match="module 'lattend' has no attribute 'rul'; it has rule, Rule, rules"
    ):
        lt.rul  # noqa: B018
