"""Speed and memory, measured as ratios within one run; never imported by the library."""
