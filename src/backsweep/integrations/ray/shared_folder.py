"""The folder of a shared replay: a description, and a folder for each shard (see `storage`).

FOLDER/shared.json       the number of shards, and the rate limiter
FOLDER/shard-000/ ...
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backsweep import saving
from backsweep.configuration import space_from_json
from backsweep.integrations.ray.limiter import RateLimiter
from backsweep.integrations.ray.storage import REPLAY
from backsweep.samplers import Sampler
from backsweep.snapshot import SnapshotError, files, read_metadata

DESCRIPTION = "shared.json"
KIND = "backsweep shared replay"
VERSION = 1
BUILDER_OPTIONS = ("n_step", "frame_stack", "cast")


def shard_folder(folder: Path, shard: int) -> Path:
    """Return the folder of one shard."""
    return folder / f"shard-{shard:03d}"


def settings_of(folder: Path, shard: int, sampler: Sampler | None, encoder: Any) -> dict[str, Any]:
    """Return the settings of a saved shard that writers need; the shard reads the rest."""
    place = shard_folder(folder, shard) / REPLAY
    metadata = read_metadata(place, kind=saving.KIND, versions={saving.VERSION})
    try:
        return {
            "observation_space": space_from_json(metadata["observation_space"]),
            "action_space": space_from_json(metadata["action_space"]),
            "sampler": sampler,
            "encoder": encoder,
            **{name: metadata[name] for name in BUILDER_OPTIONS},
        }
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotError(place, f"its settings cannot be used ({error})", saving.NOT_OURS) from error


def describe(folder: Path, shards: int, limiter: RateLimiter) -> None:
    """Write the description."""
    files.make_folder(folder)
    text = json.dumps({"kind": KIND, "version": VERSION, "shards": shards, "limiter": asdict(limiter)}).encode()
    files.stage(folder / DESCRIPTION, text)
    files.publish(folder / DESCRIPTION)
    files.force_folder(folder)


def described(folder: Path) -> tuple[int, RateLimiter | None]:
    """Return the number of shards and the limiter; None in saves of the first releases."""
    path = folder / DESCRIPTION
    advice = "Name a folder that SharedReplay saved to, or that it had its journal in"
    try:
        found = json.loads(files.read_whole(path))
        shards = found["shards"]
        good = found["kind"] == KIND and found["version"] == VERSION and type(shards) is int and 0 < shards <= 10_000
        limiter = RateLimiter(**found["limiter"]) if "limiter" in found else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SnapshotError(path, f"it cannot be read ({error})", advice) from error
    if not good:
        raise SnapshotError(path, "it does not describe a shared replay of this release", advice)
    return int(shards), limiter
