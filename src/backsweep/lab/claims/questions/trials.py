"""T1: trials of constants on seeds for tuning, with our settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backsweep.lab.claims.goal_rules import Trials
from backsweep.lab.claims.question import Question, Variant
from backsweep.lab.claims.questions.graph_values import exploring_uniformly, on_the_grid, sizes
from backsweep.lab.claims.questions.shared import MINIGRID
from backsweep.lab.seeds import tuning


def _trials(method: str, option: str, values: Sequence[Any], **others: Any) -> tuple[Variant, ...]:
    return tuple(on_the_grid(method, f"{method}, {option} {value}", **others, **{option: value}) for value in values)


_GOOD_ENDS: dict[str, Any] = {"root_candidates": 32}
_TRIALS = (
    *(exploring_uniformly(f"graph, gap {gap:g}", gap=gap) for gap in (3.0, 10.0, 30.0)),
    exploring_uniformly("graph, uniform rows", "graph-uniform"),
    exploring_uniformly("graph, half a sweep and uniform", eta=0.5, mix_with="uniform", predecessors=1),
    exploring_uniformly("graph, half a sweep and priorities", eta=0.5, mix_with="per", predecessors=1),
    exploring_uniformly("graph, half a sweep, predecessors 3", eta=0.5, mix_with="per", predecessors=3),
    *(
        exploring_uniformly(f"graph, {share:g} of rows by priority, the rest from good ends", eta=share, **_GOOD_ENDS)
        for share in (0.5, 0.75)
    ),
    exploring_uniformly("graph, half from good ends, gap 10", eta=0.5, gap=10.0, **_GOOD_ENDS),
    exploring_uniformly("graph, renewed every 500 steps", target_interval=500),
    on_the_grid("graph", "graph, explores by the graph"),
    on_the_grid("graph", "graph, explores by the graph, gap 10", gap=10.0),
    on_the_grid("graph", "graph, explores by the graph, cautious", cautious=True),
    on_the_grid("graph", "graph, explores by the graph, half a sweep", eta=0.5),
    *(
        on_the_grid("graph", f"graph, explores by the graph, {share} from good ends", eta=eta, **_GOOD_ENDS)
        for share, eta in (("half", 0.5), ("a quarter", 0.75))
    ),
    *(
        on_the_grid(method, f"{method}, ratio {ratio:g}", ratio=ratio)
        for method in ("graph", "ter", "graph-backup")
        for ratio in (1.0, 2.0)
    ),
    on_the_grid("graph-backup", "graph-backup, explores by the graph", explore="graph"),
    on_the_grid("ter", "ter, from good ends", predecessors=1, eta=0.5, **_GOOD_ENDS),
    *_trials("uer", "learning_rate", (1e-4, 3e-4, 1e-3)),
    *_trials("per", "per_alpha", (0.4, 0.6, 0.8)),
    on_the_grid("ter", "ter, predecessors 1, eta 0.5", predecessors=1, eta=0.5),
    on_the_grid("ter", "ter, predecessors 3, eta 0.5", predecessors=3, eta=0.5),
    on_the_grid("ter", "ter, predecessors 1, eta 0.25", predecessors=1, eta=0.25),
    *_trials("ebu", "diffusion", (0.25, 0.5, 1.0)),
    *_trials("n-step", "n_step", (3, 5, 10)),
    *_trials("ceer", "graph_share", (0.2, 0.5, 0.8), ceer_imitation=0.0),
    *_trials("ceer", "ceer_imitation", (0.1, 1.0, 10.0)),
    *_trials("graph-backup", "backup_depth", (5, 10, 20)),
    *_trials("erlam", "erlam_weight", (0.1, 0.5, 1.0)),
    *_trials("gap", "advantage", (0.5, 0.8, 0.95)),
)

T1 = Question(
    id="T1",
    title="Which constants?",
    question="Every method has a constant. Which value does best on seeds that are not reported?",
    claim="None: this is how the constants of G1 and G2 are chosen, with as many trials for each method.",
    metric=(
        "The exact share of episodes that reach the goal, at the end and as area under the curve, and the steps after "
        "which it stays at 0.9 or above, on seeds 10000 and up."
    ),
    decided_by=(
        "Nothing is decided. Three trials of its constant for each method. CEER has three more with its cross-entropy, "
        "which were added after its runs. graph has more about which rows it draws "
        "(uniformly, by priority, by sweeps from all ends or from good ones), how often its values are renewed, how "
        "random actions are chosen, and whether answers are taken cautiously; Graph Backup has one more about "
        "exploring. graph, TER and Graph Backup have two more with one and two updates a step instead of a half."
    ),
    rule=Trials(_TRIALS, MINIGRID),
    scales=sizes(MINIGRID, _TRIALS, seeds=tuning(3)),
    kind="tuning",
)

QUESTIONS = (T1,)
