"""The sources of a graph: a saved replay, a run's checkpoint, or a Minari data set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from backsweep.replay import Replay
from backsweep.run_files import CONFIG, FLEET, MANIFEST
from backsweep.samplers import Topological

MINARI = "metadata.json"


class Source(NamedTuple):
    """A replay to view."""

    replay: Replay
    title: str
    action_names: tuple[str, ...] | None = None


FindRun = Callable[[Path, str | None], Source]
"""Opens the replay of a run's newest checkpoint; for a fleet the second argument names the run."""


def open_source(folder: str, run: str | None, find_run: FindRun) -> Source:
    """Return the replay that a folder, or the id of a Minari data set, holds."""
    path = Path(folder)
    if (path / MANIFEST).is_file():
        if run is not None:
            raise ValueError(f"--run is for a fleet's folder, and {folder} is a saved replay")
        return Source(Replay.load(path), path.resolve().name)
    if (path / CONFIG).is_file() or (path / FLEET).is_file():
        return find_run(path, run)
    if run is not None:
        raise ValueError(f"--run is for a fleet's folder, and {folder} is not one")
    if path.exists():
        return _minari_folder(path)
    return _minari_id(folder)


def _minari_folder(path: Path) -> Source:
    data = next((place for place in (path, path / "data") if (place / MINARI).is_file()), None)
    if data is None:
        raise ValueError(
            f"{path} holds nothing to view: expected a saved replay ({MANIFEST}), a run ({CONFIG} or {FLEET}) or a "
            f"Minari data set (data/{MINARI})"
        )
    try:
        from minari import MinariDataset
    except ImportError as error:
        raise ImportError("viewing a Minari data set needs minari: pip install 'backsweep[minari]'") from error
    dataset = MinariDataset(data)
    return Source(Replay.from_minari(dataset, sampler=Topological()), dataset.id)


def _minari_id(name: str) -> Source:
    nothing = f"there is no folder {name}, and no local Minari data set with that id"
    try:
        return Source(Replay.from_minari(name, sampler=Topological()), name)
    except ImportError:
        raise ValueError(f"there is no folder {name}") from None
    except (ValueError, FileNotFoundError, TypeError) as error:
        reason = "" if isinstance(error, FileNotFoundError) else f": {error}"
        raise ValueError(nothing + reason) from error
