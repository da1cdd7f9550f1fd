"""What the user asks: arguments, options, commands, and the inputs they name."""
