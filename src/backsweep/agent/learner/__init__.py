"""The learner: Q-networks of many runs stacked along one axis, their targets and their updates.

Every parameter has a leading axis of runs, which are independent; a single run has a length of one there.
"""

from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings, UpdateResult
from backsweep.agent.learner.executor import Executor
from backsweep.agent.learner.exploration import EpsilonSchedule, Explorer
from backsweep.agent.learner.networks import Network, network_for
from backsweep.agent.learner.rules import TargetRule

__all__ = [
    "DeviceObservations",
    "EpsilonSchedule",
    "Executor",
    "Explorer",
    "Learner",
    "LearnerSettings",
    "Network",
    "TargetRule",
    "UpdateResult",
    "network_for",
]
