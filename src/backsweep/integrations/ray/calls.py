"""Calls of actors whose errors say what is wrong and not where in Ray it came up."""

from __future__ import annotations

from typing import Any

import ray


class SharedReplayError(RuntimeError):
    """A shard is gone and does not come back, or cannot be reached."""


def answer(reference: Any) -> Any:
    """Return what a call of a shard gives, or raise the error that was raised there."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, Exception) and not isinstance(cause, ray.exceptions.RayError):
            raise cause from None
        raise
    except ray.exceptions.RayActorError as error:
        raise SharedReplayError(
            f"a shard of the shared replay is gone ({str(error).splitlines()[0]}). With journal=FOLDER it restarts by "
            "itself and no acknowledged row is lost; without, its rows were in memory alone"
        ) from error


def answers(references: list[Any]) -> list[Any]:
    """Return what several calls give, in their order."""
    return [answer(reference) for reference in references]
