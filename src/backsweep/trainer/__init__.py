"""The trainer: from a task and a method to a trained agent, its curves and its checkpoint.

    from backsweep.trainer import run_config, train

    train(run_config("nchain-20", method="ter", steps=5_000), folder="runs/chain")
"""

from backsweep.trainer.config import RunConfig, SessionConfig
from backsweep.trainer.defaults import run_config
from backsweep.trainer.folder import RunError, is_finished
from backsweep.trainer.methods import METHOD_NAMES, Method, method_for
from backsweep.trainer.running import resume, train, train_fleet
from backsweep.trainer.session import RunResult

__all__ = [
    "METHOD_NAMES",
    "Method",
    "RunConfig",
    "RunError",
    "RunResult",
    "SessionConfig",
    "is_finished",
    "method_for",
    "resume",
    "run_config",
    "train",
    "train_fleet",
]
