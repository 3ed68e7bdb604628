"""Everything around the loop: run folders, records, evaluations, checkpoints, progress and the command line."""
