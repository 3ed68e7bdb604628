"""The files of a folder as one dict, for frameworks and pickles that hold a save in an object."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files below a folder, by their path from there."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write what `files_of` returned below a folder; if a name leads out of it, nothing is written."""
    for name in files:
        if not isinstance(name, str) or not _stays_inside(name):
            raise ValueError(f"files: {name!r:.200} is not the name of a file inside of a folder")
    for name, contents in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)


def _stays_inside(name: str) -> bool:
    """Say whether a relative path leads nowhere else, on any system."""
    parts = PurePosixPath(name).parts
    return (
        bool(parts) and "\0" not in name and ".." not in parts and not PureWindowsPath(name).anchor and "\\" not in name
    )
