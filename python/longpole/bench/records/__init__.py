"""Records of measurements: on disk, in memory, and as named baselines."""
