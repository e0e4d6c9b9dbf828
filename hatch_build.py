"""Compiles the native kernel and the host's part into wheels and checkouts, where there is a C++ compiler."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILD = "src/lattend/attend/kernels/native/build.py"


class CompiledCode(BuildHookInterface):
    """Puts libraries beside their source and into the wheel, which then is one of this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        path = Path(self.root) / BUILD
        spec = spec_from_file_location("build_native", path)
        if spec is None or spec.loader is None:
            raise FileNotFoundError(path)
        native = module_from_spec(spec)
        spec.loader.exec_module(native)
        wanted = ((native.build, 'kernel="native"'), (native.build_host, "compiled code on the host"))
        built = [path for build, what in wanted if (path := self._built(build, what)) is not None]
        if not built:
            return
        build_data["artifacts"] += [f"/{path.relative_to(self.root)}" for path in built]
        build_data["pure_python"] = False
        python = "cp311-abi3" if native.HOST_MODULE in built else "py3-none"
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"{python}-{platform}"

    def _built(self, build: Callable[[], Path], what: str) -> Path | None:
        """The file that was built; None, and a warning, where it could not be."""
        try:
            return build()
        except (FileNotFoundError, RuntimeError) as missing:
            self.app.display_warning(f"lattend goes without {what}: {missing}")
            return None
