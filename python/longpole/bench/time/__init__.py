"""Time functions, on the processor or on a device, and commands, in one or more processes."""
