"""Plain-Python references ("twins") of the kernels; tests drive both with the same calls and compare what comes out."""
