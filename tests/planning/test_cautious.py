"""Cautious values: of the network's last two answers for a state, the lower one counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import GraphValues, Replay
from small_worlds import ACTIONS, BOUNDS, DISCOUNT, STATES, add, make, streams, values_of
from strategies import examples
from twins.planning import PlainModel, Row


class LastAnswers:
    """The last answer for each state: forgotten with the state, and when an action loses its last row."""

    def __init__(self) -> None:
        self.answers: dict[int, float] = {}
        self._stamps: dict[int, int] = {}
        self._rows: list[Row] = []

    def follow(self, replay: Replay, live: list[Row], added: int) -> None:
        """Forget what the rows since the last renewal, and the loss of old ones, make worthless."""
        kept = live[: max(0, len(live) - added)]
        lost = {row[:2] for row in self._rows} - {row[:2] for row in kept}
        stamps = {}
        for state in range(STATES):
            vertex = replay.graph.vertex(state)
            if vertex is not None:
                stamps[state] = int(replay.machinery.graph.stamps(np.array([vertex]))[0])
            if stamps.get(state) != self._stamps.get(state) or any(state == loser for loser, _ in lost):
                self.answers.pop(state, None)
        self._rows, self._stamps = live, stamps


@pytest.mark.kernels
@given(streams(), st.integers(3, 60), st.sampled_from(["network", "never"]), st.integers(0, 10_000))
@settings(max_examples=examples(60))
def test_the_lower_of_two_answers_counts_as_in_the_twin(
    rounds: list[list[tuple[Row, bool]]], capacity: int, untried: str, seed: int
) -> None:
    replay, random, last = make(capacity, untried=untried, cautious=True), np.random.default_rng(seed), LastAnswers()
    live: list[Row] = []
    for rows in [*rounds, [], []]:
        for row, truncated in rows:
            add(replay, row, truncated)
            live = [*live, row][-capacity:]
        last.follow(replay, live, len(rows))
        network = random.normal(size=(STATES, ACTIONS)) * 4
        replay.renew_values(lambda states, network=network: network[states], bounds=BOUNDS)
        model = PlainModel(live, ACTIONS)
        expected = model.solve(network, BOUNDS, DISCOUNT, untried == "network", last.answers)
        assert values_of(replay) == pytest.approx(expected, abs=1e-6)
        for state in model.states:
            if len(model.tried(state)) < (ACTIONS if untried == "network" else 1):
                last.answers[state] = model.answer(state, network, BOUNDS)


def renewed(replay: Replay, *answers: float) -> list[float]:
    """Return the value of state 0 after each renewal, in which the network answers the same for every action."""
    found = []
    for answer in answers:
        replay.renew_values(lambda states, answer=answer: np.full((len(states), ACTIONS), answer), bounds=BOUNDS)
        found.append(values_of(replay)[0])
    return found


def one_action_tried(**options: Any) -> Replay:
    replay = make(**options)
    add(replay, Row(0, 0, -1.0, 1, True))
    return replay


def test_each_answer_counts_until_two_higher_ones_have_come() -> None:
    assert renewed(one_action_tried(cautious=True), 5.0, 3.0, 4.0, 6.0, 2.0) == [5.0, 3.0, 3.0, 4.0, 2.0]
    assert renewed(one_action_tried(cautious=False), 5.0, 3.0, 4.0) == [5.0, 3.0, 4.0]


def test_what_the_actions_paid_is_not_lowered() -> None:
    replay = one_action_tried(cautious=True)
    for action in range(1, ACTIONS):
        add(replay, Row(0, action, 1.5, 1, True))
    assert renewed(replay, 5.0, 3.0) == [1.5, 1.5]


def test_a_limited_depth_takes_the_last_answer() -> None:
    assert renewed(one_action_tried(cautious=True, depth=2), 3.0, 5.0) == [3.0, 5.0]


def test_a_saved_replay_remembers_the_last_answers(tmp_path: Path) -> None:
    replay = one_action_tried(cautious=True)
    renewed(replay, 5.0, 3.0)
    replay.save(tmp_path / "saved")
    assert renewed(Replay.load(tmp_path / "saved"), 4.0, 6.0) == renewed(replay, 4.0, 6.0) == [3.0, 4.0]


def test_a_flag_that_is_not_a_bool_is_refused() -> None:
    with pytest.raises(TypeError, match="cautious must be a bool"):
        GraphValues(cautious="yes")  # type: ignore[arg-type]
