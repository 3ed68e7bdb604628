"""Making, resetting and stepping one environment of another package; its exceptions become errors that name it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import gymnasium as gym

DRAWING = "it must take render_mode='rgb_array' and return RGB images from render()"
MAKING = ("gymnasium.envs.registration", __name__)
"""The modules that call an environment's constructor."""
PIECES = "(observation, reward, terminated, truncated, info)"


class BrokenEnvironmentError(ValueError):
    """An environment raised an exception, which is the cause of this one, or returned what it must not."""


def is_gymnasium_id(name: str) -> bool:
    """Return whether a name has what only Gymnasium's ids have: a module in front, or a version at the end."""
    return re.search(r":|-v\d+$", name) is not None


def has_limit(env: gym.Env[Any, Any]) -> bool:
    """Return whether an environment is registered with a time limit; one without may still have one of its own."""
    return env.spec is not None and env.spec.max_episode_steps is not None


def name_of(env: gym.Env[Any, Any]) -> str:
    """Return an environment's id, or the name of its class if it has none."""
    spec = getattr(env.unwrapped, "spec", None)
    return type(env.unwrapped).__name__ if spec is None else str(spec.id)


def gymnasium_env(name: str, render_mode: str | None, options: dict[str, Any]) -> gym.Env[Any, Any]:
    """Return the environment of a Gymnasium id; raise an error that says why it cannot be made."""
    # Not all environments take a mode: it is passed only where something is drawn.
    given = options if render_mode is None else {**options, "render_mode": render_mode}
    try:
        made: gym.Env[Any, Any] = gym.make(name, **given)
        return made
    except ModuleNotFoundError as error:
        module = name.partition(":")[0]
        if getattr(error.__cause__, "name", None) != module:  # Gymnasium raises it anew, without the name
            raise
        raise ValueError(
            f"{name!r} names the module {module!r}, which cannot be found: install it, or run `python -m backsweep` in "
            "its folder"
        ) from error
    except ImportError:
        raise
    except gym.error.Error as error:
        text = f"Gymnasium cannot make {name!r}: {error}"
        if ":" not in name and isinstance(error, (gym.error.NameNotFound, gym.error.NamespaceNotFound)):
            text += f" If another package registers it, name the package too: PACKAGE:{name}"
        raise ValueError(text) from error
    except Exception as error:
        raised = _original(error)
        if not _is_about_options(raised, given):
            raise _blamed(repr(name), "while it was made", raised) from error
        if "'render_mode'" in str(raised):
            raise ValueError(f"{name!r} cannot draw itself: {DRAWING}") from error
        raise ValueError(f"Gymnasium cannot make {name!r}: {error}") from error


def _original(error: BaseException) -> BaseException:
    """Return the TypeError of an environment, which Gymnasium raises anew with other words."""
    before = error.__cause__ or error.__context__
    return before if isinstance(error, TypeError) and isinstance(before, TypeError) else error


def _is_about_options(error: BaseException, options: dict[str, Any]) -> bool:
    """Return whether a constructor does not take these options, rather than raised an error of its own.

    If a call does not fit what is called, the traceback ends where the call is. A constructor that hands its options
    on raises such an error further in.
    """
    if not isinstance(error, TypeError):
        return False
    if any(f"unexpected keyword argument {option!r}" in str(error) for option in options):
        return True
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__") in MAKING


def first_observation(env: gym.Env[Any, Any], seed: int) -> Any:
    """Begin an episode and return its first observation."""
    try:
        result = env.reset(seed=seed)
    except Exception as error:
        raise _blamed(name_of(env), f"in reset({seed=})", error) from error
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise BrokenEnvironmentError(f"reset of {name_of(env)} must return (observation, info), got {_kind(result)}")
    return result[0]


def take_step(env: gym.Env[Any, Any], action: Any) -> Sequence[Any]:
    """Take a step and return what the environment returns."""
    try:
        result = env.step(action)
    except Exception as error:
        raise _blamed(name_of(env), f"in step({' '.join(str(action).split()):.60})", error) from error
    if not isinstance(result, (tuple, list)) or len(result) != 5:
        raise BrokenEnvironmentError(f"step of {name_of(env)} must return {PIECES}, got {_kind(result)}")
    return result


def _blamed(name: str, when: str, error: BaseException) -> BrokenEnvironmentError:
    words = f": {error}" if str(error) else ""
    return BrokenEnvironmentError(f"{name} raised {type(error).__name__} {when}{words}")


def _kind(result: Any) -> str:
    return type(result).__name__ + (f" of {len(result)}" if isinstance(result, (tuple, list)) else "")
