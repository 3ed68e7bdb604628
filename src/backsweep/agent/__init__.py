"""The trainer: it turns a task and a method into a trained agent, its curves and its checkpoint.

    from backsweep.agent import run_config, train

    train(run_config("nchain-20", method="ter", steps=5_000), folder="runs/chain")

Names are loaded on first use, so that the command line can list its commands without torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backsweep.agent.config import RunConfig, SessionConfig
    from backsweep.agent.defaults import run_config
    from backsweep.agent.methods import METHOD_NAMES, Method, method_for
    from backsweep.agent.session.folder import RunError, is_finished
    from backsweep.agent.session.records import read_records
    from backsweep.agent.session.session import RunResult
    from backsweep.agent.session.training import resume, train, train_fleet

__all__ = [
    "METHOD_NAMES",
    "Method",
    "RunConfig",
    "RunError",
    "RunResult",
    "SessionConfig",
    "is_finished",
    "method_for",
    "read_records",
    "resume",
    "run_config",
    "train",
    "train_fleet",
]

_HOMES = {
    "config": ("RunConfig", "SessionConfig"),
    "defaults": ("run_config",),
    "session.folder": ("RunError", "is_finished"),
    "session.records": ("read_records",),
    "methods": ("METHOD_NAMES", "Method", "method_for"),
    "session.training": ("resume", "train", "train_fleet"),
    "session.session": ("RunResult",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            try:
                return getattr(importlib.import_module(f"{__name__}.{home}"), name)
            except ModuleNotFoundError as error:
                if error.name and error.name.startswith("backsweep"):
                    raise
                raise ImportError(f"training needs {error.name}: pip install 'backsweep[train]'") from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
