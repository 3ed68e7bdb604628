"""Exact values: the counts of the facts, the equations they must satisfy, and agreement with playing."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash
from placing import place_grid, situation_of

from backsweep.tasks import ExactTask, exact, find_task, make, normalised_return
from backsweep.tasks.lane_envs import LaneVectorEnv
from backsweep.tasks.minigrid import MiniGridLanes, MiniGridOptions
from backsweep.tasks.minigrid.enumeration import MiniGridStates

COUNTS = {
    "minigrid/doorkey": (36, 7_056, 198),
    "minigrid/unlock": (384, 24_576, 24),
    "minigrid/redbluedoors": (16, 3_136, 32),
    "minigrid/simplecrossing-easy": (42, 7_008, 70),
    "minigrid/simplecrossing-hard": (456, 62_512, 618),
    "minigrid/lavacrossing-easy": (42, 7_008, 622),
    "minigrid/lavacrossing-hard": (456, 62_512, 11_284),
    "nchain-20": (1, 19, 1),
}


@pytest.mark.parametrize(("task", "counts"), COUNTS.items())
def test_counts_and_bellman_equation(task: str, counts: tuple[int, int, int]) -> None:
    model = exact(task)
    assert (model.num_levels, model.num_states, model.num_terminal) == counts
    graph = model.graph
    assert graph.start_probability.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(graph.terminated, graph.next_state >= model.num_states)
    best = model.optimal_values(0.99)
    values = np.concatenate([best.max(axis=1), np.zeros(model.num_terminal)])
    np.testing.assert_allclose(best, graph.reward + 0.99 * values[graph.next_state], atol=1e-8)
    # The best policy's own values are Q*, and it always succeeds in time.
    np.testing.assert_allclose(model.policy_values(best, 0.99), best, atol=1e-8)
    result = model.expected_return(best)
    assert (result.success, result.failure, result.timeout) == pytest.approx((1.0, 0.0, 0.0), abs=1e-9)
    assert result.normalised == pytest.approx(normalised_return(result.mean_return, model.return_bounds))


@pytest.mark.parametrize("task", [task for task in COUNTS if task.startswith("minigrid")])
def test_images_tell_states_apart(task: str) -> None:
    """All states look different, except that Unlock's terminal images lose the opened door's colour."""
    model = exact(task)
    total = model.num_states + model.num_terminal
    seen: dict[bytes, int] = {}
    for first in range(0, total, 4096):
        states = np.arange(first, min(first + 4096, total))
        for state, image in zip(states, model.observations(states), strict=True):
            other = seen.setdefault(xxhash.xxh3_128_digest(image), int(state))
            assert other == state or (task == "minigrid/unlock" and state >= model.num_states)


@pytest.mark.parametrize("length", [2, 3, 20])
def test_chain_values_in_closed_form(length: int) -> None:
    model = exact(f"nchain-{length}")
    best = model.optimal_values(0.9)
    powers = 0.9 ** np.arange(length - 2, -1, -1)
    np.testing.assert_allclose(best[:, 0], powers)
    np.testing.assert_allclose(best[1:, 1], 0.81 * powers[1:], rtol=1e-9)
    assert model.expected_return(np.zeros(length - 1, dtype=int)).mean_return == 1.0
    never = model.expected_return(np.ones(length - 1, dtype=int))
    assert (never.mean_return, never.timeout) == (0.0, 1.0)


def play_returns(env: LaneVectorEnv, model: ExactTask, policy: np.ndarray, chance: float, episodes: int) -> np.ndarray:
    """Play a policy on the environment itself, looking states up by their images."""
    names = {model.observations([state])[0].tobytes(): state for state in range(model.num_states)}
    generator = np.random.default_rng(3)
    observations, _ = env.reset()
    running, returns = np.zeros(env.num_envs), []
    while len(returns) < episodes:
        actions = np.array([policy[names[image.tobytes()]] for image in observations])
        random = generator.random(env.num_envs) < chance
        actions[random] = generator.integers(0, model.num_actions, int(random.sum()))
        observations, rewards, terminated, truncated, _ = env.step(actions)
        running += rewards
        for lane in np.flatnonzero(terminated | truncated):
            returns.append(running[lane])
            running[lane] = 0.0
    return np.array(returns)


@pytest.mark.parametrize(
    ("task", "options", "chance"),
    [
        ("minigrid/lavacrossing-easy", {"random_action_chance": 0.1, "max_steps": 60}, 0.05),
        ("minigrid/lavacrossing-easy", {"goals_terminate": False, "max_steps": 40}, 0.2),
        ("minigrid/redbluedoors", {"wrong_door": "released", "max_steps": 30}, 0.3),
    ],
)
def test_expected_return_is_what_playing_gives(task: str, options: dict[str, object], chance: float) -> None:
    model = exact(task, **options)
    policy = model.optimal_values(0.99).argmax(axis=1)
    env = make(task, num_envs=32, seed=1, **options)
    assert isinstance(env, LaneVectorEnv)
    returns = play_returns(env, model, policy, chance, 3_000)
    expected = model.expected_return(policy, random_chance=chance).mean_return
    error = returns.std() / np.sqrt(returns.size)
    assert abs(returns.mean() - expected) < 4.0 * error


def test_random_actions_lower_the_optimum() -> None:
    plain, shaken = exact("minigrid/lavacrossing-easy"), exact("minigrid/lavacrossing-easy", random_action_chance=0.1)
    best, best_shaken = plain.optimal_values(0.99), shaken.optimal_values(0.99)
    assert (best_shaken.max(axis=1) < best.max(axis=1) + 1e-9).all()
    # Shaking the policy and shaking the task are the same thing for the states' values.
    policy = best_shaken.argmax(axis=1)
    by_policy = plain.policy_values(policy, 0.99, random_chance=0.1)
    value = 0.9 * by_policy[np.arange(plain.num_states), policy] + 0.1 * by_policy.mean(axis=1)
    np.testing.assert_allclose(
        shaken.policy_values(policy, 0.99)[np.arange(plain.num_states), policy], value, atol=1e-7
    )


@pytest.mark.parametrize(
    "options",
    [
        {"level": "doorkey", "size": 5},
        {"level": "doorkey", "size": 6},
        {"level": "doorkey", "size": 7, "max_steps": 40},
        {"level": "unlock", "size": 6, "max_steps": 40},
        {"level": "redbluedoors", "size": 3},
        {"level": "redbluedoors", "size": 5},
        {"level": "redbluedoors", "size": 6, "wrong_door": "released"},
        {"level": "redbluedoors", "size": 6, "max_steps": 5},
        {"level": "simplecrossing", "size": 3, "crossings": 1},
        {"level": "simplecrossing", "size": 5, "crossings": 2},
        {"level": "simplecrossing", "size": 9, "crossings": 2, "max_steps": 30},
        {"level": "lavacrossing", "size": 9, "crossings": 1},
        {"level": "lavacrossing", "size": 5, "crossings": 0},
        {"level": "lavacrossing", "size": 7, "crossings": 2, "goals_terminate": False},
        {"level": "lavacrossing", "size": 7, "crossings": 2, "max_steps": 6},
    ],
    ids=str,
)
def test_return_bounds_are_the_true_ones(options: dict[str, object]) -> None:
    """Backward induction over the step limit gives the best and the worst return of any start."""
    task = MiniGridOptions(**options)  # type: ignore[arg-type]
    graph = MiniGridStates(task).graph()
    found = []
    for pick in (np.min, np.max):
        values = np.zeros(graph.num_states + graph.num_terminal)
        for _ in range(task.step_limit):
            values[: graph.num_states] = pick(graph.reward + values[graph.next_state], axis=1)
        found.append(float(pick(values[graph.start_state])))
    assert tuple(found) == task.return_bounds


def test_states_agree_with_the_lanes() -> None:
    """A random walk through the arrays is a random walk of a lane, image by image."""
    model = exact("minigrid/doorkey", actions="package")
    assert isinstance(model.observer, MiniGridStates)
    lanes = MiniGridLanes(find_task("minigrid/doorkey").options(actions="package"), 1)
    generator = np.random.default_rng(0)
    state = int(model.graph.start_state[5])
    place_grid(lanes, 0, *situation_of(model.observer, state))
    for _ in range(300):
        action = int(generator.integers(7))
        lanes.step(np.array([action]), np.zeros(1, dtype=np.bool_))
        assert lanes.rewards[0] == model.graph.reward[state, action]
        state = int(model.graph.next_state[state, action])
        np.testing.assert_array_equal(lanes.observations[0], model.observations([state])[0])


def test_batches_cover_every_state_once() -> None:
    model = exact("minigrid/redbluedoors")
    states = np.concatenate([states for states, images in model.batches(1_000) if images.shape[1:] == (40, 40, 3)])
    np.testing.assert_array_equal(states, np.arange(model.num_states))


def test_refusals() -> None:
    model = exact("nchain-5")
    with pytest.raises(ValueError, match="too large to enumerate"):
        exact("sokoban/5x5-1")
    with pytest.raises(ValueError, match="reward='paper'"):
        exact("minigrid/doorkey", reward="package")
    with pytest.raises(ValueError, match="too many states"):
        exact("minigrid/doorkey", size=40)
    with pytest.raises(ValueError, match="discount must be"):
        model.optimal_values(1.0)
    with pytest.raises(ValueError, match="policy must have shape"):
        model.expected_return(np.zeros(3, dtype=int))
    with pytest.raises(TypeError, match="integer actions"):
        model.expected_return(np.zeros(4))
    with pytest.raises(ValueError, match=r"actions in 0\.\.1"):
        model.expected_return(np.full(4, 2))
    with pytest.raises(ValueError, match="NaN"):
        model.expected_return(np.full((4, 2), np.nan))
    with pytest.raises(ValueError, match="random_chance"):
        model.expected_return(np.zeros(4, dtype=int), random_chance=1.5)
    with pytest.raises(ValueError, match=r"states must be in 0\.\.4"):
        model.observations([5])
