"""A replay on disk: everything that the next rows depend on, in a snapshot folder."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.configuration import (
    ForeignClassError,
    check_sizes,
    configuration_from_json,
    configuration_to_json,
    space_from_json,
    space_to_json,
)
from backsweep.encoding import Encoder
from backsweep.samplers import Sampler, SamplerState
from backsweep.snapshot import (
    Description,
    Destination,
    ReplacedError,
    SnapshotError,
    SnapshotMemory,
    read_description,
    read_snapshot,
    write_snapshot,
)
from backsweep.snapshot.component_checks import ComponentChecks
from backsweep.snapshot.contents import ContentsError, need
from backsweep.snapshot.file_dict import files_of, write_files
from backsweep.snapshot.saved_component import SavedComponent, arrays_below
from backsweep.store.store import Store

if TYPE_CHECKING:
    from backsweep.replay import Replay

KIND = "backsweep replay"
NOT_OURS = "Do not use this folder: this release of backsweep writes no such save"
NO_MEMORY = "Load it on a machine, or with a limit, that has more memory, or give file=... for observations"
VERSION = 1
TRIES = 20
"""How often a folder is read that another process saves to all the time."""


def save_replay(replay: Replay, folder: str | os.PathLike[str], *, memory: SnapshotMemory | None = None) -> None:
    """Write `replay` to `folder`; the caller holds its lock.

    With a `memory` of its own, a save leaves no trace: the next one still knows what has changed since the last
    without.
    """
    machine, sampler = replay.machinery, replay.machinery.sampler.state()
    arrays, counts = replay.state()
    contents = {name: owner.arrays() for name, owner in replay.saved_components(machine.graph is not None).items()}
    contents.update(encoder=machine.encoder.arrays(), sampler=sampler.arrays)
    for name, owned in contents.items():
        arrays.update({f"{name}/{key}": array for key, array in owned.items()})
    metadata = {
        **{name: _setting_to_json(value) for name, value in replay.settings().items() if name != "file"},
        **counts,
        "sampler_state": sampler.values,
        "has_graph": machine.graph is not None,
    }
    write_snapshot(
        folder,
        arrays,
        metadata,
        kind=KIND,
        version=VERSION,
        dirty={f"store/{name}": hint for name, hint in machine.store.change_hints().items()},
        memory=replay.snapshot_memory if memory is None else memory,
    )
    if memory is None:
        machine.store.mark_saved()


def load_replay(
    folder: str | os.PathLike[str],
    *,
    sampler: Sampler | None,
    encoder: Encoder | None,
    file: str | os.PathLike[str] | None,
) -> Replay:
    """Return the replay saved in `folder`; if it is being saved at the same time, the older or the newer one."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(ReplacedError):
            return _load_once(folder, sampler, encoder, file)
    return _load_once(folder, sampler, encoder, file)


def _load_once(
    folder: str | os.PathLike[str],
    sampler: Sampler | None,
    encoder: Encoder | None,
    file: str | os.PathLike[str] | None,
) -> Replay:
    described = read_description(folder, kind=KIND, versions={VERSION})
    metadata, shapes = described.metadata, described.shapes
    for argument, given in (("sampler", sampler), ("encoder", encoder)):
        _check_class(argument, given, metadata.get(argument))
    with _refused(folder, "its settings"):
        check_sizes(metadata, shapes)
        replay = _empty_replay(metadata, sampler, encoder, file)
        components = replay.saved_components(metadata["has_graph"])
        known = (*(f"{component}/" for component in components), "encoder/", "sampler/")
        strange = [name for name in shapes if not name.startswith(known) and name != "ended"]
        need(not strange, f"it has arrays that belong to nothing: {strange}")
    machine = replay.machinery
    arrays = _read_components(folder, replay, components, described)
    machine.store.mark_saved()
    with _refused(folder, "its settings"):
        replay.load_state(arrays, metadata)
    with _refused(folder, "its sampler"):
        machine.sampler.load_state(SamplerState(arrays_below(arrays, "sampler/"), metadata["sampler_state"]))
    return replay


def _check_class(argument: str, given: object, saved: Any) -> None:
    """Refuse another class of sampler or encoder than the saved one."""
    name = saved.get("class") if isinstance(saved, dict) else None
    if given is not None and isinstance(name, str) and type(given).__name__ != name:
        raise ValueError(f"{argument} must be the saved one, of class {name!r}, or left out, got {given!r}")


def _read_components(
    folder: str | os.PathLike[str], replay: Replay, components: dict[str, SavedComponent], described: Description
) -> dict[str, NDArray[Any]]:
    """Fill the encoder and the components of an empty replay; return all arrays of the save."""
    machine = replay.machinery
    with ComponentChecks(components, lambda name: _refused(folder, f"its {name}")) as checks:
        snapshot = read_snapshot(
            folder,
            kind=KIND,
            versions={VERSION},
            into={
                f"{component}/{name}": _first_entries(folder, f"{component}/{name}", whole, machine.store)
                for component, owner in components.items()
                for name, whole in owner.destinations().items()
            },
            memory=replay.snapshot_memory,
            listener=checks,
            described=described,
        )
        with _refused(folder, "its encoder"):
            machine.encoder.load(arrays_below(snapshot.arrays, "encoder/"))
        checks.wait_for_sizes()
        try:
            for name, owner in components.items():
                with _refused(folder, f"its {name}"):
                    owner.build_tables()
        except SnapshotError:
            checks.wait()  # what it finds says more
            raise
        checks.wait()
    for name, owner in components.items():
        with _refused(folder, f"its {name}"):
            owner.finish_loading()
    return snapshot.arrays


def _setting_to_json(value: Any) -> Any:
    """Return a setting as JSON: spaces and configurations by their own rules, numbers and texts as they are."""
    if isinstance(value, gym.Space):
        return space_to_json(value)
    return configuration_to_json(value)


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
    """Turn every error into one that says which contents of the folder are wrong."""
    try:
        yield
    except SnapshotError:
        raise
    except ForeignClassError as error:
        raise SnapshotError(folder, str(error), error.advice) from error
    except KeyError as error:
        raise SnapshotError(folder, f"{what}: the entry {error} is missing", NOT_OURS) from error
    except ContentsError as error:
        raise SnapshotError(folder, f"{what}: {error}", NOT_OURS) from error
    except MemoryError as error:
        reason = str(error) or "there is no memory left"
        raise SnapshotError(folder, f"{what} cannot be loaded: {reason}", NO_MEMORY) from error
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise SnapshotError(folder, f"{what} cannot be used ({error})", NOT_OURS) from error


def replay_to_files(replay: Replay) -> tuple[Any, ...]:
    """Return what `replay_from_files` takes: the files of a save, and what those do not hold.

    Configurations go along as they are, because those of the user's own classes are not in the files.
    """
    with tempfile.TemporaryDirectory(prefix="backsweep-") as folder:
        save_replay(replay, folder, memory=SnapshotMemory())
        files = files_of(Path(folder))
    settings = replay.settings()
    return files, settings["sampler"], settings["encoder"], settings["file"]


def replay_from_files(files: dict[str, bytes], sampler: Sampler, encoder: Encoder, file: Path | None) -> Replay:
    """Return the replay whose files `replay_to_files` gave."""
    with tempfile.TemporaryDirectory(prefix="backsweep-") as folder:
        write_files(Path(folder), files)
        replay = load_replay(folder, sampler=sampler, encoder=encoder, file=file)
    replay.snapshot_memory = SnapshotMemory()
    return replay


def _first_entries(folder: str | os.PathLike[str], name: str, whole: NDArray[Any], store: Store) -> Destination:
    """Return a function that returns the first entries of a whole array, if the saved array fits there."""

    def destination(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        if not shape or shape[0] > len(whole) or shape[1:] != whole.shape[1:] or dtype != whole.dtype:
            raise SnapshotError(
                folder,
                f"its array {name!r} is {dtype} {shape}, expected {whole.dtype} of at most {whole.shape}",
                NOT_OURS,
            )
        if name == "store/frames":
            store.make_room_for_frames(shape[0])
        return whole[: shape[0]]

    return destination
