"""One module per question; each defines QUESTION."""
