"""What is random in the samplers follows its law."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from backsweep import EpisodicBackward, Prioritized, Topological, Uniform
from backsweep.samplers import Sampler
from backsweep.samplers.prioritized import LivePrioritized
from laws import assert_law
from twins.replay import Twin
from twins.store import Step

DRAWS = 20_000


def filled(sampler: Sampler, rows: int = 30, capacity: int = 20) -> Twin:
    twin = Twin(sampler=sampler, capacity=capacity, seed=1)
    for t in range(rows):
        twin.add([Step(t % 7, 0, 0.0, (t + 1) % 7, t % 7 == 6, False)])
    return twin


def test_uniform_draws_every_live_row_with_the_same_chance() -> None:
    twin = filled(Uniform())
    drawn = np.concatenate([twin.replay.sample(20).row for _ in range(DRAWS // 20)])
    assert_law(drawn.tolist(), dict.fromkeys(range(10, 30), 1 / 20))


def test_uniform_draws_are_independent_of_one_another() -> None:
    twin = filled(Uniform(), rows=5, capacity=5)
    drawn = [tuple(twin.replay.sample(2).row.tolist()) for _ in range(DRAWS)]
    assert_law(drawn, dict.fromkeys(itertools.product(range(5), repeat=2), 1 / 25))


ERRORS = np.array([0.0, 0.1, 0.5, 1, 2, 3, 5, 8, 0.2, 0.3] * 2)


def prioritized(**options: object) -> tuple[Twin, dict[int, float]]:
    """A replay with known errors for all live rows, and the law of a single draw."""
    config = Prioritized(**options)  # type: ignore[arg-type]
    twin = filled(config)
    twin.update(range(10, 30), ERRORS.tolist())
    clipped = np.minimum(ERRORS, np.inf if config.clip is None else config.clip)
    weights = (clipped + config.epsilon) ** config.alpha
    return twin, dict(zip(range(10, 30), (weights / weights.sum()).tolist(), strict=True))


@pytest.mark.parametrize("options", [{}, {"alpha": 0.0}, {"alpha": 1.0, "epsilon": 0.2}, {"clip": 1.0}])
def test_priorities_are_the_chances(options: dict[str, float]) -> None:
    twin, law = prioritized(**options)
    drawn = np.concatenate([twin.replay.sample(10).row for _ in range(DRAWS // 10)])
    assert_law(drawn.tolist(), law)


def test_new_rows_have_the_largest_chance_so_far() -> None:
    twin, _ = prioritized(alpha=1.0)
    twin.add([Step(0, 0, 0.0, 1, False, False)])
    sampler = twin.replay._sampler
    assert isinstance(sampler, LivePrioritized)
    assert sampler.priorities(np.array([30]))[0] == sampler.priorities(np.arange(11, 31)).max() == 8.01


def test_each_stratum_of_a_batch_follows_its_own_law() -> None:
    twin, law = prioritized(stratified=True)
    size = 6
    batches = np.array([twin.replay.sample(size).row for _ in range(DRAWS // 5)])
    # Shares lie side by side in the order of the ring's slots; a stratum is a sixth of the whole.
    rows = sorted(law, key=lambda row: row % 20)
    ends = np.cumsum([law[row] for row in rows])
    starts = ends - [law[row] for row in rows]
    for stratum in range(size):
        low, high = stratum / size, (stratum + 1) / size
        overlap = np.maximum(np.minimum(ends, high) - np.maximum(starts, low), 0) * size
        common = overlap > 0.003
        drawn = [row for row in batches[:, stratum].tolist() if row in np.array(rows)[common]]
        assert set(batches[:, stratum].tolist()) <= set(np.array(rows)[overlap > 0].tolist())
        assert len(drawn) > 0.97 * len(batches)
        chances = overlap[common] / overlap[common].sum()
        assert_law(drawn, dict(zip(np.array(rows)[common].tolist(), chances.tolist(), strict=True)))


@pytest.mark.parametrize("normalise", ["buffer", "batch"])
@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_weights_are_n_p_to_the_minus_beta_over_the_largest(normalise: str, beta: float) -> None:
    twin, law = prioritized(normalise=normalise, beta=beta)
    for _ in range(50):
        batch = twin.replay.sample(8)
        raw = np.array([(20 * law[row]) ** -beta for row in batch.row.tolist()])
        among = np.array([(20 * chance) ** -beta for chance in law.values()]) if normalise == "buffer" else raw
        np.testing.assert_allclose(batch.weight, raw / among.max(), rtol=1e-6)
        assert batch.weight.max() <= 1.0


def test_beta_rises_with_the_rows_that_were_added() -> None:
    twin = Twin(sampler=Prioritized(beta=0.4, final_beta=1.0, beta_rows=50), capacity=20)
    for t in range(80):
        twin.add([Step(t % 7, 0, 0.0, (t + 1) % 7, False, False)])
        expected = min(0.4 + 0.6 * (t + 1) / 50, 1.0)
        assert twin.replay.stats()["beta"] == pytest.approx(expected)


def episodes(sampler: EpisodicBackward) -> Twin:
    """Episodes of 1, 2, .. 8 rows: the third and sixth truncated, the last one running."""
    twin = Twin(sampler=sampler, capacity=36)
    for length in range(1, 9):
        for t in range(length):
            end = t == length - 1 and length < 8
            twin.add([Step(100 + t, 0, 0.0, 101 + t, end and length % 3 != 0, end and length % 3 == 0)])
    return twin


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({}, range(1, 9)),
        ({"timeouts": False}, [1, 2, 4, 5, 7, 8]),
        ({"running": False}, range(1, 8)),
        ({"timeouts": False, "running": False}, [1, 2, 4, 5, 7]),
    ],
)
def test_episodes_are_drawn_uniformly_whatever_their_length(options: dict[str, bool], allowed: list[int]) -> None:
    twin = episodes(EpisodicBackward(**options))  # type: ignore[arg-type]
    drawn = []
    for _ in range(5000):
        row = int(twin.replay.sample(1).row[0])
        whole = twin.replay.episode(row)
        assert row == whole[-1]
        drawn.append(len(whole))
        if len(whole) > 1:
            assert twin.replay.sample(len(whole) - 1).row.tolist() == whole[-2::-1].tolist()
    assert_law(drawn, {length: 1 / len(allowed) for length in allowed})


def test_a_rare_episode_is_found_where_blind_draws_fail() -> None:
    twin = Twin(sampler=EpisodicBackward(timeouts=False, running=False), capacity=2000)
    for t in range(2000):
        twin.add([Step(3, 0, 0.0, 4, t in (900, 901), t not in (900, 901))])
    drawn = [int(twin.replay.sample(1).row[0]) for _ in range(500)]
    assert_law(drawn, {900: 0.5, 901: 0.5})


def test_a_shuffle_gives_the_same_rows_and_no_order() -> None:
    def rows(shuffle: int) -> np.ndarray:
        twin = Twin(sampler=Topological(shuffle=shuffle, roots=2), capacity=200, seed=2)
        for t in range(200):
            twin.add([Step(t % 20, 0, 0.0, t % 20 + 1, t % 20 == 19, False)])
        return np.concatenate([twin.replay.sample(10).row for _ in range(200)])

    plain, shuffled = rows(0), rows(400)
    counts = [np.bincount(part % 20, minlength=20) for part in (plain, shuffled)]
    np.testing.assert_allclose(counts[0], counts[1], atol=25)  # a window's worth is still inside
    steps_back = [np.mean((part[1:] % 20) == (part[:-1] % 20 - 1) % 20) for part in (plain, shuffled)]
    assert steps_back[0] > 0.9
    assert steps_back[1] < 0.1
    assert stats.spearmanr(np.arange(2000), shuffled % 20).pvalue > 1e-4
