"""Calls of actors that raise the original error instead of Ray's."""

from __future__ import annotations

from typing import Any

import ray


class SharedReplayError(RuntimeError):
    """A shard is lost and cannot restart, or cannot be reached."""


def answer(reference: Any) -> Any:
    """Return the result of a shard's call, or raise its error."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, Exception) and not isinstance(cause, ray.exceptions.RayError):
            raise cause from None
        raise
    except ray.exceptions.RayActorError as error:
        raise SharedReplayError(
            f"a shard of the shared replay is lost ({str(error).splitlines()[0]}). With journal=FOLDER it restarts "
            "automatically and loses no acknowledged row; without, its rows were only in memory"
        ) from error


def answers(references: list[Any]) -> list[Any]:
    """Return the results of several calls, in order."""
    return [answer(reference) for reference in references]
