"""The learner: Q-networks of many runs stacked along one axis, their targets and their updates.

Every parameter has a leading axis of lanes (independent runs); a single run is one lane.
"""

from backsweep.agent.learner.device_observations import ObservationBank
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings, UpdateResult
from backsweep.agent.learner.executor import Stepper
from backsweep.agent.learner.exploration import EpsilonSchedule, Explorer
from backsweep.agent.learner.networks import Network, network_for
from backsweep.agent.learner.rules import TargetRule

__all__ = [
    "EpsilonSchedule",
    "Explorer",
    "Learner",
    "LearnerSettings",
    "Network",
    "ObservationBank",
    "Stepper",
    "TargetRule",
    "UpdateResult",
    "network_for",
]
