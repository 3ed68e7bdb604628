"""Adding to a replay with one kernel call.

`store.add` and `graph.follow` are two kernels with some forty arrays between them, and handing those over takes longer
than the work itself. Here the arrays are a table of addresses that is put together once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.encoding.base import LiveEncoder
from backsweep.encoding.discrete import LiveDiscreteKey
from backsweep.encoding.random_projection import LiveRandomProjection
from backsweep.encoding.random_projection_kernels import LARGEST_IMAGE
from backsweep.graph.graph import Graph
from backsweep.jit.array_table import address_table
from backsweep.jit.compilation import interpreted
from backsweep.store.ingest_kernels import KEY_OF_BYTES, KEY_OF_NUMBER, NO_GRAPH, add_staged
from backsweep.store.store import Store

Tables = tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
NOTHING = np.zeros((1, 5), np.int64)


def key_kind(store: Store, graph: Graph | None, encoder: LiveEncoder) -> tuple[int, tuple[NDArray[Any], ...]] | None:
    """Return how the kernel makes keys, and the arrays that it needs for that; None if it cannot."""
    if graph is None:
        return NO_GRAPH, ()
    single = store.layout.single
    if isinstance(encoder, LiveDiscreteKey) and single is not None and single.dtype == np.int64 and single.nbytes == 8:
        return KEY_OF_NUMBER, ()
    if isinstance(encoder, LiveRandomProjection) and single is not None and single.dtype == np.uint8:
        return (KEY_OF_BYTES, (encoder.byte_matrix,)) if single.nbytes <= LARGEST_IMAGE else None
    return None


def tables_for(store: Store, graph: Graph | None, encoder: LiveEncoder) -> Tables | None:
    """Return what `add_staged` takes, None if this replay has to take the long way.

    They are good for as long as store, graph and encoder keep their arrays. Interpreted kernels know no addresses.
    """
    kind = key_kind(store, graph, encoder)
    if kind is None or interpreted():
        return None
    code, arrays = kind
    return (
        code,
        address_table([store.add_arguments])[0],
        NOTHING if graph is None else address_table([graph.add_arguments])[0],
        address_table([arrays])[0] if arrays else NOTHING,
    )


__all__ = ["KEY_OF_BYTES", "KEY_OF_NUMBER", "NO_GRAPH", "Tables", "add_staged", "key_kind", "tables_for"]
