"""What the user is told: answers, warnings, errors, exit codes, progress."""
