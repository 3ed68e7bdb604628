"""Adds to a replay with one kernel call.

`Store.add` and `Graph.follow` are two calls with a call of the encoder in between. If the kernel can compute the keys,
one call does it all.
"""

from __future__ import annotations

import numpy as np

from backsweep.encoding.base import LiveEncoder
from backsweep.encoding.discrete import LiveDiscreteKey
from backsweep.encoding.random_projection import LiveRandomProjection
from backsweep.graph.graph import Graph
from backsweep.jit.array_table import Table, address_table
from backsweep.store.argument_form_kernels import KEY_KIND
from backsweep.store.ingest_kernels import (
    KEY_OF_BYTES,
    KEY_OF_FLOAT32,
    KEY_OF_FLOAT64,
    KEY_OF_NUMBER,
    NO_GRAPH,
    Keys,
)
from backsweep.store.store import Store

Tables = tuple[int, Table]
PROJECTED = {
    np.dtype(np.uint8): KEY_OF_BYTES,
    np.dtype(np.float32): KEY_OF_FLOAT32,
    np.dtype(np.float64): KEY_OF_FLOAT64,
}
"""How a random projection computes the keys of observations of a dtype."""
NO_MATRIX = np.zeros((0, 0), np.int32)
NO_PLANES = np.zeros((0, 0, 0, 0), np.int16)


def key_kind(store: Store, graph: Graph | None, encoder: LiveEncoder) -> tuple[int, Keys | None] | None:
    """Return how the kernel computes keys and the arrays it needs for that; None if it cannot."""
    if graph is None:
        return NO_GRAPH, None
    single = store.layout.single
    if isinstance(encoder, LiveDiscreteKey) and single is not None and single.dtype == np.int64 and single.nbytes == 8:
        return KEY_OF_NUMBER, Keys(NO_MATRIX, NO_PLANES, graph.new_keys)
    if not isinstance(encoder, LiveRandomProjection) or single is None:
        return None
    kind = PROJECTED.get(single.dtype)
    if kind is None:
        return None
    planes = encoder.planes() if kind == KEY_OF_BYTES else NO_PLANES
    return kind, Keys(encoder.matrix, planes, graph.new_keys)


def tables_for(store: Store, graph: Graph | None, encoder: LiveEncoder) -> Tables | None:
    """Return the arguments of `add_staged`, None if the kernel cannot compute this encoder's keys.

    Where arguments can be taken from their objects, the table is one for `add_arguments` too, whose form says how keys
    are computed. Tables are valid as long as store, graph and encoder keep their arrays.
    """
    kind = key_kind(store, graph, encoder)
    if kind is None:
        return None
    code, keys = kind
    forms = store.staging.forms or ()
    if forms:
        forms[0].numbers[KEY_KIND] = code
    return code, address_table([*store.bundles, None if graph is None else graph.bundle, keys, *forms])
