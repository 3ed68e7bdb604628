"""The paper's tasks by name: NChain, MiniGrid, Sokoban, Atari, LunarLander.

`make` gives a Gymnasium VectorEnv, `gymnasium.make("backsweep/DoorKey-v0")` a single Env (importing this module
registers the ids), `exact` the whole MDP of a small task with its exact values.
"""

from backsweep.envs.exact import ExactTask, exact
from backsweep.envs.making import make
from backsweep.envs.normalisation import normalised_return
from backsweep.envs.registration import register_tasks
from backsweep.envs.registry import TASKS, Task, find_task
from backsweep.envs.sokoban import solve

__all__ = ["TASKS", "ExactTask", "Task", "exact", "find_task", "make", "normalised_return", "solve"]

register_tasks()
