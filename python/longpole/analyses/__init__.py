"""Questions to a trace, a module each. Sweeps over time stand in the core; here are the answers."""
