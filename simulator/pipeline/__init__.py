"""Stacks as chains of steps; chains are merged into a plan, which runs sample by sample."""
