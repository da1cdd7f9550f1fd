"""Interfaces of other tools, for programs written for them."""
