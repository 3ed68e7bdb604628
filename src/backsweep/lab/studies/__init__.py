"""Questions that are measured or checked directly, without training."""
