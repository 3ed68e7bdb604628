"""The learner: Q-networks of many runs stacked along one axis, their targets and their updates.

Every parameter carries a leading axis of lanes (independent runs). One lane is not a special case, only a small one.
"""

from backsweep.learner.bank import ObservationBank
from backsweep.learner.double_dqn import Learner, LearnerSettings, UpdateResult
from backsweep.learner.exploration import EpsilonSchedule, Explorer
from backsweep.learner.networks import Network, network_for
from backsweep.learner.rules import TargetRule
from backsweep.learner.stepper import Stepper

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
