"""Q-learning on a table, offline, with batches from a replay."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.learner.backward_targets import BackwardTargets
from backsweep.agent.learner.rules import TargetRule
from backsweep.jit.random_streams import named_generator
from backsweep.lab.studies.tabular import learner_kernels
from backsweep.lab.studies.tabular.dataset import ChainData
from backsweep.planning import GraphValues
from backsweep.replay import Replay
from backsweep.samplers import EpisodicBackward, Mixture, Prioritized, Sampler, Topological, Uniform
from backsweep.types import Batch

PER = Prioritized(alpha=0.6, beta=0.4)
SWEEP = Topological(roots=8, predecessors=3, trees="separate")
SHUFFLE = 10_000

SAMPLERS: dict[str, Sampler] = {
    "uer": Uniform(),
    "per": PER,
    "ebu": EpisodicBackward(),
    "discor": Uniform(),
    "ter": SWEEP,
    "ter-mixed": Mixture([(0.5, SWEEP), (0.5, PER)]),
    "ter-shuffled": dataclasses.replace(SWEEP, shuffle=SHUFFLE),
}
METHODS = tuple(SAMPLERS)
PLANNED: dict[str, Sampler] = {"graph": PER, "graph-uniform": Uniform(), "graph-sweep": SWEEP}
"""Graph values by how rows are drawn: by priority as in training, uniformly, or by sweeps."""
PLANS = GraphValues(gap=1.0, tolerance=1e-9, noise_limit=None, cautious=False)
"""A table keeps any difference between actions, so none is widened."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One run of the tabular study: a backup is one update with a batch of `batch` transitions."""

    method: str
    data_seed: int
    """Which data set; all methods see the same ones, so runs are paired by it."""
    initial: Literal["zero", "uniform"] = "zero"
    """Where values start: 0, or uniform between 0 and 0.1."""
    target_every: int = 0
    """Backups between copies of the target table; 0 bootstraps from the table itself."""
    batch: int = 1
    diffusion: float = 0.5
    """EBU's beta."""
    length: int = 20
    episodes: int = 10
    backups: int = 1_500
    """How many backups the run makes."""

    def to_json(self) -> dict[str, Any]:
        """Return the setting as plain JSON."""
        return dataclasses.asdict(self)


def backups_for(target_every: int) -> int:
    """Return the backups of a run: with a target table, a value needs one copy per step of the chain."""
    return max(1_500, 24 * target_every)


FIRST_TEMPERATURE = 10.0
SMALLEST_TEMPERATURE = 1e-6


class TableLearner:
    """One table of values, learned with one method on one data set.

    The learning rate is 1, because moves are deterministic, times a row's importance weight, which is at most 1.
    """

    def __init__(self, setting: Setting, data: ChainData) -> None:
        self.setting, self.data = setting, data
        self._plans = setting.method in PLANNED
        sampler = PLANNED[setting.method] if self._plans else SAMPLERS[setting.method]
        self.replay: Replay = data.replay(sampler, setting.data_seed, PLANS if self._plans else None)
        self.values = initial_values(setting, data)
        self.target = self.values if setting.target_every == 0 else self.values.copy()
        self.backups = 0
        size = setting.batch
        self._nothing_known = np.full(size, np.nan)
        self._error = np.empty(size)
        self._full_steps = np.ones(size)
        self._weighted = setting.method in ("per", "ter-mixed", "graph")
        self._backward: BackwardTargets | None = None
        if setting.method == "ebu":
            rule = TargetRule(kind="backward", diffusion=setting.diffusion, double=False)
            self._backward = BackwardTargets(rule, self.replay)
        self._discor = TableErrors(data.length, size) if setting.method == "discor" else None
        self._renew_values()

    def back_up(self) -> Batch:
        """Make one backup; return its batch."""
        setting, batch = self.setting, self.replay.sample(self.setting.batch)
        known, steps = self._nothing_known, self._full_steps
        if self._backward is not None:
            known, _ = self._backward.of(batch, self._look_up)
        elif batch.target is not None:
            known = batch.target.astype(np.float64)
        if self._discor is not None:
            steps = self._discor.steps(batch, self.values)
        elif self._weighted:
            steps = np.minimum(batch.weight.astype(np.float64), 1.0)
        learner_kernels.back_up(
            batch.observation,
            batch.action,
            batch.reward,
            batch.discount,
            batch.next_observation,
            known,
            steps,
            self.target,
            self.values,
            self._error,
        )
        if self._discor is not None:
            self._discor.learn(batch, self._error)
        if self._weighted:
            self.replay.update_priorities(batch.row, self._error)
        self.backups += 1
        if setting.target_every == 0 or self.backups % setting.target_every == 0:
            if setting.target_every:
                self.target[:] = self.values
            if self._discor is not None:
                self._discor.copy_target()
            self._renew_values()
        return batch

    def _renew_values(self) -> None:
        """Plan on the graph, with the target table's values of untried actions."""
        if self._plans:
            self.replay.renew_values(lambda states: self.target[states], bounds=(0.0, 1.0))

    @property
    def solved(self) -> bool:
        """Whether the greedy policy reaches the end, with every tie broken against it."""
        return bool(learner_kernels.is_solved(self.values))

    @property
    def value_error(self) -> float:
        """Mean over states and actions of |Q - Q*|."""
        return float(np.abs(self.values[:-1] - self.data.best[:-1]).mean())

    def _look_up(self, observations: Any, *, target: bool) -> NDArray[np.float64]:
        table = self.target if target else self.values
        found: NDArray[np.float64] = table[observations]
        return found


class TableErrors:
    """DisCor's error model as a table, with its target copy and temperature."""

    def __init__(self, length: int, size: int) -> None:
        self.table = np.zeros((length, 2))
        self.target = self.table.copy()
        self.temperature = FIRST_TEMPERATURE
        self._choice = np.empty(size, np.int64)
        self._following = np.empty(size)
        self._predicted, self._count = 0.0, 0

    def steps(self, batch: Batch, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the step size of each row: DisCor's weights, at most 1."""
        learner_kernels.next_choices(batch.next_observation, values, self._choice)
        self._following = batch.discount * self.target[batch.next_observation, self._choice]
        score = -self._following / self.temperature
        weight = np.exp(score - score.max())
        result: NDArray[np.float64] = np.minimum(weight / weight.sum() * len(weight), 1.0)
        return result

    def learn(self, batch: Batch, td_error: NDArray[np.float64]) -> None:
        """Update the error model at the rows of a batch."""
        at = batch.observation, batch.action
        self._predicted += float(self.table[at].mean())
        self._count += 1
        self.table[at] = np.abs(td_error) + self._following

    def copy_target(self) -> None:
        """Copy the target; the temperature becomes the mean prediction since the last copy."""
        self.target[:] = self.table
        self.temperature = max(self._predicted / max(self._count, 1), SMALLEST_TEMPERATURE)
        self._predicted, self._count = 0.0, 0


def initial_values(setting: Setting, data: ChainData) -> NDArray[np.float64]:
    """Return a run's initial table; terminal states have value 0."""
    values = np.zeros((data.length, 2))
    if setting.initial == "uniform":
        generator = named_generator(setting.data_seed, "initial values")
        values[:-1] = generator.uniform(0.0, 0.1, (data.length - 1, 2))
    return values
