"""Configurations and spaces as JSON, so that a saved replay can be put together again without running foreign code.

Only the classes named here can come out of a file. A sampler or encoder of the user's own is given to `Replay.load`.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.encoding import DiscreteKey, ExactBytes, Quantized, RandomProjection
from backsweep.planning import GraphValues
from backsweep.samplers import EpisodicBackward, Mixture, Prioritized, Topological, Uniform
from backsweep.sweep import PseudoTerminals, Terminals

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
            raise ValueError(
                f"the saved replay has a {argument} of class {name!r}, which is not backsweep's own: "
                f"give it to Replay.load as {argument}="
            )
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
        return {"class": "Dict", "spaces": [[key, space_to_json(part)] for key, part in space.spaces.items()]}
    if isinstance(space, gym.spaces.Tuple):
        return {"class": "Tuple", "spaces": [space_to_json(part) for part in space.spaces]}
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
        # A dict would be sorted by its keys; pairs keep the order that the memory layout goes by.
        return gym.spaces.Dict([(key, space_from_json(part)) for key, part in data["spaces"]])
    if kind == "Tuple":
        return gym.spaces.Tuple([space_from_json(part) for part in data["spaces"]])
    raise ValueError(f"unknown space class {kind!r}")


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
