"""Words: what kernels do, quantities and names for people, how an answer declares its data."""
