"""The original gym-sokoban as an oracle.

The package cannot be imported as it is: it needs an old gym and a module that setuptools no longer has. Its two
modules that matter are loaded here under stand-ins for those imports, without running the package's own start-up.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import sys
import types
from typing import Any

import cv2
import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.sokoban import SokobanLanes


def _load() -> tuple[Any, Any]:
    spec = importlib.util.find_spec("gym_sokoban")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    root = pathlib.Path(next(iter(spec.submodule_search_locations)))
    stand_ins: dict[str, types.ModuleType] = {
        "gym": gymnasium,
        "gym.utils": gymnasium.utils,
        "gym.utils.seeding": importlib.import_module("gymnasium.utils.seeding"),
        "gym.spaces": gymnasium.spaces,
        "gym.spaces.discrete": importlib.import_module("gymnasium.spaces.discrete"),
        "pkg_resources": types.ModuleType("pkg_resources"),
        "imageio": types.ModuleType("imageio"),
    }
    for name, folder in (("gym_sokoban", root), ("gym_sokoban.envs", root / "envs")):
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        stand_ins[name] = package
    before = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        return (
            importlib.import_module("gym_sokoban.envs.sokoban_env"),
            importlib.import_module("gym_sokoban.envs.room_utils"),
        )
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


sokoban_env, room_utils = _load()


def original(lanes: SokobanLanes, lane: int = 0) -> Any:
    """Return an original environment in the situation of one of our lanes."""
    options = lanes.options
    env = sokoban_env.SokobanEnv(
        dim_room=(options.height, options.width),
        max_steps=options.max_steps,
        num_boxes=options.boxes,
        reset=False,
    )
    shape = (options.height, options.width)
    env.room_fixed = lanes.fixed[lane].reshape(shape).astype(np.int64)
    env.room_state = lanes.rooms[lane].reshape(shape).astype(np.int64)
    env.player_position = np.argwhere(env.room_state == 5)[0]
    env.num_env_steps = 0
    env.reward_last = 0
    env.boxes_on_target = 0
    return env


def original_image(env: Any, size: int = 84) -> NDArray[np.uint8]:
    """Return the original's small picture, resized by the image library."""
    return cv2.resize(env.render("tiny_rgb_array"), (size, size), interpolation=cv2.INTER_NEAREST)
