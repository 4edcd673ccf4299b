"""Robustness: many conditions, on several stacks, in one plan."""
