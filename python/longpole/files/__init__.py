"""Files: opening and reading them, what a damaged one lost, safe writing."""
