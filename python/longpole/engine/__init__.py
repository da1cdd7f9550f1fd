"""The dependency graph's answers: windows, the critical path, gains, the cost of recording."""
