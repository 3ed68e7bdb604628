"""The command `backsweep view FOLDER`, for a saved replay, a run's checkpoint, or a Minari data set."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from backsweep.replay import Replay
from backsweep.run_files import CONFIG, FLEET, MANIFEST
from backsweep.samplers import Topological
from backsweep.view.page import graph_page
from backsweep.view.scene import MOST_STATES


def add_commands(subparsers: Any) -> None:
    """Add `view` to the subparsers of a command line."""
    command = subparsers.add_parser(
        "view",
        help="draw the state graph of a saved replay, a run or a Minari data set",
        description="Write one HTML page with the state graph: ends in the middle, coloured by value, visits, age or "
        "the sampler's draws; with search, zoom, and the sweep batch by batch. It works offline.",
    )
    command.add_argument("folder", metavar="FOLDER", help="a saved replay, a run, or a Minari data set or its id")
    command.add_argument("--run", dest="which", metavar="NAME", help="the run to draw, in the folder of a fleet")
    command.add_argument("--out", type=Path, help="the file to write (default: NAME-graph.html here)")
    command.add_argument("--most-states", type=int, default=MOST_STATES, help="draw at most so many states")
    command.add_argument("--no-open", action="store_true", help="do not open the page in a browser")
    command.set_defaults(run=view_command)


def view_command(arguments: argparse.Namespace) -> int:
    """Write the page, and open it when run on a terminal."""
    source = open_source(arguments.folder, arguments.which)
    page = graph_page(
        source.replay, title=source.title, action_names=source.action_names, most_states=arguments.most_states
    )
    name = re.sub(r"[^\w.-]+", "-", source.title)
    out = arguments.out if arguments.out is not None else Path(f"{name}-graph.html")
    path = page.save(out) if arguments.no_open or not sys.stdout.isatty() else page.open(out)
    shown, states = page.words["shown"], page.words["states"]
    thinned = "" if shown == states else f", thinned to {shown:,}"
    ends = page.words["ends"]
    print(f"{path}: {states:,} states{thinned}, {ends:,} {'end' if ends == 1 else 'ends'}")
    return 0


def open_run(folder: Path, name: str | None) -> Source:
    """Return the replay of a run's newest checkpoint."""
    from backsweep.agent.session.checkpoint import newest_replay
    from backsweep.tasks.registry import find_task

    found = newest_replay(folder, name)
    config = found.config
    title = f"{config.environment} {config.method} seed {config.seed}, step {found.step:,}"
    return Source(found.replay, title, None if config.task is None else find_task(config.task).action_names)


MINARI = "metadata.json"


class Source(NamedTuple):
    """A replay to view."""

    replay: Replay
    title: str
    action_names: tuple[str, ...] | None = None


def open_source(folder: str, run: str | None) -> Source:
    """Return the replay that a folder, or the id of a Minari data set, holds."""
    path = Path(folder)
    if (path / MANIFEST).is_file():
        if run is not None:
            raise ValueError(f"--run is for a fleet's folder, and {folder} is a saved replay")
        return Source(Replay.load(path), path.resolve().name)
    if (path / CONFIG).is_file() or (path / FLEET).is_file():
        return open_run(path, run)
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
