"""One file per library: how it is built, filled and sampled."""

from __future__ import annotations

from benchmarks.libraries.base import Library, MissingError, Wanted

OURS = "backsweep"
PEERS = ("cpprb", "stable-baselines3", "tianshou", "torchrl")

__all__ = ["OURS", "PEERS", "Library", "MissingError", "Wanted", "build"]


def build(name: str, wanted: Wanted) -> Library:
    """Return the wanted replay of a library; raises `MissingError` if it has none."""
    if name == OURS:
        from benchmarks.libraries.ours import Ours

        return Ours(wanted)
    if name == "cpprb":
        from benchmarks.libraries.with_cpprb import Cpprb

        return Cpprb(wanted)
    if name == "stable-baselines3":
        from benchmarks.libraries.with_sb3 import StableBaselines3

        return StableBaselines3(wanted)
    if name == "tianshou":
        from benchmarks.libraries.with_tianshou import Tianshou

        return Tianshou(wanted)
    from benchmarks.libraries.with_torchrl import TorchRL

    return TorchRL(wanted)
