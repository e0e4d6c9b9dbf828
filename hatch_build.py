"""Compiles the native kernel into wheels and checkouts, where there is a C++ compiler."""

from __future__ import annotations

import sysconfig
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILD = "src/lattend/attend/kernels/native/build.py"


class NativeKernel(BuildHookInterface):
    """Puts the library beside its source and into the wheel, which then is one of this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        path = Path(self.root) / BUILD
        spec = spec_from_file_location("build_native", path)
        if spec is None or spec.loader is None:
            raise FileNotFoundError(path)
        native = module_from_spec(spec)
        spec.loader.exec_module(native)
        try:
            library: Path = native.build()
        except (FileNotFoundError, RuntimeError) as missing:
            self.app.display_warning(f'lattend goes without kernel="native": {missing}')
            return
        build_data["artifacts"].append(f"/{library.relative_to(self.root)}")
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
