"""One segment: the exact bytes of a safetensors file, built in and read from one reusable buffer.

The header follows from the manifest's entry of the segment, so the reader never has to trust a header: it builds the
expected one and compares. The safetensors library is not used here because it copies all data; the files are ordinary
safetensors files, and a test opens them with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from backsweep.snapshot.layout import ArraySpec, Piece, SegmentPlan, rows_of

FILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\.[0-9]{5,12}\.[0-9a-f]{32}\.safetensors")


def digest_of(data: bytes | memoryview) -> str:
    """128-bit XXH3 digest, as 32 hexadecimal digits."""
    return str(xxhash.xxh3_128_hexdigest(data))


def file_name(plan: SegmentPlan, digest: str) -> str:
    """Name a segment after its contents, so that an unchanged chunk keeps its file."""
    label = re.sub(r"[^A-Za-z0-9_-]", "_", plan.label)[:64]
    return f"{label}.{plan.index:05d}.{digest}.safetensors"


def header_of(pieces: Iterable[Piece], specs: Mapping[str, ArraySpec]) -> tuple[bytes, int]:
    """Build the safetensors header for these pieces; also return the number of data bytes that follow it."""
    table: dict[str, object] = {}
    end = 0
    for piece in pieces:
        spec = specs[piece.array]
        begin, end = end, end + (piece.stop - piece.start) * spec.row_bytes
        shape = list(spec.part_shape(piece.start, piece.stop))
        table[piece.array] = {"dtype": spec.code, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the data starts aligned
    return len(text).to_bytes(8, "little") + text, end


class SegmentBuffer:
    """A reusable buffer for one segment: the only copy of array data while saving or loading.

    Copying a chunk before it is hashed also ensures that the hashed bytes are written, even if the caller changes the
    array at the same time.
    """

    def __init__(self) -> None:
        self._bytes: NDArray[np.uint8] = np.empty(0, np.uint8)

    def take(self, size: int) -> NDArray[np.uint8]:
        """Return the first `size` bytes; earlier views are no longer valid."""
        if self._bytes.size < size:
            self._bytes = np.empty(0, np.uint8)  # free the old buffer before the new one is made
            self._bytes = np.empty(size, np.uint8)
        return self._bytes[:size]

    def build(
        self, pieces: tuple[Piece, ...], specs: Mapping[str, ArraySpec], arrays: Mapping[str, NDArray[Any]]
    ) -> NDArray[np.uint8]:
        """Lay out the whole file for these pieces and return its bytes."""
        header, data_bytes = header_of(pieces, specs)
        image = self.take(len(header) + data_bytes)
        image[: len(header)] = np.frombuffer(header, np.uint8)
        for piece, view in zip(pieces, views(image, len(header), pieces, specs), strict=True):
            view[...] = rows_of(np.asarray(arrays[piece.array]), piece)
        return image


def views(
    image: NDArray[np.uint8], offset: int, pieces: Iterable[Piece], specs: Mapping[str, ArraySpec]
) -> Iterable[NDArray[Any]]:
    """View each piece's data inside the bytes of a segment file."""
    for piece in pieces:
        spec = specs[piece.array]
        size = (piece.stop - piece.start) * spec.row_bytes
        yield image[offset : offset + size].view(spec.dtype).reshape(spec.part_shape(piece.start, piece.stop))
        offset += size
