"""Moving one lane's task with its family's own kernels."""
