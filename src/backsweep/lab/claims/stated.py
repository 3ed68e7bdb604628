"""What the paper states for each of its claims, as numbers where it gives any; most of it is curves."""

from __future__ import annotations

STATED: dict[str, str] = {
    "C1": "TER about 30 backups, EBU about 60, the others over 100",
    "C2": "TER's error falls first (curves)",
    "C3": "TER ahead on 7 of 7 tasks (curves, 5 seeds)",
    "C4": "TER ahead on 7 of 7 tasks (curves, 5 seeds)",
    "C5": "EBU and DisCor behind UER (curves)",
    "C6": "EBU above the true values, UER, PER and DisCor below (curves)",
    "C7": "more updates help on 1 of 4 tasks (curves)",
    "C8": "more updates, higher values (curves)",
    "C9": "0.1 and 0.2 best of the shares (curves)",
    "C10": "TER-single ahead of EBU (curves)",
    "C11": "TER 2 ms on average, 256 at most; PER 3 and 280",
    "C12": "TER ahead on 1 task (curves)",
    "C13": "TER-pseudo ahead on 2 tasks (curves)",
    "C14": "no gain (curves)",
    "C15": "no gain (curves)",
    "C16": "no difference from d = 1 on (curves)",
    "C17": "as high on 3 of 4 tasks (curves)",
    "C18": "about equal on 4 games (curves)",
    "C19": "about equal (curves)",
    "C20": "always (argument)",
    "C21": "every row (argument)",
    "C22": "the same order (discussion)",
    "C23": "none (discussion)",
    "C24": "none (discussion)",
}
