"""Mark a wheel with compiled kernels as one for this platform and Python only; see `backsweep.jit.wheel_cache`."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    """Runs before a wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Set the wheel's tag if there are compiled kernels."""
        if version == "editable" or not (Path(self.root) / "src/backsweep/compiled").is_dir():
            return
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        # Kernels need nothing from the C library beyond what numba, which loads them, needs itself.
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if system.startswith("linux_"):
            system = f"manylinux_2_17_{system.removeprefix('linux_')}"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{system}"
