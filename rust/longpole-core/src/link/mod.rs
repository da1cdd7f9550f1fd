//! Joins events that belong together, by the numbers the profiler gave them.
