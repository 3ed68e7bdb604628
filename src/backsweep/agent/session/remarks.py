"""What a user should know when a run on a Gymnasium id starts: what follows from the environment, not from options."""

from __future__ import annotations

from collections.abc import Iterator

from backsweep.agent.fleet.fleet import Fleet, run_network
from backsweep.agent.learner.networks import Network
from backsweep.agent.session.evaluation.evaluate import LONGEST_EPISODE
from backsweep.tasks.environments import ForeignEnvironments


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
