"""Many runs' environments and replays moved in lock-step, by threads and without the interpreter lock."""

from backsweep.agent.fleet.compiled.lanes import LockstepLanes, Member

__all__ = ["LockstepLanes", "Member"]
