"""Tells from random steps, before any training, whether graph methods can help in an environment."""

from backsweep.inspection.inspect import Inspection, inspect_env
from backsweep.inspection.measures import Measures

__all__ = ["Inspection", "Measures", "inspect_env"]
