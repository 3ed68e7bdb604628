"""Runs moved together are where they would be if each had been moved alone by plain calls."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from backsweep.agent.config import RunConfig
from backsweep.agent.fleet.compiled import CompiledRuns, Member, turn_kernels
from backsweep.agent.fleet.compiled.runs import supported
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.fleet.run import Run
from backsweep.agent.learner import EpsilonSchedule
from backsweep.jit.compilation import interpreted
from trainer_helpers import paper_config

METHODS = ("uer", "per", "ebu", "ter", "ter-single", "ter-shuffled", "ter-nostitch", "ter-pseudo", "ter-visits")
PACE = {"warmup_steps": 40, "epsilon_start": 1.0, "epsilon_end": 0.3, "epsilon_steps": 200}


def small_config(task: str, method: str, seed: int, **changes: Any) -> RunConfig:
    options: dict[str, Any] = {"capacity": 150, "batch_size": 16, "steps": 400, "shuffle": 40, **PACE}
    return paper_config(task, method=method, seed=seed, **{**options, **changes})


def made_up_choice(step: int, seed: int) -> int:
    """What stands for a network's greedy action."""
    return (step * 7 + seed * 3) % 2


def made_up_errors(row: Any, step: int) -> Any:
    """What stands for a learner's TD errors: some of them large."""
    return np.sin(row * 1.7 + step).astype(np.float32) * 9.0


class Batches:
    """Buffers as a learner has them."""

    def __init__(self, runs: int, batch_size: int) -> None:
        self.best, self.current = np.zeros(runs, np.int64), np.zeros(runs, np.int64)
        self.rows = np.zeros((runs, 2, batch_size), np.int64)
        self.action = np.zeros((runs, batch_size), np.int64)
        self.reward, self.discount, self.weight = (np.zeros((runs, batch_size), np.float32) for _ in range(3))
        self.td_error = np.zeros((runs, batch_size), np.float32)
        self.scales = np.ones(runs)


class Alone:
    """A run moved by plain calls."""

    def __init__(self, config: RunConfig) -> None:
        self.only = Run(config)
        self.drawn: list[Any] = []

    def run(self, first: int, last: int) -> None:
        run = self.only
        for step in range(first, last):
            random, actions = run.random_actions(step)
            run.step(np.where(random, actions, made_up_choice(step, run.config.seed)), Clock())
            if step >= run.config.warmup_steps and step % 4 == 0:
                batch = run.sample()
                self.drawn.append(batch)
                run.replay.update_priorities(batch.row, made_up_errors(batch.row, step))


class Together:
    """The same runs in lock-step."""

    def __init__(self, configs: list[RunConfig]) -> None:
        self.runs = [Run(config) for config in configs]
        most = 2 * configs[0].capacity
        self.members = [
            Member(
                run.replay,
                run.envs.lanes,
                run.explorer.generator,
                place * (most + 1),
                most,
                explores=run.config.explore == "graph",
            )
            for place, run in enumerate(self.runs)
        ]
        self.buffers = Batches(len(configs), configs[0].batch_size)
        self.kept = np.zeros((len(configs) * (most + 1), self.members[0].task.observations.nbytes), np.uint8)
        self.together = CompiledRuns(self.members, self.runs[0].schedule, configs[0].batch_size, self.buffers, 400)
        self.drawn: list[list[dict[str, Any]]] = [[] for _ in configs]
        self.returns: list[list[float]] = [[] for _ in configs]

    def run(self, first: int, last: int) -> None:
        together, buffers = self.together, self.buffers
        pending = False
        for run in range(len(self.runs)):
            for places, content in together.all_observations(run):
                self.kept[places] = content
        for step in range(first, last):
            for run, member in enumerate(self.runs):
                buffers.best[run] = made_up_choice(step, member.config.seed)
                now = member.envs.lanes.observations.reshape(-1).view(np.uint8)
                assert np.array_equal(self.kept[buffers.current[run]], now)
            draw = step >= self.runs[0].config.warmup_steps and step % 4 == 0
            together.turn(step, steps=1, apply=pending, draw=draw)
            pending = draw
            places, content = together.new_observations()
            self.kept[places] = content
            if draw:
                for run in range(len(self.runs)):
                    names = ("action", "reward", "discount", "weight")
                    batch = {name: getattr(buffers, name)[run].copy() for name in names}
                    batch["row"] = together.row[run].copy()
                    batch["observation"], batch["next"] = self.kept[buffers.rows[run]]
                    self.drawn[run].append(batch)
                    buffers.td_error[run] = made_up_errors(batch["row"], step)
        if pending:
            together.turn(last, apply=True)
        together.hand_back(lambda run, returns, lengths: self.returns[run].extend(returns.tolist()))


def check_same(alone: Alone, together: Together, index: int) -> None:
    assert len(alone.drawn) == len(together.drawn[index]) > 5
    for plain, batch in zip(alone.drawn, together.drawn[index], strict=True):
        assert np.array_equal(plain.row, batch["row"])
        for name in ("action", "reward", "discount", "weight"):
            assert np.array_equal(getattr(plain, name), batch[name]), name
        size = len(plain)
        assert np.array_equal(plain.observation.reshape(size, -1).view(np.uint8), batch["observation"])
        assert np.array_equal(plain.next_observation.reshape(size, -1).view(np.uint8), batch["next"])
    first, second = alone.only, together.runs[index]
    assert first.replay.stats() == second.replay.stats()
    assert first.finished_returns == together.returns[index]
    assert first.episodes == together.members[index].episodes
    assert first.explorer.generator.bit_generator.state == second.explorer.generator.bit_generator.state
    for plain_array, array in zip(state_arrays(first), state_arrays(second), strict=True):
        assert np.array_equal(plain_array, array)


def state_arrays(run: Run) -> list[Any]:
    machine = run.replay.machinery
    sampler = machine.sampler.state()
    arrays = [array for _, array in sorted(sampler.arrays.items())]
    arrays += [] if machine.graph is None else [array for _, array in sorted(machine.graph.arrays().items())]
    return arrays + [array for _, array in sorted(run.envs.state()[0].items())]


@pytest.mark.parametrize("task", ["minigrid/lavacrossing-easy", "nchain-6", "sokoban/5x5-1"])
def test_exploring_by_the_graph_together_is_as_alone(task: str) -> None:
    """Also while rows are overwritten, and where an episode has just begun as the runs are handed back."""
    configs = [small_config(task, "graph", seed, explore=how) for seed in (1, 2) for how in ("graph", "uniform")]
    together, alone = Together(configs), [Alone(config) for config in configs]
    for first, last in ((0, 90), (90, 150), (150, 400)):
        together.run(first, last)
        for run in alone:
            run.run(first, last)
    for index, run in enumerate(alone):
        check_same(run, together, index)
    graphs, uniform = alone[::2], alone[1::2]
    assert any(one.only.replay.stats() != other.only.replay.stats() for one, other in zip(graphs, uniform, strict=True))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", ["minigrid/lavacrossing-easy", "nchain-6"])
def test_together_is_as_alone(task: str, method: str) -> None:
    configs = [small_config(task, method, seed) for seed in (1, 2, 3)]
    together, alone = Together(configs), [Alone(config) for config in configs]
    for first, last in ((0, 150), (150, 330)):  # handed back in between
        together.run(first, last)
        for run in alone:
            run.run(first, last)
    for index, run in enumerate(alone):
        check_same(run, together, index)


def test_tasks_and_methods_may_differ_within_a_family() -> None:
    configs = [
        small_config("minigrid/redbluedoors", "ter", 5),
        small_config("minigrid/doorkey", "uer", 6),
        small_config("minigrid/unlock", "per", 7),
        small_config("minigrid/simplecrossing-hard", "ter-shuffled", 8),
    ]
    together, alone = Together(configs), [Alone(config) for config in configs]
    together.run(0, 330)
    for index, run in enumerate(alone):
        run.run(0, 330)
        check_same(run, together, index)


def test_sokoban_together_is_as_alone() -> None:
    configs = [small_config(f"sokoban/{size}", "ter", 3 + place) for place, size in enumerate(("5x5-1", "6x6-2"))]
    together, alone = Together(configs), [Alone(config) for config in configs]
    together.run(0, 330)
    for index, run in enumerate(alone):
        run.run(0, 330)
        check_same(run, together, index)


def test_free_lists_of_bands_are_not_read() -> None:
    """They are not checked when a replay is loaded, and may name bands that do not exist."""
    config = small_config("sokoban/6x6-2", "ter", 3, capacity=40)
    alone = Alone(config)
    alone.run(0, 200)
    store = alone.only.replay.machinery.store
    used = store.observation_uses[: store.observations_high] > 0
    assert not used.all()
    store.arrays()["stacks"][: len(used)][~used] = 1 << 60
    together = Together([config])
    together.members[0] = dataclasses.replace(together.members[0], replay=alone.only.replay)
    runs = CompiledRuns(together.members, alone.only.schedule, config.batch_size, together.buffers, 400)  # type: ignore[arg-type]
    (_, _), *pieces = runs.all_observations(0)
    assert np.concatenate([places for places, _ in pieces]).tolist() == np.flatnonzero(used).tolist()


@pytest.mark.skipif(interpreted(), reason="nothing is compiled")
def test_one_run_and_many_share_the_compiled_kernel() -> None:
    """It takes a minute to compile, so no shape of its arguments should ask for another one."""
    for runs in (1, 2):
        Together([small_config("minigrid/doorkey", "ter", seed) for seed in range(runs)]).run(0, 150)
    assert len(turn_kernels.turn_runs.signatures) == 1


def test_many_random_steps_in_one_turn() -> None:
    config = small_config("minigrid/doorkey", "ter", 2, warmup_steps=100)
    alone, together = Alone(config), Together([config])
    together.together.turn(0, steps=60)
    together.together.hand_back(lambda run, returns, lengths: together.returns[run].extend(returns.tolist()))
    alone.run(0, 60)
    assert alone.only.replay.stats() == together.runs[0].replay.stats()
    together.together.borrow()
    together.run(60, 330)
    alone.run(60, 330)
    check_same(alone, together, 0)


def test_several_steps_in_one_turn_must_all_be_random() -> None:
    together = Together([small_config("nchain-6", "uer", 1)])
    with pytest.raises(ValueError, match="steps must be 1 unless all actions are random, got 2 from step 150 on"):
        together.together.turn(150, steps=2)
    assert together.runs[0].replay.stats()["rows_ever_added"] == 0


def test_a_run_with_an_error_stops_and_the_others_go_on() -> None:
    configs = [small_config("nchain-6", "per", seed) for seed in (1, 2)]
    together = Together(configs)
    together.run(0, 101)
    together.together.turn(101, draw=True)
    together.buffers.td_error[:] = 1.0
    together.buffers.td_error[1, 3] = np.nan
    together.together.turn(101, steps=1, apply=True)
    ((run, reason),) = together.together.failures()
    assert run == 1
    assert reason == "at step 101: the TD error is not a number"
    assert together.runs[0].replay.stats()["rows_ever_added"] == 102
    assert together.runs[1].replay.stats()["rows_ever_added"] == 101


def test_more_observations_than_rows_stop_a_run() -> None:
    config = small_config("minigrid/doorkey", "uer", 1)
    together = Together([config])
    together.members[0] = dataclasses.replace(together.members[0], most_rows=5)
    always = EpsilonSchedule(start=1.0, end=1.0, steps=1, random_steps=0)
    runs = CompiledRuns(together.members, always, 16, together.buffers, 400)
    runs.turn(0, steps=200)
    ((_, reason),) = runs.failures()
    assert "more distinct observations than the device has memory for" in reason


def test_what_is_not_supported_is_said() -> None:
    one_hot = Run(small_config("nchain-6", "ter", 0, task_options={"observation": "one_hot"}, linear=(8,)))
    assert not supported(one_hot.replay, one_hot.envs.lanes)
    plain = Run(small_config("nchain-6", "ter", 0))
    assert supported(plain.replay, plain.envs.lanes)
