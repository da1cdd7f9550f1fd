"""Output for the user: answers, warnings, errors, exit codes, progress."""
