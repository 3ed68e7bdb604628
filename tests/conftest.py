"""What every test needs before anything is imported: where compiled kernels are kept, and how hypothesis runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


if "numba" in sys.modules:
    raise RuntimeError("numba was imported before tests/conftest.py could say where compiled kernels are kept")
# Kept between runs; backsweep.jit.compilation names the folders below it after all that goes into the kernels.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / "kernels"))
# Parallel workers share the cores: one thread for torch in each; two for threaded kernels, so that those are threaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "2")
# A thread that waits for another sleeps at once: spinning takes a core from the thread it waits for.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Stable-Baselines3 makes a folder for each model, and leaves it among the machine's temporary files.
os.environ.setdefault("SB3_LOGDIR", str(ROOT / ".pytest_cache" / "stable-baselines3"))

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

if os.environ.get("NUMBA_DISABLE_JIT") == "1":
    # Kernels count in 64 bits and let them overflow; compiled code does so in silence, numpy's scalars warn.
    np.seterr(over="ignore")

# The suite must come out the same each time, so hypothesis draws the same examples in every run. "long" looks for new
# ones: HYPOTHESIS_PROFILE=long python -m pytest
_common = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
}
settings.register_profile("quick", derandomize=True, database=None, max_examples=60, **_common)
settings.register_profile("long", max_examples=2000, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="module")
def running() -> Iterator[Any]:
    """A browser. One for each file: while Playwright runs, a test of another file could not start an event loop."""
    from browser import browser

    with browser() as found:
        yield found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation's site, built once for the files that look at it."""
    from site_building import build_site

    return build_site(tmp_path_factory.mktemp("site"))
