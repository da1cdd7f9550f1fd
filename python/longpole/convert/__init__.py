"""Execution traces with the times of a Kineto trace, and input files of simulators."""
