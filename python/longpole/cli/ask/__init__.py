"""Input from the user: arguments, options, commands, and the files they name."""
