"""DreamerV2 (of sheeprl) on MiniGrid, for question C17: `python -m benchmarks.world_model`."""
