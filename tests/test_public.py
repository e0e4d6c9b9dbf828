"""What `import lattend` gives; test_architecture says what it leaves unloaded."""

import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages

import pytest

import lattend as lt

# Looks up half of the names before and all after the files are imported; prints what the table does not say
STAYS = """
import sys
from importlib import import_module
folder = import_module(sys.argv[1])
for name in list(folder._HOME)[::2]:
    getattr(folder, name)
for module in sys.argv[2:]:
    import_module(module)
for name, home in folder._HOME.items():
    if getattr(folder, name) is not getattr(import_module(home), name):
        print(name, "is", getattr(folder, name))
"""


def test_public_names() -> None:
    assert len(lt.__all__) <= 15
    assert set(lt.__all__) <= set(dir(lt))
    for name in lt.__all__:
        assert getattr(lt, name) is not None
    with pytest.raises(AttributeError, match="lattend has no 'rul'; it has rule, Rule, rules"):
        lt.rul  # noqa: B018


@pytest.mark.parametrize("folder", ["lattend.study.games", "lattend.study.generative", "lattend.nn"])
def test_names_stay_what_they_are(folder: str) -> None:
    """Importing a file puts it into its folder under its name, over whatever is public under that name."""
    home = import_module(folder)
    files = [found.name for found in walk_packages(home.__path__, f"{folder}.")]
    own = {name.removeprefix(f"{folder}.") for name in files}
    assert files and not own & {*home._HOME}  # so that the order of imports does not matter
    command = [sys.executable, "-c", STAYS, folder, *files]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.parametrize("folder", [lt.study.games, lt.study.generative, lt.nn])
def test_every_name_is_listed(folder: object) -> None:
    for name in dir(folder):
        assert getattr(folder, name).__module__.startswith("lattend.")
