"""The loop.

Words used here:
  step         one transition of one environment. Every lane takes as many as it has environments per turn of the loop,
               and `fleet.step` counts those of one lane.
  update       one batch of transitions per lane, and one step of the optimiser on it.
  evaluation   episodes on levels of their own with the policy as it stands; changes nothing.
  lane         one run: its environments, replay, generators, schedules, and its row of the stacked networks. What
               happens in a lane depends on its own configuration and seed, never on the lanes beside it.
  fleet        lanes that take their turns together, so that one update serves all of them. A single run is a fleet of
               one.
  turn         once around the loop below.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from backsweep.agent.fleet.clock import Clock
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.run import Lane

Failed = Callable[[Lane, Exception], None]


def take_turn(fleet: Fleet, clock: Clock, failed: Failed) -> None:
    """Take one turn: act, remember, learn."""
    shared, learner = fleet.shared, fleet.learner

    # Act: random actions by each lane's schedule, else the best by its network.
    actions = fleet.choose_actions()
    clock.lap("network")

    # Remember: the transition goes to the lane's own replay.
    for index, lane in reversed(list(enumerate(fleet.lanes))):
        try:
            lane.step(actions[index], clock)
        except Exception as error:
            retire(fleet, index, error, failed)
    if not fleet.lanes:
        return
    fleet.step += shared.num_envs

    # Learn: as many updates as the ratio asks for, each on one batch per lane.
    due = fleet.updates_due()
    if due:
        fleet.prepare_to_learn()
        clock.lap("values")
    for _ in range(due):
        batches = [lane.sample() for lane in fleet.lanes]
        clock.lap("replay")
        result = learner.update(batches, fleet.given_targets(batches))
        clock.lap("network")
        for index, (lane, batch) in reversed(list(enumerate(zip(fleet.lanes, batches, strict=True)))):
            td_error = result.td_error[index]
            if np.isfinite(td_error).all():
                lane.replay.update_priorities(batch.row, td_error)
            else:
                retire(fleet, index, FloatingPointError("the TD error is not a number"), failed)
        clock.lap("replay")
        if not fleet.lanes:
            return

    # The target network follows in jumps.
    if fleet.passes(shared.target_interval):
        fleet.copy_target()
    clock.lap("other")


def retire(fleet: Fleet, index: int, error: Exception, failed: Failed) -> None:
    """A lane that cannot go on is reported and leaves; the others go on."""
    (lane,) = fleet.drop([index])
    failed(lane, error)
