"""Profiles: declarative descriptions of stacks."""
