"""The learner: Q-networks of many runs stacked along one axis, their targets and their updates.

Every parameter has a leading axis of lanes (independent runs); a single run is one lane.
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
