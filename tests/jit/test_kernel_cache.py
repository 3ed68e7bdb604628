"""Compiled kernels are kept where only this user can write, and nothing fails where they cannot be kept."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.caching import FunctionCache

from backsweep.jit import compilation, kernel_cache
from backsweep.jit.compilation import is_compiled, kernel

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")
compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a folder for temporary files of the test's own; what was said is forgotten."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(kernel_cache, "_said", set())
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


chosen = kernel_cache.cache_folder.__wrapped__


def test_the_folder_is_in_the_users_cache_and_closed_to_others(home: Path) -> None:
    folder = chosen()
    assert folder is not None
    assert folder.parent == home / ".cache" / "backsweep"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert chosen() == folder


def test_a_kernel_is_compiled_if_its_code_is_cached(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "cache_folder", chosen)
    folder = chosen()
    assert folder is not None
    assert not is_compiled("invented")
    (folder / "package").mkdir()
    (folder / "package" / "some_kernels.invented-12.py311.nbi").touch()
    assert is_compiled("invented")
    assert not is_compiled("inven")


def test_a_folder_that_others_can_write_to_is_emptied(home: Path) -> None:
    folder = chosen()
    assert folder is not None
    (folder / "planted.nbi").write_bytes(b"a pickle")
    folder.chmod(0o777)
    assert chosen() == folder
    assert not list(folder.iterdir())
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_link_is_not_followed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (home / ".cache").mkdir()
    (home / ".cache" / "backsweep").symlink_to(tmp_path / "elsewhere")
    folder = chosen()
    assert folder is not None
    assert folder.parent == tmp_path / "tmp" / f"backsweep-{os.getuid()}"
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_folder_that_others_can_replace_is_not_used(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that everybody can write to, everybody can rename what is there, after it was checked too."""
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(shared))
    shared.chmod(0o777)
    folder = chosen()
    assert folder is not None
    assert folder.parent == home / ".cache" / "backsweep"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(shared / "deeper"))
    assert chosen() == folder
    shared.chmod(0o1777)  # as usual for temporary files: only its owner can rename a file
    assert chosen() == shared / "deeper" / "backsweep" / folder.name


def test_without_a_home_there_is_a_folder_of_this_users_own(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    folder = chosen()
    assert folder is not None
    assert folder.parent.parent == tmp_path / "tmp"


def test_folders_of_another_user_are_left_alone_and_that_is_said(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chosen() is not None
    user = os.getuid()
    (home.parent / "tmp" / f"backsweep-{user + 1}").mkdir()  # made by somebody who guessed the name
    monkeypatch.setattr(kernel_cache, "_user", lambda: user + 1)
    assert chosen() is None
    assert "every process compiles them again" in capsys.readouterr().err


def times_seven(number: int) -> int:
    return 7 * number


@compiled
def test_a_full_disk_ends_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    monkeypatch.setattr(kernel_cache, "cache_folder", chosen)
    assert kernel(times_seven)(6) == 42
    assert f"cannot be cached in {chosen()} (" in capsys.readouterr().err


@compiled
def test_damaged_files_are_compiled_anew(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "cache_folder", chosen)
    folder = chosen()
    assert folder is not None
    assert kernel(times_seven)(6) == 42
    files = [path for path in folder.rglob("*times_seven*") if path.is_file()]
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    again = kernel(times_seven)
    assert again(5) == 35
    assert sum(again.stats.cache_hits.values()) == 1  # type: ignore[attr-defined]
    for path in files:
        path.write_bytes(path.read_bytes()[:20] + b"not this")
        damaged = kernel(times_seven)
        assert damaged(5) == 35
        assert not damaged.stats.cache_hits  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become another user")
def test_a_user_without_a_name_or_a_home_can_import() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to other users
        import_as_nobody(Path(folder))


def import_as_nobody(shared: Path) -> None:
    nobody = 51_966  # has no entry in the list of users
    shared.chmod(0o1777)
    planted = shared / f"backsweep-{nobody}"
    planted.mkdir()  # by root, for the victim to find
    planted.chmod(0o777)
    # Everything is imported as root first: packages may be where nobody else can read them.
    code = (
        "import os, sys, numba, backsweep\n"
        "for name in [name for name in sys.modules if name.startswith('backsweep')]:\n"
        "    del sys.modules[name]\n"
        "numba.config.CACHE_DIR = ''\n"
        "del os.environ['NUMBA_CACHE_DIR'], os.environ['HOME']\n"
        f"os.setgid({nobody}); os.setuid({nobody})\n"
        "import backsweep\n"
        "print(sys.modules['backsweep.jit.kernel_cache'].cache_folder())\n"
    )
    environment = {**os.environ, "TMPDIR": str(shared), "HOME": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("XDG_CACHE_HOME", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "None"
    assert "every process compiles them again" in done.stderr
    assert not list(planted.iterdir())


@compiled
def test_ctrl_c_waits_until_a_kernel_is_compiled(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba's own tables are half filled otherwise, and no kernel compiles any more in this process."""
    monkeypatch.setattr(kernel_cache, "cache_folder", chosen)
    order = []

    def interrupted(cache: FunctionCache, *arguments: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        order.append("saved")

    monkeypatch.setattr(FunctionCache, "save_overload", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        times = kernel(times_seven)
        with pytest.raises(KeyboardInterrupt):
            times(6)
        assert order == ["saved"]
        assert times(6) == 42
    finally:
        signal.signal(signal.SIGINT, before)
