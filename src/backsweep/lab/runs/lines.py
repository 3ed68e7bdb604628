"""JSON lines on disk: written whole or not at all, read as a stream, packed if the name says so."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from backsweep.snapshot import files


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> int:
    """Write records to a file that appears when it is complete; return how many there were.

    Packed files carry no time and no name, so the same records give the same bytes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with files.staging(path) as raw:
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else None
        for record in records:
            line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
            (packed or raw).write(line)
            count += 1
        if packed is not None:
            packed.close()
    files.publish(path)
    return count
