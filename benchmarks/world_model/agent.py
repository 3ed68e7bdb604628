"""sheeprl's DreamerV2: its configuration, its models, acting, and an update."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import hydra
import numpy as np
import sheeprl
import torch
from lightning.fabric import Fabric
from numpy.typing import NDArray
from omegaconf import OmegaConf
from sheeprl.algos.dreamer_v2.agent import PlayerDV2, build_agent
from sheeprl.algos.dreamer_v2.dreamer_v2 import train, world_model_loss
from sheeprl.algos.dreamer_v2.utils import build_optimizer
from sheeprl.utils.utils import dotdict

from benchmarks.world_model.sequences import Batch, enlarged
from benchmarks.world_model.settings import Settings

_SIZES = {
    "published": (),
    # The recurrent sizes that DreamerV2 was published with for continuous control, and fewer channels.
    "small": (
        "algo.world_model.encoder.cnn_channels_multiplier=32",
        "algo.world_model.recurrent_model.recurrent_state_size=200",
        "algo.world_model.transition_model.hidden_size=200",
        "algo.world_model.representation_model.hidden_size=200",
    ),
    "tiny": (
        "algo.dense_units=16",
        "algo.mlp_layers=1",
        "algo.world_model.encoder.cnn_channels_multiplier=2",
        "algo.world_model.recurrent_model.recurrent_state_size=16",
        "algo.world_model.transition_model.hidden_size=16",
        "algo.world_model.representation_model.hidden_size=16",
        "algo.world_model.discrete_size=4",
        "algo.world_model.stochastic_size=4",
    ),
}


def configuration(settings: Settings, *, cuda: bool, compiled: bool) -> Any:
    """Return sheeprl's configuration of DreamerV2 with a run's settings."""
    overrides = [
        "exp=dreamer_v2",
        f"seed={settings.seed}",
        f"env.num_envs={settings.num_envs}",
        f"algo.gamma={settings.discount}",
        f"algo.horizon={settings.horizon}",
        f"algo.actor.ent_coef={settings.entropy}",
        f"algo.world_model.kl_regularizer={settings.kl}",
        "algo.world_model.use_continues=True",  # episodes end here
        "algo.mlp_keys.encoder=[]",
        f"algo.compile.enabled={compiled}",
        "algo.compile.player=False",
        *_SIZES[settings.size],
        # What a CUDA graph needs: the number of steps is counted on the GPU.
        *(f"+algo.{part}.optimizer.capturable={cuda}" for part in ("world_model", "actor", "critic")),
    ]
    folder = str(Path(sheeprl.__file__).parent / "configs")
    with hydra.initialize_config_dir(config_dir=folder, version_base="1.3"):
        composed = hydra.compose("config", overrides=overrides)
    parts = {
        name: OmegaConf.to_container(composed[name], resolve=True)
        for name in ("algo", "distribution", "env", "fabric", "seed")
        if OmegaConf.is_config(composed[name])
    }
    return dotdict({**parts, "seed": settings.seed})


class Dreamer:
    """The models of one run."""

    def __init__(self, settings: Settings, num_actions: int, device: str, *, compiled: bool = False) -> None:
        """Make new models, with a run's seed."""
        torch.manual_seed(settings.seed)
        torch.set_float32_matmul_precision("high")
        self.settings, self.num_actions = settings, num_actions
        self.fabric = Fabric(accelerator="cuda" if device == "cuda" else "cpu", devices=1, precision="32-true")
        self.device = self.fabric.device
        self.cfg = configuration(settings, cuda=device == "cuda", compiled=compiled)
        side = settings.image_size
        space = gym.spaces.Dict({"rgb": gym.spaces.Box(0, 255, (3, side, side), np.uint8)})
        made = build_agent(self.fabric, (num_actions,), False, self.cfg, space)
        self.world_model, self.actor, self.critic, self.target, self.player = made
        parts = ("world_model", self.world_model), ("actor", self.actor), ("critic", self.critic)
        self.optimisers = [
            self.fabric.setup_optimizers(build_optimizer(self.cfg.algo[name].optimizer, module.parameters()))
            for name, module in parts
        ]
        self.updates = 0

    @property
    def parameters(self) -> int:
        """The number of all weights that are learned."""
        modules = self.world_model, self.actor, self.critic
        return sum(weights.numel() for module in modules for weights in module.parameters())

    def prepared(self, batch: Batch) -> Batch:
        """Return a sampled batch as an update takes it."""
        return {**batch, "rgb": enlarged(batch["rgb"], self.settings.image_size)}

    def update(self, batch: Batch) -> None:
        """Update the world model, the actor and the critic with a prepared batch."""
        train(
            self.fabric,
            self.world_model,
            self.actor,
            self.critic,
            self.target,
            *self.optimisers,
            batch,
            None,
            self.cfg,
            (self.num_actions,),
        )

    def copy_target(self) -> None:
        """Copy the critic to its target, if it is time."""
        if self.updates % self.cfg.algo.critic.per_rank_target_network_update_freq == 0:
            pairs = zip(self.critic.module.parameters(), self.target.module.parameters(), strict=True)
            for weights, target in pairs:
                target.data.copy_(weights.data)
        self.updates += 1

    @torch.no_grad()
    def losses(self, batch: Batch) -> dict[str, float]:
        """Return the parts of the world model's loss for a prepared batch."""
        algo = self.cfg.algo
        *_, parts = world_model_loss(
            self.world_model,
            batch,
            cnn_keys=("rgb",),
            mlp_keys=(),
            stochastic_size=algo.world_model.stochastic_size,
            discrete_size=algo.world_model.discrete_size,
            recurrent_state_size=algo.world_model.recurrent_model.recurrent_state_size,
            use_continues=True,
            gamma=algo.gamma,
            kl_balancing_alpha=algo.world_model.kl_balancing_alpha,
            kl_free_nats=algo.world_model.kl_free_nats,
            kl_free_avg=algo.world_model.kl_free_avg,
            kl_regularizer=algo.world_model.kl_regularizer,
            discount_scale_factor=algo.world_model.discount_scale_factor,
            entropies=False,
        )
        return {name: float(value) for name, value in parts.items()}

    def new_player(self, num_envs: int) -> Player:
        """Return a player of some environments, with the models of this run."""
        return Player(self, num_envs)


class Player:
    """Acts in several environments, and remembers what it saw in each."""

    def __init__(self, dreamer: Dreamer, num_envs: int) -> None:
        """Begin an episode in each of them."""
        made, algo = dreamer.player, dreamer.cfg.algo.world_model
        self._size = dreamer.settings.image_size
        self._player = PlayerDV2(
            made.encoder,
            made.recurrent_model,
            made.representation_model,
            made.actor,
            (dreamer.num_actions,),
            num_envs,
            algo.stochastic_size,
            algo.recurrent_model.recurrent_state_size,
            dreamer.device,
            discrete_size=algo.discrete_size,
        )
        self._player.init_states()

    def begin(self, envs: Sequence[int]) -> None:
        """Begin a new episode in some of them."""
        if envs:
            self._player.init_states(envs)

    @torch.no_grad()
    def act(self, images: NDArray[np.uint8], *, greedy: bool) -> NDArray[np.int64]:
        """Return drawn actions, or the most likely ones."""
        sent = torch.from_numpy(images).to(self._player.device)
        seen = enlarged(sent, self._size)[None] / 255 - 0.5
        (actions,) = self._player.get_actions({"rgb": seen}, greedy)
        best: NDArray[np.int64] = actions[0].argmax(dim=-1).cpu().numpy()
        return best

    @torch.no_grad()
    def took(self, actions: NDArray[np.int64]) -> None:
        """Say which actions were taken in fact, if not those of `act`."""
        width = self._player.actions.shape[-1]
        one_hot = np.eye(width, dtype=np.float32)[actions]
        self._player.actions = torch.from_numpy(one_hot)[None].to(self._player.device)
