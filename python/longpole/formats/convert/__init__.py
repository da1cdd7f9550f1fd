"""Links execution traces to Kineto traces, and writes input files for simulators."""
