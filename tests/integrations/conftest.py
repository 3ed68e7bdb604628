"""A Ray cluster of two nodes on this machine, each a few processes, for the tests that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

ONE_WORKER = {"test_ray.py", "test_ray_sweep.py", "test_rllib.py"}
"""Files that start Ray. Two parallel workers with a cluster each would mix them up, so one gets all of these."""
NODE: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 100 << 20}


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start Ray: one worker runs them, because two clusters on a machine find each other."""
    for item in items:
        if item.path.name in ONE_WORKER:
            item.add_marker(pytest.mark.xdist_group("ray"))
            item.add_marker(pytest.mark.ray)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes; `resources` of the second make it possible to ask for it."""
    ray = pytest.importorskip("ray", reason="needs ray: make test-integrations installs it")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    made.add_node(**NODE, resources={"second": 100})
    ray.init(address=made.address, log_to_driver=False)
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()
