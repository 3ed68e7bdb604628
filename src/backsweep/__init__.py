"""Experience replay for value-based deep RL.

from backsweep import Mixture, Prioritized, Replay, Topological

replay = Replay(
    env.observation_space, env.action_space, capacity=1_000_000,
    sampler=Mixture([(0.5, Topological()), (0.5, Prioritized())]),
)
"""

import importlib
from typing import TYPE_CHECKING, Any

from backsweep.encoding import DiscreteKey, ExactBytes, Quantized, RandomProjection
from backsweep.planning import GraphValues
from backsweep.replay import Replay
from backsweep.samplers import EpisodicBackward, Mixture, Prioritized, Topological, Uniform
from backsweep.sweep import PseudoTerminals, Terminals
from backsweep.types import Batch

if TYPE_CHECKING:
    from backsweep.inspection import inspect_env

__version__ = "0.2.0"

__all__ = [
    "Batch",
    "DiscreteKey",
    "EpisodicBackward",
    "ExactBytes",
    "GraphValues",
    "Mixture",
    "Prioritized",
    "PseudoTerminals",
    "Quantized",
    "RandomProjection",
    "Replay",
    "Terminals",
    "Topological",
    "Uniform",
    "inspect_env",
]


def __getattr__(name: str) -> Any:
    """Load the tasks when `backsweep.tasks` or `inspect_env` is first used: a replay does not need them."""
    if name == "tasks":
        return importlib.import_module("backsweep.tasks")
    if name == "inspect_env":
        return importlib.import_module("backsweep.inspection").inspect_env
    raise AttributeError(f"module 'backsweep' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names, those that are loaded at their first use too."""
    return sorted({*globals(), *__all__, "tasks"})
