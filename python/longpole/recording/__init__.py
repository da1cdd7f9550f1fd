"""Records and times a training loop; its public functions are `record` and `time_steps`."""
