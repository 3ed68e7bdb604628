"""All settings of a run, typed and documented in one place; they are also the command-line options.

`RunConfig` holds what the results depend on, `SessionConfig` where and how it is run. `run_config` in `defaults.py`
fills in the defaults that depend on the task and the method, so a `RunConfig` is always complete.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from backsweep.checks import is_int, is_number, need_choices, need_plain_types

OptionValue = bool | int | float | str


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What the results of a run depend on."""

    task: Annotated[str | None, tyro.conf.Positional] = None
    """A task of the table (`backsweep tasks` lists them), such as minigrid/doorkey."""
    env: str | None = None
    """A Gymnasium id in place of a task, such as CartPole-v1."""
    task_options: dict[str, OptionValue] = field(default_factory=dict)
    """The task's own options, name and value in turn, such as random_action_chance 0.1."""
    method: str = "graph"
    """graph, graph-uniform, uer, n-step, per, ter, ebu, discor, ceer, erlam, graph-backup, gap, or a variant:
    ter-single, ter-shuffled, ter-nostitch, ter-pseudo, ter-visits, ebu-mixed, ebu-notimeout."""
    settings: Literal["ours", "paper", "released"] = "paper"
    """Whose settings to follow: what did best on tuning seeds, what the paper states, or what its released code does
    (D1 to D16, see docs/settings.md)."""
    seed: int = 0
    """Root of all randomness of the run."""
    steps: int = 100_000
    """Environment steps of the run."""
    num_envs: int = 1
    """Environments stepped in parallel within the run."""

    capacity: int = 1_000_000
    """Capacity of the replay, in transitions."""
    frame_stack: int = 1
    """Number of frames stacked along the first axis of an observation; the replay stores each frame once."""
    encoder: Literal["projection", "bytes", "quantized"] = "projection"
    """How states are identified: by the paper's random projection, by an observation's bytes, or by its cell in a
    grid, which merges near states. Tasks whose observations are state numbers need none."""
    dimension: int = 3
    """Encoder projection: dimension of the random projection."""
    cell: tuple[float, ...] = (0.1,)
    """Encoder quantized: width of a cell of the grid; one for all numbers of an observation, or one for each."""
    eta: float = 0.5
    """Share of each batch that batch mixing takes from PER, or from uniform replay."""
    mix_with: Literal["per", "uniform"] = "per"
    """What batch mixing mixes in."""
    gap: float = 30.0
    """Graph values: factor for the difference between an action's value and the best one."""
    gap_floor: float | None = None
    """Graph values: largest distance of a target below the best action; by default 0.15 of the range of returns."""
    untried: Literal["network", "never"] = "network"
    """Graph values: the value of untried actions."""
    cautious: bool = False
    """Graph values: use the lower of the network's last two answers for a state."""
    explore: Literal["uniform", "graph"] = "uniform"
    """How random actions are chosen: all alike, or (with graph values) preferring untried actions and successors seldom
    visited, and without those known to change nothing or to end the episode."""
    refresh: float = 0.25
    """Graph values: share of the states evaluated again by the network at each renewal, in turn."""
    noise_limit: float | None = None
    """Graph values: plan only while the noise of stored outcomes is at most this; None always plans."""
    graph_share: float = 0.2
    """CEER: share of the graph's value in a target."""
    ceer_imitation: float = 0.0
    """CEER: weight of the cross-entropy between the graph's preferences among tried actions and the network's."""
    ceer_temperature: float = 0.1
    """CEER: temperature of the graph's preferences, in units of scaled rewards."""
    erlam_weight: float = 0.5
    """ERLAM: weight of the loss against the graph's value."""
    backup_depth: int = 20
    """Graph Backup: depth of the backup."""
    n_step: int = 3
    """n-step: number of steps in a transition."""
    advantage: float = 0.9
    """gap: how much of the difference to the best action is added to a target."""
    roots: int = 8
    """TER: number of roots of a sweep."""
    root_candidates: int = 1
    """TER, graph: number of terminal states that each root is chosen from, by accumulated reward; 1 draws uniformly."""
    predecessors: int = 3
    """TER: largest number of predecessors followed at a state."""
    trees: Literal["separate", "shared"] = "separate"
    """TER: sweep the roots one by one, or all in one queue."""
    shuffle: int = 10_000
    """TER-shuffled: size of the window in which rows are shuffled."""
    kappa: float = 0.01
    """TER-pseudo: temperature of the choice of pseudo-terminal states."""
    per_alpha: float = 0.6
    """PER: how much priorities matter."""
    per_beta: float = 0.4
    """PER: exponent of the importance weights at the start."""
    per_final_beta: float = 1.0
    """PER: final value of the exponent."""
    per_beta_fraction: float = 0.25
    """PER: fraction of the run over which the exponent rises."""
    per_epsilon: float = 0.01
    """PER: added to every absolute TD error."""
    per_clip: float | None = None
    """PER: largest absolute TD error that counts; None does not clip."""
    diffusion: float = 0.5
    """EBU: the diffusion factor beta."""
    ebu_double: bool = True
    """EBU: whether the best next action is the online network's."""
    ebu_skipped_steps: int = 0
    """EBU: number of first steps of an episode that are skipped."""
    discor_temperature: float = 10.0
    """DisCor: temperature at the start."""
    discor_error_target: bool = True
    """DisCor: whether the error network has a target copy."""

    batch_size: int = 64
    """Transitions in an update."""
    ratio: float = 0.25
    """Updates per environment step."""
    warmup_steps: int = 50_000
    """Environment steps before the first update."""
    random_warmup: bool = True
    """Whether all actions are random during warm-up, regardless of epsilon."""
    discount: float = 0.99
    """Gamma."""
    reward_scale: float | Literal["auto"] = 1.0
    """Factor for rewards before learning. auto scales returns to about -1..1: by the task's bounds if known, else by
    the rewards stored before the first update. Records keep the task's units."""
    bootstrap_at_timeout: bool = True
    """Whether truncated steps bootstrap; False treats time limits as terminations, as the released code does."""
    target_interval: int = 1_000
    """Environment steps between copies of the target network."""
    optimiser: Literal["adam", "rmsprop", "sgd"] = "adam"
    """Which optimiser."""
    learning_rate: float = 3e-4
    """Step size of the optimiser."""
    adam_eps: float = 1e-8
    """Adam's epsilon."""
    rmsprop_alpha: float = 0.95
    """RMSProp's smoothing."""
    rmsprop_eps: float = 1e-2
    """RMSProp's epsilon."""
    clip_norm: float | None = None
    """Largest norm of the gradient; None does not clip."""
    convolutions: tuple[tuple[int, int, int], ...] = ()
    """Channels, kernel and stride of each convolution. A Gymnasium id with images has 32 8 4 64 4 2 64 3 1 unless
    others are given."""
    linear: tuple[int, ...] = ()
    """Widths of the hidden linear layers; without any layer, values are a table. 256 256, the default for a Gymnasium
    id, stands for 512 if its observations are images and no convolutions are given, and for a table if they are state
    numbers."""
    epsilon_start: float = 1.0
    """Probability of a random action at the start."""
    epsilon_end: float = 0.01
    """Probability of a random action at the end."""
    epsilon_steps: int = 1_000_000
    """Environment steps over which that probability decreases."""
    explore_until_reward: bool = False
    """Whether that probability stays what it is at the start until the first reward other than 0, and decreases from
    there on: before, nothing tells actions apart. auto reward_scale waits, too."""
    dtype: Literal["float32", "float64"] = "float32"
    """Precision of the network."""

    evaluation_interval: int = 100_000
    """Environment steps between evaluations."""
    evaluation_episodes: int = 100
    """Episodes of an evaluation."""
    evaluation_random_chance: float = 0.05
    """Probability of a random action in evaluations."""
    exact: bool = False
    """Whether evaluations also compute the exact expected return and the error against Q* (small tasks only)."""
    probe_size: int = 512
    """States of the fixed set on which the average Q is taken."""
    record_interval: int = 1_000
    """Environment steps between training and replay records."""

    def __post_init__(self) -> None:
        """Check the options."""
        need_choices(self)
        need_plain_types(self)
        if (self.task is None) == (self.env is None):
            raise ValueError(
                "give either a task or --env, not both" if self.task else "give a task, or --env and a Gymnasium id"
            )
        if self.exact and self.task is None:
            raise ValueError("exact values are for tasks of the table; leave exact out with --env")
        positive = (
            "steps num_envs capacity frame_stack dimension roots root_candidates predecessors batch_size "
            "target_interval learning_rate evaluation_interval evaluation_episodes record_interval kappa "
            "discor_temperature probe_size n_step backup_depth ceer_temperature adam_eps rmsprop_eps"
        )
        for name in positive.split():
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)!r}")
        not_negative = "warmup_steps epsilon_steps seed shuffle ebu_skipped_steps ratio erlam_weight ceer_imitation"
        for name in not_negative.split():
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)!r}")
        shares = (
            "eta discount epsilon_start epsilon_end evaluation_random_chance diffusion per_beta_fraction graph_share "
            "advantage"
        )
        for name in shares.split():
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be in 0..1, got {getattr(self, name)!r}")
        if self.noise_limit is not None and not self.noise_limit >= 0:
            raise ValueError(f"noise_limit must be 0 or more, or None, got {self.noise_limit!r}")
        if self.reward_scale != "auto" and not (is_number(self.reward_scale) and self.reward_scale > 0):
            raise ValueError(f"reward_scale must be 'auto' or above 0, got {self.reward_scale!r}")
        for name in ("convolutions", "linear", "cell"):
            if not isinstance(value := getattr(self, name), (list, tuple)):
                raise ValueError(f"{name} must be a tuple, got {value!r}")
            object.__setattr__(self, name, tuple(map(_frozen, value)))
        if not all(is_int(width) and width > 0 for width in self.linear):
            raise ValueError(f"linear must hold widths above 0, got {self.linear!r}")
        for layer in self.convolutions:
            three = isinstance(layer, tuple) and len(layer) == 3
            if not three or not all(is_int(number) and number > 0 for number in layer):
                raise ValueError(f"convolutions must hold (channels, kernel, stride), each above 0, got {layer!r}")
        if not self.cell or not all(width > 0 for width in self.cell):
            raise ValueError(f"cell must hold widths above 0, got {self.cell!r}")

    @property
    def environment(self) -> str:
        """The task or the Gymnasium id."""
        name = self.task if self.task is not None else self.env
        assert name is not None
        return name

    def to_json(self) -> dict[str, Any]:
        """Return the configuration as plain JSON."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunConfig:
        """Return the configuration that `to_json` described; old ones call the field `settings` `faithful`."""
        data = {"settings" if name == "faithful" else name: value for name, value in data.items()}
        known = {entry.name for entry in dataclasses.fields(cls)}
        if unknown := sorted(set(data) - known):
            raise ValueError(f"the configuration has fields that this release does not know: {', '.join(unknown)}")
        return cls(**data)


@dataclass(frozen=True, kw_only=True)
class SessionConfig:
    """Where and how a run is executed; results do not depend on it."""

    folder: Path | None = None
    """The run's folder; by default runs/TASK/METHOD-seedSEED, numbered if that exists."""
    checkpoint_interval: int = 50_000
    """Environment steps between checkpoints; 0 writes one only at the end."""
    final_checkpoint: bool = True
    """Whether a finished run keeps its last checkpoint. It is as large as the replay, and the run can be trained for
    longer only with it. The agent is kept anyway."""
    threads: int = 1
    """Threads of torch."""
    device: str = "cpu"
    """Device of the networks: cpu or cuda."""
    convolutions_by: Literal["auto", "patches", "mixed", "direct"] = "auto"
    """How a CPU computes convolutions: matrix products over patches, torch's convolutions, or those forward and patches
    back. auto takes the fastest on this processor by a short measurement, which is kept. Results differ by rounding
    alone; a resumed run keeps what it started with."""
    engine: Literal["auto", "compiled", "plain"] = "auto"
    """How runs are stepped: together by compiled code and threads, or one by one by plain calls. Results differ
    by rounding alone. auto uses compiled code for fleets of the project's own tasks."""
    fleet_threads: int | None = None
    """Threads that step the runs of a fleet; by default one per core."""
    groups: int = 2
    """Groups of runs that alternate on the device, so that it works for one while threads step another."""
    observations_per_run: int | None = None
    """Distinct observations of each run that the device has memory for; by default all that the task has, if known;
    otherwise memory is allocated as they are seen."""
    live: bool = False
    """Serve a live page with curves, the growing graph and the last episode on 127.0.0.1."""
    live_port: int = 0
    """The port of that page; 0 takes a free one."""
    tensorboard: bool = False
    """Also write TensorBoard files."""
    wandb: str | None = None
    """Also log to this Weights & Biases project."""
    restart: bool = False
    """If the folder already holds a run, rename that run and start over."""
    allow_import: bool = False
    """When resuming: whether the run's environment ("module:Id") may import its module."""
    quiet: bool = False
    """Print only errors."""

    def __post_init__(self) -> None:
        """Check the options."""
        need_choices(self)
        if self.checkpoint_interval < 0:
            raise ValueError(f"checkpoint_interval must be 0 or more, got {self.checkpoint_interval}")
        if self.threads < 1:
            raise ValueError(f"threads must be 1 or more, got {self.threads}")
        if not 0 <= self.live_port < 1 << 16:
            raise ValueError(f"live_port must be from 0 to 65535, got {self.live_port}")
        for name in ("fleet_threads", "groups", "observations_per_run"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be 1 or more, got {value}")


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value
