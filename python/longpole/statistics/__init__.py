"""Statistics of samples: of one run in `samples`, of several runs in `ranks`."""
