"""Steps the environments and replays of many runs together, on threads and without the interpreter lock."""

from backsweep.agent.fleet.compiled.lanes import LockstepLanes, Member

__all__ = ["LockstepLanes", "Member"]
