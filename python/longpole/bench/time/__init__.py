"""Time functions, on the CPU or on a device, and commands, in one or more processes."""
