"""The tabular study: exact, repeatable, and a sweep does what the paper's first figure says."""

from __future__ import annotations

import numpy as np
import pytest

from backsweep.lab.studies import collisions, coverage, graphs, repeats, speed
from backsweep.lab.studies.registry import STUDIES
from backsweep.lab.studies.tabular import learner_kernels
from backsweep.lab.studies.tabular.dataset import chain_data
from backsweep.lab.studies.tabular.learner import METHODS, PLANNED, Setting, TableLearner
from backsweep.lab.studies.tabular.study import COMPARED, carry_out, moments, settings_for, trace

LENGTH = 8


def setting(method: str, **options: object) -> Setting:
    fields = {"data_seed": 10_000, "length": LENGTH, "episodes": 4, "backups": 400, **options}
    return Setting(method=method, **fields)  # type: ignore[arg-type]


def test_data_sets_are_random_walks_to_the_end() -> None:
    data = chain_data(3, LENGTH, 4)
    assert len(data.starts) == 5
    for first, last in zip(data.starts[:-1], data.starts[1:], strict=True):
        assert data.state[first] == 0
        assert data.terminated[last - 1]
        assert data.following[last - 1] == LENGTH - 1
        assert (data.state[first + 1 : last] == data.following[first : last - 1]).all()
    assert data.reward.sum() == 4
    assert not np.array_equal(chain_data(4, LENGTH, 4).state, data.state)


def test_one_backup_by_hand() -> None:
    values = np.array([[0.0, 0.5], [0.25, 1.0], [0.0, 0.0]])
    error = np.empty(2)
    learner_kernels.back_up(
        np.array([0, 1]),
        np.array([0, 0]),
        np.array([0.0, 1.0], np.float32),
        np.array([0.5, 0.0], np.float32),
        np.array([1, 2]),
        np.array([np.nan, np.nan]),
        np.array([1.0, 0.5]),
        values,
        values,
        error,
    )
    assert error.tolist() == [0.5, 0.75]
    assert values.tolist() == [[0.5, 0.5], [0.625, 1.0], [0.0, 0.0]]


def test_ties_are_no_solution() -> None:
    assert not learner_kernels.is_solved(np.zeros((3, 2)))
    assert learner_kernels.is_solved(np.array([[0.2, 0.1], [0.3, 0.2], [0.0, 0.0]]))


def test_a_sweep_needs_about_two_backups_per_state() -> None:
    record = carry_out(setting("ter"))
    assert LENGTH - 1 <= record["solved_at"] <= 2 * LENGTH
    assert record["error"][-1] < 1e-6
    assert record["solved"]
    assert record["lost"] == 0


@pytest.mark.parametrize("method", [*METHODS, *PLANNED])
def test_every_method_gets_there_and_repeats_exactly(method: str) -> None:
    first = carry_out(setting(method, batch=16, initial="uniform", target_every=20, backups=1500))
    assert first["solved_at"] is not None
    assert first == carry_out(setting(method, batch=16, initial="uniform", target_every=20, backups=1500))


def test_with_a_target_table_values_move_one_step_per_copy() -> None:
    for method in ("uer", "ter", "ter-shuffled"):
        record = carry_out(setting(method, batch=64, target_every=50, backups=1000))
        assert record["solved_at"] > 50 * (LENGTH - 2)


def test_planned_targets_do_not_wait_for_copies_of_the_target_table() -> None:
    for method in PLANNED:
        often, seldom = (carry_out(setting(method, batch=64, target_every=every, backups=200)) for every in (20, 150))
        assert often["solved_at"] == seldom["solved_at"] < 100
    swept = TableLearner(setting("graph-sweep", batch=64), chain_data(10_000, LENGTH, 4))
    swept.back_up()
    assert swept.solved
    assert np.allclose(swept.values[:-1], swept.data.best[:-1], atol=1e-6)


def test_traces_lead_to_the_same_table() -> None:
    chosen = setting("ter", backups=60)
    learner = TableLearner(chosen, chain_data(10_000, LENGTH, 4))
    for _ in range(60):
        learner.back_up()
    table = np.zeros((LENGTH, 2))
    for state, action, value in trace(chosen):
        table[int(state), int(action)] = value
    assert np.allclose(table, learner.values, atol=1e-4)


def test_the_table_of_settings() -> None:
    settings = list(settings_for(100))
    assert len(settings) == len(set(settings)) == 3 * 2 * (4 * len(METHODS) + 2 * 4)
    assert moments(1500)[0] == 0
    assert {50, 100, 1500} <= set(moments(1500))


def test_the_study_of_graph_values_has_ter_beside_them() -> None:
    records = list(STUDIES["tabular-graph"].records(10_000, length=6, batches=(16,), targets=(0,)))
    runs = [record for record in records if record["kind"] == "tabular"]
    assert [record["method"] for record in runs] == 2 * list(COMPARED)
    assert STUDIES["tabular-graph"].work(length=6, batches=(16,), targets=(0,)) == sum(r["backups"] for r in runs)
    assert {record["method"] for record in records if record["kind"] == "trace"} == set(PLANNED)


def test_small_pieces_of_the_other_studies() -> None:
    orders = {record["rewards"]: record for record in graphs.all_orders(0, graphs=20)}
    assert orders["equal"]["exact"] == orders["equal"]["graphs"] == 20
    assert orders["costs"]["exact"] < 20
    covered = {record["eta"]: record for record in coverage.all_coverage(0, steps=600)}
    assert covered[0.5]["never_drawn"] == 0
    same = {record["sampler"]: record for record in repeats.compare_orders(0, episodes=10, stretches=20)}
    assert same["ter, trees one by one"]["whole_episodes"] == same["ebu"]["whole_episodes"] == 20
    assert repeats.revisits(0, 50)["steps"] == 50
    (found,) = collisions.count_collisions(0, tasks=["minigrid/redbluedoors"], dimensions=[3])
    assert found["collisions"] == 0
    assert found["observations"] == 3168
    timed = list(speed.measure("ter", 300, 20, 0))
    assert {record["operation"] for record in timed} == {"sample", "add"}
    assert all(0 < record["min"] <= record["median"] <= record["max"] for record in timed)
