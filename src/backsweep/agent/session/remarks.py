"""What a user should know about a run: at its start what follows from the environment, later what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backsweep.agent.fleet.fleet import Fleet, run_network
from backsweep.agent.fleet.run import return_bounds
from backsweep.agent.learner.networks import Network
from backsweep.agent.session.evaluation.evaluate import LONGEST_EPISODE
from backsweep.agent.session.folder import note_session
from backsweep.tasks.environments import ForeignEnvironments

if TYPE_CHECKING:
    from backsweep.agent.session.session import RunFiles

DIVERGED = 1.5
"""Values this many times as large as the largest return do not recover with training."""


def remarks(fleet: Fleet) -> Iterator[str]:
    """Yield a few lines about each Gymnasium id of a fleet."""
    told = set()
    for run in fleet.runs:
        env, envs = run.config.env, run.envs
        if env is None or env in told or not isinstance(envs, ForeignEnvironments):
            continue
        told.add(env)
        if envs.remark:
            yield f"{env}: {envs.remark}"
        yield f"{env}: {described(run_network(run))}"
        if not envs.has_limit:
            yield (
                f"{env} is registered without a time limit: evaluations cut episodes that go on for "
                f"{LONGEST_EPISODE:,} steps; --task-options max_episode_steps N sets a limit"
            )


def described(network: Network) -> str:
    """Return a network in words."""
    if network.form == "table":
        return f"values are a table of {network.input_shape[0]:,} states"
    linear = f"linear layers {' '.join(map(str, network.linear))}" if network.linear else "no hidden linear layer"
    if network.form == "vector":
        return f"the network takes {network.input_shape[0]:,} numbers, {linear}"
    stages = ", ".join(" ".join(map(str, stage)) for stage in network.convolutions)
    height, width, channels = network.input_shape
    return f"the network takes images of {height}x{width}x{channels}, convolutions {stages}, {linear}"


def diverged(files: RunFiles, step: int, batch_q: float | None) -> str | None:
    """Return a warning if a run's values have left the possible returns, once; its folder notes it, too."""
    bounds = return_bounds(files.run.config)
    if files.diverged or batch_q is None or bounds is None:
        return None
    largest = max(map(abs, bounds))
    if not abs(batch_q) > DIVERGED * largest:
        return None
    files.diverged = True
    note_session(files.folder, "values diverged", step=step, batch_q=batch_q, largest_return=largest)
    return (
        f"{files.shown}: values diverged: at step {step:,} the mean Q of its batches is {batch_q:,.0f}, and no episode "
        f"returns more than {largest:,.0f}"
    )


def noise_changed(files: RunFiles, step: int, statistics: dict[str, float]) -> str | None:
    """Return a remark when a run stops planning because outcomes are too noisy, and when it starts again."""
    noisy = bool(statistics.get("too_noisy"))
    if noisy == files.noisy:
        return None
    files.noisy = noisy
    then = "outcomes are too random to plan: targets are one-step" if noisy else "outcomes can be planned with"
    limit = files.run.config.noise_limit
    return f"{files.shown}: from step {step:,} on {then} (noise {statistics['noise']:.2f}, limit {limit:g})"


def reward_found(files: RunFiles) -> str | None:
    """Return a remark when a run that waited for its first reward has found one, and at its end if it has not."""
    run, waited = files.run, files.run.waited_steps
    before, files.waits_for_reward = files.waits_for_reward, run.waits_for_reward
    if run.waits_for_reward and waited >= run.config.steps:
        why = f"all rewards of {waited:,} steps were 0, so actions did not become less random"
        return f"{files.shown}: {why}; it needs more steps"
    if before and not run.waits_for_reward and waited > run.config.warmup_steps:
        return f"{files.shown}: first reward after {waited:,} steps; from there on actions become less random"
    return None
