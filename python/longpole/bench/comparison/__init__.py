"""Compare two sets of measurements: faster, slower, the same, or inconclusive."""
