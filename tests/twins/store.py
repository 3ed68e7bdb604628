"""The plain-Python twin of `store/store_kernels.py`: a ring of transitions and episodes in lists and dicts.

Observations may be anything that can be hashed. Nothing here is fast and nothing is clever.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from twins.random_streams import SplitMix64

RUNNING, TERMINATED, TRUNCATED, BROKEN_OFF = "running", "terminated", "truncated", "broken off"


@dataclass(frozen=True)
class Unseen:
    """The state after one in which an episode terminated without its last observation being shown."""

    after: Hashable


@dataclass
class Step:
    """What one lane hands to `add`."""

    observation: Hashable
    action: Any
    reward: float
    next_observation: Hashable
    terminated: bool
    truncated: bool


@dataclass(eq=False)
class Episode:
    """The live rows of an episode, oldest first."""

    rows: list[Row] = field(default_factory=list)
    state: str = RUNNING


@dataclass(eq=False)
class Row:
    """A live transition."""

    serial: int
    lane: int
    step: Step
    episode: Episode
    accumulated: float
    """The episode's reward up to and including this step."""
    starts_episode: bool
    previous: Row | None
    next: Row | None = None


@dataclass(frozen=True)
class Folded:
    """A row as it is read with n steps folded into one."""

    observation: Hashable
    action: Any
    reward: float
    next_observation: Hashable
    terminated: bool
    discount: float
    steps: int


class ReferenceStore:
    """The `capacity` newest transitions of `num_envs` lanes."""

    def __init__(self, capacity: int, num_envs: int) -> None:
        self.capacity = capacity
        self.num_envs = num_envs
        self.total = 0
        self.broken_off = 0
        self.rows: dict[int, Row] = {}
        self.live_episodes: list[Episode] = []
        self._last: list[Row | None] = [None] * num_envs

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def oldest(self) -> int:
        """The serial number of the oldest live row."""
        return self.total - len(self.rows)

    def add(self, steps: Sequence[Step | None]) -> list[tuple[Row | None, Row]]:
        """Add a step per lane, None for lanes that add nothing; return pairs (row that had to go, new row)."""
        changes = []
        for lane, step in enumerate(steps):
            if step is not None:
                gone = self._remove_oldest() if len(self.rows) == self.capacity else None
                changes.append((gone, self._append(lane, step)))
        return changes

    def _remove_oldest(self) -> Row:
        row = self.rows.pop(self.oldest)
        episode = row.episode
        assert episode.rows[0] is row
        del episode.rows[0]
        if not episode.rows:
            # The last episode of the list takes the place of the one that goes, so nothing else moves.
            place = self.live_episodes.index(episode)
            moved = self.live_episodes.pop()
            if moved is not episode:
                self.live_episodes[place] = moved
        return row

    def _append(self, lane: int, step: Step) -> Row:
        previous = self._continued(lane, step.observation)
        if previous is None:
            episode = Episode()
            self.live_episodes.append(episode)
            accumulated = step.reward
        else:
            episode = previous.episode
            accumulated = previous.accumulated + step.reward
        row = Row(self.total, lane, step, episode, accumulated, previous is None, previous)
        if previous is not None:
            previous.next = row
        episode.rows.append(row)
        if step.terminated:
            episode.state = TERMINATED
        elif step.truncated:
            episode.state = TRUNCATED
        self.rows[row.serial] = row
        self._last[lane] = row
        self.total += 1
        return row

    def _continued(self, lane: int, observation: Hashable) -> Row | None:
        """Return the lane's last row if this observation goes on from it."""
        last = self._last[lane]
        if last is None or last.serial not in self.rows or last.step.terminated or last.step.truncated:
            return None
        if last.step.next_observation == observation:
            return last
        last.episode.state = BROKEN_OFF
        self.broken_off += 1
        return None

    def observations(self) -> set[Hashable]:
        """Return every distinct observation that a live row refers to."""
        return {s for row in self.rows.values() for s in (row.step.observation, row.step.next_observation)}

    def fold(self, serial: int, n_step: int, gamma: float) -> Folded:
        """Return a row with up to `n_step` steps of its own episode folded into one."""
        row = self.rows[serial]
        steps = row.episode.rows[row.episode.rows.index(row) :][:n_step]
        reward, discount = 0.0, 1.0
        for later in steps:
            reward += discount * later.step.reward
            discount *= gamma
        last = steps[-1].step
        return Folded(
            row.step.observation,
            row.step.action,
            reward,
            last.observation if isinstance(last.next_observation, Unseen) else last.next_observation,
            last.terminated,
            0.0 if last.terminated else discount,
            len(steps),
        )


def draw_uniform(word: int, store: ReferenceStore, count: int) -> list[int]:
    """Draw live serial numbers uniformly, with replacement."""
    random = SplitMix64(word)
    live = sorted(store.rows)
    return [live[random.below(len(live))] for _ in range(count)]
