"""Drawing one lane's batch with its samplers' own kernels, and taking TD errors back to them."""
