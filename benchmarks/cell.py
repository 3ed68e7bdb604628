"""One cell of the table in its own process: ``python -m benchmarks.cell SPEC.json RESULT.json``.

The process is pinned to one core before anything large is imported. Whatever goes wrong becomes the cell's result.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any


def main() -> None:
    """Measure what the first file describes and write the numbers, or why there are none, to the second."""
    spec = json.loads(Path(sys.argv[1]).read_text())
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {spec["core"]})
    warnings.simplefilter("ignore")  # peers' deprecations are theirs
    Path(sys.argv[2]).write_text(json.dumps(_measured(spec)))


def _measured(spec: dict[str, Any]) -> dict[str, Any]:
    from benchmarks.libraries import MissingError

    try:
        work = import_module(f"benchmarks.works.{spec['family']}")
        return {"numbers": work.run(spec["library"], spec["params"])}
    except MissingError as reason:
        return {"missing": str(reason)}
    except Exception as error:
        traceback.print_exc()
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}


if __name__ == "__main__":
    main()
