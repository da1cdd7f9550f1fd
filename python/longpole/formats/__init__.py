"""Formats of traces: finding and reading what is on disk, and writing for other tools."""
