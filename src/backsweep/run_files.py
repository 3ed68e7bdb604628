"""The names of files in the folder of a run or of a fleet; `agent/session/folder.py` says what they hold."""

from __future__ import annotations

CONFIG = "config.json"
MACHINE = "machine.json"
SESSIONS = "sessions.jsonl"
RECORDS = "records.jsonl"
FINISHED = "finished.json"
FLEET = "fleet.json"
EXTENSION = "extension.json"
AGENT = "agent"
CHECKPOINTS = "checkpoints"
STATE = "state"
"""Of a checkpoint: what is written last."""
MANIFEST = "manifest.json"
"""Of each snapshot in a checkpoint."""
