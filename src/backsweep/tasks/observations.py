"""Makes one array of the observations of environments from other packages, which networks and replays take.

Dict(direction: Discrete(4), image: Box(7, 7, 3), mission: Text)      text is left out
->  4 numbers, one of them 1  |  147 numbers                          the parts follow each other, in one array
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

PLAIN = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
"""The spaces that networks take."""
MOST_FLATTENED = 4_096
"""The most numbers that parts are joined to: the pixels of a large picture in a row can hardly be learned from."""
OWN_WRAPPER = "register the environment with a wrapper that makes one array of it: docs/training.md shows how"


def is_text(space: gym.Space[Any]) -> bool:
    """Return whether a space's values are text, which neither networks nor replays take."""
    return isinstance(space, gym.spaces.Text) or (space.dtype is not None and space.dtype.kind in "US")


def text_parts(space: gym.Space[Any]) -> list[str]:
    """Return the names of the text in a space, such as 'mission'; of parts inside of parts, with a slash."""
    return [name for name, part in _parts(space, "") if is_text(part)]


def without_text(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Remove text from observations, such as MiniGrid's mission: a replay cannot store it."""
    space = env.observation_space
    if not text_parts(space):
        return env
    kept = [name for name, inner in _children(space) if not text_parts(inner)]
    mixed = [name for name, inner in _children(space) if name not in kept and not is_text(inner)]
    if isinstance(space, gym.spaces.Dict) and kept and not mixed:
        filtered: gym.Env[Any, Any] = gym.wrappers.FilterObservation(env, kept)
        return filtered
    return OneArray(env)


def with_one_array(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return an environment whose observations are one array or number; raise a ValueError if they cannot be that."""
    return env if isinstance(env.observation_space, PLAIN) else OneArray(env)


def as_trained(env: gym.Env[Any, Any]) -> str:
    """Return what the trainer makes of an environment's observations; nothing if it takes them as they are."""
    try:
        made = with_one_array(env)
    except ValueError as error:
        return f"the trainer cannot take these observations: {error}"
    return made.remark() if isinstance(made, OneArray) else ""


class OneArray(gym.ObservationWrapper[Any, Any, Any]):
    """The parts of Dict and Tuple observations, without text: a single part as it is, several as one flat array."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        whole = env.observation_space
        parts = [(name, part) for name, part in _parts(whole, "") if not is_text(part)]
        if odd := [part for _, part in parts if not isinstance(part, PLAIN)]:
            raise ValueError(f"observations of {type(odd[0]).__name__} cannot be learned from: {OWN_WRAPPER}")
        if not parts:
            raise ValueError(f"observations must have numbers to learn from, got {whole}: {OWN_WRAPPER}")
        self.left_out = text_parts(whole)
        self.joined = [name for name, _ in parts] if len(parts) > 1 else []
        """The names of the parts that are joined."""
        self._parts = [part for _, part in parts]
        self.observation_space = self._parts[0] if len(parts) == 1 else _joined(self._parts)

    def observation(self, observation: Any) -> Any:
        """Return the parts of an observation as one array."""
        values = [value for value, part in _values(observation, self.env.observation_space) if not is_text(part)]
        if not self.joined:
            return values[0]
        pairs = zip(self._parts, values, strict=True)
        return np.concatenate([_flat(part, value) for part, value in pairs], dtype=self.observation_space.dtype)

    def remark(self) -> str:
        """Return what a user should know about it, in a sentence."""
        words = []
        if self.left_out:
            words.append(f"text ({', '.join(self.left_out)}) is left out")
        if self.joined:
            numbers = int(np.prod(self.observation_space.shape or ()))
            words.append(f"the trainer joins the parts {', '.join(self.joined)} to one array of {numbers:,} numbers")
        return "; ".join(words)


def _joined(parts: list[gym.Space[Any]]) -> gym.spaces.Box:
    boxes = [gym.spaces.flatten_space(part) for part in parts]
    assert all(isinstance(box, gym.spaces.Box) for box in boxes)
    low, high = (np.concatenate([getattr(box, side) for box in boxes]) for side in ("low", "high"))
    if len(low) > MOST_FLATTENED:
        raise ValueError(
            f"the observation's parts are {len(low):,} numbers together, too many to join "
            f"(at most {MOST_FLATTENED:,}); {OWN_WRAPPER}"
        )
    dtype = np.result_type(*(_flat_dtype(part) for part in parts))
    return gym.spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype.type)


def _flat_dtype(part: gym.Space[Any]) -> np.dtype[Any]:
    """Return the type of a part's numbers: the zeros and ones of state numbers need one byte, not Gymnasium's eight."""
    return np.dtype(part.dtype) if isinstance(part, gym.spaces.Box) else np.dtype(np.uint8)


def _flat(part: gym.Space[Any], value: Any) -> NDArray[Any]:
    flat: NDArray[Any] = np.asarray(gym.spaces.flatten(part, value))
    return flat.astype(_flat_dtype(part), copy=False)


def _children(space: gym.Space[Any]) -> list[tuple[Any, gym.Space[Any]]]:
    if isinstance(space, gym.spaces.Dict):
        return list(space.spaces.items())
    return list(enumerate(space.spaces)) if isinstance(space, gym.spaces.Tuple) else []


def _parts(space: gym.Space[Any], name: str) -> list[tuple[str, gym.Space[Any]]]:
    """Return the innermost spaces with their names."""
    if not isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        return [(name or "the observation", space)]
    found = [_parts(inner, f"{name}/{key}" if name else str(key)) for key, inner in _children(space)]
    return [part for parts in found for part in parts]


def _values(observation: Any, space: gym.Space[Any]) -> list[tuple[Any, gym.Space[Any]]]:
    """Return what an observation holds for each of the innermost spaces."""
    if not isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        return [(observation, space)]
    found = [_values(observation[key], inner) for key, inner in _children(space)]
    return [value for values in found for value in values]
