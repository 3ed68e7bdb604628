"""The learner's updates against torch's autograd and optimisers, and runs against the same runs alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.optimisers import Optimiser, OptimiserSettings
from backsweep.agent.learner.rules import TargetRule
from random_batches import random_batch

VECTOR = Network("vector", (4,), 3, (), (16,))
IMAGE = Network("image", (20, 20, 3), 3, ((8, 4, 2), (8, 3, 2)), (16,), 1 / 255)
TABLE = Network("table", (6,), 3)
RULES = [TargetRule(), TargetRule(kind="discor"), TargetRule(kind="discor", error_target=False)]


def _settings(**optimiser: object) -> LearnerSettings:
    return LearnerSettings(optimiser=OptimiserSettings(learning_rate=0.01, **optimiser), dtype="float64")


@pytest.mark.parametrize("rule", RULES, ids=["one-step", "discor", "discor-released"])
@pytest.mark.parametrize("network", [VECTOR, IMAGE, TABLE], ids=lambda network: network.form)
def test_a_run_learns_what_it_would_learn_alone(network: Network, rule: TargetRule) -> None:
    seeds = (5, 6, 7)
    fleet = Learner(network, rule, _settings(clip_norm=0.1), seeds)
    alone = [Learner(network, rule, _settings(clip_norm=0.1), (seed,)) for seed in seeds]
    for update in range(6):
        batches = [random_batch(network, 100 * update + run) for run in range(3)]
        errors = fleet.update(batches).td_error
        for run, learner in enumerate(alone):
            single = learner.update([batches[run]]).td_error[0]
            np.testing.assert_allclose(errors[run], single, rtol=1e-9, atol=1e-12)
        if update % 3 == 2:
            fleet.copy_target()
            for learner in alone:
                learner.copy_target()
    for run, learner in enumerate(alone):
        torch.testing.assert_close(fleet.online[run], learner.online[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["adam", "rmsprop", "sgd"])
def test_updates_are_torchs(kind: str) -> None:
    learner = Learner(VECTOR, TargetRule(), _settings(kind=kind), (3,))
    views = VECTOR.layout.views(learner.online)
    leaves = {name: view[0].clone().requires_grad_() for name, view in views.items()}
    frozen = {name: leaf.detach().clone() for name, leaf in leaves.items()}

    def values(parameters: dict[str, torch.Tensor], x: np.ndarray) -> torch.Tensor:
        hidden = torch.relu(torch.from_numpy(x).double() @ parameters["linear0.weight"] + parameters["linear0.bias"])
        return hidden @ parameters["linear1.weight"] + parameters["linear1.bias"]

    optimiser = {
        "adam": lambda: torch.optim.Adam(leaves.values(), lr=0.01),
        "rmsprop": lambda: torch.optim.RMSprop(leaves.values(), lr=0.01, alpha=0.95, eps=1e-2),
        "sgd": lambda: torch.optim.SGD(leaves.values(), lr=0.01),
    }[kind]()
    for update in range(5):
        batch = random_batch(VECTOR, update)
        rows = torch.arange(8)
        with torch.no_grad():
            best = values(leaves, batch.next_observation).argmax(dim=1)
            after = values(frozen, batch.next_observation)[rows, best]
            target = torch.from_numpy(batch.reward).double() + torch.from_numpy(batch.discount).double() * after
        chosen = values(leaves, batch.observation)[rows, torch.from_numpy(batch.action)]
        losses = torch.nn.functional.huber_loss(chosen, target, reduction="none")
        loss = (torch.from_numpy(batch.weight).double() * losses).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        result = learner.update([batch])
        np.testing.assert_allclose(result.td_error[0], (chosen - target).detach().numpy(), rtol=1e-9, atol=1e-12)
    for name, leaf in leaves.items():
        torch.testing.assert_close(views[name][0], leaf.detach(), rtol=1e-8, atol=1e-11)


def test_gradient_clipping_is_per_run_and_torchs() -> None:
    gradient = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    parameters = torch.zeros(2, 2)
    optimiser = Optimiser(OptimiserSettings(kind="sgd", learning_rate=1.0, clip_norm=1.0), parameters)
    optimiser.apply(parameters, gradient, optimiser.count())
    torch.testing.assert_close(parameters, torch.tensor([[-0.6, -0.8], [-0.3, -0.4]]))


def test_known_targets_take_the_place_of_the_one_step_ones() -> None:
    batch = random_batch(TABLE, 0)
    plain = Learner(TABLE, TargetRule(kind="backward"), _settings(), (0,)).update([batch]).td_error[0]
    known = np.full((1, 8), np.nan)
    known[0, :3] = 5.0
    mixed = Learner(TABLE, TargetRule(kind="backward"), _settings(), (0,)).update([batch], known).td_error[0]
    assert mixed[:3].tolist() == [-5.0] * 3  # the table begins at zero
    assert np.array_equal(mixed[3:], plain[3:])
    whole = Learner(TABLE, TargetRule(kind="backward"), _settings(), (0,)).update([batch], np.full((1, 8), 2.0))
    assert whole.td_error.tolist() == [[-2.0] * 8]


def test_the_target_moves_only_when_copied() -> None:
    learner = Learner(VECTOR, TargetRule(), _settings(), (0,))
    before = learner.target.clone()
    learner.update([random_batch(VECTOR, 0)])
    assert torch.equal(learner.target, before)
    assert not torch.equal(learner.online, before)
    learner.copy_target()
    assert torch.equal(learner.target, learner.online)


def test_discor_temperature_follows_the_predictions() -> None:
    learner = Learner(TABLE, TargetRule(kind="discor"), _settings(), (0, 1))
    assert learner.errors is not None
    assert learner.errors.temperature.tolist() == [10.0, 10.0]
    learner.copy_target()  # nothing predicted yet: the temperature stays
    assert learner.errors.temperature.tolist() == [10.0, 10.0]
    learner.update([random_batch(TABLE, 0), random_batch(TABLE, 1)])
    learner.copy_target()
    # A table of zeros behind a softplus predicts log 2 everywhere.
    assert learner.errors.temperature.tolist() == pytest.approx([np.log(2)] * 2)


def test_a_learner_goes_on_exactly_from_its_state() -> None:
    first = Learner(IMAGE, TargetRule(kind="discor"), _settings(), (0, 1))
    second = Learner(IMAGE, TargetRule(kind="discor"), _settings(), (8, 9))
    first.update([random_batch(IMAGE, 0), random_batch(IMAGE, 1)])
    second.load_state(*first.state())
    for learner in (first, second):
        learner.update([random_batch(IMAGE, 2), random_batch(IMAGE, 3)])
        learner.copy_target()
    torch.testing.assert_close(first.online, second.online, rtol=1e-12, atol=1e-14)
    for ours, its in zip(first.take_statistics(), second.take_statistics(), strict=True):
        assert ours == pytest.approx(its, rel=1e-12)
    with pytest.raises(ValueError, match="does not fit"):
        Learner(VECTOR, TargetRule(), _settings(), (0,)).load_state(*first.state())


def test_runs_that_have_finished_can_go() -> None:
    learner = Learner(VECTOR, TargetRule(kind="discor"), _settings(), (0, 1, 2))
    alone = Learner(VECTOR, TargetRule(kind="discor"), _settings(), (2,))
    learner.update([random_batch(VECTOR, run) for run in range(3)])
    alone.update([random_batch(VECTOR, 2)])
    learner.keep([2])
    learner.update([random_batch(VECTOR, 7)])
    alone.update([random_batch(VECTOR, 7)])
    torch.testing.assert_close(learner.online, alone.online, rtol=1e-9, atol=1e-12)


def test_greedy_and_values_agree() -> None:
    learner = Learner(IMAGE, TargetRule(), _settings(), (0, 1))
    observations = np.stack([random_batch(IMAGE, run).observation for run in range(2)])
    actions = learner.greedy(observations)
    for run in range(2):
        values = learner.values(run, observations[run])
        chosen = np.take_along_axis(values, actions[run][:, None], axis=1)[:, 0]
        np.testing.assert_allclose(chosen, values.max(axis=1), rtol=1e-12, atol=1e-14)
