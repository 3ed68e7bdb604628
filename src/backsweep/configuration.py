"""Configurations and spaces as JSON, so that a saved replay can be put together again without running foreign code.

Only the classes named here can come out of a file. A sampler or encoder of the user's own is given to `Replay.load`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.encoding import DiscreteKey, ExactBytes, Quantized, RandomProjection
from backsweep.planning import GraphValues
from backsweep.samplers import EpisodicBackward, Mixture, Prioritized, Topological, Uniform
from backsweep.snapshot.contents import need
from backsweep.store.layout import WORD
from backsweep.sweep import PseudoTerminals, Terminals

LARGEST_WINDOW = 2**27
"""Of roots and shuffle in a saved configuration: both are allocated as asked for."""

_KNOWN: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        DiscreteKey,
        EpisodicBackward,
        ExactBytes,
        GraphValues,
        Mixture,
        Prioritized,
        PseudoTerminals,
        Quantized,
        RandomProjection,
        Terminals,
        Topological,
        Uniform,
    )
}


class ForeignClassError(ValueError):
    """A save has a sampler or encoder of the user's own class, which has to be given to `Replay.load`."""

    def __init__(self, argument: str, name: str) -> None:
        article = "an" if argument[0] in "aeiou" else "a"
        super().__init__(f"the saved replay has {article} {argument} of class {name!r}, which is not backsweep's own")
        self.advice = f"Give it to Replay.load as {argument}="


def configuration_to_json(value: Any) -> Any:
    """Return a configuration as JSON; one of an unknown class becomes its name alone."""
    if is_dataclass(value) and not isinstance(value, type):
        name = type(value).__name__
        if _KNOWN.get(name) is not type(value):
            return {"class": name, "foreign": True}
        return {"class": name, **{f.name: configuration_to_json(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, (tuple, list)):
        return [configuration_to_json(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    return {"class": type(value).__name__, "foreign": True}


def configuration_from_json(data: Any, argument: str) -> Any:
    """Return the configuration that `configuration_to_json` described."""
    if isinstance(data, dict):
        values = dict(data)
        name = values.pop("class")
        if values.pop("foreign", False) or name not in _KNOWN:
            raise ForeignClassError(argument, name)
        return _KNOWN[name](**{key: configuration_from_json(item, argument) for key, item in values.items()})
    if isinstance(data, list):
        return tuple(configuration_from_json(item, argument) for item in data)
    return data


def space_to_json(space: gym.Space[Any]) -> dict[str, Any]:
    """Return a space as JSON."""
    if isinstance(space, gym.spaces.Box):
        return {
            "class": "Box",
            "low": _bound_to_json(space.low),
            "high": _bound_to_json(space.high),
            "shape": list(space.shape),
            "dtype": str(space.dtype),
        }
    if isinstance(space, gym.spaces.Discrete):
        return {"class": "Discrete", "n": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}
    if isinstance(space, gym.spaces.MultiDiscrete):
        return {
            "class": "MultiDiscrete",
            "nvec": space.nvec.tolist(),
            "start": space.start.tolist(),
            "dtype": str(space.dtype),
        }
    if isinstance(space, gym.spaces.MultiBinary):
        return {"class": "MultiBinary", "n": list(space.shape) if isinstance(space.n, tuple) else int(space.n)}
    if isinstance(space, gym.spaces.Dict):
        return {"class": "Dict", "spaces": [[key, space_to_json(inner)] for key, inner in space.spaces.items()]}
    if isinstance(space, gym.spaces.Tuple):
        return {"class": "Tuple", "spaces": [space_to_json(inner) for inner in space.spaces]}
    raise TypeError(f"cannot save a space of class {type(space).__name__}")


def space_from_json(data: dict[str, Any]) -> gym.Space[Any]:
    """Return the space that `space_to_json` described."""
    kind = data["class"]
    if kind == "Box":
        dtype, shape = np.dtype(data["dtype"]), tuple(data["shape"])
        low, high = (_bound_from_json(data[name], shape, dtype) for name in ("low", "high"))
        return gym.spaces.Box(low, high, shape, dtype.type)
    if kind == "Discrete":
        return gym.spaces.Discrete(data["n"], start=data["start"], dtype=np.dtype(data["dtype"]).type)
    if kind == "MultiDiscrete":
        return gym.spaces.MultiDiscrete(
            np.array(data["nvec"]), dtype=np.dtype(data["dtype"]).type, start=np.array(data["start"])
        )
    if kind == "MultiBinary":
        return gym.spaces.MultiBinary(data["n"])
    if kind == "Dict":
        # A dict would be sorted by its keys; pairs keep their order, which the memory layout depends on.
        return gym.spaces.Dict([(key, space_from_json(inner)) for key, inner in data["spaces"]])
    if kind == "Tuple":
        return gym.spaces.Tuple([space_from_json(inner) for inner in data["spaces"]])
    raise ValueError(f"unknown space class {kind!r}")


def check_sizes(metadata: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse settings of a saved replay that ask for more memory than its own arrays account for.

    To be called before anything is made of them: a few bytes of JSON can describe an observation of any size.
    """
    stack = metadata["frame_stack"]
    for space, array, times in (("observation_space", "store/frames", stack), ("action_space", "store/actions", 1)):
        words = _words_of(metadata[space]) * (1 if space == "observation_space" else WORD)
        need(
            len(shapes[array]) == 2 and words == shapes[array][1] * times,
            f"{space} does not fit the array {array!r} of shape {shapes[array]}",
        )
    need(shapes["store/lanes"][0] == metadata["num_envs"], "num_envs does not fit the saved lanes")
    matrix = shapes.get("encoder/matrix", (0,))
    for name, number in _entries_of(metadata["sampler"]):
        if name in ("roots", "shuffle"):
            need(type(number) is int and number <= LARGEST_WINDOW, f"{name} is {number!r}, which is out of range")
    encoder = metadata["encoder"]
    if isinstance(encoder, dict) and "dim" in encoder:
        need(encoder["dim"] == matrix[0], "the encoder's dim does not fit its matrix")


def _words_of(data: dict[str, Any]) -> int:
    """Return how many words of 64 bits a value of a space takes, from the space's JSON alone."""
    kind = data["class"]
    if kind in ("Dict", "Tuple"):
        return sum(_words_of(inner[1] if kind == "Dict" else inner) for inner in data["spaces"])
    shape: list[int]
    if kind == "Box":
        shape = list(data["shape"])
    elif kind == "MultiDiscrete":
        shape = list(np.shape(data["nvec"]))
    elif kind == "MultiBinary":
        shape = data["n"] if isinstance(data["n"], list) else [data["n"]]
    else:
        need(kind == "Discrete", f"unknown space class {kind!r}")
        shape = []
    need(all(type(size) is int and size >= 0 for size in shape), f"a {kind} space has the shape {shape}")
    itemsize = 1 if kind == "MultiBinary" else np.dtype(data["dtype"]).itemsize
    return -(-math.prod(shape) * int(itemsize) // WORD)


def _entries_of(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield every name and value in nested JSON."""
    if isinstance(data, list):
        for item in data:
            yield from _entries_of(item)
    elif isinstance(data, dict):
        for name, item in data.items():
            yield name, item
            yield from _entries_of(item)


def _bound_to_json(bound: NDArray[Any]) -> Any:
    flat = bound.reshape(-1)
    if flat.size and (flat == flat[0]).all():
        return _number_to_json(flat[0])
    return [_number_to_json(value) for value in flat]


def _number_to_json(value: Any) -> Any:
    # JSON has no infinities, and repr keeps every bit of a float.
    return int(value) if np.issubdtype(type(value), np.integer) else repr(float(value))


def _bound_from_json(data: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    numbers = [
        float(value) if isinstance(value, str) else value for value in (data if isinstance(data, list) else [data])
    ]
    array = np.array(numbers, dtype)
    return array.reshape(shape) if isinstance(data, list) else np.full(shape, array[0], dtype)
