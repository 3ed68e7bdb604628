"""Autoreset modes, and checks of whether a stream of steps matches its mode.

    disabled    the caller resets: `reset` gives the next episode's first observation
    next_step   the call after an episode's end only resets (the default of Gymnasium's vector environments)
    same_step   the call that ends an episode also resets; the last observation is in ``infos["final_obs"]``
    hidden      the same, but the last observation is never shown

With the wrong mode, rows silently start in terminal states, or the first state of an episode is stored as the last of
the one before. Both have the same symptom: after an end, the lane continues from the observation that was given as the
last one of the finished episode.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.replay.argument_checks import checked_mask, spread
from backsweep.store.staging import Arguments, Staging, as_flags

Mode = Literal["disabled", "next_step", "same_step", "hidden"]
Check = Literal["warn", "refuse", "off"]
MODES = ("disabled", "next_step", "same_step", "hidden")
OF_GYMNASIUM: dict[gym.vector.AutoresetMode, Mode] = {
    gym.vector.AutoresetMode.DISABLED: "disabled",
    gym.vector.AutoresetMode.NEXT_STEP: "next_step",
    gym.vector.AutoresetMode.SAME_STEP: "same_step",
}
CHECKS = ("warn", "refuse", "off")
ENDS_LOOKED_AT = 5
"""Episodes may really end where the next one starts, but this many in a row are no coincidence."""


class Stages(Protocol):
    """What steps are staged for: a store, or a chunk that is being built."""

    num_envs: int
    staging: Staging

    def last_successor(self, lane: int) -> NDArray[np.uint64] | None:
        """Return the words of the observation that a lane's last step led to; None if unknown."""


class Autoreset:
    """Which lanes are about to be reset, and whether the stream matches its declared mode."""

    def __init__(self, mode: Mode | None, check: Check, num_envs: int) -> None:
        self.mode = mode
        self._check = check
        self.ended = np.zeros(num_envs, np.bool_)
        """Lanes whose last step ended their episode."""
        self.some_ended = False
        """Whether there are any, and the mode or the check needs to know."""
        self.takes_ends = mode not in ("same_step", "hidden")
        """Whether the successor that comes with a step that ends an episode is its own."""
        self._moved_on = np.zeros(num_envs, np.bool_)
        self._same = 0
        # A single environment without a declared mode is reset by its caller.
        self._watches = check != "off" and mode != "hidden" and (num_envs > 1 or mode is not None)

    def before(self, store: Stages, lanes: NDArray[np.int64] | None) -> NDArray[np.bool_] | None:
        """Return which lanes' staged steps are resets, or None; warn or raise if they contradict the mode.

        Call it if `some_ended`.
        """
        if self._watches:
            self._compare(store, lanes)
        return self.ended if self.mode == "next_step" else None

    def note_ends(self, store: Stages, lanes: NDArray[np.int64] | None) -> None:
        """Record which of the steps just added ended an episode. Call it if any did, or if `some_ended`."""
        self.some_ended = False
        if self._watches or self.mode == "next_step":
            ends = store.staging.ends()
            if lanes is None:
                self.ended = ends
                self._moved_on[:] = False
            else:
                self.ended[lanes] = ends[lanes]
                self._moved_on[lanes] = False
            self.some_ended = bool(self.ended.any())

    def resume_from(self, ended: NDArray[np.bool_]) -> None:
        """Continue from a save in which these lanes had ended.

        The check begins anew, because another program may have loaded the save. It leaves out these ends: a trajectory
        may have been added to the lane since, and the environments may not go on where they were.
        """
        self.ended[:] = ended
        self._moved_on[:] = ended
        self.some_ended = bool(ended.any()) and (self._watches or self.mode == "next_step")

    def note_trajectory(self, lane: int) -> None:
        """Called after a trajectory was added to a lane: the state of its environment has not changed."""
        self._moved_on[lane] = True

    def _compare(self, store: Stages, lanes: NDArray[np.int64] | None) -> None:
        chosen = np.flatnonzero(self.ended) if lanes is None else lanes[self.ended[lanes]]
        for lane in chosen.tolist():
            last = store.last_successor(lane)
            if last is None or self._moved_on[lane]:
                continue
            same = np.array_equal(last, store.staging.words[lane])
            if self.mode == "next_step":
                if not same:
                    self._complain(NOT_NEXT_STEP.format(lane=lane))
                self._watches = False
                return
            if not same:
                self._watches = False  # as it should be
                return
            self._same += 1
            if self._same >= ENDS_LOOKED_AT:
                self._complain(NOT_RESET.format(count=ENDS_LOOKED_AT))
                self._watches = False
                return

    def _complain(self, message: str) -> None:
        if self._check == "refuse":
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=6)


NOT_NEXT_STEP = (
    "observation: autoreset='next_step' says that the call after an episode's end is no step, but lane {lane} "
    "continues from another observation than the one it ended in. Steps would be lost: use autoreset='same_step' "
    "with final_observation=, or autoreset='disabled' if you call reset yourself"
)
NOT_RESET = (
    "observation: the first {count} finished episodes all continue from the observation that was given as their last. "
    "Either the environment resets in the call after the end (Gymnasium's default for vector environments): use "
    "autoreset='next_step'; or it resets in the same call: give its true last observations as "
    "final_observation=infos.get('final_obs') and use autoreset='same_step', or 'hidden' if it never shows them. "
    "Replay.for_envs(envs) reads the mode from the environment. If episodes really end where the next one starts, "
    "check_autoreset='off' turns this check off"
)


def stage_transitions(
    store: Stages,
    autoreset: Autoreset,
    arguments: Arguments,
    final_observation: Sequence[Any] | None,
    mask: ArrayLike | None,
    lanes: NDArray[np.int64] | None,
    successor_unknown: ArrayLike | None,
    done: int | None = None,
) -> tuple[bool, int]:
    """Check and stage the arguments of `Replay.add`; `done` says what a kernel has staged of them already.

    Returns whether any lane ends its episode, and how many truncations are skipped because their successor is unknown.
    """
    staging = store.staging
    some_end = staging.stage(arguments, lanes, done)
    if mask is not None:
        staging.skip(~checked_mask(mask, store.num_envs, lanes))
    if autoreset.some_ended:
        resets = autoreset.before(store, lanes)
        if resets is not None:
            staging.skip(resets)
    if final_observation is not None:
        stage_finals(store, final_observation, lanes)
    elif some_end and autoreset.mode == "same_step" and successor_unknown is None:
        require_finals(store)
    if successor_unknown is not None:
        unknown = as_flags(successor_unknown, store.num_envs if lanes is None else len(lanes), "successor_unknown")
        return some_end, staging.forget_successors(unknown if lanes is None else spread(unknown, lanes, store.num_envs))
    if some_end and autoreset.mode == "hidden":
        return some_end, staging.forget_successors(staging.ends())
    return some_end, 0


def stage_finals(store: Stages, final_observation: Sequence[Any], lanes: NDArray[np.int64] | None) -> None:
    """Stage the true successors of lanes that have ended."""
    named = range(store.num_envs) if lanes is None else lanes.tolist()
    no_list = isinstance(final_observation, (str, bytes, Mapping)) or not hasattr(final_observation, "__getitem__")
    if no_list or getattr(final_observation, "shape", None) == ():
        raise TypeError(
            f"final_observation must be a list, a tuple or an array with one entry per lane ({len(named)}), "
            f"got {final_observation!r:.200}"
        )
    if len(final_observation) != len(named):
        raise ValueError(f"final_observation must have one entry per lane ({len(named)}), got {len(final_observation)}")
    ends = store.staging.ends()
    for place, lane in enumerate(named):
        if ends[lane]:
            if final_observation[place] is None:
                raise ValueError(f"final_observation[{place}] must be given where a lane has ended, got None")
            store.staging.stage_successor(lane, final_observation[place], place)


def require_finals(store: Stages) -> None:
    """Refuse a step in same-step mode that ends an episode and comes without its last observation."""
    ends = np.flatnonzero(store.staging.ends())
    if len(ends):
        raise ValueError(
            f"final_observation must be given where a lane has ended (lane {ends[0]}): with autoreset='same_step' "
            "next_observation is the next episode's first. Gymnasium has it as infos['final_obs']; if the "
            "environment never shows it, use autoreset='hidden'"
        )


def options_of_env(env: Any) -> dict[str, Any]:
    """Return the options of `Replay` for one environment."""
    if hasattr(env, "single_observation_space") or getattr(env, "num_envs", 1) != 1:
        raise TypeError(f"env must be a single environment, got {type(env).__name__}; use Replay.for_envs for many")
    for name in ("observation_space", "action_space"):
        if not hasattr(env, name):
            raise TypeError(f"env must be an environment with an {name}, got {type(env).__name__}")
    return {"observation_space": env.observation_space, "action_space": env.action_space}


def options_of_envs(envs: Any) -> dict[str, Any]:
    """Return the options of `Replay` for a vector environment: spaces, number of lanes and autoreset mode.

    Supports Gymnasium, EnvPool, PufferLib and Stable-Baselines3.
    """
    number = getattr(envs, "num_envs", None)
    if number is None and hasattr(envs, "config"):  # EnvPool
        number = envs.config["num_envs"]
    if number is None:
        number = getattr(envs, "num_agents", None)  # PufferLib
    if number is None:
        raise TypeError(f"envs must be a vector environment with num_envs, got {type(envs).__name__}")
    single = "single_" if hasattr(envs, "single_observation_space") else ""
    options: dict[str, Any] = {
        "observation_space": getattr(envs, f"{single}observation_space"),
        "action_space": getattr(envs, f"{single}action_space"),
        "num_envs": int(number),
    }
    mode = _mode_of(envs)
    if mode is not None:
        options["autoreset"] = mode
    return options


def _mode_of(envs: Any) -> Mode | None:
    metadata = getattr(envs, "metadata", None) or {}
    declared = metadata.get("autoreset_mode") if isinstance(metadata, dict) else None
    if declared is not None:
        return OF_GYMNASIUM[gym.vector.AutoresetMode(declared)]
    known: dict[str, Mode] = {"envpool": "next_step", "stable_baselines3": "same_step", "pufferlib": "hidden"}
    if getattr(envs, "emulated", False):  # PufferLib around an ordinary environment, which it resets in the next call
        known["pufferlib"] = "next_step"
    packages = (base.__module__.partition(".")[0] for base in type(envs).__mro__)
    return next((known[package] for package in packages if package in known), None)
