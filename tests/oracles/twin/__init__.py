"""Naive twins: the same answers as the Rust core, written to be read rather than to be fast."""
