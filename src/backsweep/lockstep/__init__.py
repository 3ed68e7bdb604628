"""Many runs' environments and replays moved in lock-step, by threads and without the interpreter lock."""

from backsweep.lockstep.lanes import LockstepLanes, Member

__all__ = ["LockstepLanes", "Member"]
