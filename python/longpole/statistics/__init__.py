"""What samples say: of one run in `samples`, of several runs in `ranks`."""
