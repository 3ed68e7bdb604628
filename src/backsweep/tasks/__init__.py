"""The paper's tasks by name: NChain, MiniGrid, Sokoban, Atari, LunarLander; and MinAtar.

`make` returns a Gymnasium VectorEnv, `gymnasium.make("backsweep/DoorKey-v0")` a single Env (importing this module
registers the ids), and `exact` the whole MDP of a small task with its exact values.
"""

from backsweep.tasks.exact import ExactTask, exact
from backsweep.tasks.make import make, register_tasks
from backsweep.tasks.options import normalised_return
from backsweep.tasks.registry import TASKS, Task, find_task
from backsweep.tasks.sokoban import solve

__all__ = ["TASKS", "ExactTask", "Task", "exact", "find_task", "make", "normalised_return", "solve"]

register_tasks()
