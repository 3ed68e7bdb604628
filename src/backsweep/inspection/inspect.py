"""`inspect_env`: plays random steps and tells whether graph methods can help."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from backsweep.encoding import Encoder
from backsweep.inspection.advice import Verdict, advise
from backsweep.inspection.measures import Measures, measure_all, play_randomly
from backsweep.jit.random_streams import checked_seed
from backsweep.tasks.gymnasium_env import BrokenEnvironmentError, gymnasium_env, is_gymnasium_id, name_of
from backsweep.tasks.make import make_single
from backsweep.tasks.observations import as_trained, without_text
from backsweep.tasks.options import checked_int
from backsweep.tasks.registry import find_task


@dataclass(frozen=True)
class Inspection:
    """What random steps show about an environment; `print` it, or use `to_json` in programs."""

    environment: str
    """The task or Gymnasium id."""
    steps: int
    """Random steps played."""
    seed: int
    """The seed of the steps."""
    episodes: int
    """Episodes started."""
    terminations: int
    """Episodes that terminated."""
    truncations: int
    """Episodes that were truncated."""
    rewards: tuple[float, float]
    """The smallest and the largest reward of a step."""
    paid_ends: int
    """Terminations with a positive last reward."""
    choices: tuple[Measures, ...]
    """Properties of the graph under each encoder that was tried, the default first."""
    verdict: Verdict
    """Whether graph methods can help: "yes", "maybe" (compare) or "no"."""
    encoder: Encoder
    """The encoder to try."""
    recommendation: str
    """What to do and why, in one sentence."""
    note: str = ""
    """What of the observations was left out, and how the trainer takes them; empty if they are one array."""

    @property
    def measures(self) -> Measures:
        """Properties of the graph under the recommended encoder."""
        return next(choice for choice in self.choices if choice.encoder == self.encoder)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON values; encoders as their Python expressions."""

        def plain(measures: Measures) -> dict[str, Any]:
            values = {**dataclasses.asdict(measures), "encoder": repr(measures.encoder)}
            return {name: None if value != value else value for name, value in values.items()}  # JSON has no NaN

        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            **fields,
            "rewards": list(self.rewards),
            "encoder": repr(self.encoder),
            "choices": [plain(choice) for choice in self.choices],
        }

    def __str__(self) -> str:
        best = self.measures
        low, high = self.rewards
        head = f"{self.environment}: {self.steps:,} random steps, {_count(self.episodes, 'episode')}, seed {self.seed}"
        facts = [
            ("states", f"{best.states:,} different; {best.repeated:.1%} of steps led to one seen before"),
            (
                "ends",
                f"{_count(best.end_states, 'end state')}; {_count(self.terminations, 'episode')} terminated, "
                f"{self.paid_ends:,} of them with a reward above 0; {self.truncations:,} truncated",
            ),
            ("rewards", f"{low:g} at every step" if low == high else f"{low:g} to {high:g}"),
            ("starts", f"from {best.reach_end:.0%} of episode starts an end can be reached on the graph"),
        ]
        lines = [head, "", *(f"  {name:<8} {fact}" for name, fact in facts), "", *self._table(), ""]
        notes = ["", f"note: {self.note}"] if self.note else []
        return "\n".join([*lines, f"{self.verdict}: {self.recommendation}", *notes])

    def _table(self) -> list[str]:
        rows = [("encoder", "states", "repeat", "agree", "reach an end")]
        for choice in self.choices:
            mark = "* " if choice.encoder == self.encoder else "  "
            agree = "-" if math.isnan(choice.agreement) else f"{choice.agreement:.0%}"
            numbers = (f"{choice.states:,}", f"{choice.repeated:.1%}", agree, f"{choice.reach_end:.0%}")
            rows.append((mark + repr(choice.encoder), *numbers))
        rows[0] = ("  " + rows[0][0], *rows[0][1:])
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return ["  ".join([row[0].ljust(widths[0]), *(map(str.rjust, row[1:], widths[1:]))]).rstrip() for row in rows]


def inspect_env(env: str | gym.Env[Any, Any], steps: int = 20_000, seed: int = 0) -> Inspection:
    """Play random steps in an environment and tell whether graph methods can help there.

    Parameters
    ----------
    env
        A task such as "minigrid/doorkey", a Gymnasium id such as "FrozenLake-v1", or an environment, which is reset
        and stepped but not closed. Text in observations is ignored.
    steps
        Number of random steps.
    seed
        The same seed plays the same episodes, if the environment is deterministic given the seed of its reset.

    Examples
    --------
    >>> from backsweep import inspect_env
    >>> inspect_env("FrozenLake-v1", steps=1_000).verdict
    'yes'
    """
    steps, seed = checked_int("steps", steps, 1), checked_seed(seed)
    if isinstance(env, str):
        made = make_env(env)
        try:
            return _inspect(made, env, steps, seed)
        finally:
            made.close()
    if not isinstance(env, gym.Env):
        raise TypeError(f"env must be a name or a gymnasium.Env, not a vector of them, got {type(env).__name__}")
    return _inspect(env, name_of(env), steps, seed)


def make_env(name: str) -> gym.Env[Any, Any]:
    """Return the environment of a task or of a Gymnasium id."""
    try:
        task = find_task(name)
    except ValueError as unknown:
        try:
            return gymnasium_env(name, None, {})
        except BrokenEnvironmentError:
            raise
        except ValueError as error:
            near = str(unknown).partition("; ")[2]
            hint = f"{near} " if near.startswith("did you mean") and not is_gymnasium_id(name) else ""
            raise ValueError(f"env is not a task ({hint}'backsweep tasks' lists them), and {error}") from error
    return make_single(task.id)


def _inspect(env: gym.Env[Any, Any], name: str, steps: int, seed: int) -> Inspection:
    play = play_randomly(without_text(env), steps, seed)
    choices = tuple(measure_all(play))
    paid_at_ends = play.reward[play.terminated]
    advice = advise(
        choices,
        discrete_actions=isinstance(env.action_space, gym.spaces.Discrete),
        rewards_differ=bool((play.reward != play.reward[0]).any()),
        every_end_pays=len(paid_at_ends) > 0 and float(paid_at_ends.min()) > max(0.0, float(play.reward.mean())),
        steps=steps,
    )
    return Inspection(
        name,
        steps,
        seed,
        len(play.starts),
        len(paid_at_ends),
        play.truncations,
        (float(play.reward.min()), float(play.reward.max())),
        int((paid_at_ends > 0).sum()),
        choices,
        *advice,
        note=as_trained(env),
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
