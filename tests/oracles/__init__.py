"""Sources of truth: a simulator that knows its causes, and a naive reference implementation."""
