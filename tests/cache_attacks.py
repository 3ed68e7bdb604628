"""Attacks on the folder of compiled kernels by another user of the same machine; they need root, who can be both."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numba

from backsweep.jit import kernel_cache

VICTIM, ATTACKER = 51_966, 51_967
ROUNDS = 40


def _plant(draw: random.Random, place: Path, elsewhere: Path) -> None:
    """Put something where the victim will look, as whoever may write there."""
    how = draw.choice(["nothing", "folder", "open folder", "link", "file", "pipe", "dangling link"])
    if how in ("folder", "open folder"):
        place.mkdir(mode=0o755)
        place.chmod(0o777 if how == "open folder" else 0o755)
        inside = place / f"kernels-{kernel_cache.contents_digest()}"
        inside.mkdir()
        (inside / "planted.nbi").write_bytes(b"a pickle")
        inside.chmod(0o777)
    elif how == "link":
        place.symlink_to(elsewhere)
    elif how == "dangling link":
        place.symlink_to(elsewhere / "nothing")
    elif how == "file":
        place.write_bytes(b"x")
    elif how == "pipe":
        os.mkfifo(place)


def _as_user(user: int, work: Any) -> int:
    """Run `work` as another user in a process of its own; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def others_caches(draw: random.Random, folder: Path) -> int:
    """Another user got there first: kernels are kept where only the victim can write, or nowhere."""
    folder.chmod(0o755)
    for number in range(ROUNDS):
        shared, elsewhere = folder / f"shared-{number}", folder / f"elsewhere-{number}"
        for place in (shared, elsewhere):
            place.mkdir()
            place.chmod(0o1777)
        home = draw.choice([None, folder / "no-home", shared / "home"])
        if home == shared / "home":
            home.mkdir()
            os.chown(home, VICTIM, VICTIM)
        seed = draw.randrange(2**32)

        def attack(seed: int = seed, shared: Path = shared, elsewhere: Path = elsewhere) -> int:
            _plant(random.Random(seed), shared / f"backsweep-{VICTIM}", elsewhere)
            return 0

        def use(shared: Path = shared, home: Path | None = home) -> int:
            return _victim(shared, home)

        assert _as_user(draw.choice([ATTACKER, 0]), attack) == 0
        assert _as_user(VICTIM, use) == 0, f"round {number}, seed {seed}"
        assert not [path for path in elsewhere.rglob("*") if path.lstat().st_uid == VICTIM]
    return ROUNDS


def _victim(shared: Path, home: Path | None) -> int:
    """Ask for the folder of kernels as the victim; return 0 if it is safe or there is none."""
    numba.config.CACHE_DIR = ""
    for name in ("XDG_CACHE_HOME", "HOME", "NUMBA_CACHE_DIR"):
        os.environ.pop(name, None)
    if home is not None:
        os.environ["HOME"] = str(home)
    kernel_cache.tempfile.tempdir = str(shared)
    chosen = kernel_cache.cache_folder.__wrapped__()
    if chosen is None:
        return 0
    for place in (chosen.parent, chosen):
        found = place.lstat()
        if place.is_symlink() or found.st_uid != VICTIM or found.st_mode & 0o077:
            return 2
    return 3 if any(path.lstat().st_uid != VICTIM for path in chosen.rglob("*")) else 0
