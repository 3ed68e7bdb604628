"""A replay on disk: everything that the next rows depend on, in a snapshot folder."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backsweep.configuration import (
    check_sizes,
    configuration_from_json,
    configuration_to_json,
    space_from_json,
    space_to_json,
)
from backsweep.encoding import Encoder
from backsweep.samplers import Sampler, SamplerState
from backsweep.snapshot import (
    Destination,
    SnapshotError,
    SnapshotMemory,
    read_description,
    read_snapshot,
    write_snapshot,
)
from backsweep.snapshot.contents import ContentsError, need
from backsweep.store.store import Store

if TYPE_CHECKING:
    from backsweep.replay import Replay

KIND = "backsweep replay"
NOT_OURS = "Do not use this folder: no release of backsweep writes such a save"
VERSION = 1


def save_replay(replay: Replay, folder: str | os.PathLike[str], *, final: bool = True) -> None:
    """Write `replay` to `folder`; the caller holds its lock.

    Unless it is `final`, the next save elsewhere still knows what has changed since the one before.
    """
    store, graph = replay._store, replay._graph
    sampler = replay._sampler.state()
    arrays: dict[str, NDArray[Any]] = {"ended": replay._autoreset.ended}
    parts = {
        "store": store.arrays(),
        "graph": {} if graph is None else graph.arrays(),
        "encoder": replay._encoder.arrays(),
        "sampler": sampler.arrays,
        "planner": {} if replay._planner is None else replay._planner.arrays(),
    }
    for part, contents in parts.items():
        arrays.update({f"{part}/{name}": array for name, array in contents.items()})
    metadata = {
        "observation_space": space_to_json(replay.observation_space),
        "action_space": space_to_json(replay.action_space),
        "capacity": replay._capacity,
        "num_envs": replay._num_envs,
        "n_step": replay._n_step,
        "gamma": replay._gamma,
        "frame_stack": store.frame_stack,
        "autoreset": replay._autoreset.mode,
        "check_autoreset": replay._check_autoreset,
        "cast": replay._cast,
        "seed": replay._seed,
        "sampler": configuration_to_json(replay._sampler_config),
        "encoder": configuration_to_json(replay._encoder_config),
        "values": configuration_to_json(replay._values_config),
        "sampler_state": sampler.values,
        "has_graph": graph is not None,
        "late_priority_updates": replay._stale_updates,
        "truncations_left_out": replay._left_out,
    }
    write_snapshot(
        folder,
        arrays,
        metadata,
        kind=KIND,
        version=VERSION,
        dirty={f"store/{name}": hint for name, hint in store.change_hints().items()},
        memory=replay._snapshot_memory,
    )
    if final:
        store.mark_saved()


def load_replay(
    folder: str | os.PathLike[str],
    *,
    sampler: Sampler | None,
    encoder: Encoder | None,
    file: str | os.PathLike[str] | None,
) -> Replay:
    """Return the replay saved in `folder`."""
    metadata, shapes = read_description(folder, kind=KIND, versions={VERSION})
    with _refused(folder, "its settings"):
        check_sizes(metadata, shapes)
        replay = _empty_replay(metadata, sampler, encoder, file)
        parts = _parts(replay, metadata["has_graph"])
        known = (*(f"{part}/" for part in parts), "encoder/", "sampler/")
        strange = [name for name in shapes if not name.startswith(known) and name != "ended"]
        need(not strange, f"it has arrays that belong to nothing: {strange}")
    store = replay._store
    snapshot = read_snapshot(
        folder,
        kind=KIND,
        versions={VERSION},
        into={
            f"{part}/{name}": _first_entries(folder, f"{part}/{name}", whole, store)
            for part, owner in parts.items()
            for name, whole in owner.destinations().items()
        },
        memory=replay._snapshot_memory,
    )
    if snapshot.metadata != metadata:
        raise SnapshotError(folder, "it was replaced by a newer save while it was being read", "Load it again")
    arrays = snapshot.arrays
    with _refused(folder, "its encoder"):
        replay._encoder.load(_part(arrays, "encoder/"))
    for name, part in parts.items():
        with _refused(folder, f"its {name}"):
            part.check(_part(arrays, f"{name}/"))
            part.finish_loading()
    store.mark_saved()
    with _refused(folder, "its settings"):
        ended, own = arrays["ended"], replay._autoreset.ended
        late, left_out = metadata["late_priority_updates"], metadata.get("truncations_left_out", 0)
        need(ended.dtype == np.bool_ and ended.shape == own.shape, "the lanes that have ended do not fit")
        need(type(late) is int and late >= 0, "the number of late updates is out of range")
        need(type(left_out) is int and left_out >= 0, "the number of truncations left out is out of range")
        replay._autoreset.go_on(ended)
        replay._stale_updates, replay._left_out = late, left_out
    replay._use_arrays()
    with _refused(folder, "its sampler"):
        replay._sampler.load_state(SamplerState(_part(arrays, "sampler/"), metadata["sampler_state"]))
    return replay


def _parts(replay: Replay, has_graph: bool) -> dict[str, Part]:
    """Return the parts that a save holds, each after those that it builds on."""
    parts: dict[str, Part] = {"store": replay._store}
    if has_graph or replay._graph is not None:
        parts["graph"] = replay._graph_for_loading()
    if replay._planner is not None:
        parts["planner"] = replay._planner
    return parts


class Part(Protocol):
    """A part of a replay that is read into arrays of its own, checks them, and builds what follows from them."""

    def destinations(self) -> dict[str, NDArray[Any]]:
        """Return the whole arrays that a save is read into."""
        ...

    def check(self, loaded: Mapping[str, NDArray[Any]]) -> None:
        """Raise a ContentsError where loaded arrays do not fit together, before anything follows their numbers."""
        ...

    def finish_loading(self) -> None:
        """Build what is not saved."""
        ...


def _empty_replay(
    metadata: dict[str, Any],
    sampler: Sampler | None,
    encoder: Encoder | None,
    file: str | os.PathLike[str] | None,
) -> Replay:
    from backsweep.replay import Replay

    return Replay(
        space_from_json(metadata["observation_space"]),
        space_from_json(metadata["action_space"]),
        metadata["capacity"],
        configuration_from_json(metadata["sampler"], "sampler") if sampler is None else sampler,
        encoder=configuration_from_json(metadata["encoder"], "encoder") if encoder is None else encoder,
        values=configuration_from_json(metadata.get("values"), "values"),
        num_envs=metadata["num_envs"],
        n_step=metadata["n_step"],
        gamma=metadata["gamma"],
        frame_stack=metadata["frame_stack"],
        autoreset=metadata["autoreset"],
        check_autoreset=metadata.get("check_autoreset", "warn"),
        cast=metadata.get("cast", False),
        file=file,
        seed=metadata["seed"],
    )


@contextlib.contextmanager
def _refused(folder: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Say which part of the folder is at fault, whatever it is that went wrong with it."""
    try:
        yield
    except SnapshotError:
        raise
    except KeyError as error:
        raise SnapshotError(folder, f"{what}: the entry {error} is missing", NOT_OURS) from error
    except ContentsError as error:
        raise SnapshotError(folder, f"{what}: {error}", NOT_OURS) from error
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, MemoryError) as error:
        raise SnapshotError(folder, f"{what} cannot be used ({error})", NOT_OURS) from error


def replay_to_files(replay: Replay) -> tuple[Any, ...]:
    """Return what `replay_from_files` takes: the files of a save, and what those do not hold.

    Configurations go along as they are, because those of the user's own classes are not in the files.
    """
    with tempfile.TemporaryDirectory(prefix="backsweep-") as folder:
        remembered, replay._snapshot_memory = replay._snapshot_memory, SnapshotMemory()
        try:
            save_replay(replay, folder, final=False)
        finally:
            replay._snapshot_memory = remembered
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }
    return files, replay._sampler_config, replay._encoder_config, replay._file


def replay_from_files(files: dict[str, bytes], sampler: Sampler, encoder: Encoder, file: Path | None) -> Replay:
    """Return the replay whose files `replay_to_files` gave."""
    with tempfile.TemporaryDirectory(prefix="backsweep-") as folder:
        for name, contents in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(contents)
        replay = load_replay(folder, sampler=sampler, encoder=encoder, file=file)
    replay._snapshot_memory = SnapshotMemory()
    return replay


def _first_entries(folder: str | os.PathLike[str], name: str, whole: NDArray[Any], store: Store) -> Destination:
    """Return a function that returns the first entries of a whole array, if the saved array fits there."""

    def hand_over(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        if not shape or shape[0] > len(whole) or shape[1:] != whole.shape[1:] or dtype != whole.dtype:
            raise SnapshotError(
                folder,
                f"its array {name!r} is {dtype} {shape}, expected {whole.dtype} of at most {whole.shape}",
                NOT_OURS,
            )
        if name == "store/frames":
            store.make_room_for_frames(shape[0])
        return whole[: shape[0]]

    return hand_over


def _part(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
