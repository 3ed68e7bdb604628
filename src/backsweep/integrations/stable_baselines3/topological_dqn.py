"""Double DQN with graph values, as a Stable-Baselines3 algorithm."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import DQN
from torch.nn import functional

from backsweep.integrations.stable_baselines3.buffers import ReplayBuffer
from backsweep.planning import GraphValues
from backsweep.planning.graph_values import checked_bounds
from backsweep.samplers import Mixture, Topological, Uniform

SAMPLER = Mixture([(0.5, Topological(roots=8, predecessors=1)), (0.5, Uniform())])


class TopologicalDQN(DQN):
    """DQN with targets planned on the graph of stored transitions, and double-DQN targets for rows without one.

    Parameters
    ----------
    policy, env, learning_rate, options
        As for DQN. `target_update_interval` is 1,000 by default: graph values are renewed with the target network.
    replay_buffer_kwargs
        Arguments of the replay buffer. By default `sampler` is half a narrow sweep and half uniform, and `values` is
        `GraphValues()`. ``values=None`` gives double DQN with the sampler's rows and weights.
    bounds
        The lowest and the highest return of an episode. None: derived from the stored rewards.
    explore
        How random actions are chosen: "graph" as `Replay.explore` does, "uniform" all alike.

    Examples
    --------
    >>> model = TopologicalDQN("MlpPolicy", env)  # doctest: +SKIP
    >>> model.learn(100_000)  # doctest: +SKIP
    """

    def __init__(
        self,
        policy: Any,
        env: Any,
        learning_rate: Any = 1e-4,
        *,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        bounds: tuple[float, float] | None = None,
        explore: Literal["graph", "uniform"] = "graph",
        **options: Any,
    ) -> None:
        if explore not in ("graph", "uniform"):
            raise ValueError(f"explore must be 'graph' or 'uniform', got {explore!r}")
        kind = options.setdefault("replay_buffer_class", ReplayBuffer)
        if not (isinstance(kind, type) and issubclass(kind, ReplayBuffer)):
            raise TypeError(f"replay_buffer_class must be backsweep's ReplayBuffer, got {kind!r}")
        self.bounds = None if bounds is None else checked_bounds(bounds)
        self.explore = explore
        chosen: dict[str, Any] = {
            "target_update_interval": 1_000,
            "replay_buffer_kwargs": {"sampler": SAMPLER, "values": GraphValues(), **(replay_buffer_kwargs or {})},
            **options,
        }
        super().__init__(policy, env, learning_rate, **chosen)

    def _setup_model(self) -> None:
        given = self.replay_buffer_kwargs
        self.replay_buffer_kwargs = {"gamma": self.gamma, **given}
        super()._setup_model()
        self.replay_buffer_kwargs = given
        self._buffer()

    def _on_step(self) -> None:
        super()._on_step()
        interval = max(self.target_update_interval // self.n_envs, 1)
        if self._n_calls % interval == 0 and self.num_timesteps > self.learning_starts:
            self.renew_values()

    def renew_values(self) -> None:
        """Plan on the stored graph, with the target network's values for actions that were never tried."""
        buffer = self._buffer()
        if buffer.replay.values is None:
            return
        if self._vec_normalize_env is not None and self._vec_normalize_env.norm_reward:
            raise ValueError("values: graph values need unnormalised rewards; use VecNormalize(norm_reward=False)")
        renewal = buffer.replay.renew_values(self._target_values, bounds=self.bounds)
        self.logger.record("replay/values_asked", renewal.asked)
        self.logger.record("replay/values_unsolved", renewal.unsolved)

    def _buffer(self) -> ReplayBuffer:
        if not isinstance(self.replay_buffer, ReplayBuffer):
            raise TypeError(
                f"replay_buffer_class must be backsweep's ReplayBuffer, got {type(self.replay_buffer).__name__}"
            )
        if self.replay_buffer.replay.gamma != self.gamma:
            raise ValueError(
                "gamma must be the same for the algorithm and its replay buffer, "
                f"got {self.gamma} and {self.replay_buffer.replay.gamma}"
            )
        return self.replay_buffer

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the actions of all environments, and as the buffer stores them: random ones by the graph."""
        buffer, generator = self._buffer(), self.action_space.np_random  # seeded with the model
        if self.explore == "uniform" or buffer.replay.values is None:
            return super()._sample_action(learning_starts, action_noise, n_envs)
        # One draw for all environments, as DQN does.
        if self.num_timesteps < learning_starts or generator.random() < self.exploration_rate:
            normalised = self._vec_normalize_env is not None
            actions = buffer.explore(self._last_original_obs if normalised else self._last_obs, generator)
        else:
            actions, _ = self.predict(self._last_obs, deterministic=True)  # type: ignore[arg-type]
        return actions, actions

    @torch.no_grad()
    def _target_values(self, observations: Any) -> NDArray[np.float32]:
        buffer = self._buffer()
        tensors = buffer._tensors(buffer._normalize_obs(observations, self._vec_normalize_env))
        values: NDArray[np.float32] = self.q_net_target(tensors).cpu().numpy()
        return values

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Do double-DQN updates with the sampler's weights, towards planned targets where they exist."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        buffer = self._buffer()
        losses, planned = [], 0
        for _ in range(gradient_steps):
            samples = buffer.sample(batch_size, env=self._vec_normalize_env)
            batch = buffer.last_batch
            assert batch is not None
            with torch.no_grad():
                discounts = self.gamma if samples.discounts is None else samples.discounts
                best = self.q_net(samples.next_observations).argmax(dim=1, keepdim=True)
                following = self.q_net_target(samples.next_observations).gather(1, best)
                target = samples.rewards + (1 - samples.dones) * discounts * following
                if batch.target is not None:
                    finished = torch.tensor(batch.target, device=target.device).reshape(-1, 1)
                    known = torch.isfinite(finished)
                    target = torch.where(known, finished, target)
                    planned += int(known.sum())
            values = self.q_net(samples.observations).gather(1, samples.actions.long())
            weights = torch.tensor(batch.weight, device=values.device).reshape(-1, 1)
            loss = (weights * functional.smooth_l1_loss(values, target, reduction="none")).mean()
            self.policy.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
            buffer.update_priorities(target - values)
            losses.append(loss.item())
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))
        self.logger.record("train/planned_share", planned / (gradient_steps * batch_size))
