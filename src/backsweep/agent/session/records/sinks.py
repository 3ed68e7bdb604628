"""Optional destinations of records: TensorBoard and Weights & Biases."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Protocol

from backsweep.agent.session.records.record_types import Record


class Sink(Protocol):
    """A destination of records."""

    def write(self, record: Record) -> None:
        """Take one record."""

    def close(self) -> None:
        """Finish."""


def scalars(record: Record) -> dict[str, float]:
    """Return the numbers of a record by name: evaluation/mean_return, replay/statistics/rows and so on."""

    def flat(prefix: str, values: dict[str, Any]) -> dict[str, float]:
        numbers: dict[str, float] = {}
        for name, value in values.items():
            if isinstance(value, dict):
                numbers.update(flat(f"{prefix}/{name}", value))
            elif isinstance(value, (int, float)):
                numbers[f"{prefix}/{name}"] = float(value)
        return numbers

    values = dataclasses.asdict(record)
    values.pop("step")
    return flat(record.kind, values)


class TensorBoard:
    """TensorBoard's event files in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ValueError("TensorBoard is not installed: pip install 'backsweep[tensorboard]'") from error
        self._writer: Any = SummaryWriter(os.fspath(folder))

    def write(self, record: Record) -> None:
        """Write every number of the record."""
        for name, value in scalars(record).items():
            self._writer.add_scalar(name, value, record.step)

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()


class WeightsAndBiases:
    """A run on Weights & Biases."""

    def __init__(self, project: str, name: str, configuration: dict[str, Any], folder: str | os.PathLike[str]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ValueError("Weights & Biases is not installed: pip install 'backsweep[wandb]'") from error
        self._run: Any = wandb.init(project=project, name=name, config=configuration, dir=os.fspath(folder))

    def write(self, record: Record) -> None:
        """Log every number of the record."""
        self._run.log({**scalars(record), "step": record.step})

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()
