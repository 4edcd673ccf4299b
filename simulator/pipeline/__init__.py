"""Stacks as chains of steps, merged into a plan and walked."""
