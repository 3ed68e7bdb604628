"""MiniGrid levels: drawn at random (`kernels`) and listed with their probabilities (`starts`)."""
