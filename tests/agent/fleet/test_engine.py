"""The compiled engine and plain turns write the same records, and either can go on with what the other saved."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import backsweep.agent.fleet.engine
import backsweep.planning.planner
from backsweep.agent import RunConfig, RunError, resume, train, train_fleet
from backsweep.agent.config import SessionConfig
from backsweep.agent.fleet import alternation
from backsweep.agent.fleet.compiled.given_targets import BackwardWalks
from backsweep.agent.fleet.engine import Engine, Group
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import turns
from backsweep.agent.fleet.memory_budget import ObservationLimits, bytes_on_device, known_observations, uses_engine
from backsweep.agent.learner.executor import Executor
from backsweep.agent.learner.value_programs import CHUNK
from backsweep.agent.session.session import Session
from rounding import RoundsByShape
from trainer_helpers import chain, check_same_records, comparable_records, grid

# What a small grid needs: the episodes' random starts are the engine's business, not the network's.
# In double precision, so that other roundings of the same sums never come to another action.
TINY: dict[str, Any] = {
    "convolutions": ((8, 8, 4), (8, 3, 2)),
    "linear": (16,),
    "batch_size": 16,
    "exact": False,
    "dtype": "float64",
    # Short: three evaluations, and a ring that is full for the last third.
    "steps": 420,
    "warmup_steps": 180,
    "evaluation_interval": 140,
    "evaluation_episodes": 3,
    "record_interval": 70,
    "capacity": 280,
}


METHODS = [
    "graph",
    "n-step",
    "graph-backup",
    "ceer",
    "gap",
    "uer",
    "per",
    "ebu",
    "discor",
    "ter",
    "ter-shuffled",
    "ebu-mixed",
]


@pytest.fixture(autouse=True)
def rounds_by_shape() -> Iterator[None]:
    """Let every sum depend on its shape in its last bits: no test here may ask for equality to the last bit."""
    with RoundsByShape():
        yield


def small(method: str, seed: int = 1, **options: Any) -> RunConfig:
    return grid(method=method, seed=seed, **{**TINY, "shuffle": 60, **options})


def check_all_records(first: Path, second: Path, names: Any) -> None:
    for name in names:
        records = check_same_records(first / name, second / name)
        assert sum(record["kind"] == "evaluation" for record in records) >= 2


@pytest.mark.parametrize("method", METHODS)
def test_engines_write_the_same_records(method: str, tmp_path: Path) -> None:
    # Scaled rewards are part of every method; one of the runs has another scale than the others.
    scales: dict[int, float | str] = {1: "auto", 2: "auto", 3: 0.1}
    options = {"ceer_imitation": 1.0} if method == "ceer" else {}
    runs = {f"seed{seed}": small(method, seed, reward_scale=scale, **options) for seed, scale in scales.items()}
    for engine in ("plain", "compiled"):
        results = train_fleet(runs, tmp_path / engine, engine=engine, quiet=True)
        assert all(result.finished for result in results)
    check_all_records(tmp_path / "plain", tmp_path / "compiled", runs)


def test_engines_ignore_priorities_alike_where_outcomes_are_noisy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backsweep.planning.planner, "ENOUGH_ROWS", 100)
    slippery = {"random_action_chance": 0.3}
    options = {"task_options": slippery, "mix_with": "per", "eta": 1.0, "steps": 400}
    runs = {f"limit{limit}": small("graph", noise_limit=limit, **options) for limit in (0.0, 1.0)}
    for engine in ("plain", "compiled"):
        train_fleet(runs, tmp_path / engine, engine=engine, quiet=True)
    check_all_records(tmp_path / "plain", tmp_path / "compiled", runs)
    for name, noisy in (("limit0.0", 1), ("limit1.0", 0)):
        records = comparable_records(tmp_path / "compiled" / name)
        found = [record["statistics"]["too_noisy"] for record in records if record["kind"] == "replay"]
        assert found[-1] == noisy


@pytest.mark.parametrize("method", ["ebu", "ebu-mixed"])
def test_episodes_evaluated_together_in_chunks_give_the_same(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What EBU does on a GPU, here with two groups that take turns while it waits."""
    runs = {f"seed{seed}": small(method, seed) for seed in (1, 2, 3)}
    train_fleet(runs, tmp_path / "one by one", engine="compiled", quiet=True)
    made = BackwardWalks.__init__
    asked = []

    def together(walks: BackwardWalks, *arguments: Any, **options: Any) -> None:
        made(walks, *arguments, **{**options, "alone": False})

    def ask(executor: Executor, runs: Any, rows: Any) -> None:
        asked.append(rows.shape)
        ask_both(executor, runs, rows)

    ask_both = Executor.ask_both
    monkeypatch.setattr(BackwardWalks, "__init__", together)
    monkeypatch.setattr(Executor, "ask_both", ask)
    train_fleet(runs, tmp_path / "together", engine="compiled", groups=2, quiet=True)
    assert {columns for _, columns in asked} == {CHUNK}
    assert max(count for count, _ in asked) > 1
    check_all_records(tmp_path / "one by one", tmp_path / "together", runs)


@pytest.mark.parametrize("method", ["graph", "ter", "ebu"])
def test_groups_may_go_ahead_of_each_other(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device is done with this group or that one, in any order."""
    runs = {f"seed{seed}": small(method, seed) for seed in (1, 2, 3)}
    train_fleet(runs, tmp_path / "plain", engine="plain", quiet=True)
    whims, ahead = np.random.default_rng(0), set()

    def watched(group: Group, last: int) -> Any:
        others.add(group)
        for turn in turns(group, last):
            ahead.add(max(other.step for other in others) - min(other.step for other in others))
            yield turn

    others: set[Group] = set()
    monkeypatch.setattr(Executor, "done", property(lambda executor: whims.random() < 0.3))
    monkeypatch.setattr(alternation, "turns", watched)
    train_fleet(runs, tmp_path / "whims", engine="compiled", groups=3, quiet=True)
    assert max(ahead) > 1
    check_all_records(tmp_path / "plain", tmp_path / "whims", runs)


def test_tasks_and_methods_in_one_fleet_are_as_alone(tmp_path: Path) -> None:
    runs = {
        "crossing-ter": small("ter", 4),
        "crossing-uer": small("uer", 4),
        "lava-per": dataclasses.replace(small("per", 5), task="minigrid/lavacrossing-easy"),
        "short": dataclasses.replace(small("ter-shuffled", 6), steps=280),
    }
    train_fleet(runs, tmp_path / "fleet", engine="compiled", groups=3, quiet=True)
    for name, config in runs.items():
        train(config, tmp_path / name, engine="plain", quiet=True)
        check_same_records(tmp_path / name, tmp_path / "fleet" / name)


def test_several_updates_per_step_and_timeouts_as_ends(tmp_path: Path) -> None:
    options = {"ratio": 2.0, "bootstrap_at_timeout": False, "steps": 400}
    runs = {f"seed{seed}": small("ter", seed, **options) for seed in (1, 2)}
    runs["n-step"] = small("n-step", 3, **options)
    for engine in ("plain", "compiled"):
        train_fleet(runs, tmp_path / engine, engine=engine, quiet=True)
    check_all_records(tmp_path / "plain", tmp_path / "compiled", runs)


@pytest.mark.parametrize("method", ["graph", "ter-shuffled", "ebu"])
@pytest.mark.parametrize("engines", [("compiled", "plain"), ("plain", "compiled"), ("compiled", "compiled")])
def test_either_engine_goes_on_with_what_the_other_saved(
    method: str, engines: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {f"seed{seed}": small(method, seed) for seed in (1, 2)}
    train_fleet(runs, tmp_path / "whole", engine="plain", quiet=True)
    look_around = Session._after_turn

    def stop_halfway(session: Session) -> None:
        look_around(session)
        if session.fleet.step >= 250:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_after_turn", stop_halfway)
        patch.setattr("backsweep.agent.session.session.MOST_STEPS_UNSEEN", 70)
        results = train_fleet(runs, tmp_path / "halved", engine=engines[0], quiet=True)
    assert all(250 <= result.step < 350 and not result.finished for result in results)
    assert all(result.finished for result in resume(tmp_path / "halved", engine=engines[1], quiet=True))
    check_all_records(tmp_path / "whole", tmp_path / "halved", runs)


def test_a_run_that_fails_leaves_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {f"seed{seed}": small("per", seed) for seed in (1, 2, 3)}
    advance = backsweep.agent.fleet.engine.Engine.advance

    def spoil(engine: Any, steps: int, clock: Any) -> None:
        if 300 <= engine.fleet.step < 400:
            engine.fleet.learner.online[1].fill_(np.nan)
        advance(engine, steps, clock)

    with monkeypatch.context() as patch:
        patch.setattr(backsweep.agent.fleet.engine.Engine, "advance", spoil)
        results = {
            result.folder.name: result for result in train_fleet(runs, tmp_path / "f", engine="compiled", quiet=True)
        }
    assert results["seed2"].error is not None
    assert "the TD error is not a number" in results["seed2"].error
    assert "at step 3" in results["seed2"].error
    for name in ("seed1", "seed3"):
        assert results[name].finished
        train(runs[name], tmp_path / name, engine="plain", quiet=True)
        check_same_records(tmp_path / name, tmp_path / "f" / name)


def test_which_fleets_are_moved_together() -> None:
    fleet = Fleet([chain(seed=1), chain(seed=2)])
    assert uses_engine(fleet, SessionConfig())
    assert not uses_engine(fleet, SessionConfig(engine="plain"))
    assert not uses_engine(Fleet([chain()]), SessionConfig())
    assert uses_engine(Fleet([chain()]), SessionConfig(engine="compiled"))
    several = Fleet([chain(num_envs=2), chain(num_envs=2, seed=1)])
    assert not uses_engine(several, SessionConfig())
    with pytest.raises(ValueError, match="engine 'compiled' steps runs of one environment"):
        uses_engine(several, SessionConfig(engine="compiled"))


def test_methods_with_other_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="methods with the same kind of update, got discor, ter"):
        Fleet([chain(method="ter"), chain(method="discor")])
    with pytest.raises(ValueError, match="methods with the same kind of update, got ceer, uer"):
        Fleet([chain(method="ceer", ceer_imitation=1.0), chain(method="uer", ceer_imitation=1.0)])


def test_backward_and_one_step_targets_in_one_fleet(tmp_path: Path) -> None:
    runs = {method: small(method, 3) for method in ("ebu", "ter", "ebu-mixed")}
    for engine in ("plain", "compiled"):
        train_fleet(runs, tmp_path / engine, engine=engine, quiet=True)
    check_all_records(tmp_path / "plain", tmp_path / "compiled", runs)
    train(runs["ter"], tmp_path / "alone", quiet=True)
    check_same_records(tmp_path / "alone", tmp_path / "compiled" / "ter")


def test_a_fleet_that_would_not_fit_is_refused_with_the_size_that_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {f"seed{seed}": small("ter", seed, capacity=100_000, steps=200_000) for seed in range(4)}
    monkeypatch.setattr("backsweep.agent.fleet.memory_budget.physical_memory", lambda: 90 * 2**20)
    with pytest.raises(RunError, match=r"a fleet of 4 such runs needs about .* 2 of them would fit"):
        train_fleet(runs, tmp_path / "fleet", engine="compiled", quiet=True)
    assert not (tmp_path / "fleet").exists()


def test_the_room_for_observations_is_known_where_the_states_are() -> None:
    assert known_observations(chain()) == 10
    assert known_observations(small("ter")) is not None
    assert known_observations(dataclasses.replace(chain(), task="sokoban/5x5-1")) is None


def sokoban(method: str, seed: int) -> RunConfig:
    """Return a short run on Sokoban with small networks."""
    return dataclasses.replace(small(method, seed, steps=400), task="sokoban/5x5-1", task_options={"max_steps": 60})


def test_room_is_made_as_observations_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of levels of Sokoban that a run will see is unknown."""
    runs = {f"{method}-{seed}": sokoban(method, seed) for method in ("ter", "ebu") for seed in (1, 2)}
    train_fleet(runs, tmp_path / "plain", engine="plain", quiet=True)
    monkeypatch.setattr("backsweep.agent.fleet.memory_budget.FIRST_LIMIT", 1)
    monkeypatch.setattr("backsweep.agent.session.session.MOST_STEPS_UNSEEN", 4)
    limits: list[list[int]] = []

    class Watched(Engine):
        def __init__(self, fleet: Fleet, observations_per_run: list[int], groups: int) -> None:
            limits.append(observations_per_run)
            super().__init__(fleet, observations_per_run, groups)

    monkeypatch.setattr("backsweep.agent.session.session.Engine", Watched)
    results = train_fleet(runs, tmp_path / "growing", engine="compiled", quiet=True)
    assert all(result.finished for result in results)
    check_all_records(tmp_path / "plain", tmp_path / "growing", runs)
    assert len(limits) > 2
    assert all(
        before < after for first, second in pairwise(limits) for before, after in zip(first, second, strict=True)
    )


def test_runs_for_which_there_is_no_room_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {f"seed{seed}": sokoban("uer", seed) for seed in (1, 2, 3)}
    monkeypatch.setattr("backsweep.agent.fleet.memory_budget.FIRST_LIMIT", 1)
    fleet = Fleet([runs["seed1"]])
    limits = ObservationLimits(fleet.runs, SessionConfig())
    assert limits.grow(fleet.runs, 300)
    (one,) = bytes_on_device(fleet, limits, SessionConfig())
    monkeypatch.setattr("backsweep.agent.session.session.MOST_STEPS_UNSEEN", 100)
    monkeypatch.setattr("backsweep.agent.fleet.memory_budget.free_on", lambda device: 2.5 * one)
    results = {result.folder.name: result for result in train_fleet(runs, tmp_path / "fleet", groups=1, quiet=True)}
    left = [result for result in results.values() if not result.finished]
    assert left
    for result in left:
        assert result.error is not None
        assert "cpu has no memory left for" in result.error
        assert "put fewer runs on it" in result.error
    assert len(left) < 3


def test_limits_double_only_where_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {f"seed{seed}": sokoban("uer", seed) for seed in (1, 2)}
    monkeypatch.setattr("backsweep.agent.fleet.memory_budget.FIRST_LIMIT", 1)
    monkeypatch.setattr("backsweep.agent.session.session.MOST_STEPS_UNSEEN", 40)
    asked: list[list[int]] = []

    def runs_to_drop(fleet: Fleet, limits: ObservationLimits, session: SessionConfig) -> list[int]:
        asked.append([limits.of(run) for run in fleet.runs])
        return [0] if len(asked) == 1 else []

    monkeypatch.setattr("backsweep.agent.session.session.runs_to_drop", runs_to_drop)
    results = train_fleet(runs, tmp_path / "fleet", engine="compiled", quiet=True)
    assert all(result.finished for result in results)
    assert asked[0] == [240, 240]  # twice what forty steps may need
    assert asked[1] == [120, 120]
    assert asked[2] > asked[1]


def test_a_run_leaves_before_the_machine_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {f"seed{seed}": sokoban("uer", seed) for seed in (1, 2, 3)}
    monkeypatch.setattr("backsweep.agent.session.session.MOST_STEPS_UNSEEN", 100)
    full_for = iter([False, True])  # for one call, once there is something to free
    monkeypatch.setattr(
        "backsweep.agent.fleet.memory_budget.available_memory", lambda: 0 if next(full_for, False) else 2**40
    )
    # Were this machine larger, runs this small would hold too little to be blamed.
    monkeypatch.setattr("backsweep.agent.fleet.memory_budget.KEPT_FREE", 0.0)
    results = train_fleet(runs, tmp_path / "fleet", engine="compiled", groups=1, quiet=True)
    (left,) = [result for result in results if not result.finished]
    assert left.error is not None
    assert "this machine has no memory left for" in left.error
    assert "lower capacity" in left.error
    plain = train_fleet(runs, tmp_path / "plain", engine="plain", quiet=True)
    names = [result.folder.name for result in results if result.finished]
    assert len(names) == len(plain) - 1 == 2
    check_all_records(tmp_path / "plain", tmp_path / "fleet", names)


def test_runs_stay_if_it_is_not_they_that_fill_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backsweep.agent.fleet.memory_budget.available_memory", lambda: 0)
    runs = {f"seed{seed}": sokoban("uer", seed) for seed in (1, 2)}
    results = train_fleet(runs, tmp_path / "fleet", engine="compiled", quiet=True)
    assert all(result.finished for result in results)


def test_a_device_that_filled_up_meanwhile_is_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Unlucky(Engine):
        def __init__(self, fleet: Fleet, observations_per_run: list[int], groups: int) -> None:
            made.append(len(fleet.runs))
            if len(made) == 2:  # the first ended with its room
                raise torch.OutOfMemoryError
            super().__init__(fleet, observations_per_run, groups)

    monkeypatch.setattr("backsweep.agent.session.session.Engine", Unlucky)
    monkeypatch.setattr("backsweep.agent.fleet.memory_budget.FIRST_LIMIT", 1)
    monkeypatch.setattr("backsweep.agent.session.session.MOST_STEPS_UNSEEN", 4)
    runs = {f"seed{seed}": sokoban("uer", seed) for seed in (1, 2, 3)}
    results = train_fleet(runs, tmp_path / "fleet", quiet=True)
    assert made[:3] == [3, 3, 2]
    finished = [result for result in results if result.finished]
    assert len(finished) == 2
    # Nothing is recorded twice where nothing has moved.
    for result in finished:
        name = result.folder.name
        train(runs[name], tmp_path / name, quiet=True)
        check_same_records(tmp_path / name, result.folder)
