"""Whose settings a run follows: ours, the paper's, or those of its released code.

Where the paper and its released code differ:

| #   | option                   | paper            | released                                   |
| D1  | capacity                 | 1M               | Sokoban: TER 1M, every baseline 50k        |
| D2  | ebu_double               | True             | False: plain maximum of the target network |
| D3  | ebu_skipped_steps        | 0                | 3                                          |
| D4  | predecessors             | 3                | MiniGrid 1, Sokoban 3                      |
| D5  | eta on Sokoban           | 0.2 (main text)  | 0.1, rounded down: 3 rows of 32            |
| D6  | evaluation_random_chance | 0.05             | 0.01                                       |
| D7  | per_beta_fraction        | 0.25             | 1                                          |
| D8  | per_clip                 | none             | 1                                          |
| D9  | task_options actions     | six              | three on the crossing tasks, else seven    |
| D10 | task_options wrong_door  | -1               | -MAXSTEPS                                  |
| D11 | bootstrap_at_timeout     | True             | False                                      |
| D13 | discor_error_target      | True             | False: maximum of the error network        |
| D14 | trees                    | separate         | shared                                     |
| D15 | random_warmup            | True             | False: epsilon-greedy from the start       |

D12 (how returns are normalised) and D16 (on which states the average Q is taken) change how a run is measured, not the
run: records hold plain and normalised returns, and the average Q both of the method's own batches (`batch_q`) and of
the fixed probe set (`probe_q`). The other half of D3, filler indices below zero, reads unintended rows and is not
reproduced.
"""

from __future__ import annotations

from typing import Any

from backsweep.planning import GraphValues

CHOICES = ("ours", "paper", "released")

# A constant of the method's own, where tuning seeds preferred another value than the paper's or the class's default.
_OUR_CONSTANTS: dict[str, dict[str, Any]] = {
    # Rows by priority alone: sweeps help where few ends are failures, and hurt with lava. On Sokoban, where no end is
    # one, most rows are swept (`_our_fields`).
    "graph": {"eta": 1.0, "explore": "graph"},
    "graph-uniform": {"explore": "graph"},
    "ceer": {"ceer_imitation": 1.0},
    "ebu": {"diffusion": 0.25},
    "erlam": {"erlam_weight": 0.1},
    "gap": {"advantage": 0.5},
}

_PLANNING = ("graph", "graph-uniform")
_LITTLE_NOISE = ("minigrid", "sokoban", "nchain")
"""Families whose tasks have no noise, or little and states that repeat: there is nothing to measure. Cautious answers
were slightly slower on MiniGrid, and not tried on the others."""


def settings_fields(settings: str, family: str | None, method: str, steps: int) -> dict[str, Any]:
    """Return the fields of a configuration that the choice of settings decides; the paper's are `RunConfig`'s defaults.

    `steps` is the length of the run, which our schedule depends on.
    """
    if settings == "ours":
        return _our_fields(family, method, steps)
    return _released_fields(family, method) if settings == "released" else {}


def _our_fields(family: str | None, method: str, steps: int) -> dict[str, Any]:
    """Return the settings that were best on tuning seeds; docs/training.md says how they were chosen."""
    fields: dict[str, Any] = {"reward_scale": "auto", "predecessors": 1, "evaluation_random_chance": 0.01}
    fields.update(_OUR_CONSTANTS.get(method, {}))
    if family == "sokoban":
        fields.pop("eta", None)  # an end is always success there: the task's own share of priorities, as for TER
    if method in _PLANNING and family not in _LITTLE_NOISE:
        fields.update(noise_limit=GraphValues().noise_limit, cautious=GraphValues().cautious)
    if family in ("minigrid", "sokoban"):
        fields.update(
            ratio=0.5,
            warmup_steps=min(50_000, steps // 20),
            epsilon_steps=max(1, 4 * steps // 5),
            target_interval=1_000,
            # Short runs are for a look: they would spend nearly all their time in evaluations.
            evaluation_interval=min(steps, max(500, steps // 40)),
            evaluation_episodes=32,
            record_interval=max(1, steps // 200),
        )
    if family == "atari":  # not tuned: what others use for short runs, in a memory that many runs at once have
        fields.update(
            optimiser="adam",
            learning_rate=1e-4,
            capacity=250_000,
            warmup_steps=min(20_000, steps // 20),
            epsilon_steps=max(1, steps // 5),
            target_interval=2_000,
            # An episode takes about 2,000 steps, so an evaluation of five is as long as a tenth of a short run.
            evaluation_interval=max(1, steps // 10),
            evaluation_episodes=5,
            record_interval=max(1, steps // 200),
        )
    return fields


def _released_fields(family: str | None, method: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "ebu_double": False,
        "ebu_skipped_steps": 3,
        "evaluation_random_chance": 0.01,
        "per_beta_fraction": 1.0,
        "per_clip": 1.0,
        "bootstrap_at_timeout": False,
        "discor_error_target": False,
        "trees": "shared",
        "random_warmup": False,
    }
    if family == "minigrid":
        fields["predecessors"] = 1
    if family == "sokoban":
        fields["eta"] = 3 / 32
        if not method.startswith("ter"):
            fields["capacity"] = 50_000
    return fields
