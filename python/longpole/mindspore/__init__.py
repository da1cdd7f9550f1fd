"""Profiles of MindSpore, read without MindSpore."""
