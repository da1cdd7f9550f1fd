"""Adapters to checkers that know nothing of longpole."""
