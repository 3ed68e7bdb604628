"""Arrays as text inside a page: one compressed block of bytes, and a table of its contents."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 8
KINDS = {"float32": "Float32Array", "uint32": "Uint32Array", "int32": "Int32Array", "uint16": "Uint16Array"}
KINDS |= {"uint8": "Uint8Array"}


def pack(arrays: Mapping[str, NDArray[Any]]) -> tuple[bytes, dict[str, Any]]:
    """Return the arrays as one block, and a table with each one's type in JavaScript, offset and shape."""
    blocks, table, place = [], {}, 0
    for name, array in arrays.items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        table[name] = {"type": KINDS[array.dtype.name], "at": place, "shape": list(array.shape)}
        data = little.tobytes()
        blocks.append(data + bytes(-len(data) % ALIGNMENT))
        place += len(blocks[-1])
    return b"".join(blocks), table


def packed_text(data: bytes) -> str:
    """Return bytes compressed, in base64."""
    return base64.b64encode(gzip.compress(data, compresslevel=6, mtime=0)).decode()


def json_text(value: Any) -> str:
    """Return JSON that is safe inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
