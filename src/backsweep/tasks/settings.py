"""The training settings of tasks, mostly as the paper states them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The shape of a task's Q-network; without layers it is a table of values."""

    convolutions: tuple[tuple[int, int, int], ...] = ()
    """(channels, kernel, stride) of each convolution, ReLU after each."""
    linear: tuple[int, ...] = ()
    """Widths of the hidden linear layers, ReLU after each."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a task is trained by default."""

    network: NetworkSettings
    budget: int
    """Environment steps of a full run."""
    batch_size: int = 64
    optimiser: str = "adam"
    learning_rate: float = 3e-4
    rmsprop_alpha: float | None = None
    rmsprop_eps: float | None = None
    target_interval: int = 1_000
    """Environment steps between hard copies of the target network."""
    update_interval: int = 4
    """Environment steps per batch."""
    warmup_steps: int = 50_000
    """Random steps before the first batch."""
    capacity: int = 1_000_000
    epsilon_start: float = 1.0
    epsilon_end: float = 0.01
    epsilon_steps: int = 1_000_000
    discount: float = 0.99
    evaluation_interval: int = 100_000
    evaluation_episodes: int = 100
    evaluation_random_chance: float = 0.05


DEEP_NETWORK = NetworkSettings(convolutions=((32, 8, 4), (64, 4, 2), (64, 3, 1)), linear=(512,))


def minigrid_settings(budget: int) -> TrainingSettings:
    """Return the paper's settings for MiniGrid."""
    return TrainingSettings(network=DEEP_NETWORK, budget=budget)


def sokoban_settings(budget: int) -> TrainingSettings:
    """Return the paper's settings for Sokoban."""
    return TrainingSettings(network=DEEP_NETWORK, budget=budget, batch_size=32, target_interval=10_000)


# The paper does not state a budget for Atari; this one is the project's.
ATARI_SETTINGS = TrainingSettings(
    network=DEEP_NETWORK,
    budget=10_000_000,
    batch_size=32,
    optimiser="rmsprop",
    learning_rate=2.5e-4,
    rmsprop_alpha=0.95,
    rmsprop_eps=1e-2,
    target_interval=10_000,
)

# The network and batches of MinAtar's authors; the budget, and an update every fourth step, are this project's.
MINATAR_SETTINGS = TrainingSettings(
    network=NetworkSettings(convolutions=((16, 3, 1),), linear=(128,)),
    budget=1_000_000,
    batch_size=32,
    warmup_steps=10_000,
    capacity=500_000,
    epsilon_steps=200_000,
    evaluation_interval=50_000,
    evaluation_episodes=30,
)

# The paper states no settings for these; they are the project's.
CHAIN_SETTINGS = TrainingSettings(
    network=NetworkSettings(),
    budget=10_000,
    optimiser="sgd",
    learning_rate=6.4,  # 0.1 for each of a batch's 64 rows
    target_interval=20,
    warmup_steps=1_000,
    capacity=100_000,
    epsilon_steps=5_000,
    evaluation_interval=500,
)
LUNARLANDER_SETTINGS = TrainingSettings(
    network=NetworkSettings(linear=(256, 256)),
    budget=500_000,
    warmup_steps=10_000,
    capacity=500_000,
    epsilon_steps=100_000,
    evaluation_interval=25_000,
)
