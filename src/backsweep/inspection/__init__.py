"""Whether graph methods can help in an environment, found out from random steps before any training."""

from backsweep.inspection.inspect import Inspection, inspect_env
from backsweep.inspection.measures import Measures

__all__ = ["Inspection", "Measures", "inspect_env"]
