"""Steps the environments and replays of many runs together, on threads and without the interpreter lock."""

from backsweep.agent.fleet.compiled.runs import CompiledRuns, Member

__all__ = ["CompiledRuns", "Member"]
