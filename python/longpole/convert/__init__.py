"""Execution traces with the times of a Kineto trace, and the files that simulators read."""
