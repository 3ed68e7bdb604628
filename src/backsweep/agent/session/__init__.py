"""Sessions of training: run folders, records, evaluations, checkpoints, progress and the command line."""
