"""What a run of DreamerV2 is: all of it is written into its records."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """One run.

    Sizes and learning rates are sheeprl's defaults for DreamerV2. The ratio, entropy, KL weight, discount and images of
    64x64 are those of the example for MiniGrid in DreamerV2's own repository. It starts with 100,000 random steps; here
    it is 50,000, as in all other runs of this project. Rewards are scaled as in the project's own settings.
    """

    task: str
    seed: int
    steps: int
    prefill: int = 50_000
    """Random steps before the first update."""
    ratio: float = 0.1
    """Updates for each environment step after that."""
    pretrain: int = 100
    """Updates at once at the end of the random steps."""
    num_envs: int = 4
    batch: int = 16
    length: int = 50
    """Steps of a sequence."""
    horizon: int = 15
    """Imagined steps."""
    discount: float = 0.99
    entropy: float = 3e-3
    kl: float = 1.0
    image_size: int = 64
    size: str = "published"
    """Of the models: "published", sheeprl's defaults (22 million weights), "small", or "tiny" for a trial."""
    interval: int = 25_000
    """Environment steps between two evaluations."""
    episodes: int = 100
    random_chance: float = 0.01
    """Share of random actions in evaluations."""

    def __post_init__(self) -> None:
        """Check what would only fail late."""
        for name in ("steps", "prefill", "interval"):
            if getattr(self, name) % self.num_envs:
                raise ValueError(f"{name} must be a multiple of num_envs, {self.num_envs}, got {getattr(self, name)}")
        if self.prefill < self.length * self.num_envs:
            raise ValueError(f"prefill must be at least length * num_envs, got {self.prefill}")
